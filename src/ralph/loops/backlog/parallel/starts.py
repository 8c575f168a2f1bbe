"""Where a task with a pull request of its own begins: on its branch, on that of the task it waits
for, on the base that this one was merged into, or on what is checked out."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ralph.errors import ForgeError
from ralph.git.branch import branch_of
from ralph.kernel.value import value
from ralph.kernel.world import Signals
from ralph.loops.backlog.plan import TaskWork, is_apart
from ralph.runner.plan import Plan
from ralph.text.words import listed

if TYPE_CHECKING:
    from ralph.runner.publishing.outlet import Destination

HEAD = "HEAD"
_TRIES = 4
_LONGEST_PAUSE = 30.0  # seconds between two


@value
class Start:
    """The commit that a task begins with, and the branch that it stands on; "" for the base."""

    commit: str = HEAD
    below: str = ""
    problem: str = ""  # why it cannot begin


def start_of(
    plan: Plan[TaskWork], record: Mapping[str, Any], signals: Callable[[], Signals]
) -> Start:
    """Where a task begins, by its record. ForgeError where the forge does not say, though it was
    asked again."""
    if plan.destination is None or not is_apart(plan):
        return Start()
    for _ in range(_TRIES):
        try:
            return _start(plan.destination, str(record["id"]), record.get("blockedBy") or ())
        except ForgeError as error:
            if error.retry_after is None or signals().cancels:
                raise
            time.sleep(min(error.retry_after, _LONGEST_PAUSE))
    return _start(plan.destination, str(record["id"]), record.get("blockedBy") or ())


def _start(to: "Destination", task: str, blockers: Iterable[str]) -> Start:
    """Of a branch without an open pull request nothing is known: whoever pushes to it is told."""
    own, names = branch_of(task), {branch_of(str(each)): str(each) for each in blockers}
    heads = to.remote.heads(to.base, own, *names)
    base = heads.pop(to.base, "")
    opened = {branch: at for branch, at in heads.items() if to.forge.find(branch) is not None}
    for branch, commit in opened.items():
        to.remote.fetch(branch, commit)
    apart = {b: at for b, at in opened.items() if b != own and not to.remote.follows(at, HEAD)}
    tops = [b for b, commit in apart.items() if _holds(to, commit, apart.values())]
    if apart and not tops:
        tasks = listed([names[branch] for branch in apart])
        return Start(problem=f"it needs {tasks}, whose pull requests are not merged yet")
    below = tops[0] if tops else ""
    first = _with_merged(to, base) if names and not apart else HEAD
    return Start(opened.get(own) or apart.get(below, first), below)


def _with_merged(to: "Destination", base: str) -> str:
    """The base, which has what was merged there, if it goes on from what is checked out."""
    if base:
        to.remote.fetch(to.base, base)
    return base if base and to.remote.follows(HEAD, base) else HEAD


def _holds(to: "Destination", commit: str, others: Iterable[str]) -> bool:
    return all(to.remote.follows(other, commit) for other in others)
