"""Judges a run again: its facts and today's ladders give each verdict once more (ADR 55).

Every verdict is judged on the facts that are stored before it, so that one that differs changes
none of those that follow.
"""

from collections.abc import Callable, Iterator

from ralph.kernel.case import Case, Ladder, decided_by, rule_name
from ralph.kernel.facts import (
    Assigned,
    Began,
    Decided,
    Ended,
    Fact,
    Ladders,
    Resumed,
    Started,
)
from ralph.kernel.ports import TodaysRules
from ralph.kernel.sight import Sight
from ralph.kernel.state import NEW, Phase, RunState, fold
from ralph.kernel.tasks.task import Assignment, Backlog
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Answer, Boundary, Continue
from ralph.kernel.world import Snapshot, Stand

OLD = "its journal does not tell what the rules saw"
LIVE = "its turn goes on in a session, and no journal has it"
SELECTION, RETAKING = "selection", "retaking"
_OTHER_TREE = "\n"  # no digest is that


@value
class Rejudged:
    """A verdict, or a choice of a task, then and now."""

    time: float
    iteration: int
    task: str
    where: str  # the ladder, or the selection
    then: Answer | Assignment
    rule: str
    now: Answer | Assignment | None = None  # None: no rule answers any more
    rule_now: str = ""
    unjudged: str = ""  # why it was not judged again
    turn: Turn | None = None  # that was judged
    findings: tuple[str, ...] = ()  # the gates that objected
    by_reading: bool = False  # the stream is read otherwise: with the turn as stored it is the same
    changes: tuple[str, ...] = ()  # how the rules have changed that answer
    wordless: bool = False  # what was said is not kept: another rule says another thing

    @property
    def differs(self) -> bool:
        """The verdict is another one; not so where another rule gives the same."""
        if self.unjudged:
            return False
        return self.then != self.now or (self.wordless and self.rule != self.rule_now)

    @property
    def by_another(self) -> bool:
        """Another rule gives the same verdict."""
        return not self.unjudged and not self.differs and self.rule != self.rule_now


class Judge:
    """Judges the facts of one journal, in order. `rules_of` gives the rules by the fact with which
    a process begins, and the state after it."""

    def __init__(
        self,
        rules_of: Callable[[Started | Resumed, RunState], TodaysRules],
        rules: TodaysRules | None = None,
        state: RunState = NEW,
    ) -> None:
        """`rules` and `state` are those before the first fact."""
        self._rules_of, self._rules, self._state = rules_of, rules, state
        self._ladders: Ladders | None = None  # as they were then
        self._reread: RunState | None = None  # the same, with the turn as it is read today
        self._backlog = self._usable = Backlog()  # as seen last, and the last that could be used
        self._opened: Case | None = None  # a turn was let begin

    @property
    def at(self) -> tuple[int, str]:
        """The iteration and the task that the facts have come to."""
        return self._state.iteration, self._state.task

    def take(self, fact: Fact, reread: Turn | None = None) -> Rejudged | None:
        """The judgement of a fact that tells of a verdict or a choice; `reread` is the turn that it
        tells of, where that is read otherwise today."""
        found = None
        if isinstance(fact, Decided | Assigned) and fact.seen is not None:
            self._backlog = fact.seen.backlog(self._usable)
            self._usable = self._usable if self._backlog.problem else self._backlog
        match fact:
            case Decided():
                found = self._decided(fact)
            case Assigned():
                found = self._assigned(fact)
            case Began() if self._opened is not None:
                found = self._selected(fact.time, fact.assignment, self._opened)
        self._fold(fact, reread)
        if isinstance(fact, Started | Resumed):
            self._rules = self._rules_of(fact, self._state)
            self._ladders = fact.ladders
        return found

    def _fold(self, fact: Fact, reread: Turn | None) -> None:
        if isinstance(fact, Ended) and reread is not None:
            self._reread = fold(self._state, replace(fact, turn=reread))
        elif isinstance(fact, Began) or (isinstance(fact, Decided) and self._reread is not None):
            self._reread = None
        elif self._reread is not None:
            self._reread = fold(self._reread, fact)
        if isinstance(fact, Began):
            self._opened = None
        self._state = fold(self._state, fact)

    def _decided(self, fact: Decided) -> Rejudged:
        where = str(fact.boundary)
        if fact.boundary is Boundary.OPENING and self._state.phase is Phase.TURN:
            where = RETAKING
        found = self._found(fact.time, where, fact.verdict, fact.rule)
        if fact.boundary is Boundary.CLOSING:
            gates = dict.fromkeys(finding.gate for finding in fact.findings)
            found = replace(found, turn=self._state.turn, findings=tuple(gates))
        why = LIVE if fact.boundary is Boundary.STOPPING else self._unknown(fact.rule, fact.seen)
        if why:
            return replace(found, unjudged=why)
        assert fact.seen is not None
        case = self._case(self._state, fact, fact.seen)
        if fact.boundary is Boundary.OPENING and isinstance(fact.verdict, Continue):
            self._opened = case
        found = self._judged(found, case)
        if found.differs or self._reread is None:
            return found
        again = self._judged(found, self._case(self._reread, fact, fact.seen))
        return replace(again, turn=self._reread.turn, by_reading=True) if again.differs else found

    def _assigned(self, fact: Assigned) -> Rejudged:
        """A worker was sent: the ladder had nothing against it, and chose that task."""
        found = self._found(fact.time, SELECTION, fact.assignment, "")
        if why := self._unknown("", fact.seen):
            return replace(found, unjudged=why)
        assert fact.seen is not None
        case = Case(Boundary.OPENING, self._state, fact.time, fact.seen.signals, self._backlog)
        assert self._rules is not None
        answer, rule = decided_by(case, self._rules.policy.opening)
        if not isinstance(answer, Continue):
            changes = _changes(self._then(str(case.boundary)), self._ladder("opening"), "", rule)
            return replace(found, now=answer, rule_now=rule, changes=changes)
        return self._selected(fact.time, fact.assignment, case)

    def _selected(self, time: float, then: Assignment, case: Case) -> Rejudged:
        assert self._rules is not None
        now = self._rules.policy.select(case)
        if now is not None and (now.task, now.mode) == (then.task, then.mode):
            now = then  # titles and numbers beside it are no choice
        return replace(self._found(time, SELECTION, then, ""), now=now)

    def _found(self, time: float, where: str, then: Answer | Assignment, rule: str) -> Rejudged:
        iteration, task = self.at
        if where in (SELECTION, str(Boundary.OPENING)):  # of the turn to come
            iteration += not self._state.again
            task = then.task if isinstance(then, Assignment) else ""
        return Rejudged(time, iteration, task, where, then, rule)

    def _unknown(self, rule: str, seen: Sight | None) -> str:
        if seen is None or self._rules is None:
            return OLD
        return self._rules.beyond.get(rule, "")

    def _case(self, state: RunState, fact: Decided, seen: Sight) -> Case:
        """The case as it was when that was decided."""
        before = state.snapshot.tree
        tree = {None: "", True: f"{before}{_OTHER_TREE}", False: before}[seen.moved]
        if fact.boundary is Boundary.OPENING and state.phase is Phase.TURN:
            state = replace(state, again=True)
        return Case(
            fact.boundary,
            state,
            fact.time,
            seen.signals,
            self._backlog,
            Snapshot(tree, stand=Stand(fact.tree)),
            fact.findings,
            seen.passed,
            fact.checked,
        )

    def _judged(self, found: Rejudged, case: Case) -> Rejudged:
        answer, rule = decided_by(case, self._ladder(found.where))
        found = replace(found, now=answer, rule_now=rule)
        if not found.differs:
            return found
        then = self._then(found.where)
        return replace(found, changes=_changes(then, self._ladder(found.where), found.rule, rule))

    def _ladder(self, where: str) -> Ladder:
        assert self._rules is not None
        ladder: Ladder = getattr(self._rules.policy, where)
        return ladder

    def _then(self, where: str) -> tuple[str, ...]:
        return getattr(self._ladders, where) if self._ladders is not None else ()


def _changes(then: tuple[str, ...], ladder: Ladder, rule: str, rule_now: str) -> tuple[str, ...]:
    """How the rules that answer have changed, in sentences."""
    now = tuple(map(rule_name, ladder))
    return tuple(dict.fromkeys(_changed(then, now, rule, rule_now))) if then else ()


def _changed(
    then: tuple[str, ...], now: tuple[str, ...], rule: str, rule_now: str
) -> Iterator[str]:
    places, places_now = _places(then), _places(now)
    for name in filter(None, dict.fromkeys((rule, rule_now))):
        if name not in places_now:
            yield f"{name} is not in this ladder any more"
        elif name not in places:
            yield f"{name} is new: rule {places_now[name] + 1} of {len(now)}"
        elif then[places[name]] != now[places_now[name]]:
            yield f"{then[places[name]]} is {now[places_now[name]]} now"
    if rule in places_now and rule_now in places and rule in places:
        is_before = places_now[rule_now] < places_now[rule]
        if is_before != (places[rule_now] < places[rule]):
            first, other = (rule_now, rule) if is_before else (rule, rule_now)
            yield f"{first} is asked before {other} now, and was asked after it"


def _places(ladder: tuple[str, ...]) -> dict[str, int]:
    """The places of the rules by their short names; of two of one name, the first one's."""
    return {name.partition("(")[0]: at for at, name in reversed([*enumerate(ladder)])}
