#!/usr/bin/env bash
# Prepares a Docker sandbox for Ralph (R §4): the agent's login lies in a directory that outlives
# the sandbox, and git knows who commits. Run it as root in there; again does no harm:
#
#   docker sandbox exec -u root NAME bash -c "$(cat setup.sh)" setup.sh "$HOME/.dclaude_state"
#   docker sandbox exec -i -u root NAME bash < setup.sh
#
# RALPH_AGENT_HOME and RALPH_AGENT_USER are for tests.
set -eu

home=${RALPH_AGENT_HOME:-/home/agent}
user=${RALPH_AGENT_USER:-agent}

# Shared directories have the same path inside as outside; the login may be any user's.
find_state() {
    local candidate
    for candidate in /Users/*/.dclaude_state /home/*/.dclaude_state /root/.dclaude_state; do
        if [ -d "$candidate" ]; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

own() { chown -h "$user:$user" "$@" 2>/dev/null || true; }

# link TARGET NAME: makes NAME a link, in the place of whatever is there.
link() {
    if [ "$(readlink "$2" 2>/dev/null)" != "$1" ]; then
        rm -rf "$2"
        ln -s "$1" "$2"
    fi
    own "$2"
}

# identity KEY VALUE: unless somebody has set one.
identity() {
    git config --file "$home/.gitconfig" --get "$1" >/dev/null 2>&1 ||
        git config --file "$home/.gitconfig" "$1" "$2"
}

state=${1:-$(find_state)}
if [ -z "$state" ] || [ ! -d "$state" ]; then
    echo "setup.sh: there is no directory for the login; name it: setup.sh DIRECTORY" >&2
    exit 2
fi
mkdir -p "$home" "$state/.claude"
# An empty file is no JSON, and Claude Code would not start.
[ -s "$state/.claude.json" ] || echo '{}' >"$state/.claude.json"
link "$state/.claude" "$home/.claude"
link "$state/.claude.json" "$home/.claude.json"
identity user.email ralph@localhost
identity user.name "Ralph Loop"
own "$home/.gitconfig"
