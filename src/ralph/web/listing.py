"""A run in the list of `ralph web`."""

from typing import Any

from ralph.runner.kept import loop_of
from ralph.runner.showing.recaps import asked_of
from ralph.text.plain import plain
from ralph.ui.status.listing import Entry

Told = dict[str, Any]


def told_of(entry: Entry) -> Told:
    """The run as the page gets it."""
    started = entry.started
    return {
        "run": entry.run,
        "profile": started.profile if started else "",
        "asked": plain(asked_of(*loop_of(entry.directory))),
        "agent": plain(started.agent) if started else "",
        "model": plain(started.model) if started else "",
        "workspace": plain(started.workspace, 4096) if started else "",
        "workers": started.workers if started else 1,
        "state": entry.state,
        "command": entry.command or "",
        "started_at": started.time if started else None,
        "time": entry.time,
        "iteration": entry.iterations,
        "max_iterations": entry.most,
        "cost_usd": entry.cost_usd,
        "max_cost_usd": started.limits.dollars if started else None,
        "uncounted": entry.uncounted,
        "asks": [plain(task) for task in entry.asks],
        "pid": entry.pid,
        "problem": plain(entry.problem, 1000),
    }
