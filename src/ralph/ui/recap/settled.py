"""The closing words of a run, after people have settled in its list what it left to them. Pure."""

import re
from collections.abc import Iterable, Sequence

from ralph.kernel.tasks.task import Status, Task
from ralph.kernel.value import replace
from ralph.kernel.verdict import Reason, Stop
from ralph.ui.closing import Closing, next_of_waiting, waiting_words

_ABOUT = re.compile(r"(\S+?)(?:: | asks: | is blocked| waits for )")
_NOT_BEGUN = re.compile(r"(\S+) was not begun: ")


def settled_since(closing: Closing, stop: Stop | None, listed: Sequence[Task]) -> Closing:
    """The words without those about tasks that wait for nobody any more."""
    if not listed:
        return closing
    waiting = waiting_words(stop) if stop is not None and stop.reason is Reason.BLOCKED else []
    free = _free(listed, (*closing.left, *waiting))

    def waits(line: str) -> bool:
        about = _ABOUT.match(line)
        return about is None or about[1] not in free

    still = list(filter(waits, waiting))
    closing = replace(closing, left=tuple(filter(waits, closing.left)))
    if len(still) == len(waiting):
        return closing
    if still or any(task.status is Status.BLOCKED and not task.aside for task in listed):
        return replace(closing, next=tuple(next_of_waiting(still)))
    is_open = any(task.open for task in listed)
    return replace(closing, next=("ralph tasks run",) if is_open else ())


def _free(listed: Iterable[Task], lines: Iterable[str]) -> frozenset[str]:
    """The tasks that nobody is asked about, and that wait for none of those."""
    stuck = {about[1] for line in lines if (about := _NOT_BEGUN.match(line))}
    stuck |= {task.id for task in listed if task.status is Status.BLOCKED}
    behind = {task.id: task.blocked_by for task in listed if task.open and task.id not in stuck}
    while more := {name for name, by in behind.items() if not stuck.isdisjoint(by)}:
        stuck |= more
        behind = {name: by for name, by in behind.items() if name not in more}
    return frozenset(task.id for task in listed) - stuck
