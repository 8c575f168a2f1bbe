#!/bin/sh
# Works through the stories of a project: `ralph prd run`. --help tells the options.
exec sh "$(dirname -- "$(readlink -f -- "$0" 2>/dev/null || echo "$0")")/prd.sh" run "$@"
