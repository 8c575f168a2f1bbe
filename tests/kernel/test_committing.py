"""Commits of what was proven, while hooks of the user change it (ADR 33)."""

from collections.abc import Iterator

import pytest

from ralph.kernel.facts import Fact, Proved, Step
from ralph.kernel.findings import Finding, undone
from ralph.kernel.ports import Committed, Gate
from ralph.kernel.proving import committed
from ralph.kernel.state import RunState
from ralph.kernel.turn import Turn
from ralph.testing.fakes import FakeAgent, FakeGate, FakeTrees, FakeWorld, MemoryJournal, fake_ports

ALTERED = Committed(ok=False, altered=("work.py",))


class Bench:
    """A proven tree, and commits that come out as they are told to."""

    def __init__(self, *results: Committed, law: tuple[Gate, ...] = ()) -> None:
        self.trees = FakeTrees(files={"work.py": "1"})
        self.journal = MemoryJournal()
        self._results, self._law = iter(results), law

    def commit(self, *gates: Gate) -> tuple[list[Fact], Committed]:
        """The facts on the way, and what came of it."""
        ports = fake_ports(FakeAgent([Turn()]), FakeWorld(), self.journal, trees=self.trees)
        steps = committed(
            ports,
            RunState(turn=Turn(), iteration=1),
            lambda _: next(self._results),
            gates,
            self._law,
            proven_again=self._recorded,
        )
        facts: list[Fact] = []
        while True:
            try:
                facts.append(next(steps))
            except StopIteration as end:
                return facts, end.value[1]

    def _recorded(self, _: RunState) -> Iterator[Fact]:
        yield Step(2.0, "records")


def words(facts: list[Fact]) -> list[str]:
    return [fact.key if isinstance(fact, Step) else type(fact).__name__ for fact in facts]


def test_what_a_hook_changed_is_committed_once_the_gates_pass_on_it() -> None:
    facts, made = Bench(ALTERED, Committed(commit="c1")).commit(FakeGate("tests"))
    assert words(facts) == ["commit hook", "Proved", "records"]
    assert any(isinstance(fact, Proved) for fact in facts)
    assert made == Committed(commit="c1")


def test_a_hook_that_changes_it_each_time_is_refused() -> None:
    _, made = Bench(ALTERED, ALTERED).commit(FakeGate("tests"))
    assert not made.ok
    assert "a commit hook changed work.py, each time" in made.said


def test_a_hook_after_which_a_gate_objects_is_refused_with_its_words() -> None:
    gate = FakeGate("tests", fails_in={1}, finding=Finding("tests", "test_a fails"))
    facts, made = Bench(ALTERED).commit(gate)
    assert words(facts) == ["commit hook"]
    assert (made.ok, made.said.splitlines()[-1]) == (False, "test_a fails")
    assert "with that tests does not pass" in made.said


@pytest.mark.parametrize("left", [(), ("late.py",)])
def test_what_came_after_the_proof_is_told(left: tuple[str, ...]) -> None:
    facts, _ = Bench(Committed(commit="c1", left=left)).commit()
    assert words(facts) == ["left alone"] * len(left)


def test_the_law_is_asked_when_all_hooks_are_through() -> None:
    asked: list[str] = []
    law = FakeGate("protect", always=True, during=lambda _: asked.append("protect"))
    Bench(Committed(commit="c1"), law=(law,)).commit()
    assert asked == ["protect"]


def test_code_of_a_check_that_changes_a_list_is_named() -> None:
    said = undone("tasks.json")
    assert said.startswith("Code run by a check changed tasks.json; it was restored.")
