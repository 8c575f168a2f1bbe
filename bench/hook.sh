#!/usr/bin/env bash
# The hooks that people write, with jq: hook.sh post-tool|stop|loop, the event on stdin.
set -u
event=$(cat)
if [ "$1" = post-tool ]; then
    session=$(jq -r .session_id <<<"$event")
    transcript=$(jq -r .transcript_path <<<"$event")
    size=$(stat -c %s "$transcript") || exit 0
    state="${TMPDIR:-/tmp}/bench-alerts-$session"
    if [ $((size / 8000)) -ge 90 ] && ! grep -qs 90 "$state"; then
        echo 90 >>"$state"
        echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"CRITICAL"}}'
    fi
    exit 0
fi
if [ "$1" = loop ]; then
    transcript=$(jq -r .transcript_path <<<"$event")
    last=$(grep -a '"role":"assistant"' "$transcript" | tail -n 1 | jq -r '.message.content[0].text')
    case "$last" in *'<promise>DONE</promise>'*) exit 0 ;; esac
    state="${TMPDIR:-/tmp}/bench-loop"
    count=$(($(cat "$state" 2>/dev/null || echo 0) + 1))
    echo "$count" >"$state"
    jq -n --arg i "$count" '{decision: "block", reason: "go on", systemMessage: $i}'
    exit 0
fi
cwd=$(jq -r .cwd <<<"$event")
[ -f "$cwd/.ralph-active" ] || exit 0
wrong=$(jq '[.userStories[] | select(.passes and .reviewStatus != "approved")] | length' "$cwd/ralph/tasks.json")
if [ "$wrong" != 0 ] || [ -n "$(git -C "$cwd" status --porcelain)" ]; then
    echo '{"decision":"block","reason":"not yet"}'
fi
