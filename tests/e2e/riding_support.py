"""Tasks that are proven while another is merged, so that they wait for the same train."""

import os
from pathlib import Path

# Looks at the first commit for so long that all others are proven by then.
HOOK = r"""#!/bin/sh
[ -e "$NOTES/first" ] && exit
touch "$NOTES/first"
said() { cat "$RUNS"/*/runs/*/runs/*/journal.jsonl; }
proven() { said | grep '"closing","verdict":{"type":"accept"'; }
for n in $(seq 400); do [ "$(proven | wc -l)" -ge "$MANY" ] && break; sleep 0.05; done
sleep 0.5
"""
WAIT = '[ "$id" = a ] || while [ ! -e "$NOTES/first" ]; do sleep 0.02; done'


def hold_the_first(repo: Path, state: Path, notes: Path, many: int) -> None:
    """Let the commit of `a` wait until so many tasks are proven, itself among them."""
    os.environ |= {"RUNS": str(state), "MANY": str(many), "NOTES": str(notes)}
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text(HOOK)
    hook.chmod(0o755)
