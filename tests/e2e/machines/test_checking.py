"""The checker of lives notices whatever is planted, and believes nobody dead or alive too long."""

import pytest

from kits.machines.checking import Life, lives, objections, overlaps

ONE = ("1.0 begin 1 A run-1 host1 100", "1.05 beat 1", "1.5 end 1", "1.51 gone 1")
OTHER = ("2.0 begin 2 B run-1 host2 200", "2.5 end 2", "2.51 gone 2")


def said(*lines: str, tasks: str = "A", landed: str | None = None) -> list[str]:
    names = tasks if landed is None else landed
    return objections(lines, tasks=list(tasks), landed=list(names))


def test_a_life_goes_from_its_beginning_to_its_last_sign() -> None:
    (life,) = lives(ONE)
    assert life == Life(1, "A", "run-1", "host1", 100, 1.0, 1.5, finished=True, gone=True)


def test_nothing_is_said_of_a_run_that_is_as_it_must_be() -> None:
    assert said(*ONE, *OTHER, tasks="AB") == []


def test_one_attempt_after_another_is_no_overlap() -> None:
    again = ("1.6 begin 2 A run-2 host2 200", "1.9 end 2", "1.9 gone 2")
    assert said(*ONE, *again) == []


@pytest.mark.parametrize(
    "first",
    [
        ("1.0 begin 1 A run-1 host1 100", "1.65 beat 1", "1.7 gone 1"),
        ("1.0 begin 1 A run-1 host1 100", "1.62 seen 1", "3.0 gone 1"),  # stopped: it does not beat
        ("1.0 begin 1 A run-1 host1 100", "9.0 end 1", "9.0 gone 1"),  # it holds the other
    ],
)
def test_two_agents_of_one_task_are_noticed(first: tuple[str, ...]) -> None:
    again = ("1.6 begin 2 A run-2 host2 200", "1.9 end 2", "1.9 gone 2")
    (told,) = said(*first, *again)
    assert told.startswith("A: two agents were alive for ")
    assert "run-1 on host1 and run-2 on host2" in told


def test_a_late_word_of_a_death_is_no_life() -> None:
    """Killed after its last beat; that it is gone was heard when the next had begun."""
    first = ("1.0 begin 1 A run-1 host1 100", "1.55 beat 1", "1.7 gone 1")
    again = ("1.6 begin 2 A run-2 host2 200", "1.9 end 2", "1.9 gone 2")
    assert overlaps(lives((*first, *again))) == []


def test_three_at_once_are_three_pairs() -> None:
    lines = [f"1.{n} begin {n} A run-{n} host{n} {n}" for n in range(1, 4)]
    assert len(overlaps(lives([*lines, *(f"2.0 beat {n}" for n in range(1, 4))]))) == 3


def test_agents_of_different_tasks_may_be_alive_together() -> None:
    lines = ("1.0 begin 1 A run-1 host1 100", "1.1 begin 2 B run-1 host2 200")
    assert overlaps(lives([*lines, "2.0 end 1", "2.0 end 2"])) == []


@pytest.mark.parametrize(("landed", "times"), [("", 0), ("AA", 2)])
def test_each_task_lands_exactly_once(landed: str, times: int) -> None:
    assert said(*ONE, landed=landed) == [f"A: landed {times} times"]


def test_what_lands_was_worked_on() -> None:
    assert said(*ONE, tasks="AB") == ["B: landed, and no agent worked on it"]


def test_whoever_is_still_there_is_noticed() -> None:
    assert said(*ONE[:-1]) == ["A: an agent lives on host1"]


def test_an_agent_that_said_nothing_is_nobody() -> None:
    assert lives(["1.0 gone 7"]) == []


@pytest.mark.parametrize("kind", ["processes", "worktrees", "refs"])
def test_whatever_is_left_is_noticed(kind: str) -> None:
    left = {kind: ["x"]}
    (told,) = objections(ONE, tasks=["A"], landed=["A"], **left)
    assert told.endswith("is left: x")


@pytest.mark.parametrize("line", ["", "1.0 born 1", "soon begin 1 A r h 1", "1.0 begin 1 A"])
def test_what_is_no_log_is_no_silence(line: str) -> None:
    """A log that cannot be read proves nothing."""
    with pytest.raises(ValueError, match=r"log|unpack|convert"):
        lives([line])
