"""`--dry-run`: shows the first turn of a run, and begins nothing."""

import shlex
import time
from typing import Any

from ralph.kernel.verdict import Reason
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Plan
from ralph.runner.workplace import build_agent
from ralph.text.redact import redact, redacted_json
from ralph.ui.jsonlines import stop_line


def show_first_turn(invocation: Invocation, plan: Plan[Any]) -> int:
    """Print its prompt and command."""
    assert plan.loop.first is not None, "a command without it has no --dry-run"
    by, order = plan.loop.first(plan)
    launch = build_agent(by, by.project, may_probe=False).launch(order)
    if invocation.flags["in_json"]:
        shown = {"type": "dry_run", "time": time.time(), "run": None}
        first = redacted_json({**shown, "command": launch.argv, "prompt": order.prompt})
        lines = [first, stop_line(Reason.COMPLETED, time=time.time())]
    else:
        argv, how = launch.shown(order.prompt)
        lines = [f"Command: {shlex.join(argv)}", f"Prompt, {how}:", "", order.prompt]
        lines = [redact(line) for line in lines]
    print(*lines, sep="\n", file=invocation.out)
    return 0
