"""The backlog as a library: `from ralph import Hooks, TaskRun` (B §Hooks)."""

import os
import subprocess
import threading
from typing import Any

import pytest
from backlog_support import COMPLETE, Project, project

from ralph import Hooks, RunResult, TaskResult, TaskRun
from ralph.errors import ConfigError

__all__ = ["project"]

A, C = {"id": "A", "title": "The first"}, {"id": "C", "title": "The third"}


def test_hooks_are_callables(project: Project) -> None:
    """ "as Python callables in the library"; what one of them raises never ends the run."""
    project.tasks(A, C)
    heard: list[Any] = []

    def fail(*_: object) -> None:
        raise ValueError("my own fault")

    hooks = Hooks(
        on_task_start=lambda task: heard.append(("start", task["id"])),
        on_iteration_start=fail,
        on_iteration_end=lambda task, n, result: heard.append((task["id"], n, result["status"])),
        on_task_end=lambda task, success: heard.append(("end", task["id"], success)),
    )
    agent = project.agent(f"touch $id; [ $id = C ] && {COMPLETE}")
    run = TaskRun(project.path, hooks=hooks, agent=agent, sandbox=False, max_iterations=1)
    result = run.run()
    assert (result.reason, result.exit_code) == ("blocked", 3)
    done, left = result.tasks
    assert done == TaskResult("C", done=True, title="The third", commit=result.commit)
    assert project.git("log", "-1", "--format=%s", result.commit).strip() == "C: The third"
    assert (left.id, left.done) == ("A", False)
    assert left.why.startswith("task limit: 1 iteration used up")
    assert heard == [
        ("start", "A"),
        ("A", 1, "blocked"),
        ("end", "A", False),
        ("start", "C"),
        ("C", 1, "complete"),
        ("end", "C", True),
    ]


def test_it_leaves_the_hosts_children_alone(project: Project) -> None:
    project.tasks(A)
    child = subprocess.Popen(("sleep", "600"))
    run = TaskRun(project.path, agent=project.agent(f"touch a; {COMPLETE}"), sandbox=False)
    assert run.run().completed
    assert child.poll() is None
    child.kill()
    child.wait()


def test_it_can_be_cancelled_from_another_thread(project: Project) -> None:
    project.tasks(A)
    begun = threading.Event()
    agent = project.agent("touch $NOTES/begun; sleep 600")
    hooks = Hooks(on_iteration_start=lambda _task, _number: begun.set())
    run = TaskRun(project.path, hooks=hooks, agent=agent, sandbox=False)
    results: list[RunResult] = []
    thread = threading.Thread(target=lambda: results.append(run.run()))
    thread.start()
    assert begun.wait(30)
    with pytest.raises(RuntimeError, match="running already"):
        run.run()
    run.cancel()
    run.cancel()
    thread.join(30)
    assert [result.exit_code for result in results] == [130]


def test_what_cannot_work_is_an_error(project: Project) -> None:
    with pytest.raises(ConfigError, match="there are no tasks here"):
        TaskRun(project.path, agent=project.agent("")).run()
    assert os.getcwd() == str(project.path)


def test_several_workers_tell_the_callbacks_too(project: Project) -> None:
    """Each fact of a worker's names its task; hooks are called from its thread."""
    project.tasks(A, C)
    agent = project.agent(f"touch $id; {COMPLETE}")
    facts: list[dict[str, Any]] = []
    ended: list[str] = []
    hooks = Hooks(on_task_end=lambda task, _: ended.append(task["id"]))
    run = TaskRun(
        project.path, agent=agent, sandbox=False, parallel=2, hooks=hooks, on_fact=facts.append
    )
    result = run.run()
    assert result.completed
    assert {task.id for task in result.tasks if task.done} == {"A", "C"} == set(ended)
    assert all(task.commit for task in result.tasks)
    assert {fact["task"] for fact in facts if fact["type"] == "ended"} == {"A", "C"}
    assert facts[-1]["type"] == "stop"


def test_only_some_tasks(project: Project) -> None:
    project.tasks({**A, "tags": ["web"]}, C)
    agent = project.agent(f"touch $id; {COMPLETE}")
    assert TaskRun(project.path, agent=agent, sandbox=False, tag="web").run().completed
    assert project.statuses() == {"A": "done", "C": "pending"}
