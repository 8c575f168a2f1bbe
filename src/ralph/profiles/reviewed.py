"""R: stories that must survive a fresh review. The list is the law, the promise only a hint."""

from collections.abc import Callable, Iterator

from ralph.core.case import Case, Ladder
from ralph.core.claims import CompleteClaim
from ralph.core.facts import Fact, Step
from ralph.core.limits import Limits
from ralph.core.prompt import cut_off, place
from ralph.core.rules import (
    Asks,
    Failing,
    Objections,
    RateLimit,
    RunLimit,
    Stalled,
    Stuck,
    Uncounted,
    UsedUp,
    cancelled,
    carry_on,
    interrupted,
    paused,
    refused,
    release,
    unreadable,
    unstartable,
)
from ralph.core.rules_stories import AllApproved, FalseClaim, HoldLimit, SilentRetry
from ralph.core.select import next_story, next_unreviewed
from ralph.core.state import RunState
from ralph.core.value import value
from ralph.core.verdict import Boundary, Verdict
from ralph.ports import Gate, Policy, Ports
from ralph.profiles.shared import Patience, allowance, watching


def reviewed(
    limits: Limits = Limits(iterations=15),
    patience: Patience = Patience(stall_after=3),
    law: tuple[Gate, ...] = (),
    courtesy: tuple[Gate, ...] = (),
    correct: Callable[[RunState], str] = lambda _: "",
    *,
    skip_review: bool = False,
) -> Policy:
    """The policy of `ralph prd run`: the law after every turn, the courtesy at the stop hook.

    `correct` reverts what the agent may not touch and says what it corrected (ADR 20).
    """
    approved = AllApproved(skip_review)
    select = next_unreviewed if skip_review else next_story
    return Policy(
        name="reviewed",
        select=select,
        compose=compose,
        opening=(
            cancelled,
            paused,
            unreadable,
            approved,
            Stuck(select),
            RunLimit(limits),
            carry_on,
        ),
        watching=watching(limits, patience),
        stopping=(HoldLimit(), Objections(), release),
        retaking=(cancelled, RunLimit(limits)),
        closing=closing(limits, patience, approved),
        gates={Boundary.CLOSING: law, Boundary.STOPPING: courtesy},
        allowance=allowance(limits, patience),
        settle=Settle(correct),
        notes=lambda case: CompleteClaim().near_misses(case.turn),
    )


def closing(limits: Limits, patience: Patience, approved: AllApproved) -> Ladder:
    """After a turn."""
    return (
        interrupted,
        unstartable,
        refused,
        RateLimit(patience.max_wait),
        UsedUp(limits),
        Failing(patience.fail_after),
        Asks(),
        SilentRetry(),
        approved,
        FalseClaim(CompleteClaim()),
        Uncounted(limits),
        RunLimit(limits),
        Stalled(patience.stall_after),
        Objections(),
        carry_on,
    )


def compose(case: Case) -> str:
    """The prompt, headed by the host's choice of mode and story."""
    assignment = case.state.assignment
    assert assignment is not None
    head = f"Mode: {assignment.mode}\nStory: {assignment.task}"
    return place(f"{head}\n\n{case.task.text}", (*case.state.feedback, *cut_off(case.state)))


@value
class Settle:
    """Under every verdict, what the agent may not touch is put back and committed."""

    correct: Callable[[RunState], str]

    def __call__(self, ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        if state.findings and not state.step("correct"):
            yield Step(ports.clock.now(), "correct", detail=self.correct(state))
