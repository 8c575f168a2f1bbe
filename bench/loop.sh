#!/bin/bash
# A bare loop, as people write it: run an agent until it says that it is done, at most N times.
#   loop.sh AGENT ITERATIONS PROMPT
# LOOK=builtin looks for the tag without starting grep: the least that any loop can cost.
case $1 in
--version) echo "loop 1" && exit ;;
--help) echo "usage: loop.sh AGENT ITERATIONS PROMPT" && exit ;;
esac

done_with_grep() { grep -q '<response>DONE</response>' <<<"$said"; }
done_with_builtin() { [[ $said == *'<response>DONE</response>'* ]]; }

iteration=0
while [ "$iteration" -lt "$2" ]; do
    said=$("$1" "$3")
    if "done_with_${LOOK:-grep}"; then
        exit 0
    fi
    iteration=$((iteration + 1))
done
exit 1
