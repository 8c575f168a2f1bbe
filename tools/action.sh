#!/usr/bin/env bash
# The step of action.yml that runs Ralph. Inputs are in the environment; what came of it goes to
# $GITHUB_OUTPUT. It fails only where nothing can be said of a run: the action's last step has the
# exit code, after the report.
set -euo pipefail
ralph="$RUNNER_TEMP/ralph/bin/ralph"
said="$RUNNER_TEMP/ralph.jsonl"
: >"$said"

fail() {
    echo "::error::$1" >&2
    verdict 2 config
    exit 0
}

# verdict CODE WORD
verdict() {
    printf '%s\n' "exit-code=$1" "verdict=$2" >>"$GITHUB_OUTPUT"
}

# The lines of a text that hold something.
lines() {
    tr -d '\r' <<<"$1" | grep -v '^[[:space:]]*$' || true
}

given=0
for wish in "$PROMPT" "$PROMPT_FILE" "$TASKS"; do
    [ -z "$wish" ] || given=$((given + 1))
done
[ "$given" = 1 ] || fail "give one of the inputs prompt, prompt-file and tasks"
[ -z "$LABEL" ] || [[ "$TASKS" == github:* ]] || fail "the input label is for tasks: github:OWNER/NAME"
case "$DRAFT" in true | false | "") ;; *) fail "the input draft is true or false, not $DRAFT" ;; esac

# Commits need an author; one that the workflow has set stays.
git config user.email >/dev/null 2>&1 || {
    export GIT_AUTHOR_NAME="github-actions[bot]" GIT_COMMITTER_NAME="github-actions[bot]"
    export GIT_AUTHOR_EMAIL="41898282+github-actions[bot]@users.noreply.github.com"
    export GIT_COMMITTER_EMAIL="$GIT_AUTHOR_EMAIL"
}

flag() {
    [ -z "$2" ] || command+=("$1=$2")
}

if [ -n "$TASKS" ] && [ "$TASKS" != backlog ]; then
    import=(tasks import)
    while IFS= read -r one; do import+=("--label=$one"); done < <(lines "$LABEL")
    code=0
    GH_TOKEN="$TOKEN" GITHUB_TOKEN="$TOKEN" "$ralph" "${import[@]}" -- "$TASKS" || code=$?
    # 1: the list has nothing to do. Tasks of an earlier night may be left.
    if [ "$code" = 1 ] && [ ! -e .ralph/tasks.jsonl ]; then
        verdict 0 nothing
        exit 0
    fi
    [ "$code" -le 1 ] || {
        verdict "$code" config
        exit 0
    }
fi

if [ -n "$TASKS" ]; then
    command=(tasks run)
else
    command=(run)
    flag --prompt "$PROMPT"
    flag --prompt-file "$PROMPT_FILE"
fi
flag --agent "$AGENT"
flag --model "$MODEL"
flag --max-iterations "$MAX_ITERATIONS"
flag --max-time "$MAX_TIME"
flag --max-cost "$MAX_COST"
flag --pr "$PR"
flag --base "$BASE"
[ "$DRAFT" != true ] || command+=(--draft)
while IFS= read -r one; do command+=("$one"); done < <(lines "$ARGS")

# Without pull requests nobody needs the token; with them Ralph keeps it from the agent.
[ -z "$PR" ] || export GITHUB_TOKEN="$TOKEN" GH_TOKEN="$TOKEN"
unset PROMPT PROMPT_FILE TASKS LABEL AGENT MODEL MAX_ITERATIONS MAX_TIME MAX_COST PR BASE DRAFT ARGS TOKEN ACTION
# What the agent says is no command to GitHub; and nobody below can name the files that would set
# the PATH, the environment or the outputs of the steps that follow.
mute="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
echo "::stop-commands::$mute"
hidden=(-u GITHUB_ENV -u GITHUB_PATH -u GITHUB_OUTPUT -u GITHUB_STATE -u GITHUB_STEP_SUMMARY)
# A job that is cancelled gets an INT, seconds later a TERM: Ralph ends its turn, then cuts it off.
env "${hidden[@]}" "$ralph" "${command[@]}" --json >"$said" &
child=$!
trap 'signalled=1; kill -INT "$child" 2>/dev/null || true' INT TERM
while :; do
    signalled=0 code=0
    wait "$child" || code=$?
    [ "$signalled" = 1 ] || break # a signal ends `wait`, and not Ralph
done
echo "::$mute::"
"$RUNNER_TEMP/ralph/bin/python" -P - "$said" "$code" >>"$GITHUB_OUTPUT" <<'END'
import json
import sys

path, code = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    lines = file.read().splitlines()
try:
    last = json.loads(lines[-1])
except (IndexError, ValueError):
    last = {}
told = {
    "exit-code": code,
    "verdict": last.get("reason") or "bug",
    "run": last.get("run") or "",
    "journal": last.get("log") or "",
}
for name, text in told.items():
    print(f"{name}={' '.join(str(text).split())}")
END
