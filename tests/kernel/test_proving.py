"""A proof is about one tree (ADR 33): gates in, findings or a proof out, no process started."""

from collections.abc import Callable

import pytest

from kits.loop_fakes import FakeScm
from ralph.kernel.case import Case
from ralph.kernel.claims import Claim
from ralph.kernel.engine import run
from ralph.kernel.facts import Checked, Checking, Proved
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Gate
from ralph.kernel.proving import hook_words, prove
from ralph.kernel.state import RunState, replay
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary
from ralph.kernel.world import Signals, Snapshot, Stand
from ralph.loops.prompt.policy import harness
from ralph.testing.fakes import (
    FakeAgent,
    FakeClock,
    FakeGate,
    FakeTrees,
    FakeWorld,
    MemoryJournal,
    fake_ports,
)


class Bench:
    """A work tree after a turn, and the gates that run on it."""

    def __init__(self, **files: str) -> None:
        self.trees = FakeTrees()
        self.begun = self.trees.look()
        self.trees.files = dict(files)
        self.journal = MemoryJournal()
        self.world = FakeWorld()
        self.starts: list[tuple[str, str]] = []  # each gate, and the work as it found it

    def gate(self, name: str, does: Callable[[dict[str, str]], None] = lambda _: None) -> FakeGate:
        """A gate that does something to the files, and passes on good work."""

        def during(_: Case) -> None:
            self.starts.append((name, self.trees.files.get("work", "")))
            does(self.trees.files)

        return FakeGate(name, during=during)

    def prove(
        self, *gates: Gate, law: tuple[Gate, ...] = (), turn: Turn = Turn(), settling: bool = False
    ) -> Case:
        """What comes of a turn that began on nothing."""
        state = RunState(turn=turn, iteration=1, snapshot=Snapshot(stand=self.begun))
        case = Case(Boundary.CLOSING, state, 1.0, snapshot=Snapshot(stand=self.trees.look()))
        clock = FakeClock()
        ports = fake_ports(FakeAgent([Turn()]), self.world, self.journal, clock, self.trees)
        return prove(gates, law, ports, case, settling=settling)


def write(path: str, text: str) -> Callable[[dict[str, str]], None]:
    return lambda files: files.__setitem__(path, text)


def counted(path: str) -> Callable[[dict[str, str]], None]:
    return lambda files: files.__setitem__(path, files.get(path, "") + "x")


def test_gates_that_leave_the_tree_alone_prove_it() -> None:
    bench = Bench(work="good")
    case = bench.prove(bench.gate("lint"), bench.gate("test"))
    assert case.findings == ()
    assert case.proof is not None
    assert (case.proof.gates, case.proof.tree) == (("lint", "test"), bench.trees.last)
    assert [name for name, _ in bench.starts] == ["lint", "test"]


def test_a_formatter_has_one_more_pass_and_others_are_not_run_twice() -> None:
    """ "one more pass on the changed tree"; a result is about a tree, and stands for it."""
    bench = Bench(work="ugly")
    case = bench.prove(bench.gate("format", write("work", "nice")), bench.gate("test"))
    assert case.findings == ()
    assert bench.starts == [("format", "ugly"), ("test", "nice"), ("format", "nice")]
    assert case.proof is not None
    assert case.proof.gates == ("format", "test")


def test_a_gate_that_changes_the_turns_file_each_time_is_named() -> None:
    """ "if it changes again, that is a finding which names files and gate"."""
    bench = Bench(work="good")
    case = bench.prove(bench.gate("stamp", counted("work")), bench.gate("test"))
    assert case.proof is None
    [finding] = case.findings
    assert finding.text.startswith("`stamp` changes work every time it runs")
    assert Checked(1000.0, "proof", 0.0, (finding,)) in bench.journal.facts


def test_gates_that_undo_each_other_prove_nothing() -> None:
    """(i) "gate 1 writes good code, gate 2 passes, gate 3 restores the bad code"."""
    bench = Bench(work="bad")
    gates = [("one", write("work", "good")), ("two", None), ("three", write("work", "bad"))]
    case = bench.prove(*(bench.gate(n, do) if do else bench.gate(n) for n, do in gates))
    assert case.proof is None
    assert case.findings[0].gate == "proof"


def test_what_gates_change_each_time_and_no_turn_did_is_put_back_at_once() -> None:
    """ "put back to the proven tree and named": nobody starts on anything else."""
    bench = Bench(work="good", stamp="")
    bench.begun = bench.trees.look()  # the stamp was there before the turn
    bench.trees.files["work"] = "better"
    seen: list[str] = []
    look = FakeGate("look", during=lambda _: seen.append(bench.trees.files["stamp"]))
    case = bench.prove(bench.gate("stamp", counted("stamp")), look)
    assert case.findings == ()
    assert bench.trees.back == [("stamp",)]
    assert case.proof is not None
    assert case.proof.put_back == ("stamp",)
    assert seen == ["x"], "it passed on the changed tree, which was put back"
    assert bench.trees.files["stamp"] == "x"


def test_new_files_of_gates_are_left_out() -> None:
    bench = Bench(work="good")
    case = bench.prove(bench.gate("test", counted("coverage")), bench.gate("lint"))
    assert case.proof is not None
    assert case.proof.left_out == ("coverage",)
    assert len(bench.starts) == 2


def test_head_belongs_to_what_is_compared() -> None:
    bench = Bench(work="good")

    def commit(_: dict[str, str]) -> None:
        bench.trees.head += "+"

    case = bench.prove(bench.gate("commits", commit))
    assert "`commits` changes HEAD every time" in case.findings[0].text


class Law:
    """Objects as often as it is told to, and counts how often it is asked."""

    name, always = "protect", True

    def __init__(self, *objects: bool) -> None:
        self.objects, self.asked = list(objects), 0

    def check(self, case: Case) -> tuple[Finding, ...]:
        self.asked += 1
        return (Finding("protect", "put back"),) if self.objects and self.objects.pop(0) else ()


def test_the_law_is_asked_before_the_first_gate_and_after_each() -> None:
    """ "compared before the first gate, between gates and after the last"."""
    bench, law = Bench(work="good"), Law()
    assert bench.prove(bench.gate("a"), bench.gate("b"), law=(law,)).findings == ()
    assert law.asked == 3
    told = [fact for fact in bench.journal.facts if isinstance(fact, Checking | Checked)]
    assert [fact.gate for fact in told].count("protect") == 2, "the first time only"


@pytest.mark.parametrize("when", [0, 1, 2])
def test_what_the_law_finds_is_a_finding_whoever_did_it(when: int) -> None:
    bench, law = Bench(work="good"), Law(*([False] * when), True)
    case = bench.prove(bench.gate("a"), bench.gate("b"), law=(law,))
    assert [finding.gate for finding in case.findings] == ["protect"]
    assert case.proof is None


def test_a_pass_that_fails_is_not_repeated() -> None:
    bench = Bench(work="good")
    fails = replace_gate(bench.gate("test"), fails_in=frozenset({1}))
    case = bench.prove(bench.gate("format", write("work", "nice")), fails)
    assert [finding.gate for finding in case.findings] == ["make test"]
    assert len(bench.starts) == 2


def replace_gate(gate: FakeGate, fails_in: frozenset[int]) -> FakeGate:
    return FakeGate(gate.name, fails_in=fails_in, during=gate.during)


def test_a_signal_keeps_gates_from_running_and_proves_nothing() -> None:
    bench = Bench(work="good")
    bench.world = FakeWorld(asked=Signals(cancels=1))
    case = bench.prove(bench.gate("test"))
    assert (case.checked, case.proof, bench.starts) == (False, None, [])
    assert bench.prove(bench.gate("test"), settling=True).proof is not None


def test_a_broken_repository_is_a_finding() -> None:
    bench = Bench(work="good")
    first = bench.trees.look()

    def break_it(_: dict[str, str]) -> None:
        bench.trees.broken = "not a git repository"

    case = bench.prove(bench.gate("test", break_it))
    assert "Cannot tell what would be committed: not a git repo" in case.findings[0].text
    assert not case.checked
    assert first.tree


def test_outside_git_there_is_one_pass_and_no_proof() -> None:
    bench = Bench(work="good")
    gates = (bench.gate("format", write("work", "nice")), bench.gate("test"))
    state = RunState(turn=Turn(), iteration=1)
    ports = fake_ports(FakeAgent([Turn()]))
    case = prove(gates, (), ports, Case(Boundary.CLOSING, state, 1.0))
    assert (case.findings, case.passed, case.proof) == ((), ("format", "test"), None)
    assert ports.trees.put_back(Stand(), frozenset(), "1") == ""


def test_a_gate_that_says_it_runs_nothing_is_not_looked_after() -> None:
    class Looks(FakeGate):
        def executes(self, case: Case) -> bool:
            return False

    bench, law = Bench(work="good"), Law()
    assert bench.prove(Looks("look"), law=(law,)).proof is not None
    assert law.asked == 1


def test_the_words_about_a_hook_name_what_does_not_pass() -> None:
    words = hook_words(("a", "b"), (Finding("lint", "too long"),))
    assert words == "a commit hook changed a, b, and with that lint does not pass\ntoo long"
    assert isinstance(replace(Proved(1.0, "t"), commit="c"), Proved)


def test_a_run_keeps_what_was_proven_in_its_journal() -> None:
    """ADR 33: "`Proved` names the tree in the journal; a commit's step names the commit"."""
    journal, trees, scm = MemoryJournal(), FakeTrees({"work": "good"}), FakeScm()
    agent = FakeAgent([Turn(claims=(Claim("<response>DONE</response>"),))])
    ports = fake_ports(agent, None, journal, None, trees)
    stop = run(harness(Limits(iterations=1), gates=(FakeGate(),), scm=scm), ports).stop
    assert stop is not None
    assert stop.reason.exit_code == 0
    state = replay(journal.facts)
    assert state.proof in journal.facts
    assert state.proof is not None
    assert (state.proof.tree, state.commit) == (trees.last, "c0ffee")


class Silent(FakeGate):
    """A gate that finds nothing to look at, unless the work is there."""

    def passed_as(self, case: Case) -> str:
        return "two tests" if case.snapshot.stand.tree != FakeTrees().look().tree else ""


def test_a_gate_tells_what_it_passed_and_that_it_had_nothing_to_look_at() -> None:
    """The proof names what was looked at, and nothing else."""
    found = Bench(work="x").prove(FakeGate("lint"), Silent("tests"))
    assert (found.passed, found.checked) == (("lint", "two tests"), True)
    assert found.proof is not None
    assert found.proof.gates == ("lint", "two tests")
    nothing = Bench().prove(FakeGate("lint"), Silent("tests"))
    assert (nothing.passed, nothing.checked) == (("lint",), True)
    assert nothing.proof is not None
    assert nothing.proof.gates == ("lint",)


def test_what_a_gate_has_passed_is_told_though_it_is_not_run_again() -> None:
    bench = Bench(work="x")
    formats = bench.gate("format", lambda files: files.update(work="tidy"))
    tests = Silent("tests", during=lambda _: bench.starts.append(("tests", "")))
    found = bench.prove(formats, tests)
    assert found.passed == ("format", "two tests")
    assert bench.starts.count(("tests", "")) == 1
