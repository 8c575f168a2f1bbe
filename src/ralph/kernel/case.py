"""The case: everything a rule may know, frozen at one boundary."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass

from ralph.kernel.facts import Proved
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Spent
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.turn import Pulse, Turn
from ralph.kernel.value import value
from ralph.kernel.verdict import LEGAL, Answer, Boundary
from ralph.kernel.world import Signals, Snapshot


@value
class Case:
    """The world as surveyed at a boundary."""

    boundary: Boundary
    state: RunState
    now: float
    signals: Signals = Signals()
    backlog: Backlog = Backlog()
    snapshot: Snapshot = Snapshot()
    findings: tuple[Finding, ...] = ()
    passed: tuple[str, ...] = ()  # gates that ran and found nothing
    checked: bool = False  # every gate ran
    proof: Proved | None = None  # where all of them passed on one tree
    pulse: Pulse | None = None

    @property
    def turn(self) -> Turn:
        """The turn that is being judged."""
        assert self.state.turn is not None, "only closing and stopping have a turn"
        return self.state.turn

    @property
    def finished(self) -> bool:
        """The turn under way has said its final result, and only its process is still there."""
        return self.pulse is not None and self.pulse.since_result is not None

    @property
    def task(self) -> Task:
        """The task under work, also when the backlog cannot be read now."""
        assignment = self.state.assignment
        assert assignment is not None, "no turn has begun"
        return self.backlog.get(assignment.task) or Task(assignment.task, assignment.title)

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """Tasks to work on, by the backlog: a parked one may have its answer by now. None is begun
        that could not be proven."""
        taken = self.state.done | self.state.at_work
        begun = self.state.task if self.state.task_iteration else ""
        return tuple(
            t
            for t in self.backlog.tasks
            if t.id not in taken and t.open and (not t.uncheckable or t.id == begun)
        )

    @property
    def spent(self) -> Spent:
        """The time and money the run has used up to now."""
        return self.state.spent_at(self.now)

    @property
    def progressed(self) -> bool | None:
        """A commit, a changed tree or a changed set of findings; None if nobody watches."""
        if {f.identity for f in self.findings} != {f.identity for f in self.state.findings}:
            return True
        return self.moved

    @property
    def moved(self) -> bool | None:
        """The tree is another one than before the turn; None if nobody watches."""
        return self.snapshot.tree != self.state.snapshot.tree if self.snapshot.tree else None


Rule = Callable[[Case], Answer | None]
Ladder = tuple[Rule, ...]


def decide(case: Case, ladder: Ladder) -> Answer | None:
    """The first rule that answers wins. Only at `watching` may all of them be silent."""
    return decided_by(case, ladder)[0]


def decided_by(case: Case, ladder: Ladder) -> tuple[Answer | None, str]:
    """The same, with the name of the rule that answered."""
    for rule in ladder:
        answer = rule(case)
        if answer is None:
            continue
        legal = isinstance(answer, LEGAL[case.boundary])
        assert legal, f"{rule!r} answered {answer!r}, which is not legal at {case.boundary}"
        return answer, short_name(rule)
    return None, ""


def short_name(rule: Rule) -> str:
    """The name of a rule without its parameters: `carry_on`, `RunLimit`."""
    return getattr(rule, "__name__", None) or type(rule).__name__


def rule_name(rule: Rule) -> str:
    """The name of a rule: `carry_on`, `RunLimit(limits=Limits(iterations=10))`."""
    return getattr(rule, "__name__", None) or _shown(rule)


def _shown(value: object) -> str:
    """A dataclass without fields that are None or hidden."""
    if not is_dataclass(value):
        return repr(value)
    told = [(f.name, getattr(value, f.name)) for f in fields(value) if f.repr]
    inner = ", ".join(f"{name}={_shown(v)}" for name, v in told if v is not None)
    return f"{type(value).__name__}({inner})"
