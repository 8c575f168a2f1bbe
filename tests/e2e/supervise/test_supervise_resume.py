"""A supervised task goes on after any crash as if nothing had happened."""

import json
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from crash_support import HANDS, KILLED, PYTHON, moments
from run_support import Done, Here, Running, assert_clear, await_gone, program

from kits.fork_server import run
from kits.thorough import dealt
from ralph.journal.journal import read_journal
from ralph.kernel.state import RunState, replay
from ralph.loops.supervise.bus import Bus
from ralph.loops.supervise.run_info import read_run_info

# What it does follows from which attempt it is, so that one can be taken again.
AGENT = """\
echo >> "$CALLS"
case "$RALPH_RUN" in
*-001) touch "$TASK_FOLDER/a"; exit 1;;
*-002) touch "$TASK_FOLDER/b";;
*) touch "$TASK_FOLDER/DONE";;
esac
"""


@dataclass(frozen=True)
class Stage:
    """A task, and an agent that counts its calls."""

    root: Path

    def prepare(self) -> "Stage":
        (self.root / "work").mkdir(parents=True)
        program(self.root / "agent", AGENT)
        return self

    @property
    def task(self) -> Path:
        return self.root / "work" / "shop" / "login"

    def words(self) -> tuple[str, ...]:
        agent = str(self.root / "agent")
        return ("supervise", "--task-dir", str(self.task), "--restart-delay", "0", "--", agent)

    def call(self, *words: str) -> int:
        own = {"RALPH_STATE_DIR": str(self.root / "state"), "CALLS": str(self.root / "calls")}
        return run(words, {**os.environ, **own}, cwd=self.root / "work")[0]

    def calls(self) -> int:
        return len((self.root / "calls").read_text().splitlines())

    def state(self) -> RunState:
        (journal,) = self.journals()
        return replay(read_journal(str(journal))[0])

    def journals(self) -> list[Path]:
        return list((self.root / "state").glob("login-*/runs/*/journal.jsonl"))

    def outcome(self, code: int) -> tuple[object, tuple[list[object], list[str]]]:
        """What is left, times aside; and what is told of the attempts."""
        state = self.state()
        runs = sorted((self.task / "runs").iterdir())
        told = [m.body for m in Bus(str(self.task / "TASK-MESSAGE-BUS.md")).read()]
        facts = [m.type for m in Bus(str(self.task.parent / "PROJECT-MESSAGE-BUS.md")).read()]
        return (
            code,
            state.iteration,
            state.stop,
            sorted(p.name for p in self.task.iterdir()),
            [run.name[-4:] for run in runs],
            facts,
            told[-1],
        ), ([_ending(run) for run in runs], told[:-1])


def _ending(run: Path) -> object:
    info = read_run_info(str(run))
    assert info is not None
    return info.status, info.exit_code, info.error_summary, info.end_time is not None


@pytest.mark.parametrize("hand", dealt(range(HANDS), 1))
def test_killed_at_every_record_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, hand: int
) -> None:
    """Enumerated, not sampled. An attempt that the crash cut off is taken again and not counted;
    one that has left its mark is not even taken again."""
    whole = Stage(tmp_path / "whole").prepare()
    expected, told = whole.outcome(whole.call(*PYTHON, *whole.words()))
    points = len(whole.journals()[0].read_bytes().splitlines())
    assert points > 15
    for when, number in moments(points)[hand::HANDS]:
        stage = Stage(tmp_path / f"{number}-{when}").prepare()
        killed = (sys.executable, "-c", KILLED, when, str(number), *stage.words())
        assert stage.call(*killed) == -9
        code = stage.call(*PYTHON, "resume")
        if number == points and when == "after":
            assert code == 2, "it had ended, and only the process was killed"
            code = 0
        outcome, attempts = stage.outcome(code)
        assert outcome == expected, number
        assert stage.calls() - whole.calls() in (0, 1), number
        if attempts != told:
            # The one that was cut off after it had left DONE: nobody saw its end.
            assert stage.calls() == whole.calls()
            assert attempts[0][:2] == told[0][:2]
            assert attempts[0][2] == ("failed", None, "its process was gone without a word", True)


# ------------------------------------------------------------------ one case each


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def cut_off(workspace: Path, script: str, *words: str) -> None:
    """A supervised run that is killed while its agent sleeps."""
    pid, agent = workspace / "pid", program(workspace.parent / "agent", script)
    running = Running(workspace, "supervise", "--task-dir", "t", *words, "--", agent)
    running.await_that(lambda: pid.exists() and pid.read_text())
    (saved,) = workspace.glob("t/runs/*/agent-stdout.txt")
    running.await_that(saved.read_text)
    running.send(signal.SIGKILL)
    running.end()
    await_gone(int(pid.read_text()))


SLEEPS_ONCE = """\
if [ ! -e pid ]; then echo half; echo $$ > pid.new; mv pid.new pid; exec sleep 600; fi
echo whole
"""


def test_the_original_flags_hold(workspace: Path, here: Here) -> None:
    """ "with its original flags", and what the cut-off attempt said is kept."""
    cut_off(workspace, SLEEPS_ONCE, "--max-restarts", "2", "--restart-delay", "0")
    done = here("resume")
    said = ["Resumed: attempt 1/2 was cut off", "Attempt 1/2 starting again"]
    said.append("max restarts (2) exceeded")
    assert_clear(done, 1, *said)
    first, second = sorted((workspace / "t" / "runs").iterdir())
    assert (first.name[-4:], second.name[-4:]) == ("-001", "-002")
    assert (first / "agent-stdout.cut-1.txt").read_text() == "half\n"
    assert (first / "agent-stdout.txt").read_text() == "whole\n"


def test_it_is_found_from_its_workspace_and_from_its_task(workspace: Path, here: Here) -> None:
    cut_off(workspace, SLEEPS_ONCE, "--max-restarts", "1", "--restart-delay", "0")
    run = json.loads(here("status", "--json").out)["run"]
    assert json.loads(here("status", "--json", "-C", "t").out)["run"] == run
    os.chdir(workspace)
    runs = [line for line in here("status", "--all").out.splitlines() if "supervise" in line]
    assert len(runs) == 1
    assert here("resume", "-C", "t").code == 1


def test_a_wait_marker_that_stood_at_the_start_is_still_ignored(
    workspace: Path, here: Here
) -> None:
    (workspace / "t").mkdir()
    (workspace / "t" / "WAIT_WITHOUT_RESTART").touch()
    cut_off(workspace, SLEEPS_ONCE, "--max-restarts", "1", "--restart-delay", "0")
    assert_clear(here("resume"), 1, "max restarts (1) exceeded")


def test_a_wait_marker_of_the_attempt_that_was_cut_off_counts(workspace: Path, here: Here) -> None:
    marks = 'touch "$TASK_FOLDER/WAIT_WITHOUT_RESTART"; '
    cut_off(workspace, marks + SLEEPS_ONCE)
    assert_clear(here("resume"), 3, "waiting without restart")
    assert len(list((workspace / "t" / "runs").iterdir())) == 1


@pytest.mark.parametrize(
    "deed",
    [
        "rm {0}; mkfifo {0}",
        "rm {0}; mkdir {0}",
        "rm {0}; ln -s /dev/zero {0}",
        "truncate -s 40G {0}",
    ],
)
def test_nothing_in_place_of_its_output_keeps_a_run_from_going_on(
    workspace: Path, here: Here, deed: str
) -> None:
    """What is no saved stream holds no result: the attempt is taken again."""
    file = '"$TASK_FOLDER/runs/$RALPH_RUN/agent-stdout.txt"'
    hostile = f"if [ ! -e pid ]; then echo half; sleep 0.1; {deed.format(file)}; fi; "
    pid, script = workspace / "pid", program(workspace.parent / "agent", hostile + SLEEPS_ONCE)
    flags = ("--max-restarts", "1", "--restart-delay", "0")
    running = Running(workspace, "supervise", "--task-dir", "t", *flags, "--", script)
    running.await_that(lambda: pid.exists() and pid.read_text())
    running.send(signal.SIGKILL)
    running.end()
    await_gone(int(pid.read_text()))
    assert_clear(here("resume"), 1, "Attempt 1/1 starting again", "max restarts (1) exceeded")


def test_a_folder_that_was_moved_is_named(workspace: Path, here: Here) -> None:
    cut_off(workspace, SLEEPS_ONCE)
    (workspace / "t").rename(workspace / "elsewhere")
    assert_clear(here("resume"), 2, f"cannot use {workspace / 't'}", "Put it back")


def test_without_its_folder_it_says_so(workspace: Path, here: Here) -> None:
    cut_off(workspace, SLEEPS_ONCE)
    shutil.rmtree(workspace / "t")
    (workspace / "t").touch()
    assert_clear(here("resume"), 2, "Not a directory")


# ------------------------------------------------------------------ after its end


def supervised(here: Here, workspace: Path, script: str, *words: str) -> Done:
    agent = program(workspace.parent / "agent", script)
    first = ("supervise", "--task-dir", "t", "--restart-delay", "0", *words, "--", agent)
    return here(*first)


def test_more_attempts(workspace: Path, here: Here) -> None:
    """ "`-m 30` is the new total": of attempts, and each end is told on the bus."""
    script = 'case "$RALPH_RUN" in *-004) touch "$TASK_FOLDER/DONE";; esac'
    assert supervised(here, workspace, script, "-m", "1").code == 1
    assert_clear(here("resume"), 2, "max restarts (1) exceeded", "-m +10")
    more = here("resume", "-m", "+1")
    assert_clear(more, 1, "the task in ", "goes on with attempt 2", "max restarts (2) exceeded")
    assert_clear(here("resume", "-m", "9"), 0, "Attempt 4/9 starting", "Completed")
    told = [m.body for m in Bus(str(workspace / "t" / "TASK-MESSAGE-BUS.md")).read()]
    assert [body for body in told if "max restarts" in body] == [
        "task failed: max restarts (1) exceeded",
        "task failed: max restarts (2) exceeded",
    ]
    assert len([body for body in told if "attempt 1" in body.lower()]) <= 1
    assert len(list((workspace / "t" / "runs").iterdir())) == 4


def test_an_agent_that_waited_is_started_again(workspace: Path, here: Here) -> None:
    """A marker that ended the run asks for nothing when a person lets it go on."""
    marks = 'case "$RALPH_RUN" in *-001) touch "$TASK_FOLDER/WAIT_WITHOUT_RESTART";; '
    script = marks + '*) touch "$TASK_FOLDER/DONE";; esac'
    assert_clear(supervised(here, workspace, script), 3, "waiting without restart")
    assert_clear(here("resume"), 0, "Attempt 2/100 starting", "Completed")
