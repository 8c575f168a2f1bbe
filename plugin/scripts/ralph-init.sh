#!/bin/sh
# Prepares a project for stories: `ralph prd init`. --help tells the options.
exec sh "$(dirname -- "$(readlink -f -- "$0" 2>/dev/null || echo "$0")")/prd.sh" init "$@"
