"""H, the prompt loop: one table of histories (turns in, verdicts and exit code out)."""

from dataclasses import dataclass, replace

import pytest

from kits.histories import (
    BLOCKED,
    CRASH,
    CUT,
    DECIDE,
    DONE,
    MISSING,
    QUESTION,
    WORK,
    Played,
    erred,
    limited,
    play,
    said,
)
from ralph.kernel.facts import Checked
from ralph.kernel.limits import Limits
from ralph.kernel.rules import Patience
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Reason
from ralph.loops.prompt.policy import harness
from ralph.testing.fakes import FakeAgent, FakeGate, FakeWorld

Turns = tuple[Turn | tuple[Turn, ...], ...]
FIVE = Limits(iterations=5)


@dataclass(frozen=True)
class History:
    """One row: what the agent does, what the world is like, what must come of it."""

    name: str
    turns: Turns
    verdicts: str  # after each turn, by name
    exit_code: int
    most: int = 5
    dollars: float | None = None
    patience: Patience = Patience()
    fails_in: set[int] | frozenset[int] = frozenset()  # iterations whose gate objects
    tree: str = "same"


HISTORIES = [
    # H §Completion Detection, §Loop Behavior, §Exit Codes
    History("a claim is believed", (DONE,), "Accept", 0),
    History("work, then a claim", (WORK, WORK, DONE), "Continue Continue Accept", 0),
    History("the claim waits for gates", (DONE,), "Continue Accept", 0, fails_in={1}),
    History("a claim before it is true", (DONE, WORK, DONE), "Continue Continue Accept", 0,
            fails_in={1, 2}),
    History("a do-nothing agent", (WORK,), "Continue Continue Continue Continue Stop", 1),
    History("the limit of one", (WORK,), "Stop", 1, most=1),
    History("a claim at the limit", (WORK, DONE), "Continue Accept", 0, most=2),
    History("gates fail at the limit", (DONE,), "Continue Stop", 1, most=2, fails_in={1, 2}),
    History("the first tag wins", (said("<response>no</response> <response>DONE</response>"),),
            "Stop", 1, most=1),
    History("P's tag is not H's", (said("<promise>DONE</promise>"),), "Stop", 1, most=1),
    History("money is used up", (said("working", cost=2.0),), "Continue Stop", 1, dollars=3.0),
    # ADR 4 and 5: failures
    History("three failures in a row", (CRASH,), "Continue Continue Stop", 5),
    History("a success between", (CRASH, CRASH, WORK, CRASH, DONE),
            "Continue Continue Continue Continue Accept", 0),
    History("failAfter 1", (erred(400),), "Stop", 5, patience=Patience(fail_after=1)),
    History("failAfter 0", (CRASH,), "Continue Continue Continue Continue Stop", 1,
            patience=Patience(fail_after=0)),
    History("timed out three times", (CUT,), "Continue Continue Stop", 5),
    History("a failed turn is not believed", (replace(DONE, exit_code=1), DONE),
            "Continue Accept", 0),
    History("nor one whose stream failed", (replace(DONE, failure=erred(400).failure), DONE),
            "Continue Accept", 0),
    History("a failure at the limit", (WORK, CRASH), "Continue Stop", 1, most=2),
    History("the third in a row at the limit", (CRASH,), "Continue Continue Stop", 5, most=3),
    History("out of money at the limit is no failure", (WORK, replace(CRASH, cost_usd=9.0)),
            "Continue Stop", 1, most=2, dollars=9.0, patience=Patience(fail_after=1)),
    History("unstartable", (MISSING,), "Stop", 2),
    History("401", (erred(401),), "Stop", 2),
    History("403", (WORK, erred(403)), "Continue Stop", 2),
    # ADR 1: asks
    History("BLOCKED", (BLOCKED,), "Stop", 3),
    History("DECIDE", (WORK, DECIDE), "Continue Stop", 3),
    History("a question", (QUESTION,), "Stop", 3),
    History("asks after its claim", (replace(DONE, question="ok?"),), "Stop", 3),
    # ADR 11: rate limits
    History("429, then done", ((limited(), DONE),), "Wait Accept", 0, most=1),
    History("429 is no failure", ((limited(), limited(), limited(), CRASH), CRASH, DONE),
            "Wait Wait Wait Continue Continue Accept", 0),
    History("no patience left", (limited(),), "Wait Wait Stop", 1,
            patience=Patience(max_wait=100.0)),
    # ADR 11: an overloaded provider does not end a night
    History("529, 503, done", ((erred(529), erred(503), DONE),), "Wait Wait Accept", 0, most=1),
    History("its tries are counted apart", (((*[limited()] * 12, erred(529), DONE)),),
            f"{'Wait ' * 13}Accept", 0, most=1),
    History("ten tries a turn", (erred(503),), " ".join([*["Wait"] * 10, "Stop"]), 5,
            patience=Patience(fail_after=1)),
    History("then a turn has failed", ((*[erred(503)] * 11,), DONE),
            " ".join([*["Wait"] * 10, "Continue", "Accept"]), 0),
    # ADR 15: permissions
    History("denied, and nothing written", (replace(WORK, denied=("Write",)),), "Stop", 2),
    History("so it is if that failed it", (replace(CRASH, denied=("bash",)),), "Stop", 2,
            patience=Patience(fail_after=1)),
    History("something was written", (replace(WORK, denied=("Bash",), wrote=True), DONE),
            "Continue Accept", 0),
    History("denied, and done", (replace(DONE, denied=("WebFetch",)),), "Accept", 0),
    History("denied, and not done", (replace(DONE, denied=("Write",)),), "Stop", 2, fails_in={1}),
    # ADR 3: the last tag wins
    History("a question, then a claim", (said(f"{BLOCKED.text} No: {DONE.text}"),), "Accept", 0),
    History("a claim, then a question", (said(f"{DONE.text} {DECIDE.text}"),), "Stop", 3),
    History("a question, then no claim", (said(f"{BLOCKED.text} <response>no</response>"),),
            "Stop", 3),
    # ADR 1: stallAfter
    History("stalled", (WORK,), "Continue Stop", 4, patience=Patience(stall_after=2)),
    History("stallAfter 0", (WORK,), "Continue Continue Continue Continue Stop", 1,
            patience=Patience(stall_after=0)),
    History("another tree each time", (WORK,), "Continue Continue Continue Continue Stop", 1,
            patience=Patience(stall_after=2), tree="changing"),
    History("done without a change", (WORK, DONE), "Continue Accept", 0,
            patience=Patience(stall_after=2)),
]  # fmt: skip


class ChangingTree:
    """A workspace that looks different at each look."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> str:
        self.looks += 1
        return str(self.looks)


def played(history: History) -> Played:
    limits = Limits(iterations=history.most, dollars=history.dollars)
    gate = FakeGate(fails_in=frozenset(history.fails_in))
    policy = harness(limits, history.patience, gates=(gate,))
    tree = ChangingTree() if history.tree == "changing" else lambda: history.tree
    return play(policy, FakeAgent(history.turns), FakeWorld(tree=tree))


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)
def test_history(history: History) -> None:
    result = played(history)
    assert (result.names, result.exit_code) == (history.verdicts, history.exit_code)
    assert result.state.stop == result.stop


def test_completed_with_the_evidence_of_claim_and_gates() -> None:
    """ADR 4: "H believes after all guardrails pass"."""
    gates = (FakeGate("make lint"), FakeGate("make test"))
    result = play(harness(FIVE, gates=gates), [WORK, DONE])
    assert result.stop.reason is Reason.COMPLETED
    assert result.stop.evidence == (
        "claimed: <response>DONE</response>",
        "passed: make lint",
        "passed: make test",
    )
    assert result.verdicts[-1] == Accept(result.stop.evidence)


def test_every_turn_is_followed_by_every_gate_even_if_the_first_fails() -> None:
    """Issue 2, §4: "all run even if the first fails"."""
    gates = (FakeGate("make lint", fails_in=frozenset({1})), FakeGate("make test"))
    result = play(harness(FIVE, gates=gates), [DONE])
    assert result.gates == ["make lint", "make test"] * 2


@pytest.mark.parametrize("turn", [CUT, erred(500), limited(), MISSING])
def test_command_gates_run_only_if_the_turn_ended_by_itself(turn: Turn) -> None:
    """ADR 1: law gates "run after every turn; command gates only if it ended by itself"."""
    gates = (FakeGate("protect", always=True), FakeGate("make test"))
    result = play(harness(Limits(iterations=1), gates=gates), [(turn, DONE)])
    first = result.decided(Boundary.CLOSING)[0]
    ran = [f.gate for f in result.facts[: result.facts.index(first)] if isinstance(f, Checked)]
    assert (ran, first.checked) == (["protect"], False)


def test_a_crashed_agent_ended_by_itself_so_its_gates_run() -> None:
    result = play(harness(Limits(iterations=1), gates=(FakeGate(),)), [CRASH])
    assert result.gates == ["make test"]


def test_the_near_miss_is_noted_and_told() -> None:
    """ADR 3: near misses "are named in the feedback and the log"."""
    result = play(harness(FIVE), [said("DONE"), DONE])
    why = "The bare word DONE does not count; the tag <response>DONE</response> does."
    assert result.decided(Boundary.CLOSING)[0].notes == (why,)
    assert result.agent.prompts()[1] == f"do it\n\nNot complete yet: {why}"


def test_a_failure_is_told_to_the_next_turn() -> None:
    """ADR 5: "Other failures are fed back and counted"."""
    result = play(harness(FIVE), [CRASH, CUT, DONE])
    told = "do it\n\nThe previous iteration failed: "
    assert result.agent.prompts() == [
        "do it", f"{told}exit code 1: boom", f"{told}timed out after 1m"
    ]  # fmt: skip


def test_the_same_again_without_an_objection() -> None:
    result = play(harness(FIVE), [WORK, DONE])
    assert result.verdicts[0] == Continue()
    assert result.agent.prompts() == ["do it", "do it"]
