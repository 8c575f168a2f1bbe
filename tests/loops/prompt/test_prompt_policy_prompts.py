"""H §Prompt Construction: what the agent is told, from turn to turn."""

from dataclasses import replace

import pytest

from kits.histories import CRASH, DONE, WORK, limited, play, said
from ralph.kernel.contracts import ResponseTag
from ralph.kernel.facts import Began, Fact, Resumed
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.prompt import cut_off
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Order
from ralph.kernel.verdict import Placement, Reason
from ralph.loops.prompt.policy import Wording, harness
from ralph.testing.fakes import FakeAgent, FakeGate, FakeWorld

APPEND, PREPEND, REPLACE = Placement.APPEND, Placement.PREPEND, Placement.REPLACE
FIVE = Limits(iterations=5)


def objecting(name: str, placement: Placement, *iterations: int) -> FakeGate:
    finding = Finding(name, f"{name} failed", placement, code=1)
    return FakeGate(name, fails_in=frozenset(iterations), finding=finding)


@pytest.mark.parametrize(
    ("gates", "prompt"),
    [
        ([objecting("lint", APPEND, 1)], "do it\n\nlint failed"),
        ([objecting("lint", PREPEND, 1)], "lint failed\n\ndo it"),
        ([objecting("lint", REPLACE, 1)], "lint failed"),
        (
            [objecting("lint", APPEND, 1), objecting("test", APPEND, 1)],
            "do it\n\nlint failed\n\ntest failed",
        ),
        (
            [objecting("lint", PREPEND, 1), objecting("test", PREPEND, 1)],
            "test failed\n\nlint failed\n\ndo it",
        ),
        ([objecting("lint", APPEND, 1), objecting("test", REPLACE, 1)], "test failed"),
        (
            [objecting("lint", REPLACE, 1), objecting("test", APPEND, 1)],
            "lint failed\n\ntest failed",
        ),
    ],
)
def test_failures_are_fed_back_in_the_order_of_the_settings(
    gates: list[FakeGate], prompt: str
) -> None:
    """H §Loop Behavior 2 and 7; a claim beside a failing gate changes nothing."""
    result = play(harness(FIVE, gates=tuple(gates)), [DONE])
    assert result.agent.prompts() == ["do it", prompt]
    assert (result.names, result.exit_code) == ("Continue Accept", 0)


def test_feedback_is_for_one_turn_only() -> None:
    """H: "If any guardrail failed in the previous iteration"."""
    gates = (objecting("lint", APPEND, 1), objecting("test", APPEND, 2))
    result = play(harness(FIVE, gates=gates), [WORK, WORK, WORK, DONE])
    assert result.agent.prompts() == [
        "do it",
        "do it\n\nlint failed",
        "do it\n\ntest failed",
        "do it",
    ]


def test_a_turn_that_is_taken_again_gets_the_same_prompt() -> None:
    """ADR 11: "the same iteration is taken again"."""
    result = play(harness(FIVE, gates=(objecting("lint", APPEND, 1),)), [WORK, (limited(), DONE)])
    assert result.agent.prompts() == ["do it", "do it\n\nlint failed", "do it\n\nlint failed"]
    assert result.iterations == [1, 2, 2]


def test_what_a_gate_found_before_a_wait_is_told_after_it() -> None:
    protect = replace(objecting("protect", APPEND, 1), always=True)
    result = play(harness(FIVE, gates=(protect,)), [(limited(), WORK), DONE])
    assert result.agent.prompts()[1] == "do it\n\nprotect failed"


def test_a_failure_comes_after_what_the_guardrails_found() -> None:
    result = play(harness(FIVE, gates=(objecting("lint", APPEND, 1),)), [CRASH, DONE])
    failure = "The previous iteration failed: exit code 1: boom"
    assert result.agent.prompts()[1] == f"do it\n\nlint failed\n\n{failure}"


def test_the_count_line_stands_in_front_of_everything() -> None:
    """H §Loop Behavior 3, issue 2 §4: "the iteration line is put in front last"."""
    gates = (objecting("lint", PREPEND, 1), objecting("test", REPLACE, 2))
    policy = harness(Limits(iterations=3), wording=Wording(count_to=3), gates=gates)
    result = play(policy, [WORK])
    assert result.agent.prompts() == [
        "Iteration 1 of 3, 2 remaining.\n\ndo it",
        "Iteration 2 of 3, 1 remaining.\n\nlint failed\n\ndo it",
        "Iteration 3 of 3, 0 remaining.\n\ntest failed",
    ]


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("do it", True),
        ("Say <Response>SHIPPED</response> when you are done.", False),
        ("Say SHIPPED when you are done.", True),
        ("Output <promise>COMPLETE</promise> at the end.", True),
    ],
)
def test_the_agent_is_told_how_to_finish_unless_the_prompt_says_so(prompt: str, told: bool) -> None:
    """Issue 22: whenever the prompt itself does not; what replaces the prompt never does."""
    wording = Wording(ResponseTag("SHIPPED"), tell_completion=True)
    policy = harness(FIVE, wording=wording, gates=(objecting("lint", REPLACE, 1),))
    world = FakeWorld(Backlog((Task("prompt", text=prompt),)))
    result = play(policy, FakeAgent([WORK, said("<response>SHIPPED</response>")]), world)
    sentence = (
        "When everything is done, and only then, end your answer with <response>SHIPPED</response>."
    )
    first = f"{prompt}\n\n{sentence}" if told else prompt
    assert result.agent.prompts() == [first, f"lint failed\n\n{sentence}"]


def test_a_turn_cut_off_by_a_crash_is_told_so_once() -> None:
    """ADR 21: "on resume the agent is told that iteration n was cut off"."""
    facts: list[Fact] = [Began(900.0, 2, Assignment("prompt")), Resumed(950.0, 8)]
    policy = harness(FIVE, wording=Wording(count_to=5))
    result = play(policy, [WORK, WORK, DONE], state=replay(facts))
    count = "Iteration {} of 5, {} remaining.\n\n"
    [notice] = cut_off(replay(facts))
    assert result.agent.prompts() == [
        f"{count.format(2, 3)}{notice.text}\n\ndo it",
        f"{count.format(3, 2)}do it",
    ]


def test_the_prompt_is_read_anew_for_each_turn() -> None:
    """H §Prompt Construction: "`--prompt-file` is re-read each iteration"."""
    world = FakeWorld()

    def edit(order: Order) -> None:
        world.tasks = Backlog((Task("prompt", text=f"do more {order.iteration}"),))

    result = play(harness(FIVE), FakeAgent([WORK, WORK, DONE], during=edit), world)
    assert result.agent.prompts() == ["do it", "do more 1", "do more 2"]


def test_a_prompt_that_vanishes_in_mid_run_ends_it_with_2() -> None:
    """Issue 2, Bad input: "A missing or vanishing prompt file"."""
    world = FakeWorld()

    def remove(order: Order) -> None:
        world.tasks = Backlog(problem="PROMPT.md: no such file")

    result = play(harness(FIVE), FakeAgent([WORK], during=remove), world)
    assert (result.turns, result.exit_code, result.stop.why) == (1, 2, "PROMPT.md: no such file")


def test_a_prompt_that_vanished_while_ralph_was_dead_ends_the_run_with_2() -> None:
    """The turn began, the crash came, the file is gone: there is nothing to order."""
    facts: list[Fact] = [Began(900.0, 2, Assignment("prompt")), Resumed(950.0, 8)]
    world = FakeWorld(Backlog(problem="PROMPT.md: no such file"))
    result = play(harness(FIVE), [DONE], world, state=replay(facts))
    assert (result.agent.orders, result.stop.reason) == ([], Reason.CONFIG)
    assert result.stop.why == "PROMPT.md: no such file"
