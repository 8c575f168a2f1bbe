"""H: the prompt loop. One prompt, guardrails, completion by a `<response>` tag, SCM tasks."""

import json
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Protocol

from ralph.kernel import rules
from ralph.kernel.case import Case, Ladder
from ralph.kernel.contracts import ResponseTag
from ralph.kernel.facts import CI, Fact, Proved, Settled, Step
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Committed, Gate, Policy, Ports, Publish, survey, watcher
from ralph.kernel.prompt import checks_sentence, completion_sentence, count_line, cut_off, place
from ralph.kernel.proving import committed, no_new_step, prove, uphold
from ralph.kernel.state import RunState, fold
from ralph.kernel.tasks.select import first_open
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import (
    Accept,
    Boundary,
    Feedback,
    Park,
    Placement,
    Reason,
    Stop,
    Verdict,
    is_interrupted,
)
from ralph.kernel.world import Stand
from ralph.loops.prompt.rules import FIRST_LOOK, GREEN, RED, GreenAlready, green
from ralph.text.redact import redact
from ralph.text.words import listed

_NOT_COMMITTED = "the work is not committed, so there is nothing to open a pull request with"
TAG = "<response>"  # a prompt that names it says itself how to finish
MESSAGE_PROMPT = (
    "Provide a short imperative commit message for the changes. "
    "Output only the message, no explanation."
)


@value
class Wording:
    """Additions to the prompt."""

    contract: ResponseTag = ResponseTag()
    tell_completion: bool = False  # unless the prompt does it itself
    count_to: int | None = None  # shows `Iteration X of Y, Z remaining.`
    checks: tuple[str, ...] = ()  # commands that alone decide, whatever the agent says

    def ending(self, prompt: str) -> str:
        """The sentence that says how the work ends; "" where the prompt says so."""
        if self.tell_completion and self.checks:
            return checks_sentence(self.checks)
        told = not self.tell_completion or TAG in prompt.lower()
        return "" if told else completion_sentence(self.contract.marker)


class Scm(Protocol):
    """Source control as H uses it."""

    def has_changes(self, proof: Proved | None) -> tuple[bool, str]:
        """True if there is something to commit; and the problem if git cannot tell."""

    def changes(self, proof: Proved | None) -> str:
        """The changes to describe, for an agent without tools to look; "" if unknown."""

    def tasks(self) -> tuple[str, ...]:
        """The tasks to run, in order."""

    def commit(self, task: str, message: str, proof: Proved | None) -> Committed:
        """Commit what was proven. May be asked again after a kill."""

    def run(self, task: str, state: RunState) -> Committed | None:
        """Run another task; None if there is nothing for it to do."""


def harness(
    limits: Limits,
    patience: rules.Patience = rules.Patience(),
    wording: Wording = Wording(),
    gates: tuple[Gate, ...] = (),
    scm: Scm | None = None,
    *,
    law: tuple[Gate, ...] = (),
    publish: Publish | None = None,
) -> Policy:
    """The policy of `ralph run`."""
    policy = Policy(
        name="harness",
        select=first_open,
        compose=partial(compose, wording),
        opening=(
            rules.cancelled,
            rules.paused,
            rules.accepted,
            rules.unreadable,
            rules.nothing_left,
            *((GreenAlready(wording.checks),) if wording.checks else ()),
            rules.RunLimit(limits),
            rules.carry_on,
        ),
        watching=rules.watching(limits, patience),
        stopping=(rules.release,),
        closing=closing(limits, patience, wording),
        retaking=(rules.cancelled, rules.RunLimit(limits)),
        gates={Boundary.CLOSING: gates},
        law=law,
        allowance=rules.allowance(limits),
        look=FirstLook(gates, law) if wording.checks else lambda *_: iter(()),
        notes=lambda case: () if wording.checks else wording.contract.near_misses(case.turn),
    )
    if scm is None:
        return policy
    settle = RunScmTasks(scm, policy.watching, policy.allowance, gates, law, publish)
    return replace(policy, settle=settle)


def closing(limits: Limits, patience: rules.Patience, wording: Wording) -> Ladder:
    contract: ResponseTag | None = wording.contract
    done: Ladder = (rules.Asks(contract=contract), rules.Believed(wording.contract))
    if wording.checks:  # a claim counts for nothing then, and a question for less than green
        contract, done = None, (green, rules.Asks())
    return (
        rules.interrupted,
        rules.unstartable,
        *rules.next_agent(patience),
        rules.refused,
        rules.RateLimit(patience.max_wait),
        rules.UsedUp(limits),
        *done,
        rules.barred,
        rules.Failing(patience.fail_after),
        rules.Uncounted(limits),
        rules.RunLimit(limits),
        rules.Stalled(patience.stall_after),
        rules.Objections(contract, patience.fail_delay),
        rules.carry_on,
    )


def compose(wording: Wording, case: Case) -> str:
    """H §Prompt Construction."""
    state, extra = case.state, [*cut_off(case.state)]
    replaced = any(f.placement is Placement.REPLACE for f in state.feedback)
    if ending := wording.ending("" if replaced else case.task.text):
        extra.append(Feedback(ending))
    if wording.count_to is not None:
        line = count_line(state.iteration, wording.count_to)
        extra.append(Feedback(line, Placement.PREPEND))
    return place(case.task.text, (*state.feedback, *extra))


@value
class FirstLook:
    """Runs the gates once before the first turn, which is not paid if they pass."""

    gates: tuple[Gate, ...]
    law: tuple[Gate, ...]

    def __call__(self, ports: Ports, state: RunState) -> Iterator[Fact]:
        if state.iteration or state.step(FIRST_LOOK) is not None:
            return
        before = ports.world.snapshot()
        state = replace(state, turn=Turn(), snapshot=before)
        case = replace(survey(ports, state, Boundary.CLOSING), snapshot=before)
        case = prove(self.gates, self.law, ports, case)
        yield from (case.proof,) if case.proof is not None else ()
        if case.checked:
            yield Step(ports.clock.now(), FIRST_LOOK, detail=RED if case.findings else GREEN)


@value
class RunScmTasks:
    """H §SCM Tasks: after each iteration that ended by itself and whose gates all passed."""

    scm: Scm
    watching: Ladder
    allowance: Callable[[Case], float | None]
    gates: tuple[Gate, ...] = ()
    law: tuple[Gate, ...] = ()
    publish: Publish | None = None  # what was believed, if at all

    def __call__(self, ports: Ports, state: RunState, verdict: Verdict) -> Iterator[Fact]:
        turn = state.turn
        good = turn is not None and turn.by_itself and state.checked and not state.findings
        if is_interrupted(verdict) or not (good or state.step(CI) is not None):
            return
        ended = yield from self._tasks(ports, state)
        if self.publish is None or not isinstance(verdict, Accept):
            return
        answer: Verdict | None = Stop(Reason.BLOCKED, _NOT_COMMITTED)
        if ended is not None:
            answer = yield from self.publish(ports, ended)
        if answer is not None:
            yield Settled(ports.clock.now(), answer.stop if isinstance(answer, Park) else answer)

    def _tasks(self, ports: Ports, state: RunState) -> Generator[Fact, None, RunState | None]:
        """The state after the last task; None if one has failed."""
        tasks = self.scm.tasks()
        for task in tasks:
            ran = state.step(f"scm:{task}")
            if task == tasks[0] and is_commit(task):
                ports.trees.hold()  # the gates have just looked
            if ran is None:
                no_new_step(ports, f"the SCM task {task}")
            if ran is None and is_commit(task):
                state, ran = yield from self._commit(ports, state, task)
                state = fold(state, ran) if ran is not None and ran.ok else state
            elif ran is None:
                done = self.scm.run(task, state)
                uphold(self.law, ports, state)
                if done is not None and not done.ok:
                    no_new_step(ports, f"the SCM task {task} had ended")
                ran = _scm_step(ports, task, done) if done is not None else None
                for step in (ran,) if ran is not None else ():
                    yield step
                    state = fold(state, step)
            if ran is not None and not ran.ok:
                return None
        return state

    def _commit(
        self, ports: Ports, state: RunState, task: str
    ) -> Generator[Fact, None, tuple[RunState, Step | None]]:
        """The step that committed, or that tells why not; None if there is nothing to commit."""
        told = state.step("scm:message")
        if told is None:
            changed, problem = self.scm.has_changes(state.proof)
            if problem:
                told = Step(ports.clock.now(), "scm:changes", ok=False, detail=problem)
                yield told
            if not changed:
                return state, told
            told = yield from self._ask(ports, state)
        if not told.ok:
            return state, told
        no_new_step(ports, "the commit")
        scm, message = self.scm, told.detail
        state, made = yield from committed(
            ports, state, lambda now: scm.commit(task, message, now.proof), self.gates, self.law
        )
        step = _scm_step(ports, task, made)
        yield step
        return state, step

    def _ask(self, ports: Ports, state: RunState) -> Generator[Fact, None, Step]:
        """Ask the agent for a message; whatever else it does is undone."""
        before = ports.world.snapshot()
        stand = before.stand if before.stand.tree else ports.trees.look()
        case = survey(ports, state, Boundary.WATCHING)
        prompt = f"{MESSAGE_PROMPT}{self.scm.changes(state.proof)}"
        order = Order(prompt, state.iteration, Role.MESSAGE, self.allowance(case), state.place)
        turn = ports.agent.take_turn(order, watcher(ports, self.watching, case))
        # The law holds here too, least of all may it be broken right before a commit.
        ended = survey(ports, replace(state, snapshot=before), Boundary.CLOSING)
        objection = " ".join(found.text for gate in self.law for found in gate.check(ended))
        undone = _undone(ports, stand, state.iteration)
        if undone:
            yield Step(ports.clock.now(), "scm:undone", detail=undone)
        message, trouble = commit_message(turn), "the agent gave no commit message"
        if turn.failed:
            trouble = f"the message turn failed: {rules.describe_failure(turn)}"
        cut = message is None and ports.world.signals().cancels  # it is asked once more
        step = Step(
            ports.clock.now(),
            "scm:message cut off" if cut else "scm:message",
            ok=message is not None and not objection,
            detail=objection or message or trouble,
            cost_usd=None if turn.uncounted else turn.cost_usd or 0.0,
            usage=turn.usage,
        )
        yield step
        if cut:
            no_new_step(ports, "the commit message was written")
        return step


def is_commit(task: str) -> bool:
    return task.split()[:1] == ["commit"]


def _scm_step(ports: Ports, task: str, done: Committed) -> Step:
    return Step(ports.clock.now(), f"scm:{task}", ok=done.ok, detail=done.said, commit=done.commit)


def _undone(ports: Ports, stand: Stand, iteration: int) -> str:
    """Put back what the message turn wrote; returns a sentence about it."""
    changed = ports.trees.changed(stand, ports.trees.look())
    if not changed:
        return ""
    kept = ports.trees.put_back(stand, changed, str(iteration))
    where = f"; what it wrote is kept in {kept}" if kept else ""
    return f"The commit-message turn changed {listed(sorted(changed))}: put back{where}"


def commit_message(turn: Turn) -> str | None:
    """The first `<response>` content, else the first line that is not empty; never JSON."""
    if turn.failed:
        return None
    said = next((c.content for c in turn.claims if c.tag == "response"), None)
    spoken = turn.text if said is None else said
    lines = [line.rstrip() for line in spoken.splitlines() if _is_message(line)]
    if said is None:
        lines = [line for line in lines if line][:1]
    return redact("\n".join(lines).strip()) or None


def _is_message(line: str) -> bool:
    """Not JSON, nor a fence, nor a tag that was never closed."""
    line = line.strip()
    if line.startswith(("{", "[{", '["', "```", "<response")):
        return False
    try:
        return not line.startswith("[") or not isinstance(json.loads(line), list)
    except ValueError:
        return True
