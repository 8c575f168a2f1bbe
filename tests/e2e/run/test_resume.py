"""`ralph resume`: whatever killed a run, and whenever, it goes on to the end it would have had."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from crash_support import HANDS, KILLED, PYTHON, moments
from run_support import Here, Running, assert_clear, facts, journals, prepare, program

from kits.fork_server import started
from kits.thorough import dealt
from ralph.journal.journal import read_journal
from ralph.kernel.facts import Ended
from ralph.kernel.state import RunState, replay
from ralph.runner import kept as planning
from ralph.testing.scripted_agent.install import calls

# What it does follows from what is there, so that a turn can be taken again.
AGENT = """\
echo >> "$CALLS"
case "$*" in *"commit message"*) echo "Add a file"; exit;; esac
echo '{"type":"system","subtype":"init","session_id":"s"}'
said=working
if [ ! -e a ]; then echo a > a
elif [ ! -e b ]; then echo b > b; said='<response>DONE</response>'
else said='<response>DONE</response>'; fi
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"'"$said"'"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.25}'
"""


@dataclass(frozen=True)
class Outcome:
    """What is left of a run, times aside."""

    code: int
    commits: str
    status: str
    iteration: int
    done: frozenset[str]
    dollars: float


@dataclass(frozen=True)
class Stage:
    """A repository, an agent that says what it was asked, and a run in it."""

    root: Path

    def prepare(self) -> "Stage":
        repo, state = self.root / "repo", self.root / "state"
        for place in (repo / ".ralph", state):
            place.mkdir(parents=True)
        agent = program(self.root / "claude", AGENT)
        settings = {
            "agent": {"command": agent, "env": {"set": {"CALLS": str(self.root / "calls")}}},
            "guardrails": [{"command": "test -e b", "hint": "b is missing"}, {"command": "true"}],
            "scm": {"command": "git", "tasks": ["commit"]},
        }
        (repo / ".ralph" / "settings.json").write_text(json.dumps(settings))
        for words in ("init -q", "add -A", "commit -q -m Begin"):
            subprocess.run(["git", *words.split()], cwd=repo, check=True, env=self.env)
        return self

    @property
    def env(self) -> dict[str, str]:
        who = {f"GIT_{r}_{f}": "x@y" for r in ("AUTHOR", "COMMITTER") for f in ("NAME", "EMAIL")}
        return {**os.environ, **who, "RALPH_STATE_DIR": str(self.root / "state")}

    def call(self, *words: str) -> int:
        with (self.root / "said").open("ab") as said:
            out = said.fileno()
            return started(words, out, out, env=self.env, cwd=self.root / "repo").wait()

    def git(self, *words: str) -> str:
        command = ["git", "-C", str(self.root / "repo"), *words]
        return subprocess.check_output(command, text=True, env=self.env)

    def calls(self) -> int:
        return len((self.root / "calls").read_text().splitlines())

    def outcome(self, code: int, state: RunState) -> Outcome:
        return Outcome(
            code,
            self.git("log", "--format=%s"),
            self.git("status", "--porcelain"),
            state.iteration,
            state.done,
            state.spent.dollars,
        )

    def state(self) -> RunState:
        (journal,) = (self.root / "state").glob("*/runs/*/journal.jsonl")
        return replay(read_journal(str(journal))[0])


RUN = ("run", "-p", "Write a and b.", "-m", "5")


@cache
def undisturbed(base: Path) -> tuple[Outcome, int, int]:
    """The end, the calls of the agent and the records of a run that nobody kills."""
    whole = Stage(base / "undisturbed-run").prepare()
    code = whole.call(*PYTHON, *RUN)
    (journal,) = (whole.root / "state").glob("*/runs/*/journal.jsonl")
    records = len(journal.read_bytes().splitlines())
    return whole.outcome(code, whole.state()), whole.calls(), records


@pytest.mark.parametrize("hand", dealt(range(HANDS), 1))
def test_killed_at_every_record_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, hand: int
) -> None:
    """Enumerated, not sampled: the state, the history and the calls of the agent are the same, but
    for the one turn that was cut off."""
    expected, calls_then, points = undisturbed(tmp_path_factory.getbasetemp())
    assert (expected.code, points > 20) == (0, True)
    for when, number in moments(points)[hand::HANDS]:
        stage = Stage(tmp_path / f"{number}-{when}").prepare()
        assert stage.call(sys.executable, "-c", KILLED, when, str(number), *RUN) == -9
        code = stage.call(*PYTHON, "resume")
        if stage.state().stop is None or (number == points and when == "after"):
            assert code == 2, "it had ended, and only the process was killed"
            code = 0
        assert stage.outcome(code, stage.state()) == expected, number
        assert stage.calls() - calls_then in (0, 1), number


# ------------------------------------------------------------------ one case each


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def test_a_run_that_was_asked_to_stop_goes_on(workspace: Path, here: Here) -> None:
    """The same counters, limits and settings, whatever the files say now."""
    until = {"tools": [{"name": "Bash", "run": "until [ -e go ]; do sleep 0.02; done"}]}
    agent = prepare(workspace, until, {"response": "DONE", "cost": 0.5}, maximumIterations=7)
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    here("stop")
    (workspace / "go").touch()
    assert running.end().code == 130
    (workspace / ".ralph" / "settings.json").write_text("{broken")
    done = here("resume")
    assert_clear(done, 0, "Resumed after 1 iteration", "Iteration 2/7 starting", "Completed")
    assert len(calls(agent)) == 2
    assert_clear(here("resume"), 2, "it has ended (completed")


def test_a_turn_that_was_finished_unseen_is_not_paid_twice(workspace: Path, here: Here) -> None:
    """A saved stream that holds its final result without an `Ended` fact is a finished turn."""
    agent = prepare(workspace, {"response": "DONE", "cost": 0.5})
    here("-p", "x")
    journal = journals()[0]
    lines = journal.read_bytes().splitlines(keepends=True)
    launched = next(i for i, line in enumerate(lines) if b'"type":"launching"' in line)
    journal.write_bytes(b"".join(lines[: launched + 1]) + lines[launched + 1][:20])
    hour_ago = time.time() - 3600
    os.utime(journal.parent / "001.stream", (hour_ago, hour_ago))
    done = here("resume")
    assert_clear(done, 0, "Completed after 1 iteration", "$0.50")
    assert len(calls(agent)) == 1
    assert [fact.turn.cost_usd for fact in facts() if isinstance(fact, Ended)] == [0.5]
    assert replay(facts()).spent.seconds < 3600, "the time since the crash does not count"


def test_a_disk_that_is_full_before_the_plan_is_kept(
    workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "plan.json")

    monkeypatch.setattr(planning, "write_atomically", full)
    prepare(workspace, {"response": "DONE"})
    assert_clear(here("-p", "x"), 2, "cannot write the state directory", "No space left")


def test_the_plan_is_for_its_owner_only(workspace: Path, here: Here) -> None:
    """It holds the settings and the prompt as they are, and they may hold secrets (ADR 13)."""
    prepare(workspace, {"response": "DONE"})
    assert here("-p", "x").code == 0
    (journal,) = journals()
    assert stat.S_IMODE(journal.with_name(planning.PLAN).stat().st_mode) == 0o600


def test_an_edited_journal_is_named(workspace: Path, here: Here) -> None:
    prepare(workspace, {"text": "x"})
    here("-p", "x", "-m", "1")
    journal = journals()[0]
    text = journal.read_bytes()
    cut = text.rindex(b'{"type":"settled"')
    journal.write_bytes(text[:cut].replace(b'"iteration":1', b'"iteration":0'))
    done = here("resume")
    assert_clear(done, 2, f"{journal}:", "this line was changed after it was written")


def test_nothing_to_resume(workspace: Path, here: Here) -> None:
    assert_clear(here("resume"), 2, "no run")
    prepare(workspace, {"response": "DONE"})
    here("-p", "x")
    assert_clear(here("resume"), 2, "it has ended (completed")


def test_beside_a_live_run_there_is_nothing_to_resume(workspace: Path, here: Here) -> None:
    """2, naming its pid."""
    agent = prepare(workspace, {"hang": "before"})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    assert_clear(here("resume"), 2, f"(pid {running.process.pid})")
    here("stop", "--now")
    running.end()


def test_a_prompt_file_that_is_gone_is_to_be_put_back(workspace: Path, here: Here) -> None:
    prompt = workspace / "PROMPT.md"
    prompt.write_text("x")
    agent = prepare(workspace, {"hang": "before"})
    running = Running(workspace, "-f", "PROMPT.md")
    running.await_that(lambda: calls(agent))
    running.send(signal.SIGKILL)
    running.end()
    prompt.unlink()
    assert_clear(
        here("resume"), 2, "cannot read the prompt file", "Put it back, then: ralph resume"
    )


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda lines: [b"garbage\n", *lines], ":1: "),
        (lambda lines: lines[1:], ":1: "),
        (lambda lines: [b"\x00\xff\n"], ":1: "),
        (lambda lines: [], "is empty or missing"),
        (lambda lines: [lines[0], lines[1].replace(b"1", b"2"), *lines[2:]], ":2: "),
    ],
    ids=["a line before", "the first is gone", "nonsense", "emptied", "edited"],
)
def test_a_damaged_journal_is_named_with_its_line(
    workspace: Path, here: Here, damage: Callable[[list[bytes]], list[bytes]], said: str
) -> None:
    """ "a clear error that names line and remedy, nothing lost"."""
    prepare(workspace, {"text": "x"})
    here("-p", "x", "-m", "1")
    journal = journals()[0]
    lines = damage(journal.read_bytes().splitlines(keepends=True)[:-1])
    journal.write_bytes(b"".join(lines))
    assert_clear(here("resume"), 2, f"{journal}", said, "Start a new one")
    assert journal.read_bytes() == b"".join(lines)


def test_an_overloaded_provider_is_still_waited_for_after_a_kill(
    here: Here, workspace: Path
) -> None:
    """ADR 11: "All waits are in the journal, so a run that is killed goes on waiting when it is
    resumed, and Ctrl+C and `ralph stop` end them at once"."""
    agent = prepare(workspace, {"error": {"status": 503, "message": "no room"}})
    first = Running(workspace, "-p", "x")
    first.await_that(lambda: "(try 1 of 10); waiting until" in first.err())
    first.process.kill()
    first.end()
    second = Running(workspace, "resume")
    second.await_that(lambda: "Resumed after 1 iteration" in second.err())
    assert "is waiting and ends at once" in here("stop").out
    assert second.end().code == 130
    assert len(calls(agent)) == 1
