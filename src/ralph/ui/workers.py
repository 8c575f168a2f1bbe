"""A run by several workers, in a few words."""

from collections.abc import Sequence

from ralph.kernel.limits import Spent
from ralph.kernel.state import RunState
from ralph.kernel.value import replace, value
from ralph.text.clean import clean, one_line


@value
class Tally:
    """How far a run is with its tasks."""

    done: int
    parked: int  # left to a person
    at_work: int
    total: int | None = None  # with those that nobody has taken up yet, where that is known

    @classmethod
    def of(cls, state: RunState, ahead: frozenset[str] | None = None) -> "Tally":
        """As the state has it; `ahead` are the tasks of the list that are not done."""
        parked = frozenset(task for task, _ in state.parked)
        known = state.done | parked | state.at_work  # some are called done before they are back
        total = None if ahead is None else len(known | ahead)
        return cls(len(state.done), len(parked), len(state.crew), total)

    @property
    def words(self) -> str:
        """`5 of 12 done, 1 left to you`."""
        of = "" if self.total is None else f" of {self.total}"
        left = f", {self.parked} left to you" if self.parked else ""
        return f"{self.done}{of} done{left}"


def with_workers(spent: Spent, used: Sequence[Spent]) -> Spent:
    """What a run has used, with what those have who are not back; time passes for all at once."""
    return replace(
        spent,
        iterations=spent.iterations + sum(each.iterations for each in used),
        dollars=spent.dollars + sum(each.dollars for each in used),
        usage=sum((each.usage for each in used), spent.usage),
        uncounted=spent.uncounted + sum(each.uncounted for each in used),
    )


def tag_of(task: str) -> str:
    """What stands before each line of the worker at this task."""
    return f"{one_line(clean(task))} | "
