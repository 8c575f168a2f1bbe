"""The policy of `ralph tasks plan`: one turn, and a second where nothing of the first can be used.
Whatever a turn changes is undone before it is judged."""

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from typing import Protocol

from ralph.kernel import rules
from ralph.kernel.case import Case
from ralph.kernel.facts import Fact, Step
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Policy, Ports
from ralph.kernel.prompt import cut_off, place
from ralph.kernel.state import RunState
from ralph.kernel.tasks.select import first_open
from ralph.kernel.value import value
from ralph.kernel.verdict import (
    Accept,
    Answer,
    Continue,
    Feedback,
    Reason,
    Stop,
    Verdict,
    is_interrupted,
)
from ralph.loops.backlog.planning.prompt import again
from ralph.loops.backlog.planning.proposal import Proposal
from ralph.loops.backlog.rules import DayLimit

NAME = "plan"  # the profile
TURNS = 2
Propose = Callable[[Case], Proposal]


class Settlement(Protocol):
    """Keeps what was proposed, and the project as it was."""

    def keep(self, state: RunState) -> str:
        """Keep the proposal of the last turn; it in words."""

    def begin(self, state: RunState) -> None:
        """A turn is about to begin."""

    def restore(self, state: RunState) -> tuple[str, ...]:
        """Put back what the turn changed, in words; nothing if it changed nothing."""

    def end(self) -> None:
        """The run is over for good."""


def planner(
    settlement: Settlement,
    propose: Propose,
    limits: Limits = Limits(),
    patience: rules.Patience = rules.Patience(),
    *,
    day: DayLimit | None = None,
    money: float | None = None,
) -> Policy:
    """`money` is a limit that somebody has set, so that nobody may guess at it."""
    days = (day,) if day else ()
    return Policy(
        name=NAME,
        select=first_open,
        compose=compose,
        opening=(
            rules.cancelled,
            rules.paused,
            rules.accepted,
            rules.unreadable,
            rules.nothing_left,
            *days,
            rules.RunLimit(limits),
            rules.carry_on,
        ),
        watching=rules.watching(limits, patience),
        stopping=(rules.release,),
        closing=(
            rules.interrupted,
            rules.unstartable,
            *rules.next_agent(patience),
            rules.refused,
            rules.RateLimit(patience.max_wait),
            rules.UsedUp(limits),
            Planned(propose),
            rules.Asks(),
            rules.Uncounted(Limits(dollars=money)),
            LastTurn(propose),
            *days,
            rules.RunLimit(limits),
            OnceMore(propose, patience.fail_delay),
        ),
        retaking=(rules.cancelled, rules.RunLimit(limits)),
        allowance=rules.allowance(limits),
        prepare=partial(_prepare, settlement),
        land=partial(_undo, settlement),
        settle=partial(_settle, settlement),
        notes=partial(_notes, propose),
    )


def compose(case: Case) -> str:
    state = case.state
    return place(case.task.text, (*state.feedback, *cut_off(state)))


@value
class Planned:
    """Tasks were proposed that can be used."""

    propose: Propose = field(repr=False)

    def __call__(self, case: Case) -> Answer | None:
        proposal = Proposal() if case.turn.failed else self.propose(case)
        return Accept((f"proposed: {proposal.words}",)) if proposal.tasks else None


@value
class LastTurn:
    """The agent was asked twice, and nothing can be used."""

    propose: Propose = field(repr=False)

    def __call__(self, case: Case) -> Answer | None:
        if case.state.iteration < TURNS:
            return None
        if case.turn.failed:
            why = f"the agent failed, asked {TURNS} times: {rules.describe_failure(case.turn)}"
            return Stop(Reason.FAILING, why)
        why = f"no task can be used of what the agent said: {self.propose(case).objections}"
        return Stop(Reason.LIMIT, why)


@value
class OnceMore:
    """The agent is told what was wrong with its answer."""

    propose: Propose = field(repr=False)
    delay: float = 0.0

    def __call__(self, case: Case) -> Answer | None:
        if case.turn.failed:
            words = f"The previous iteration failed: {rules.describe_failure(case.turn)}"
        else:
            words = again(self.propose(case).objections)
        return Continue((Feedback(words),), rules.spacing(case, self.delay))


def _notes(propose: Propose, case: Case) -> tuple[str, ...]:
    """Why the agent is asked once more; at the end the verdict says it."""
    if case.turn.failed or case.state.iteration >= TURNS or rules.Asks()(case):
        return ()
    proposal = propose(case)
    said = f"Nothing of the answer can be used: {proposal.objections}"
    return () if proposal.tasks else (said,)


def _prepare(settlement: Settlement, ports: Ports, state: RunState) -> Iterator[Fact]:
    """What a turn that was cut off has left goes first."""
    if state.cut_off:
        yield from _undo(settlement, ports, state)
    settlement.begin(state)


def _undo(settlement: Settlement, ports: Ports, state: RunState) -> Iterator[Fact]:
    for words in settlement.restore(state):
        yield Step(ports.clock.now(), "undone", detail=words)


def _settle(
    settlement: Settlement, ports: Ports, state: RunState, verdict: Verdict
) -> Iterator[Fact]:
    if isinstance(verdict, Accept) and not state.step("plan"):
        yield Step(ports.clock.now(), "plan", detail=settlement.keep(state))
    if isinstance(verdict, Stop) and not is_interrupted(verdict):
        settlement.end()
