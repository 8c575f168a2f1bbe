#!/bin/sh
# Archives finished stories: `ralph prd archive`. --help tells the options.
exec sh "$(dirname -- "$(readlink -f -- "$0" 2>/dev/null || echo "$0")")/prd.sh" archive "$@"
