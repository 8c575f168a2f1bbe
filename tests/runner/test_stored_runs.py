"""Stored runs, of all five loops and four agents, judged again by the rules as they are here."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ralph.agents.streams.collect import Collector
from ralph.cli.main import run_command_line
from ralph.journal.journal import JOURNAL, SEED, chained, read_journal
from ralph.kernel import claims
from ralph.kernel.case import Ladder
from ralph.kernel.facts import Launching, Started
from ralph.kernel.rules import Failing, Objections, carry_on
from ralph.loops.prompt import policy as prompt_policy
from ralph.loops.session import policy as session_policy
from ralph.loops.session.memory import file_name, folder_of

STORED = Path(__file__).resolve().parent.parent / "captures" / "runs"
RUNS = sorted(place.name for place in STORED.iterdir())


def target(name: str) -> str:
    """What is replayed: a run's directory, or the loop of a session."""
    loop = STORED / name / "session.loop"
    return str(loop if loop.exists() else STORED / name)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> "Told":
    return Told(capsys)


class Told:
    """`ralph replay` in this process: its exit code, and what it said."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, path: str | Path, *flags: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = run_command_line(["replay", str(path), *flags])
        said = self._capsys.readouterr()
        return code, said.out or said.err


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A stored run that may be changed."""
    return Path(shutil.copytree(STORED / "prompt-claude", tmp_path / "elsewhere"))


def rewrite(journal: Path, change: Callable[[str], str]) -> None:
    """Change the lines of a journal, and chain them anew."""
    last, lines = SEED, []
    for line in journal.read_text().splitlines():
        body = change(line.rpartition(',"hash":"')[0] + "}")
        last = chained(body, last)
        lines.append(f'{body[:-1]},"hash":"{last}"}}\n')
    journal.write_text("".join(lines))


@pytest.mark.parametrize("name", RUNS)
def test_no_verdict_differs(name: str, told: Told) -> None:
    """Issue: "CI replays a set of stored runs: a change of rules ... is seen in review"."""
    code, said = told(target(name))
    anew = f'If the change is wanted, record the run anew: make stored-runs RUNS="{name}"'
    assert code == 0, f"\n{said}\n{anew}"
    assert re.fullmatch(r"no difference: \d+ verdicts of \d+ iterations, \d+ streams\n", said), said


def test_a_worker_alone(told: Told) -> None:
    for worker in (STORED / "crew-codex" / "runs").iterdir():
        code, said = told(worker)
        assert (code, said) == (0, "no difference: 3 verdicts of 1 iteration, 1 stream\n")


def test_all_loops_and_four_agents_are_there() -> None:
    profiles, dialects = set(), set()
    for journal in STORED.rglob(JOURNAL):
        facts = read_journal(str(journal))[0]
        profiles |= {fact.profile for fact in facts if isinstance(fact, Started)}
        dialects |= {fact.dialect for fact in facts if isinstance(fact, Launching)}
    assert profiles == {"harness", "tasks", "reviewed", "supervise"}
    assert [*STORED.rglob("session.loop")]
    assert dialects == {"claude", "codex", "gemini", "opencode"}


def test_rules_that_change_places_are_named(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    closing = prompt_policy.closing

    def swapped(*terms: object) -> Ladder:
        *others, objections, last = closing(*terms)  # type: ignore[arg-type]
        assert isinstance(objections, Objections)
        return (*others, last, objections)

    monkeypatch.setattr(prompt_policy, "closing", swapped)
    code, said = told(STORED / "prompt-claude")
    assert code == 1
    where, then, *rest = said.split("\n\n")[0].splitlines()
    assert where == "iteration 1, closing"
    assert then.startswith(
        '  then  Objections: goes on, told: Guardrail "test -f hello.txt" failed'
    )
    assert rest == [
        "  now   carry_on: goes on",
        "  about a turn with <response>DONE</response>; test -f hello.txt objected",
        "  Changed: carry_on is asked before Objections now, and was asked after it.",
    ]
    assert said.splitlines()[-1] == "2 differences: 7 verdicts of 3 iterations, 3 streams"


def test_a_parameter_that_changes_is_named(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    closing = prompt_policy.closing

    def stricter(*terms: object) -> Ladder:
        ladder = closing(*terms)  # type: ignore[arg-type]
        return tuple(Failing(1) if isinstance(rule, Failing) else rule for rule in ladder)

    monkeypatch.setattr(prompt_policy, "closing", stricter)
    code, said = told(STORED / "failing-codex", "--json")
    data = json.loads(said)
    assert code == 1
    (first,) = data["differences"]
    assert (first["iteration"], first["where"]) == (1, "closing")
    assert (first["then"]["rule"], first["now"]["rule"]) == ("Objections", "Failing")
    assert first["now"]["verdict"]["reason"] == "failing"
    assert first["changes"] == [
        "Failing(after=2, park=False) is Failing(after=1, park=False) now",
    ]


def test_another_rule_with_the_same_verdict_is_counted(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = prompt_policy.closing

    def renamed(*terms: object) -> Ladder:
        *others, objections, last = closing(*terms)  # type: ignore[arg-type]
        return (*others, partial(objections), last)

    monkeypatch.setattr(prompt_policy, "closing", renamed)
    code, said = told(STORED / "prompt-gemini")
    assert code == 0
    assert said.splitlines() == [
        "no difference: 7 verdicts of 3 iterations, 3 streams",
        "the same by another rule: 2 verdicts",
    ]


def test_a_rule_whose_code_changes_is_named(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(_: object) -> None:
        return None

    lenient.__name__ = "Believed"
    monkeypatch.setattr(session_policy, "Believed", lambda *_: lenient)
    code, said = told(target("session-claude"))
    assert code == 1
    assert "then  Believed: believed" in said
    assert "now   Disbelieved: goes on" in said


def test_a_parser_that_changes_is_told_from_rules(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_TAG", re.compile(r"<(/?)(promise|result)>"))
    code, said = told(STORED / "prompt-gemini")
    assert code == 1
    assert "iteration 3, 003.stream is read otherwise" in said
    assert "  claims: <response>DONE</response> then, none now" in said
    assert "  then  Believed: believed: claimed: <response>DONE</response>" in said
    assert "  now   carry_on: goes on" in said
    assert "  The stream is read otherwise, as said above." in said


def test_a_turn_that_is_read_otherwise_differs_though_no_verdict_does(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Collector, "_said", lambda *_: None)
    code, said = told(STORED / "supervise-codex")
    assert code == 1
    assert "text: " in said
    assert "closing" not in said, "words complete nothing there"


def test_selection_is_judged_too(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    from ralph.kernel.tasks.task import Assignment
    from ralph.loops.backlog.parallel import policy as crew

    monkeypatch.setattr(crew, "next_task", lambda _: Assignment("T-2"))
    code, said = told(STORED / "crew-codex")
    assert code == 1
    assert "iteration 1 (T-1), selection\n  then  T-1 is chosen, to implement" in said
    assert "  now   T-2 is chosen, to implement\n  Tasks are selected otherwise.\n" in said


def test_a_run_can_be_watched(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    code, said = told(STORED / "prompt-claude", "--speed", "2")
    took = read_journal(str(STORED / "prompt-claude" / JOURNAL))[0]
    assert code == 0
    assert "Iteration 3/5 starting" in said
    assert "<response>DONE</response>" in said, "what the agent said stands between"
    assert said.splitlines()[-1].startswith("no difference: ")
    assert sum(slept) == pytest.approx((took[-1].time - took[0].time) / 2)
    slept.clear()
    told(STORED / "prompt-claude", "--speed", "max")
    assert slept == []


def test_a_difference_is_marked_where_it_is(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    closing = prompt_policy.closing
    monkeypatch.setattr(prompt_policy, "closing", lambda *terms: (carry_on, *closing(*terms)))
    code, said = told(STORED / "prompt-claude", "--speed", "max")
    assert code == 1
    before, _, after = said.partition("≠ iteration 1, closing")
    assert "Running guardrail" in before
    assert "Iteration 2/5 starting" in after
    assert "Iteration 2/5 starting" not in before


def test_what_is_not_there_any_more_is_said(copy: Path, told: Told) -> None:
    (copy / "002.stream").unlink()
    code, said = told(copy)
    assert code == 0
    assert said.splitlines() == [
        "no difference: 7 verdicts of 3 iterations, 2 streams",
        "not read again: 1 stream: it is not there any more",
    ]


@pytest.mark.parametrize("how", ["named", "up", "linked"])
def test_of_a_copy_nothing_is_read_that_lies_elsewhere(how: str, copy: Path, told: Told) -> None:
    """It may come from anybody, and what it differs by is printed."""
    secret = copy.parent / "secret"
    secret.write_text("a secret")
    (copy / "001.stream").unlink()
    if how == "linked":
        (copy / "001.stream").symlink_to(secret)
    else:
        name = str(secret) if how == "named" else f"{copy.name}/../secret"
        text = (copy / JOURNAL).read_text()
        named = re.search(r'"stream":"([^"]+/001.stream)"', text)
        assert named
        rewrite(copy / JOURNAL, lambda line: line.replace(named[1], name))
    code, said = told(copy)
    assert code == 0
    assert said.splitlines()[1:] == ["not read again: 1 stream: it is not there any more"]


def test_a_journal_of_before_tells_what_cannot_be_judged(copy: Path, told: Told) -> None:
    def older(body: str) -> str:
        fact = json.loads(body)
        return json.dumps({k: v for k, v in fact.items() if k not in ("seen", "ladders")})

    rewrite(copy / JOURNAL, older)
    code, said = told(copy)
    assert code == 0
    assert said.splitlines() == [
        "no difference: 0 verdicts of 3 iterations, 3 streams",
        "not judged again: 7 verdicts: its journal does not tell what the rules saw",
    ]


@pytest.mark.parametrize(
    "words", ["changed", "plan", "flags", "settings", "empty", "nothing", "loop"]
)
def test_what_cannot_be_replayed_is_refused(words: str, copy: Path, told: Told) -> None:
    journal, path, expected = copy / JOURNAL, copy, ""
    if words == "changed":
        journal.write_text(journal.read_text().replace("test -f", "test -d", 1))
        expected = f"{journal}:1: this line was changed after it was written"
    elif words == "plan":
        (copy / "plan.json").write_text("{}")
        expected = "nobody knows how run elsewhere was started"
    elif words == "flags":
        shutil.copytree(STORED / "supervise-codex", copy, dirs_exist_ok=True)
        kept = json.loads((copy / "plan.json").read_text())
        kept["work"].pop("restart_delay")
        (copy / "plan.json").write_text(json.dumps(kept))
        expected = "its plan.json tells too little ('restart_delay')"
    elif words == "settings":
        rewrite(journal, lambda body: body.replace("failDelay", "failDely"))
        expected = "the settings of run elsewhere are none of today's"
    elif words == "empty":
        journal.write_text("")
        expected = "run elsewhere left no journal"
    elif words == "nothing":
        path = copy / "no-such-run"
        expected = f"there is no run in {path}"
    else:
        path = copy / "bad.loop"
        path.write_text('{"version": 7}')
        expected = "its version is 7"
    code, said = told(path)
    assert code == 2
    assert expected in said


def test_a_session_is_found_by_its_id(told: Told) -> None:
    session = json.loads(Path(target("session-claude")).read_text())["session"]
    folder = Path(folder_of(os.environ))
    folder.mkdir(parents=True)
    shutil.copy(target("session-claude"), folder / file_name(session, "loop"))
    assert told(session)[1] == "no difference: 3 verdicts of 3 iterations, 0 streams\n"


def test_a_session_cannot_be_watched(told: Told) -> None:
    code, said = told(target("session-claude"), "--speed", "1")
    assert code == 2
    assert "keeps no times" in said


@pytest.mark.parametrize("speed", ["x", "-1", "nan", "inf"])
def test_a_speed_is_a_number(speed: str, told: Told) -> None:
    code, said = told(STORED / "prompt-claude", "--speed", speed)
    assert code == 2
    assert "is neither a number" in said
