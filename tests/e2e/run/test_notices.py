"""A run's end is told once, however it ends and whatever its loop; `ralph notify test`."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest
from backlog_support import COMPLETE, Project, project
from prd_support import approved, commit_all, write_stories
from run_support import RALPH, Here, Running, assert_clear, await_gone, prepare, ralph

from ralph.testing.scripted_agent.install import calls

__all__ = ["project"]
DONE, WORK = {"response": "DONE", "cost": 0.25}, {"text": "I work."}
KEEP = "cat >> {0}; echo >> {0}"  # a message a line
ASK = "echo '<promise>DECIDE: Which colour?</promise>'"


def heard(path: Path) -> list[dict[str, Any]]:
    """The messages so far."""
    file = path.parent / "heard"
    return [json.loads(line) for line in file.read_text().split("\n") if line]


def hear(path: Path) -> str:
    """A command that keeps what it is told."""
    return KEEP.format(path.parent / "heard")


@pytest.mark.parametrize(
    ("turns", "flags", "outcome", "code"),
    [
        ([WORK, DONE], (), "completed", 0),
        ([WORK], ("-m", "1"), "limit", 1),
        ([{"text": "<promise>BLOCKED: no key</promise>"}], (), "blocked", 3),
        ([{"exit": 1}, {"exit": 1}, {"exit": 1}], (), "failing", 5),
        ([{"error": {"status": 401}}], (), "config", 2),
    ],
)
def test_every_end_is_told_once(
    workspace: Path, turns: list[Any], flags: tuple[str, ...], outcome: str, code: int
) -> None:
    prepare(workspace, *turns, notify={"command": hear(workspace)})
    done = ralph("run", "-p", "x", *flags)
    assert done.code == code, done.err
    (told,) = heard(workspace)
    assert (told["event"], told["outcome"], told["exit"]) == ("ended", outcome, code)
    assert (told["workspace"], told["command"]) == (str(workspace), "run")
    assert told["text"] in done.err
    assert told["iterations"] == min(len(turns), 3)


def test_the_message_stands_in_variables_too(workspace: Path) -> None:
    prepare(workspace, WORK, DONE)
    by = 'printf "%s|" "$RALPH_EVENT" "$RALPH_OUTCOME" "$RALPH_EXIT" "$RALPH_TITLE" > said'
    assert_clear(ralph("-p", "x", "--notify", f"{by}; echo ${{RALPH_RUN-none}} >> said"), 0)
    assert (
        workspace / "said"
    ).read_text() == "ended|completed|0|ralph: workspace: completed|none\n"


@pytest.mark.parametrize("flags", [(), ("--parallel", "2")], ids=["one", "two"])
def test_questions_are_told_and_then_the_end_of_the_whole_run(
    project: Project, flags: tuple[str, ...]
) -> None:
    """Workers of a parallel run do not tell of their own end."""
    project.tasks({"id": "A", "title": "a"}, {"id": "B", "title": "b"}, {"id": "C", "title": "c"})
    done = project.run(
        f"if [ $id = B ]; then {ASK}; else touch $id; {COMPLETE}; fi",
        *("--notify", hear(project.path), *flags),
    )
    assert done.code == 3, done.err
    asked, ended = sorted(heard(project.path), key=lambda told: told["event"], reverse=True)
    assert (asked["event"], asked["taskId"], asked["reason"]) == ("question", "B", "Which colour?")
    assert asked["next"] == 'ralph tasks answer B "..."'
    assert (ended["event"], ended["outcome"]) == ("ended", "blocked")
    assert (ended["tasks_done"], ended["tasks_left"]) == (["A", "C"], ["B"])
    assert asked["run"] == ended["run"]
    assert asked["workspace"] == ended["workspace"] == str(project.path)


def test_stories_and_supervised_tasks_tell_it_too(repo: Path) -> None:
    write_stories(repo, approved())
    prepare(repo, WORK, notify={"command": hear(repo)})
    (repo / ".ralph" / ".gitignore").write_text("*\n")
    commit_all(repo)
    assert_clear(ralph("prd", "run", "--no-sandbox"), 0)
    words = ("supervise", "--task-dir", str(repo.parent / "task"), "--")
    assert_clear(ralph(*words, "sh", "-c", 'touch "$TASK_FOLDER/DONE"'), 0)
    commands = [(told["command"], told["outcome"]) for told in heard(repo)]
    assert commands == [("prd run", "completed"), ("supervise", "completed")]


def test_a_run_that_was_killed_tells_its_end_once(workspace: Path) -> None:
    agent = prepare(workspace, {"hang": "before"}, DONE, notify={"command": hear(workspace)})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    running.send(signal.SIGKILL)
    running.end()
    await_gone(*(call["pid"] for call in calls(agent)))
    assert not (workspace.parent / "heard").exists()
    assert_clear(ralph("resume"), 0)
    assert [told["outcome"] for told in heard(workspace)] == ["completed"]


def test_an_interrupted_run_tells_it_and_how_to_go_on(workspace: Path) -> None:
    agent = prepare(workspace, {"hang": "before"}, notify={"command": hear(workspace)})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    running.interrupt()
    running.send(signal.SIGINT)
    assert running.end().code == 130
    (told,) = heard(workspace)
    assert told["outcome"] == "interrupted"
    assert told["next"] == f"ralph resume {told['run']}"


def test_a_failing_channel_is_named_and_the_exit_code_stands(workspace: Path) -> None:
    prepare(workspace, DONE)
    done = ralph("run", "-p", "x", "--notify", "echo no route >&2; exit 9", "--json")
    assert_clear(done, 0, "notify.command failed: exit code 9: no route.")
    assert done.objects[-1]["reason"] == "completed"


def test_who_does_not_want_to_wait_for_a_channel_presses_ctrl_c(workspace: Path) -> None:
    """How the run ended stands."""
    prepare(workspace, DONE)
    running = Running(workspace, "-p", "x", "--notify", "touch begun; exec sleep 99")
    running.await_that((workspace / "begun").exists)
    running.interrupt()
    done = running.end()
    assert_clear(done, 0, "Completed after", "notify.command failed: asked not to wait.")


def test_a_bell_rings_on_a_terminal(workspace: Path) -> None:
    prepare(workspace, DONE)
    environ = {**os.environ, "TERM": "dumb", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    words = [*RALPH[1:], "-p", "x", "--notify", "bell"]
    child = pexpect.spawn(RALPH[0], words, env=environ, timeout=30, encoding="utf-8")
    said = child.read()
    child.close()
    assert child.exitstatus == 0, said
    assert said.count("\a") == 1
    assert "failed" not in said


def test_a_desktop_shows_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(workspace, DONE)
    shown = workspace.parent / "bin" / "notify-send"
    shown.write_text('#!/bin/sh\nfor w; do echo "$w"; done > shown\n')
    shown.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shown.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    assert_clear(ralph("-p", "x", "--notify", "bell"), 0)
    assert "ralph: workspace: completed" in (workspace / "shown").read_text()


# ------------------------------------------------------------------ ralph notify test


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def test_nobody_to_notify_says_what_to_type(workspace: Path, here: Here) -> None:
    assert_clear(here("notify", "test"), 2, '"notify": {"bell": true}', "--notify bell")


def test_each_channel_is_tried(workspace: Path, here: Here) -> None:
    words = ("notify", "test", "--notify", hear(workspace))
    done = here(*words)
    assert (done.code, done.out) == (0, "notify.command: sent\n")
    assert heard(workspace)[0]["event"] == "test"
    done = here(*words, "--notify", "bell", "--json")
    assert done.code == 1
    assert json.loads(done.out)["channels"] == [
        {"channel": "notify.command", "error": None},
        {"channel": "notify.bell", "error": "there is no terminal and no desktop"},
    ]


@pytest.mark.parametrize(
    ("words", "why"),
    [(("a", "--notify", "b"), "'b' is a second command"), (("  ",), "it is empty")],
)
def test_bad_channels(workspace: Path, here: Here, words: tuple[str, ...], why: str) -> None:
    assert_clear(here("notify", "test", "--notify", *words), 2, why)


def test_off_is_nobody(workspace: Path) -> None:
    prepare(workspace, DONE, notify={"command": hear(workspace)})
    assert_clear(ralph("-p", "x", "--notify", "off"), 0)
    assert not (workspace.parent / "heard").exists()


def test_urls_are_never_printed_nor_listed(
    workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What apprise complains about is told without them."""
    library, token = workspace.parent / "library", "wJalrXUtnFEMIK7MDENGbPx"
    library.mkdir()
    (library / "apprise.py").write_text(
        "import logging, sys\n"
        "class Apprise:\n"
        "    def add(self, url):\n"
        "        self.url = url\n"
        "        return True\n"
        "    def notify(self, title, body):\n"
        f"        logging.getLogger('apprise').warning('no: %s, key {token}', self.url)\n"
    )
    monkeypatch.syspath_prepend(library)
    monkeypatch.delitem(sys.modules, "apprise", raising=False)
    done = here("notify", "test", "--notify", f"json://me:{token}@127.0.0.1/path")
    assert (done.code, done.err) == (1, "")
    why = "apprise could not send it: no: [redacted], key [redacted]"
    assert done.out == f"notify.urls[0] (json): failed: {why}\n"
