"""What must hold of a log of lives: pure, so that it can be shown to notice what is planted."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

BEGIN, BEAT, END = "begin", "beat", "end"  # what an agent says
SEEN, GONE = "seen", "gone"  # what the kernel says of it


@dataclass(frozen=True)
class Life:
    """One agent's life, as far as it is proven."""

    number: int
    task: str
    attempt: str
    host: str
    pid: int
    began: float
    last: float  # when it was alive for certain: a sign of its own, or the kernel's word
    finished: bool = False  # it came to the end of its work
    gone: bool = False  # nobody holds its connection any more


def lives(lines: Iterable[str]) -> list[Life]:
    """The lives in a log; a line that is no line of a log raises ValueError."""
    found: dict[int, Life] = {}
    for line in lines:
        stamp, kind, number, *rest = line.split(" ")
        time, key = float(stamp), int(number)
        if kind == BEGIN:
            task, attempt, host, pid = rest
            found[key] = Life(key, task, attempt, host, int(pid), time, time)
        elif kind in (BEAT, END, SEEN):
            life = found[key]
            done = life.finished or kind == END
            found[key] = replace(life, last=max(life.last, time), finished=done)
        elif kind == GONE:
            if key in found:  # else it ended before it had said anything
                found[key] = replace(found[key], gone=True)
        else:
            raise ValueError(f"no line of a log: {line}")
    return list(found.values())


def overlaps(known: Sequence[Life]) -> list[tuple[Life, Life]]:
    """Pairs of agents of one task that were alive at one moment. Nobody is in it who was not: a
    life counts up to its last sign only."""
    by_task: dict[str, list[Life]] = {}
    for life in known:
        by_task.setdefault(life.task, []).append(life)
    return [
        (one, other)
        for each in by_task.values()
        for one, other in combinations(sorted(each, key=lambda life: life.began), 2)
        if other.began < one.last
    ]


def objections(
    lines: Iterable[str],
    *,
    tasks: Iterable[str],
    landed: Iterable[str],
    processes: Iterable[str] = (),
    worktrees: Iterable[str] = (),
    refs: Iterable[str] = (),
) -> list[str]:
    """Why a run is not as it must be. `landed` names a task for each commit that completes it;
    the rest names what was found and should not be there."""
    known, count = lives(lines), Counter(landed)
    found = [
        f"{one.task}: two agents were alive for {_both(one, other):.3f} s, "
        f"{one.attempt} on {one.host} and {other.attempt} on {other.host}"
        for one, other in overlaps(known)
    ]
    found += [f"{task}: landed {count[task]} times" for task in tasks if count[task] != 1]
    found += [f"{life.task}: an agent lives on {life.host}" for life in known if not life.gone]
    worked = {life.task for life in known}
    found += [f"{task}: landed, and no agent worked on it" for task in count if task not in worked]
    found += [f"a process is left: {each}" for each in processes]
    found += [f"a worktree is left: {each}" for each in worktrees]
    found += [f"a ref is left: {each}" for each in refs]
    return found


def _both(one: Life, other: Life) -> float:
    return min(one.last, other.last) - other.began
