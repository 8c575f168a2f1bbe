"""`ralph supervise`: an agent is restarted until DONE is there (S)."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from run_support import (
    Here,
    Running,
    assert_clear,
    assert_replays,
    await_gone,
    is_alive,
    prepare,
    program,
)

from ralph.loops.supervise.bus import Bus
from ralph.loops.supervise.run_info import RunInfo, read_run_info
from ralph.testing.scripted_agent.install import calls

QUICK = ("--restart-delay", "0")


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def task(workspace: Path) -> Path:
    """A task's folder, which is not there yet."""
    return workspace / "shop" / "login"


def supervised(task: Path, *words: str) -> tuple[str, ...]:
    return ("supervise", "--task-dir", str(task), *QUICK, *words)


def attempts(task: Path) -> list[RunInfo]:
    found = (read_run_info(str(run)) for run in sorted((task / "runs").iterdir()))
    return [info for info in found if info is not None]


def bodies(path: Path) -> list[tuple[str, str]]:
    return [(m.type, m.body) for m in Bus(str(path)).read()]


# It fails twice, then says what it knows and is done.
THIRD_TIME = """
echo x >> "$TASK_FOLDER/count"
echo "$@" > "$TASK_FOLDER/prompt.$(wc -l < "$TASK_FOLDER/count")"
if [ "$(wc -l < "$TASK_FOLDER/count")" -lt 3 ]; then echo oops >&2; exit 1; fi
env | grep -E "^(RALPH_|TASK_)" > "$TASK_FOLDER/env"
touch "$TASK_FOLDER/DONE"
"""


@pytest.fixture
def third_time(workspace: Path) -> str:
    return program(workspace.parent / "third", THIRD_TIME)


def test_an_agent_that_fails_twice_and_then_writes_done(
    here: Here, task: Path, third_time: str
) -> None:
    """S §Restart Counter: `Attempt 1: Agent failed (exit 1), restarting...`."""
    done = here(*supervised(task, "-p", "Build it", "--", third_time))
    said = ["Attempt 1: Agent failed (exit 1), restarting...", "stderr: oops"]
    said += ["Attempt 2: Agent failed (exit 1), restarting...", "Found DONE"]
    said += ["Attempt 3: Agent succeeded", "Completed after 3 attempts"]
    assert_clear(done, 0, *said)
    assert_replays()


def test_what_the_agent_is_told(here: Here, workspace: Path, task: Path, third_time: str) -> None:
    """ "The agent gets `TASK_FOLDER` and `RALPH_RUN, RALPH_TASK_DIR, RALPH_BUS, ...`", "from the
    second attempt on `Continue working on the following:` stands before its prompt"."""
    here(*supervised(task, "-p", "Build it", "--", third_time))
    again = "Continue working on the following:\n\nBuild it\n"
    prompts = [(task / f"prompt.{number}").read_text() for number in (1, 2, 3)]
    assert prompts == ["Build it\n", again, again]
    told = dict(line.split("=", 1) for line in (task / "env").read_text().splitlines())
    (last,) = [a.run_id for a in attempts(task) if a.exit_code == 0]
    assert told["TASK_FOLDER"] == told["RALPH_TASK_DIR"] == str(task)
    assert told["RALPH_BUS"] == str(task / "TASK-MESSAGE-BUS.md")
    assert (told["RALPH_RUN"], told["RALPH_PARENT_RUN"]) == (last, "")


def test_the_layout_and_the_buses(here: Here, task: Path, third_time: str) -> None:
    """ "Layout `<root>/<project>/<task>/{TASK.md, DONE, ..., runs/<run-id>/{...}}`"."""
    here(*supervised(task, "-p", "Build it", "--", third_time))
    first, second, third = attempts(task)
    run = first.run_id.removesuffix("-001")
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", run)
    assert [a.run_id for a in (second, third)] == [f"{run}-002", f"{run}-003"]
    assert (second.previous_run_id, second.parent_run_id) == (first.run_id, "")
    assert (first.status, first.exit_code, first.error_summary) == (
        "failed",
        1,
        "exit code 1: oops",
    )
    assert (third.status, third.exit_code, third.agent) == ("completed", 0, "third")
    assert first.pid is not None
    assert first.start_time < (first.end_time or "")
    directory = task / "runs" / second.run_id
    files = {"prompt.md", "agent-stdout.txt", "agent-stderr.txt", "run-info.yaml"}
    assert {p.name for p in directory.iterdir()} == files
    assert (directory / "agent-stderr.txt").read_text() == "oops\n"
    assert (directory / "prompt.md").read_text().startswith("Continue working")
    assert (task / "TASK.md").read_text() == "Build it"
    failed = "Agent failed (exit 1), restarting..."
    completed = "task completed (DONE marker present, no active children)"
    assert bodies(task / "TASK-MESSAGE-BUS.md") == [
        ("WARNING", f"Attempt 1: {failed}"),
        ("WARNING", f"Attempt 2: {failed}"),
        ("INFO", "Attempt 3: Agent succeeded"),
        ("INFO", completed),
    ]
    [(kind, body)] = bodies(task.parent / "PROJECT-MESSAGE-BUS.md")
    assert (kind, "login" in body) == ("FACT", True)


# ------------------------------------------------------------------ what stops it


@pytest.mark.parametrize(
    ("words", "script", "code", "said"),
    [
        ((), "exit 42", 3, "waiting without restart: exit code 42"),
        ((), 'touch "$TASK_FOLDER/WAIT_WITHOUT_RESTART"', 3, "WAIT_WITHOUT_RESTART marker"),
        ((), 'mkdir "$TASK_FOLDER/DONE"', 2, "DONE is a directory"),
        (("--max-restarts", "2"), "exit 0", 1, "max restarts (2) exceeded"),
        (("--max-restarts", "2"), "exit 0", 1, "Attempt 2: Max restarts exceeded, stopping"),
        (("--max-restarts", "2"), "exit 0", 1, "Attempt 1: Agent succeeded without DONE"),
        (("--max-restarts", "0"), "exit 0", 1, "max restarts (0) exceeded"),
        (("--max-restarts", "1", "--timeout", "0.1"), "sleep 60", 1, "timed out after 0.1s"),
        (("--max-restarts", "1", "--idle-timeout", "0.1"), "sleep 60", 1, "silent for 0.1s"),
        (("--wait-timeout", "0"), 'touch "$TASK_FOLDER/DONE"; sleep 60', 0, "Completed"),
    ],
)
def test_what_stops_it(
    here: Here, task: Path, words: tuple[str, ...], script: str, code: int, said: str
) -> None:
    """ADR 19."""
    assert_clear(here(*supervised(task, *words, "--", "sh", "-c", script)), code, said)


def test_a_bus_message_asks_to_wait(here: Here, workspace: Path, task: Path) -> None:
    post = f'"{sys.executable}" -m ralph bus post --type wait_without_restart "a key"'
    done = here(*supervised(task, "--", "sh", "-c", post))
    assert_clear(done, 3, "waiting without restart: bus message: a key")
    assert [a.status for a in attempts(task)] == ["stopped"]


def test_a_wait_marker_from_before_is_ignored_with_a_word(here: Here, task: Path) -> None:
    """ "compare inode and mtime seen then, never the clock"."""
    task.mkdir(parents=True)
    marker = task / "WAIT_WITHOUT_RESTART"
    marker.touch()
    os.utime(marker, (4_000_000_000, 4_000_000_000))
    done = here(*supervised(task, "--max-restarts", "2", "--", "true"))
    assert_clear(done, 1, f"{marker} stood there before this run and is ignored")
    again = 'rm "$TASK_FOLDER/WAIT_WITHOUT_RESTART"; touch "$TASK_FOLDER/WAIT_WITHOUT_RESTART"'
    assert_clear(here(*supervised(task, "--", "sh", "-c", again)), 3, "marker")


def test_an_agent_that_would_not_end_after_done_is_told_of(here: Here, task: Path) -> None:
    """Ralph's exit code is 0; the attempt's record says what happened."""
    script = 'touch "$TASK_FOLDER/DONE"; sleep 60'
    done = here(*supervised(task, "--wait-timeout", "0.1", "--", "sh", "-c", script))
    assert_clear(done, 0, "Attempt 1: Agent was ended: still running 0.1s after DONE")
    [info] = attempts(task)
    assert (info.status, info.exit_code) == ("stopped", 130)
    assert info.error_summary == "still running 0.1s after DONE"


def test_done_stands_already(here: Here, task: Path) -> None:
    """S: DONE is checked before the first run, and before the limit."""
    task.mkdir(parents=True)
    (task / "DONE").touch()
    assert_clear(here(*supervised(task, "--max-restarts", "0", "--", "false")), 0, "Completed")
    assert not (task / "runs").exists()
    assert (task / "DONE").exists(), "it is never deleted"


@pytest.mark.parametrize(
    "words", [("--agent", "no-such-agent"), ("--", "no-such-agent"), ()], ids=["named", "given", ""]
)
def test_done_is_looked_at_before_the_agent(
    here: Here, task: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """S §Loop Algorithm, b before d; the issue: "DONE is looked at before the agent is looked
    for". Neither the agent nor a prompt need be there."""
    monkeypatch.setenv("PATH", "/nowhere")
    task.mkdir(parents=True)
    (task / "DONE").touch()
    done = here(*supervised(task, *words))
    assert_clear(done, 0, "Found DONE: the task is done", "Completed after 0 attempts")
    (task / "DONE").unlink()
    (task / "TASK.md").write_text("x")
    assert here(*supervised(task, *words)).code == 2


def test_a_timeout_in_the_log(here: Here, task: Path) -> None:
    """S §Timeout Behavior, Logging: the three lines, and the attempt's own between them."""
    limits = ("--timeout", "0.1", "--max-restarts", "2", "--restart-delay", "0")
    said = here(*supervised(task, *limits, "--", "sh", "-c", "sleep 60")).err
    lines = [line.removeprefix("[ralph] ") for line in said.splitlines()]
    first = lines.index("Agent timeout after 0.1s, killing process group")
    assert lines[first + 1 : first + 4] == [
        "Process group killed, treating as failure",
        "Attempt 1: Agent failed (timed out after 0.1s), restarting...",
        "Restarting agent (attempt 2/2)",
    ]
    assert said.count("Restarting agent") == 1


def test_used_up_is_told_on_the_bus(here: Here, task: Path) -> None:
    """ "when runs are used up: type ERROR, `task failed: max restarts (N) exceeded`"."""
    here(*supervised(task, "--max-restarts", "1", "--", "false"))
    assert bodies(task / "TASK-MESSAGE-BUS.md")[-1] == (
        "ERROR",
        "task failed: max restarts (1) exceeded",
    )


def test_a_bus_that_cannot_be_written_fails_nothing(here: Here, task: Path) -> None:
    """ "a failure to post never fails the task"."""
    task.mkdir(parents=True)
    (task / "TASK-MESSAGE-BUS.md").mkdir()
    (task.parent / "PROJECT-MESSAGE-BUS.md").mkdir()
    done = here(*supervised(task, "--", "sh", "-c", 'touch "$TASK_FOLDER/DONE"'))
    assert_clear(done, 0, "Completed", "bus failed: cannot write")


def test_an_agent_by_its_name(workspace: Path, here: Here, task: Path) -> None:
    """ "the agent by `--agent NAME -p/-f`": words complete nothing."""
    agent = prepare(workspace, {"response": "DONE"}, kind="claude")
    task.mkdir(parents=True)
    (task / "TASK.md").write_text("From the file")
    done = here(*supervised(task, "--agent", agent, "--max-restarts", "2"))
    assert_clear(done, 1, "max restarts (2) exceeded")
    assert calls(agent)[0]["prompt"] == "From the file"
    assert calls(agent)[1]["prompt"].endswith("following:\n\nFrom the file")
    stream = task / "runs" / attempts(task)[0].run_id / "agent-stdout.txt"
    assert json.loads(stream.read_text().splitlines()[-1])["type"] == "result"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), ""),
        (("-p", "Mine"), "Mine"),
    ],
)
def test_a_prompt_creates_task_md_and_never_overwrites_it(
    here: Here, task: Path, words: tuple[str, ...], said: str
) -> None:
    command = ("--max-restarts", "1", "--", "sh", "-c", 'printf %s "$0" > "$TASK_FOLDER/said"')
    here(*supervised(task, *words, *command))
    assert (task / "TASK.md").exists() == bool(words)
    assert (task / "said").read_text() == (said or "sh")
    here(*supervised(task, "-p", "Another", *command))
    assert (task / "TASK.md").read_text() == (said or "Another")
    assert (task / "said").read_text() == "Another"


def test_a_command_is_run_as_it_is_whatever_the_settings_say_of_the_agent(
    workspace: Path, here: Here, task: Path
) -> None:
    """ "With `-- COMMAND...` and a prompt the prompt is the last argument"."""
    agent = {"command": "claude", "kind": "codex", "model": "opus", "flags": ["--fast"]}
    (workspace / ".ralph").mkdir()
    settings = {"agent": {**agent, "promptVia": "stdin"}}
    (workspace / ".ralph" / "settings.json").write_text(json.dumps(settings))
    script = 'printf "%s|" "$@" > "$TASK_FOLDER/said"; cat >> "$TASK_FOLDER/said"'
    command = ("--", "sh", "-c", script, "sh", "one")
    here(*supervised(task, "-p", "Build it", "--max-restarts", "1", *command))
    assert (task / "said").read_text() == "one|Build it|"


# ------------------------------------------------------------------ wrong input


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "true"), "give --task-dir, or --root, --project and --task"),
        (("--root", "r", "--project", "p", "--", "true"), "give --task-dir, or"),
        (("--task-dir", "t", "--root", "r", "--", "true"), "--task-dir excludes --root"),
        (("--task-dir", "", "--", "true"), "--task-dir is empty"),
        (("--task-dir", "t"), "cannot read the prompt file"),
        (("--task-dir", "t", "-p", " ", "--", "true"), "the prompt is empty"),
        (("--task-dir", "t", "-p", "x", "-f", "y", "--", "true"), "exclude each other"),
        (("--task-dir", "t", "--agent", "true", "--", "true"), "exclude -- COMMAND"),
        (("--task-dir", "t", "--", "no-such-command"), "was not found"),
        (("--task-dir", "t", "--max-restarts", "-1", "--", "true"), "less than nothing"),
        (("--task-dir", "t", "--max-restarts", "x", "--", "true"), "not a whole number"),
        (("--task-dir", "t", "--restart-delay", "soon", "--", "true"), "not a duration"),
        (("--task-dir", "t", "--timeout", "0", "--", "true"), "--timeout"),
        (("--root", "r", "--project", "P", "--task", "t", "--", "true"), "is no project id"),
        (("--root", "r", "--project", "p", "--task", "../t", "--", "true"), "is no task id"),
        (("--task-dir", "file", "--", "true"), "is not a directory"),
        (("--task-dir", "file/t", "--", "true"), "cannot write the task's folder"),
    ],
)
def test_bad_input(workspace: Path, here: Here, words: tuple[str, ...], said: str) -> None:
    (workspace / "file").touch()
    assert_clear(here("supervise", *words), 2, said)
    assert [p.name for p in workspace.iterdir()] == ["file"], "and nothing is begun"


def test_ids_make_the_folder(here: Here, workspace: Path) -> None:
    words = ("--root", "work", "--project", "shop-2", "--task", "0-login", "--max-restarts", "1")
    assert here("supervise", *words, *QUICK, "--", "true").code == 1
    assert (workspace / "work" / "shop-2" / "0-login" / "runs").is_dir()


# ------------------------------------------------------------------ beside others


def hanging(workspace: Path, task: Path, name: str = "pid") -> Running:
    """A supervised agent that does not end."""
    script = f'echo $$ > "{workspace}/{name}"; exec sleep 600'
    running = Running(workspace, *supervised(task, "--", "sh", "-c", script))
    running.await_that(lambda: (workspace / name).exists() and (workspace / name).read_text())
    return running


def test_one_supervisor_a_task(workspace: Path, here: Here, task: Path) -> None:
    """ADR 10: the scope is the task's folder; a live owner is named and refused."""
    running = hanging(workspace, task)
    done = here(*supervised(task, "--", "true"))
    assert_clear(done, 2, f"(pid {running.process.pid}")
    other = task.parent / "other"
    assert here(*supervised(other, "--max-restarts", "1", "--", "true")).code == 1
    assert_clear(here("resume"), 2, f"(pid {running.process.pid})")
    assert f'"pid": {running.process.pid}' in here("status", "--json").out
    here("stop", "--now")
    assert running.end().code == 130
    assert not is_alive(int((workspace / "pid").read_text()))


def test_one_supervisor_a_task_also_with_another_state_directory(
    workspace: Path, here: Here, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = hanging(workspace, task)
    with monkeypatch.context() as patch:
        patch.setenv("RALPH_STATE_DIR", str(tmp_path / "elsewhere"))
        done = here(*supervised(task, "--", "true"))
    assert_clear(done, 2, f"another ralph works in {task}, with another state directory")
    here("stop", "--now")
    running.end()


def test_what_a_killed_supervisor_leaves(workspace: Path, here: Here, task: Path) -> None:
    """kill -9: the keeper ends the agent; a new `ralph supervise` starts anew."""
    running = hanging(workspace, task)
    running.send(signal.SIGKILL)
    running.end()
    await_gone(int((workspace / "pid").read_text()))
    assert here(*supervised(task, "--max-restarts", "1", "--", "true")).code == 1
    cut, new = attempts(task)
    assert (cut.status, new.status) == ("failed", "completed")
    assert cut.error_summary == "its process was gone without a word"


def test_a_supervised_task_has_one_agent(here: Here, workspace: Path, task: Path) -> None:
    """ADR 45: fallbacks are not for it, and that is said."""
    prepare(workspace, {"text": "x"}, agent={"fallbacks": [{"command": "no-such-agent"}]})
    done = here(*supervised(task, "-p", "Build it", "--max-restarts", "1"))
    assert_clear(done, 1, "`agent.fallbacks` is not for it")
