"""`--detach`: a run in the background, which survives the terminal that it was begun in."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pexpect
import pytest
from backlog_support import COMPLETE, Project, project
from prd_support import approved, commit_all, write_stories
from run_support import RALPH, Done, assert_clear, await_gone, journals, prepare, ralph

__all__ = ["project"]
UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {"tools": [{"name": "Bash", "run": UNTIL_TOLD}], "response": "DONE"}


def begun(done: Done) -> dict[str, Any]:
    """The run, as `--json` tells of it."""
    assert done.code == 0, done.err
    (told,) = done.objects
    assert told["type"] == "detached"
    return told


def how_it_ended(run: str) -> str:
    shown = json.loads(ralph("status", run, "--json").out)
    return str(shown["reason"])


def test_it_survives_its_terminal_and_says_how_to_go_on(workspace: Path) -> None:
    prepare(workspace, PATIENT)
    child = pexpect.spawn(
        RALPH[0], [*RALPH[1:], "-p", "x", "--detach"], timeout=30, encoding="utf-8"
    )
    said = child.read()
    child.close()  # a hangup, for whoever has that terminal
    assert child.exitstatus == 0, said
    run = journals()[0].parent.name
    for line in (f"ralph logs -f {run}", f"ralph stop {run}", f"ralph resume {run}"):
        assert line in said
    shown = json.loads(ralph("status", "--json").out)
    assert shown["state"] == "running"
    os.kill(shown["pid"], signal.SIGHUP)
    (workspace / "go").touch()
    await_gone(shown["pid"])
    assert how_it_ended(run) == "completed"
    output = (journals()[0].parent / "output.log").read_text()
    assert "[ralph] Agent: " in output, "also what it said before it began"
    assert "Completed after 1 iteration" in output


def test_it_holds_its_lock_and_is_stopped_from_elsewhere(workspace: Path) -> None:
    prepare(workspace, PATIENT)
    told = begun(ralph("run", "-p", "x", "--detach", "--json"))
    assert Path(told["journal"]).stat().st_size
    second = ralph("run", "-p", "x", "--detach", "--json")
    assert_clear(second, 2, "another ralph works in this directory", told["run"])
    assert second.objects[-1]["reason"] == "config"
    assert ralph("stop", told["run"], "--now", "--wait").code == 0
    await_gone(told["pid"])
    assert how_it_ended(told["run"]) == "interrupted"
    (workspace / "go").touch()
    assert_clear(ralph("resume", told["run"]), 0)


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("run", "-p", "x", "--agent", "./none"), 2, "agent command './none' was not found"),
        (("run",), 2, "give exactly one of --prompt and --prompt-file"),
        (("tasks", "run"), 2, "there are no tasks here"),
        (("run", "-p", "x", "--maximal"), 2, "No such option"),
    ],
)
def test_what_cannot_begin_says_why_and_leaves_nothing(
    repo: Path, words: tuple[str, ...], code: int, why: str
) -> None:
    prepare(repo, PATIENT)
    assert_clear(ralph(*words, "--detach"), code, why)
    assert journals() == []


def test_a_prompt_from_standard_input_is_read_first(workspace: Path) -> None:
    agent = prepare(workspace, {"response": "DONE"})
    script = f'printf "from a pipe" | "$0" -m ralph run -f - --agent "{agent}" --detach --json'
    told = begun(ralph("-c", script, RALPH[0], command=("sh",)))
    await_gone(told["pid"])
    assert "from a pipe" in (Path(told["state_dir"]) / "001.prompt").read_text()


@pytest.mark.parametrize("flags", [(), ("--parallel", "2")], ids=["one", "two"])
def test_tasks_in_the_background(project: Project, flags: tuple[str, ...]) -> None:
    project.tasks({"id": "A", "title": "a"}, {"id": "B", "title": "b"})
    told = begun(project.run(f"touch $id; {COMPLETE}", *flags, "--detach", "--json"))
    await_gone(told["pid"])
    assert how_it_ended(told["run"]) == "completed"
    lines = Path(told["output"]).read_text().splitlines()
    assert json.loads(lines[-1])["reason"] == "completed"


def test_stories_and_supervised_tasks_in_the_background(repo: Path) -> None:
    write_stories(repo, approved())
    prepare(repo, PATIENT)
    (repo / ".ralph" / ".gitignore").write_text("*\n")
    commit_all(repo)
    stories = begun(ralph("prd", "run", "--no-sandbox", "--detach", "--json"))
    words = ("supervise", "--task-dir", str(repo.parent / "task"), "--detach", "--json", "--")
    task = begun(ralph(*words, "sh", "-c", 'touch "$TASK_FOLDER/DONE"'))
    await_gone(stories["pid"], task["pid"])
    assert [how_it_ended(told["run"]) for told in (stories, task)] == ["completed", "completed"]
