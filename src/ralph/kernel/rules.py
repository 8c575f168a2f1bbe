"""Rules: each answers one question about a case, or nothing. Ladders put them in order.

A rule with parameters is a value, so that it prints, compares and explains itself. Rules that only
one loop has are in `rules` of that loop.
"""

import math
from collections.abc import Callable
from dataclasses import field

from ralph.kernel.case import Case, Ladder
from ralph.kernel.contracts import Contract, asked
from ralph.kernel.events import Failure, Usage
from ralph.kernel.limits import Limits, exceeded, left
from ralph.kernel.roster import Roster
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import (
    Accept,
    Answer,
    Bench,
    Cause,
    Continue,
    Cut,
    Feedback,
    Park,
    Reason,
    Release,
    Stop,
    Wait,
)
from ralph.kernel.world import hurried
from ralph.text.words import counted, duration

NO_CHILDREN = "no active children"
TIMED_OUT = "timed out after"
SILENT = "silent for"
_SAID = 300  # of a program's last words; an agent that prints its prompt must not snowball


# ------------------------------------------------------------------ opening


def cancelled(case: Case) -> Answer | None:
    """Someone asked the run to end."""
    return Stop(Reason.INTERRUPTED, "asked to stop") if case.signals.cancels else None


def paused(case: Case) -> Answer | None:
    """Someone asked the run to pause."""
    return Wait(None, "paused") if case.signals.paused else None


def unreadable(case: Case) -> Answer | None:
    """The prompt, the task list or a signal cannot be read."""
    problem = case.backlog.problem or case.signals.problem
    return Stop(Reason.CONFIG, problem) if problem else None


@value
class Stuck:
    """Something is left to do, and no task can be selected."""

    select: Callable[[Case], Assignment | None] = field(repr=False)

    def __call__(self, case: Case) -> Answer | None:
        if self.select(case) is not None:
            return None
        names = ", ".join(t.id for t in case.open_tasks) or "the list is empty"
        return Stop(Reason.BLOCKED, f"no open task can be started: {names}")


def accepted(case: Case) -> Answer | None:
    """The one task there is was believed done, whatever has become of its prompt since."""
    if not case.state.done:
        return None
    return Stop(Reason.COMPLETED, "nothing is left to do", case.state.evidence)


def nothing_left(case: Case) -> Answer | None:
    """Every task is done."""
    if case.open_tasks:
        return None
    return Stop(Reason.COMPLETED, "nothing is left to do", case.state.evidence)


@value
class RunLimit:
    """The run's iterations, time or money are used up."""

    limits: Limits

    def __call__(self, case: Case) -> Answer | None:
        spent = case.spent
        if case.state.again:  # an iteration that is taken again has not been spent
            spent = replace(spent, iterations=spent.iterations - 1)
        why = exceeded(self.limits, spent)
        return Stop(Reason.LIMIT, why) if why else None


def carry_on(case: Case) -> Answer | None:
    """Nothing speaks against another turn."""
    return Continue()


# ------------------------------------------------------------------ watching


@value
class Timeouts:
    """A turn takes too long, or says nothing for too long."""

    turn: float | None = None
    idle: float | None = None

    def __call__(self, case: Case) -> Answer | None:
        assert case.pulse is not None
        seconds, idle, finished = case.pulse.seconds, case.pulse.idle, case.finished
        if self.turn is not None and seconds >= self.turn:
            return Cut(f"{TIMED_OUT} {duration(self.turn)}", finished=finished)
        if self.idle is not None and idle >= self.idle and not finished:
            return Cut(f"{SILENT} {duration(self.idle)}")
        return None


@value
class ResultGrace:
    """The final result is said and the process does not exit (ADR 6)."""

    seconds: float = 10.0

    def __call__(self, case: Case) -> Answer | None:
        assert case.pulse is not None
        since = case.pulse.since_result
        if since is None or since < self.seconds:
            return None
        return Cut(f"still running {duration(self.seconds)} after its result", finished=True)


@value
class TimeLeft:
    """The run's time is used up while the agent works."""

    seconds: float | None

    def __call__(self, case: Case) -> Answer | None:
        if self.seconds is None or case.spent.seconds < self.seconds:
            return None
        return Cut(f"the run's {duration(self.seconds)} are used up", finished=case.finished)


@value
class MoneyLeft:
    """The run's money is used up while the agent works, as far as its stream tells."""

    dollars: float | None

    def __call__(self, case: Case) -> Answer | None:
        assert case.pulse is not None
        if self.dollars is None or case.finished:  # what is said is paid: let it end
            return None
        if case.spent.dollars + case.pulse.dollars < self.dollars:
            return None
        return Cut(f"the run's ${self.dollars:g} are used up")


@value
class SecondSignal:
    """Asked to end twice, or once and not ended within the grace (ADR 7)."""

    stop_grace: float | None = None

    def __call__(self, case: Case) -> Answer | None:
        return hurried(case.signals, case.now, self.stop_grace)


# ------------------------------------------------------------------ closing


def interrupted(case: Case) -> Answer | None:
    """After a signal the answer is 130, whatever was claimed (ADR 2)."""
    return cancelled(case)


def unstartable(case: Case) -> Answer | None:
    """Not found or not executable: no restart will help (ADR 5)."""
    if case.turn.ending is not Ending.UNSTARTABLE:
        return None
    return Stop(Reason.CONFIG, case.turn.why)


def refused(case: Case) -> Answer | None:
    """The provider does not accept the credential."""
    failure = case.turn.failure
    if failure is None or not failure.refused:
        return None
    why = f"the agent's credential was refused: {describe_failure(case.turn)}"
    return Stop(Reason.CONFIG, _with_remedy(why, case.turn))


def barred(case: Case) -> Answer | None:
    """Permission was denied and nothing was written: so it will be in every other turn."""
    landed = case.state.landed
    if not case.turn.barred or (landed is not None and landed.count):
        return None
    why = f"permission denied: {', '.join(case.turn.denied)}, and nothing was changed"
    return Stop(Reason.CONFIG, _with_remedy(why, case.turn))


def _with_remedy(why: str, turn: Turn) -> str:
    return f"{why.rstrip('.')}. {turn.remedy}" if turn.remedy else why


@value
class RateLimit:
    """Wait for the stated reset, else 30 s doubling to 15 min, then take the iteration again. An
    overloaded service is tried so often; then the turn has failed."""

    max_wait: float = 86_400.0
    tries: int = 10

    def __call__(self, case: Case) -> Answer | None:
        failure, state = case.turn.failure, case.state
        if failure is None or not failure.passes:
            return None
        message = failure.message
        if failure.overloaded:
            if state.overloads >= self.tries:
                return None
            message = f"{message.rstrip('.')} (try {state.overloads + 1} of {self.tries})"
        until = _reset(failure, case.now, state.waits)
        return _waited_out(case, until, self.max_wait, message) or Wait(until, message)


@value
class NextAgent:
    """Bench an agent that is refused, overloaded or limited for long: the next one goes on.
    With all of them benched, wait for the first that is free."""

    roster: Roster
    max_wait: float = field(default=86_400.0, repr=False)
    tries: int = 10

    def __call__(self, case: Case) -> Answer | None:
        failure, state, roster = case.turn.failure, case.state, self.roster
        if failure is None or not (failure.refused or failure.passes):
            return None
        place = state.place
        times = next((b.times for b in state.benches if b.place == place), 0)
        tried = max(times, state.waits)
        until = None if failure.refused else _reset(failure, case.now, tried)
        if failure.overloaded and state.overloads >= self.tries * (roster.fallbacks + 1):
            return None
        since = case.now - (state.waited - state.waited_before)
        if failure.limited and until is not None and until - since <= roster.after:
            return None
        agent = case.turn.agent or "the agent"
        bench = Bench(place, until, agent, tried + 1)
        free = roster.next_free(state, bench, case.now)
        if free == math.inf:
            return None
        why = describe_failure(case.turn)
        if failure.refused:
            why = _with_remedy(f"its credential was refused: {why}", case.turn)
        message = f"{agent} cannot go on: {why}"
        ended = _waited_out(case, free, self.max_wait, message)
        return ended or Wait(free if free > case.now else 0, message, bench)


def next_agent(patience: "Patience") -> Ladder:
    """The rule for runs that have more than one agent."""
    roster = patience.roster
    return (NextAgent(roster, patience.max_wait),) if roster.fallbacks else ()


def _reset(failure: Failure, now: float, times: int) -> float:
    """When to ask the provider again, by its own word or after so many times."""
    stated = failure.resets_at
    if stated is None and failure.retry_after is not None:
        stated = now + failure.retry_after
    if stated is None or stated <= now:
        return now + _doubling(30.0, times)
    # A reset that keeps proving too early must not become a busy loop.
    return max(stated, now + _doubling(1.0, times))


def _waited_out(case: Case, until: float, most: float, message: str) -> Stop | None:
    """The end of a run that would wait for longer, all told, than it may."""
    if case.state.waited + until - case.now <= most:
        return None
    return Stop(Reason.LIMIT, f"waiting used up ({duration(most)}): {message}")


def _doubling(first: float, times: int, most: float = 900.0) -> float:
    return min(most, first * 2.0 ** min(times, 10))


@value
class UsedUp:
    """A turn failed because the run's time or money ran out: that is a limit, not a failure."""

    limits: Limits

    def __call__(self, case: Case) -> Answer | None:
        why = exceeded(replace(self.limits, iterations=None), case.spent)
        return Stop(Reason.LIMIT, why) if why and case.turn.failed else None


@value
class Failing:
    """So many agent failures in a row end the run, or this task; fewer are fed back. 0 is off."""

    after: int = 3
    park: bool = False

    def __call__(self, case: Case) -> Answer | None:
        count = case.state.failures + 1
        if not case.turn.failed or not self.after or count < self.after:
            return None
        failures = f"{counted(count, 'agent failure')} in a row"
        why = f"{failures}; the last: {describe_failure(case.turn)}"
        return Park(why, Cause.CRASH) if self.park else Stop(Reason.FAILING, why)


def describe_failure(turn: Turn) -> str:
    """The reason why a turn failed, in one line; its last output where nothing says more."""
    if turn.ending is not Ending.EXITED:
        return turn.why
    if turn.failure is not None and turn.failure.status is not None:
        return turn.failure.message
    what = turn.failure.message if turn.failure else f"exit code {turn.exit_code}"
    last = (said.strip().splitlines()[-1:] for said in (turn.stray, turn.stderr))
    return ": ".join((what, *(line[:_SAID] for lines in last for line in lines)))


@value
class Asks:
    """The agent needs a person: BLOCKED, DECIDE or a question."""

    park: bool = False
    contract: Contract | None = None  # whose claim is the last word, if it comes last

    def __call__(self, case: Case) -> Answer | None:
        question = None if case.turn.failed else asked(case.turn, self.contract)
        if question is None:
            return None
        return Park(question, Cause.QUESTION) if self.park else Stop(Reason.BLOCKED, question)


@value
class Believed:
    """The claim is made, the turn did not fail, and every gate ran and passed (ADR 4)."""

    contract: Contract
    min_tools: int = 0

    def __call__(self, case: Case) -> Answer | None:
        claim = self.contract.met_by(case.turn)
        if claim is None or case.turn.failed or not case.checked or case.findings:
            return None
        if case.turn.tools < self.min_tools:
            return None
        gates = tuple(f"passed: {name}" for name in case.passed)
        return Accept((f"claimed: {claim.raw}", *(gates or ("no gate is configured",))))


@value
class Uncounted:
    """Tokens were used whose price nobody knows: a limit of money cannot hold (ADR 22)."""

    limits: Limits

    def __call__(self, case: Case) -> Answer | None:
        known = case.turn.cost_usd is not None or case.turn.usage == Usage()
        if self.limits.dollars is None or known:
            return None
        why = f"what its tokens cost is not known, so ${self.limits.dollars:g} cannot be kept to"
        return Stop(Reason.CONFIG, f"{why}: set agent.prices")


@value
class Stalled:
    """So many turns in a row changed nothing. 0 is off."""

    after: int
    park: bool = False

    def __call__(self, case: Case) -> Answer | None:
        count = case.state.stalls + (case.progressed is False)
        if not self.after or count < self.after:
            return None
        why = f"{count} iterations without any progress"
        return Park(why, Cause.STALLED) if self.park else Stop(Reason.STALLED, why)


@value
class Objections:
    """A failure, findings and near misses go back to the agent; failures in a row are spaced."""

    contract: Contract | None = None
    delay: float = 0.0  # seconds after the first failed turn

    def __call__(self, case: Case) -> Answer | None:
        near = self.contract.near_misses(case.turn) if self.contract else ()
        notes = (Feedback(f"Not complete yet: {' '.join(near)}"),) if near else ()
        feedback = (*objections(case), *notes)
        return Continue(feedback, spacing(case, self.delay)) if feedback else None


def spacing(case: Case, delay: float) -> float:
    """Seconds to leave a failing agent alone: the first delay, doubling to a minute."""
    return _doubling(delay, case.state.failures, 60.0) if case.turn.failed else 0.0


def objections(case: Case) -> tuple[Feedback, ...]:
    """The host's feedback on a turn: what the gates found, and that it failed.

    Commands come first, in the settings' order: their REPLACE wipes none of the others.
    """
    ordered = sorted(case.findings, key=lambda finding: finding.code is None)
    findings = tuple(finding.feedback() for finding in ordered)
    if not case.turn.failed:
        return findings
    return (*findings, Feedback(f"The previous iteration failed: {describe_failure(case.turn)}"))


def release(case: Case) -> Answer | None:
    """Let the session end: the closing boundary judges."""
    return Release()


# ------------------------------------------------------------------ shared


@value
class Patience:
    """The limits of a run's patience with its agent."""

    turn: float | None = None
    idle: float | None = None
    result_grace: float = 10.0
    stop_grace: float | None = None
    max_wait: float = 86_400.0
    fail_after: int = 3
    fail_delay: float = 1.0  # after the first failed turn; it doubles to a minute
    stall_after: int = 0
    roster: Roster = Roster()


def watching(limits: Limits, patience: Patience) -> Ladder:
    """While the agent works. A person in a hurry comes first, also when it is being ended."""
    return (
        SecondSignal(patience.stop_grace),
        Timeouts(patience.turn, patience.idle),
        ResultGrace(patience.result_grace),
        TimeLeft(limits.seconds),
        MoneyLeft(limits.dollars),
    )


def allowance(limits: Limits) -> Callable[[Case], float | None]:
    """The dollars that a turn may cost: what is left of the run's."""
    return lambda case: left(limits.dollars, case.spent.dollars)
