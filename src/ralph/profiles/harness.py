"""H: the prompt loop. One prompt, guardrails, completion by a `<response>` tag, SCM tasks."""

import json
from collections.abc import Callable, Iterator
from typing import Protocol

from ralph.core.case import Case, Ladder
from ralph.core.claims import ResponseTag
from ralph.core.facts import Fact, Step
from ralph.core.limits import Limits
from ralph.core.prompt import completion_sentence, count_line, cut_off, place
from ralph.core.rules import (
    Asks,
    Believed,
    Failing,
    Objections,
    RateLimit,
    RunLimit,
    Stalled,
    Stuck,
    Uncounted,
    UsedUp,
    accepted,
    cancelled,
    carry_on,
    describe_failure,
    interrupted,
    nothing_left,
    paused,
    refused,
    release,
    unreadable,
    unstartable,
)
from ralph.core.select import first_open
from ralph.core.state import RunState
from ralph.core.turn import Allowance, Order, Role, Turn
from ralph.core.value import replace, value
from ralph.core.verdict import Boundary, Feedback, Placement, Reason, Stop, Verdict
from ralph.core.world import Snapshot
from ralph.ports import Gate, Policy, Ports, survey, watcher
from ralph.profiles.shared import Patience, allowance, watching

MESSAGE_PROMPT = (
    "Provide a short imperative commit message for the changes. "
    "Output only the message, no explanation."
)


@value
class Wording:
    """How the prompt is put together."""

    contract: ResponseTag = ResponseTag()
    tell_completion: bool = False
    count_to: int | None = None  # shows `Iteration X of Y, Z remaining.`


class Scm(Protocol):
    """Source control as H uses it."""

    def has_changes(self) -> tuple[bool, str]:
        """Whether there is something to commit, and what is wrong if that cannot be told."""

    def tasks(self) -> tuple[str, ...]:
        """The tasks to run, in order."""

    def run(self, task: str, message: str) -> tuple[bool, str]:
        """Run one task; whether it worked, and what it said. What a killed run did already
        is no failure when it is asked for again."""


def harness(
    limits: Limits,
    patience: Patience = Patience(),
    wording: Wording = Wording(),
    gates: tuple[Gate, ...] = (),
    scm: Scm | None = None,
) -> Policy:
    """The policy of `ralph run`."""
    return Policy(
        name="harness",
        select=first_open,
        compose=Compose(wording),
        opening=opening(limits),
        watching=watching(limits, patience),
        stopping=(release,),
        closing=closing(limits, patience, wording.contract),
        retaking=(cancelled, RunLimit(limits)),
        gates={Boundary.CLOSING: gates},
        allowance=allowance(limits, patience),
        settle=Settle(
            scm,
            watching(limits, patience),
            allowance(limits, patience),
            tuple(gate for gate in gates if gate.always),
        ),
        notes=lambda case: wording.contract.near_misses(case.turn),
    )


def opening(limits: Limits) -> Ladder:
    """Before a turn."""
    return (
        cancelled,
        paused,
        accepted,
        unreadable,
        nothing_left,
        Stuck(first_open),
        RunLimit(limits),
        carry_on,
    )


def closing(limits: Limits, patience: Patience, contract: ResponseTag) -> Ladder:
    """After a turn."""
    return (
        interrupted,
        unstartable,
        refused,
        RateLimit(patience.max_wait),
        UsedUp(limits),
        Failing(patience.fail_after),
        Asks(),
        Believed(contract),
        Uncounted(limits),
        RunLimit(limits),
        Stalled(patience.stall_after),
        Objections(contract),
        carry_on,
    )


@value
class Compose:
    """H §Prompt Construction."""

    wording: Wording

    def __call__(self, case: Case) -> str:
        state, wording = case.state, self.wording
        extra = [*cut_off(state)]
        if wording.tell_completion:
            extra.append(Feedback(completion_sentence(wording.contract.marker)))
        if wording.count_to is not None:
            line = count_line(state.iteration, wording.count_to)
            extra.append(Feedback(line, Placement.PREPEND))
        return place(case.task.text, (*state.feedback, *extra))


@value
class Settle:
    """H §SCM Tasks: after each iteration that ended by itself and whose gates all passed."""

    scm: Scm | None
    watching: Ladder
    allowance: Callable[[Case], Allowance]
    law: tuple[Gate, ...] = ()  # gates that hold after every turn, the message turn too

    def __call__(self, ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        if self.scm is None or not _is_good(state, verdict):
            return
        told = state.step("scm:message")
        if told is None:
            if ports.world.signals().cancels:
                return  # a message turn is a new operation; none is begun after a signal
            changed, problem = self.scm.has_changes()
            if problem:
                yield Step(ports.clock.now(), "scm:changes", ok=False, detail=problem)
            if not changed:
                return
            told = self._ask(ports, state)
            yield told
        for task in self.scm.tasks() if told.ok else ():
            ran = state.step(f"scm:{task}")
            if ran is None:
                if ports.world.signals().cancels:
                    return  # nor is a task
                ok, said = self.scm.run(task, told.detail)
                ran = Step(ports.clock.now(), f"scm:{task}", ok=ok, detail=said)
                yield ran
            if not ran.ok:
                return

    def _ask(self, ports: Ports, state: RunState) -> Step:
        before = ports.world.snapshot()
        case = survey(ports, state, Boundary.WATCHING)
        order = Order(MESSAGE_PROMPT, state.iteration, Role.MESSAGE, self.allowance(case))
        turn = ports.agent.take_turn(order, watcher(ports, self.watching, case))
        message, objection = commit_message(turn), self._objection(ports, state, before)
        return Step(
            ports.clock.now(),
            "scm:message",
            ok=message is not None and not objection,
            detail=objection or message or _no_message(turn),
            cost_usd=None if turn.uncounted else turn.cost_usd or 0.0,
        )

    def _objection(self, ports: Ports, state: RunState, before: Snapshot) -> str:
        """What the law says about the message turn: it may touch protected paths no more than
        any other, least of all right before a commit."""
        case = survey(ports, replace(state, snapshot=before), Boundary.CLOSING)
        case = replace(case, snapshot=ports.world.snapshot())
        return " ".join(finding.text for gate in self.law for finding in gate.check(case))


def _no_message(turn: Turn) -> str:
    if turn.failed:
        return f"the message turn failed: {describe_failure(turn)}"
    return "the agent gave no commit message"


def _is_good(state: RunState, verdict: Verdict) -> bool:
    """The turn ended by itself, every gate ran and passed, and nobody wants to go home."""
    if isinstance(verdict, Stop) and verdict.reason is Reason.INTERRUPTED:
        return False
    turn = state.turn
    return turn is not None and turn.by_itself and state.checked and not state.findings


def commit_message(turn: Turn) -> str | None:
    """The first `<response>` content, else the first line that is not empty; never JSON."""
    if turn.failed:
        return None
    said = next((c.content for c in turn.claims if c.tag == "response"), None)
    spoken = turn.text if said is None else said
    lines = [line.rstrip() for line in spoken.splitlines() if _is_message(line)]
    if said is None:
        lines = [line for line in lines if line][:1]
    return "\n".join(lines).strip() or None


def _is_message(line: str) -> bool:
    """Not JSON, nor a fence, nor a tag that was never closed."""
    line = line.strip()
    if line.startswith(("{", "```", "<response")):
        return False
    return not (line.startswith("[") and _is_json(line))


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return line.startswith(("[{", '["'))  # torn off
    return True
