"""R: stories that must survive a fresh review. The list is the law, the promise only a hint."""

from collections.abc import Callable, Iterator
from functools import partial

from ralph.kernel import rules
from ralph.kernel.case import Case, Ladder
from ralph.kernel.contracts import CompleteClaim
from ralph.kernel.facts import CI, Fact, Settled, Step
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Gate, Policy, Ports, Publish
from ralph.kernel.prompt import cut_off, place
from ralph.kernel.state import RunState
from ralph.kernel.tasks.select import next_story, next_unreviewed
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.value import value
from ralph.kernel.verdict import (
    Boundary,
    Continue,
    Feedback,
    Park,
    Reason,
    Stop,
    Verdict,
    is_interrupted,
)
from ralph.loops.stories.prompt import StoryTerms, filled, headed
from ralph.loops.stories.rules import AllApproved, FalseClaim, HoldLimit, SameObjection, SilentRetry

_ONLY_THIS = (
    "Every story is approved, and nothing is left to implement. Fix only what is said below, and "
    "leave the list of stories as it is. When that is done, say <promise>COMPLETE</promise>."
)
_HOST_COMMITS = (
    "You cannot commit here. Leave your work uncommitted: the host commits it when you have ended."
)


class Desk:
    """The host's work on the list of stories; every method is idempotent for one iteration. This is
    the desk of a list that nobody writes to."""

    def announce(self, state: RunState) -> str:
        """Tell the hooks of the agent's session what this turn is, after undoing what a turn that
        was cut off had decided. Returns what was done, in words."""
        return ""

    def land(self, state: RunState) -> dict[str, str]:
        """Approve a story at its last review (R §6), and commit where the agent cannot. Returns
        what was done, by the keys of the steps."""
        return {}

    def correct(self, state: RunState) -> str:
        """Put back what the agent may not touch, and commit that. Returns what was done."""
        return ""

    def outcome(self, state: RunState) -> str:
        """The legal review of this turn, as JSON; "" if there was none."""
        return ""

    def passed(self, state: RunState) -> bool:
        """True if the story of this turn passes now, and did not before."""
        return False

    def send_back(self, state: RunState, why: str) -> None:
        """Ask for changes to a story that has passed, as a review does."""


@value
class Publishing:
    """How stories are published, if at all: each when it passes, or all when each is approved."""

    publish: Publish | None = None
    each: bool = False


def reviewed(
    desk: Desk = Desk(),
    limits: Limits = Limits(iterations=15),
    patience: rules.Patience = rules.Patience(stall_after=3),
    gates: tuple[Gate, ...] = (),
    terms: StoryTerms = StoryTerms(15),
    *,
    law: tuple[Gate, ...] = (),
    publishing: Publishing = Publishing(),
) -> Policy:
    """The policy of `ralph prd run`: the law after every turn, the same at the stop hook."""
    approved = AllApproved(terms.skip_review)
    select = partial(next_or_last, next_unreviewed if terms.skip_review else next_story)
    return Policy(
        name="reviewed",
        select=select,
        compose=partial(compose, terms),
        opening=(
            rules.cancelled,
            rules.paused,
            rules.unreadable,
            approved,
            rules.Stuck(select),
            rules.RunLimit(limits),
            rules.carry_on,
        ),
        watching=rules.watching(limits, patience),
        stopping=(HoldLimit(), rules.Objections(), rules.release),
        retaking=(rules.cancelled, rules.RunLimit(limits)),
        closing=closing(limits, patience, approved),
        gates={Boundary.CLOSING: gates, Boundary.STOPPING: gates},
        law=law,
        allowance=rules.allowance(limits),
        prepare=partial(prepare, desk),
        land=partial(land, desk),
        settle=partial(settle, desk, publishing),
        notes=lambda case: CompleteClaim().near_misses(case.turn),
    )


def closing(limits: Limits, patience: rules.Patience, approved: AllApproved) -> Ladder:
    return (
        rules.interrupted,
        rules.unstartable,
        *rules.next_agent(patience),
        rules.refused,
        rules.RateLimit(patience.max_wait),
        rules.UsedUp(limits),
        rules.barred,
        rules.Failing(patience.fail_after),
        rules.Asks(),
        SilentRetry(),
        approved,
        SameObjection(patience.stall_after),  # before a false claim: that is no way round it
        FalseClaim(CompleteClaim(), patience.fail_delay),
        rules.Uncounted(limits),
        rules.RunLimit(limits),
        rules.Stalled(patience.stall_after),
        rules.Objections(delay=patience.fail_delay),
        rules.carry_on,
    )


def next_or_last(select: Callable[[Case], Assignment | None], case: Case) -> Assignment | None:
    """The next story; if each is approved and a gate still objects, the last one once more."""
    chosen, last = select(case), case.state.assignment
    if chosen is None and last is not None and case.state.findings and _all_pass(case):
        return Assignment(last.task, last.title)
    return chosen


def _all_pass(case: Case) -> bool:
    return bool(case.backlog.tasks) and all(task.passes for task in case.backlog.tasks)


def compose(terms: StoryTerms, case: Case) -> str:
    """The project's prompt, headed by the host's choice of mode and story."""
    state = case.state
    assert state.assignment is not None
    values = terms.values(state.iteration, state.assignment)
    text = _ONLY_THIS if _all_pass(case) else filled(case.task.text, values)
    prompt = headed(text, state.assignment, terms.folder)
    commits = (Feedback(_HOST_COMMITS),) if terms.host_commits else ()
    return place(prompt, (*commits, *state.feedback, *cut_off(state)))


def prepare(desk: Desk, ports: Ports, state: RunState) -> Iterator[Fact]:
    """Before a turn: write the marker for the hooks."""
    undone = desk.announce(state)
    if undone:
        yield Step(ports.clock.now(), "cut off", detail=undone)


def land(desk: Desk, ports: Ports, state: RunState) -> Iterator[Fact]:
    """After a turn, before it is judged: the host, not the prompt, ends a cycle of reviews."""
    for key, detail in desk.land(state).items():
        if not state.step(key):
            yield Step(ports.clock.now(), key, detail=detail)


def settle(
    desk: Desk, publishing: Publishing, ports: Ports, state: RunState, verdict: Verdict
) -> Iterator[Fact]:
    """Under every verdict, put back and commit what the agent may not touch. What has passed is
    published, and open again where CI says no."""
    if state.turn is not None and not state.step("correct"):
        yield Step(ports.clock.now(), "correct", detail=desk.correct(state))
    if state.turn is not None and not state.step("review"):
        yield Step(ports.clock.now(), "review", detail=desk.outcome(state))
    if publishing.publish is None or not _is_due(desk, publishing, state, verdict):
        return
    answer = yield from publishing.publish(ports, state)
    if isinstance(answer, Continue) and publishing.each:
        desk.send_back(state, "\n".join(told.text for told in answer.feedback))
    if answer is not None:
        yield Settled(ports.clock.now(), answer.stop if isinstance(answer, Park) else answer)


def _is_due(desk: Desk, publishing: Publishing, state: RunState, verdict: Verdict) -> bool:
    """True if something is to be published now. A story that CI has sent back is not passed any
    more, and still to be settled."""
    if not publishing.each:
        return isinstance(verdict, Stop) and verdict.reason is Reason.COMPLETED
    if is_interrupted(verdict) or state.turn is None:
        return False
    return state.step(CI) is not None or desk.passed(state)
