"""What `ralph doctor` learns about a machine: programs are asked with patience that ends."""

import os
import threading
from pathlib import Path

import pytest

from kits.adapters import has_ended
from ralph.agents import probe
from ralph.agents.clis import CLIS, Choice, Environment
from ralph.agents.providers import OWN
from ralph.doctor import machine as machine_module
from ralph.doctor.agents import (
    Candidate,
    Examiner,
    agent_checks,
    money_checks,
    repository_check,
    user_check,
)
from ralph.doctor.checks import CheckState, KnownAgent
from ralph.doctor.machine import (
    Machine,
    ProgramAnswer,
    first_words,
    python_check,
    system_check,
    version_numbers,
)

SKIPS = ("--dangerously-skip-permissions",)


def script(path: Path, text: str) -> str:
    """A program of a few lines of shell."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def machine(workspace: Path) -> Machine:
    return Machine(str(workspace), dict(os.environ))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("echo 2.1.197 '(Claude Code)'", "2.1.197"),
        ("echo codex-cli 0.166.0-alpha.3", "0.166.0-alpha.3"),
        ("echo git version 2.39.5.", "2.39.5"),
        ("echo; printf '\\033[31mv1.18.33\\033[0m'; echo", "1.18.33"),
        ("echo no number", ""),
        ("head -c 10000000 /dev/zero", ""),
        ("head -c 100000 /dev/zero | tr '\\0' 9; echo .1", ""),
        ("printf '1.%0200d' 7", "1." + "0" * 38),
        ("printf '\\377\\376 3.4'", "3.4"),
    ],
)
def test_a_version_is_found_in_whatever_is_printed(
    machine: Machine, tmp_path: Path, text: str, version: str
) -> None:
    answer = machine.ask(script(tmp_path / "program", text))
    assert (answer.trouble, answer.version) == ("", version)


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("echo out; echo '  ' >&2; echo boom >&2; exit 3", "exit code 3: boom"),
        ("echo out; exit 1", "exit code 1: out"),
        ("exit 1", "exit code 1"),
        ("kill -9 $$", "exit code 137"),
        ("printf '\\001\\033]0;title\\007' >&2; exit 1", "exit code 1: ]0;title"),
    ],
)
def test_a_program_that_fails_is_no_answer(
    machine: Machine, tmp_path: Path, text: str, trouble: str
) -> None:
    answer = machine.ask(script(tmp_path / "program", text))
    assert (answer.trouble, answer.version) == (trouble, "")


def test_what_cannot_be_started_is_told_and_not_raised(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "no-program").write_text("words")
    (tmp_path / "no-program").chmod(0o755)
    assert machine.ask("/no/such/program").trouble.startswith("cannot be started: No such file")
    assert "Exec format" in machine.ask(str(tmp_path / "no-program")).trouble
    assert "cannot be started" in machine.ask("a\0b").trouble


def test_nobody_waits_longer_than_the_limit_and_nothing_is_left(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "each child has a time limit and is killed with its group": five seconds, shortened."""
    assert machine_module.PATIENCE == 5
    monkeypatch.setattr(machine_module, "PATIENCE", 0.1)
    text = f"trap '' INT TERM; sleep 60 & echo $! $$ > {tmp_path}/pids; wait; wait"
    answer = machine.ask(script(tmp_path / "program", text))
    assert answer == ProgramAnswer("", "gave no answer within 0.1 s")
    assert all(has_ended(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def test_an_endless_answer_is_cut_and_not_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_module, "PATIENCE", 0.1)
    assert machine.ask("yes").trouble == "gave no answer within 0.1 s"


def test_when_nobody_wants_the_answer_the_program_is_ended(workspace: Path) -> None:
    given_up = threading.Event()
    machine = Machine(str(workspace), dict(os.environ), given_up.is_set)
    given_up.set()
    assert machine.ask("sleep", "60").trouble == "was not waited for"


def test_when_nobody_wants_the_help_it_is_not_waited_for(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even as long as anybody has patience: whoever pressed Ctrl+C wants out."""
    monkeypatch.setattr(machine_module, "PATIENCE", 3600.0)
    monkeypatch.setattr(probe, "_PATIENCE", 3600.0)
    begun = tmp_path / "begun"
    machine = Machine(str(workspace), dict(os.environ), begun.exists)
    text = f"case $1 in --version) echo 1.0;; *) touch {begun}; trap '' INT TERM; sleep 20;; esac"
    path = script(tmp_path / "bin" / "codex", text)
    agent = Examiner(machine, str(tmp_path / "probes.json"), may_ask=True)(candidate(path))
    assert begun.exists(), "it was asked"
    assert [why for _, why in agent.flags] == [c.why for c in CLIS["codex"].choices(None)]
    assert not (tmp_path / "probes.json").exists(), "what was not said is not kept"
    other = Examiner(machine, "", may_ask=True)(candidate(path))
    assert other.trouble == "was not waited for", "nor is anybody else started"


def test_a_program_gets_no_input_and_knows_that_it_is_probed(machine: Machine) -> None:
    """ADR 15: stdin closed, `RALPH_PROBE=1` set."""
    assert machine.ask("sh", "-c", "cat; echo $RALPH_PROBE").said == "1\n"


def test_first_words_are_short_and_printable() -> None:
    assert first_words("\n \x07\n\tone\x00two \nthree") == "onetwo"
    assert first_words("x" * 1000) == "x" * 160 + "..."
    assert first_words("") == ""


@pytest.mark.parametrize(
    ("older", "newer"), [("2.9", "2.31"), ("0.8.0", "0.11"), ("1.2-rc3", "1.3"), ("", "0")]
)
def test_versions_are_compared_as_numbers(older: str, newer: str) -> None:
    assert version_numbers(older) < version_numbers(newer)


@pytest.mark.parametrize(
    ("version", "state"),
    [("3.11.2", CheckState.OK), ("3.14.0rc1", CheckState.OK), ("3.10.9", CheckState.PROBLEM)],
)
def test_python_must_be_new_enough(version: str, state: CheckState) -> None:
    assert python_check(version, "/usr/bin/python3").state is state


@pytest.mark.parametrize(
    ("system", "state"),
    [("Linux", CheckState.OK), ("Darwin", CheckState.OK), ("Windows", CheckState.PROBLEM)],
)
def test_the_platforms_of_adr_16(system: str, state: CheckState) -> None:
    assert system_check(system, "6.1", "x86_64").state is state


def candidate(path: str, kind: str = "codex", *, chosen: bool = False) -> Candidate:
    environment = Environment(dict(os.environ), ("OTHER_KEY",), "SOME_KEY")
    return Candidate(kind, (path,), path, environment, chosen)


def test_an_agent_is_asked_for_version_and_help(machine: Machine, tmp_path: Path) -> None:
    text = 'case "$*" in --version) echo 0.5.0;; "e --help") echo --full-auto;; esac'
    path = script(tmp_path / "bin" / "codex", text)
    cache = tmp_path / "state" / "probes.json"
    agent = Examiner(machine, str(cache), may_ask=True)(candidate(path, chosen=True))
    assert (agent.kind, agent.path, agent.version, agent.trouble) == ("codex", path, "0.5.0", "")
    assert [flag for flag, _ in agent.flags] == ["--full-auto"]
    assert (agent.credential, agent.withheld, agent.chosen) == ("SOME_KEY", ("OTHER_KEY",), True)
    assert "--full-auto" in cache.read_text(), "ralph run need not ask again"


def test_one_that_tells_no_version_is_not_asked_more(machine: Machine, tmp_path: Path) -> None:
    path = script(tmp_path / "bin" / "codex", f"echo $* >> {tmp_path}/asked")
    agent = Examiner(machine, "", may_ask=True)(candidate(path))
    assert agent.trouble == "says no version"
    assert (tmp_path / "asked").read_text() == "--version\n"


@pytest.mark.parametrize(("kind", "may_ask"), [("codex", False), ("text", True)])
def test_nothing_is_started_where_it_must_not_be(
    machine: Machine, tmp_path: Path, kind: str, may_ask: bool
) -> None:
    """ADR 15: known kinds only; `agent.probe: false` turns it off."""
    path = script(tmp_path / "bin" / "codex", f"touch {tmp_path}/started")
    agent = Examiner(machine, "", may_ask=may_ask)(candidate(path, kind))
    assert (agent.version, agent.trouble) == ("", "")
    assert not (tmp_path / "started").exists()


CLAUDE = KnownAgent("claude", "/bin/claude", "2.1", reports="cost", credential="KEY", chosen=True)
TEXT = KnownAgent("text", "/bin/mine", chosen=True)
OPENCODE = KnownAgent("opencode", "/opencode", "1.0", reports="cost", chosen=True)


@pytest.mark.parametrize(
    ("agent", "state", "words"),
    [
        (CLAUDE, CheckState.OK, "2.1 at /bin/claude"),
        (KnownAgent("codex", "/bin/codex"), CheckState.OK, "not asked since agent.probe is false"),
        (
            KnownAgent("goose", "/g", "1.0", tested=False),
            CheckState.OK,
            "has not been tested with it",
        ),
        (TEXT, CheckState.OK, "/bin/mine, spoken to in plain text"),
        (KnownAgent(OWN, OWN, "0.2.0"), CheckState.OK, "0.2.0, part of Ralph"),
        (KnownAgent("amp", "/a", trouble="exit code 1"), CheckState.WARNING, "/a exit code 1"),
        (
            KnownAgent("amp", "/a", trouble="cannot be started: x", chosen=True),
            CheckState.PROBLEM,
            "/a cannot be started: x",
        ),
        (KnownAgent("amp", "/a", trouble="cannot be started: x"), CheckState.WARNING, "cannot be"),
    ],
)
def test_each_agent_has_a_line(agent: KnownAgent, state: CheckState, words: str) -> None:
    first = next(agent_checks((agent,)))
    assert first.state is state
    assert words in first.found
    assert bool(first.remedy) == (state is not CheckState.OK)


def test_flags_are_told_with_their_reasons_and_who_is_missing() -> None:
    flags = tuple((c.flag, c.why) for c in (Choice("--x", "it has it"), Choice("", "no y")))
    checks = tuple(agent_checks((KnownAgent("codex", "/c", "1.0", flags=flags),)))
    assert [check.name for check in checks] == ["codex", "codex flags", "ralph-agent", "not found"]
    assert checks[1].found == "--x: it has it; no y"
    assert checks[2].found.startswith("part of Ralph, and needs a key: export ANTHROPIC_API_KEY=")
    assert checks[3].found.startswith("claude, amp, ")
    assert not {"text", "ralph-agent"} & {*checks[3].found.split(", ")}


@pytest.mark.parametrize(
    ("agents", "priced", "words"),
    [
        ((), False, ["nobody would pay: no agent would run"]),
        ((CLAUDE,), False, ["KEY pays for claude", "claude reports what it costs"]),
        ((TEXT,), False, ["Ralph cannot know who pays for mine", "mine reports no cost"]),
        (
            (KnownAgent("codex", "/codex", reports="tokens", withheld=("A", "B"), chosen=True),),
            False,
            ["Ralph cannot know", "A, B: not passed on to codex", "codex reports tokens, not"],
        ),
        (
            (KnownAgent("codex", "/codex", reports="tokens", chosen=True),),
            True,
            ["Ralph cannot know", "codex reports tokens, whose price is known"],
        ),
        (
            (OPENCODE,),
            False,
            [
                "Ralph cannot know",
                "opencode reports what it costs, if it knows the model's price: --max-cost ends",
            ],
        ),
        ((OPENCODE,), True, ["Ralph cannot know", "opencode reports what it costs: --max-cost"]),
    ],
)
def test_who_pays(agents: tuple[KnownAgent, ...], priced: bool, words: list[str]) -> None:
    found = [check.found for check in money_checks(agents, priced=priced)]
    assert len(found) == len(words)
    assert all(text.startswith(word) for text, word in zip(found, words, strict=True))


@pytest.mark.parametrize(
    ("user", "kind", "env", "flags", "state"),
    [
        (1000, "claude", {}, SKIPS, CheckState.OK),
        (0, "claude", {}, (), CheckState.WARNING),
        (0, "claude", {}, SKIPS, CheckState.PROBLEM),
        (0, "claude", {"IS_SANDBOX": "1"}, SKIPS, CheckState.OK),
        (0, "codex", {}, (), CheckState.OK),
    ],
)
def test_claude_as_root(
    user: int, kind: str, env: dict[str, str], flags: tuple[str, ...], state: CheckState
) -> None:
    """docs/facts.md §1: refuses `--dangerously-skip-permissions` unless `IS_SANDBOX=1`."""
    found = user_check(user, Candidate(kind, (kind,), "/x", Environment(env, (), "")), flags)
    assert found.state is state
    assert ("IS_SANDBOX=1" in found.remedy) == (state is not CheckState.OK)


@pytest.mark.parametrize(
    ("kind", "flags", "repository", "wrong"),
    [
        ("codex", (), False, True),
        ("codex", (), True, False),
        ("codex", ("--skip-git-repo-check",), False, False),
        ("claude", (), False, False),
    ],
)
def test_codex_outside_a_repository(
    tmp_path: Path, kind: str, flags: tuple[str, ...], repository: bool, wrong: bool
) -> None:
    """It refuses every turn there, so doctor does not wait for the first."""
    if repository:
        (tmp_path / ".git" / "objects").mkdir(parents=True)
    chosen = Candidate(kind, (kind,), "/x", Environment({}, (), ""))
    found = repository_check(str(tmp_path / "below"), chosen, flags)
    assert (found is not None and found.state is CheckState.PROBLEM) is wrong
    assert repository_check(str(tmp_path), None, ()) is None
