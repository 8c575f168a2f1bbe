"""Limits and what is left of them; how a prompt is put together (H §Prompt Construction)."""

import pytest

from ralph.kernel.events import Usage, Used
from ralph.kernel.facts import Landed
from ralph.kernel.limits import Limits, Prices, Spent, exceeded, least, left, priced
from ralph.kernel.prompt import (
    completion_sentence,
    count_line,
    cut_off,
    landed,
    place,
)
from ralph.kernel.state import NEW, RunState
from ralph.kernel.value import replace
from ralph.kernel.verdict import Feedback, Placement
from ralph.text.words import listed

APPEND, PREPEND, REPLACE = Placement.APPEND, Placement.PREPEND, Placement.REPLACE


@pytest.mark.parametrize(
    ("limits", "spent", "why"),
    [
        (Limits(), Spent(10**6, 1e9, 1e6), None),
        (Limits(3, 60.0, 5.0), Spent(2, 59.9, 4.99), None),
        (Limits(iterations=3), Spent(3), "3 iterations used up"),
        (Limits(iterations=1), Spent(2), "1 iteration used up"),
        (Limits(iterations=0), Spent(), "0 iterations used up"),
        (Limits(seconds=90.0), Spent(1, 90.0), "1m30s of time used up"),
        (Limits(dollars=2.5), Spent(1, 1.0, 2.617), "$2.5 used up (spent $2.62)"),
        (Limits(dollars=2.5), Spent(1, 1.0, 2.5), "$2.5 used up (spent $2.50)"),
        (Limits(1, 1.0, 1.0), Spent(1, 1.0, 1.0), "1 iteration used up"),
    ],
)
def test_a_limit_is_used_up_when_it_is_reached(
    limits: Limits, spent: Spent, why: str | None
) -> None:
    assert exceeded(limits, spent) == why


def test_what_is_left_and_what_is_least() -> None:
    assert (left(None, 3.0), left(5.0, 3.0), left(5.0, 7.0)) == (None, 2.0, 0.0)
    assert (least(), least(None), least(None, 4.0, 3.0)) == (None, None, 3.0)


def test_tokens_have_prices_by_the_million() -> None:
    """ADR 15: `agent.prices`, for agents that report no cost."""
    usage = Usage(input=2_000_000, output=100_000, cache_read=500_000, cache_write=40_000)
    assert priced(Used(usage), Prices(1.0, 10.0, 0.1, 1.25)) == pytest.approx(3.1)


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)


@pytest.mark.parametrize(
    ("feedback", "prompt"),
    [
        ([], "base"),
        ([("a", APPEND)], "base\n\na"),
        ([("a", PREPEND)], "a\n\nbase"),
        ([("a", REPLACE)], "a"),
        ([("a", APPEND), ("b", APPEND)], "base\n\na\n\nb"),
        ([("a", PREPEND), ("b", PREPEND)], "b\n\na\n\nbase"),
        ([("a", APPEND), ("b", PREPEND)], "b\n\nbase\n\na"),
        ([("a", APPEND), ("b", REPLACE)], "b"),
        ([("a", REPLACE), ("b", APPEND), ("c", PREPEND)], "c\n\na\n\nb"),
        ([("a", REPLACE), ("b", REPLACE)], "b"),
        ([("", APPEND)], "base"),
    ],
)
def test_feedback_is_applied_in_order(feedback: list[tuple[str, Placement]], prompt: str) -> None:
    """Issue 2, §4: "each to the prompt the previous one produced", "a later REPLACE wipes"."""
    assert place("base", [Feedback(text, where) for text, where in feedback]) == prompt


def test_an_empty_prompt_gets_no_blank_lines() -> None:
    assert place("", [Feedback("a"), Feedback("b", PREPEND)]) == "b\n\na"


@pytest.mark.parametrize(
    ("iteration", "of", "line"),
    [
        (1, 10, "Iteration 1 of 10, 9 remaining."),
        (10, 10, "Iteration 10 of 10, 0 remaining."),
        (11, 10, "Iteration 11 of 10, 0 remaining."),
    ],
)
def test_the_count_line(iteration: int, of: int, line: str) -> None:
    """H §Loop Behavior 3: `Iteration X of Y, Z remaining.`"""
    assert count_line(iteration, of) == line


def test_the_completion_sentence_names_the_words_to_say() -> None:
    marker = "<response>DONE</response>"
    assert completion_sentence(marker).endswith(f"end your answer with {marker}.")


def test_a_turn_taken_again_after_a_crash_is_told_so() -> None:
    """ADR 21: "on resume the agent is told that iteration n was cut off"."""
    assert cut_off(NEW) == ()
    [notice] = cut_off(RunState(iteration=7, cut_off=True))
    assert notice.placement is PREPEND
    assert "Iteration 7 was cut off" in notice.text


@pytest.mark.parametrize(
    ("used", "prices", "cost"),
    [
        (Used(Usage(1_000_000), 0.5), Prices(input=2), 0.5),
        (Used(Usage(1_000_000)), Prices(input=2), 2.0),
        (Used(Usage(1_000_000)), None, None),
        (Used(), Prices(input=2), None),
    ],
)
def test_the_agents_own_account_goes_first(
    used: Used, prices: Prices | None, cost: float | None
) -> None:
    """ADR 22: then its tokens; and where there are none, nobody knows."""
    assert priced(used, prices) == cost


@pytest.mark.parametrize(
    ("landing", "words"),
    [
        (None, ()),
        (Landed(1.0, kept=True, count=3), ()),
        (Landed(1.0, kept=False), ()),
        (Landed(1.0, kept=False, count=1), ("What the last turn changed was thrown away",)),
        (Landed(1.0, kept=True, held=("a", "b")), ("are not in the project: a, b.",)),
    ],
)
def test_what_the_agent_must_know_of_its_sandbox(
    landing: Landed | None, words: tuple[str, ...]
) -> None:
    told = [feedback.text for feedback in landed(replace(NEW, landed=landing))]
    assert len(told) == len(words)
    assert all(word in text for word, text in zip(words, told, strict=True))


@pytest.mark.parametrize(("count", "words"), [(0, ""), (2, "0, 1"), (12, "0, 1 and 10 more")])
def test_long_lists_are_cut(count: int, words: str) -> None:
    assert listed(tuple(map(str, range(count))), most=2) == words
