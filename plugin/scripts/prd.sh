#!/bin/sh
# prd.sh SUBCOMMAND [OPTION ...]: `ralph prd` by whatever ralph there is. The scripts beside it call this.
set -eu
here=$(dirname -- "$(readlink -f -- "$0" 2>/dev/null || echo "$0")")
root=$(cd -- "$here/../.." && pwd)

# Other programs are called ralph too; ours says its version so. One that is a link to us must not ask us for ever.
is_ours() {
    case "$(RALPH_ASKED=1 "$1" --version 2>/dev/null)" in "ralph "[0-9]*.[0-9]*) return 0 ;; esac
    return 1
}

if [ -n "${RALPH_ASKED:-}" ]; then
    exit 2
fi
for ralph in ralph "$root/.venv/bin/ralph"; do
    if command -v "$ralph" >/dev/null && is_ours "$ralph"; then
        exec "$ralph" prd "$@"
    fi
done
# These two need no package, only a Python that is new enough.
case "${1:-}" in init | archive)
    for python in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            exec "$python" -I -S "$here/prd.py" "$@"
        fi
    done
    ;;
esac
if command -v uvx >/dev/null; then
    exec uvx --from "$root" ralph prd "$@"
fi
if command -v pipx >/dev/null; then
    exec pipx run --spec "$root" ralph prd "$@"
fi
echo "ralph is not installed. Type:  pipx install '$root'  (or: python3 -m pip install '$root'), then try again" >&2
exit 2
