"""`ralph tasks run --fleet local`: turns in processes of this machine, by orders and results.
What a run is, and what is left of it, is as with workers of its own."""

import json
import os
import signal
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project
from parallel_support import assert_tidy, tasks
from run_support import Done, Running, ralph

__all__ = ["project"]

FLEET = ("--fleet", "local", "--parallel", "2")


@pytest.fixture(autouse=True)
def _where(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT", str(project.path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.path.parent / "cache"))


def refs(project: Project) -> list[str]:
    """What attempts have left."""
    said = project.git("for-each-ref", "--format=%(refname)", "refs/ralph").split()
    return [ref for ref in said if "/cut-" not in ref]


def run(project: Project, script: str, *flags: str, sandbox: bool = False) -> Done:
    return project.run(script, *FLEET, *flags, sandbox=sandbox)


def test_tasks_are_done_elsewhere_and_judged_here(project: Project) -> None:
    tasks(project, "a", "b", "c")
    project.settings(guardrails=[{"command": f"pwd >> {project.notes}/gates"}])
    project.git("add", "-A")
    project.git("commit", "-qm", "settings")
    done = run(project, f'pwd >> "$NOTES/turns"; echo "$id" > "$id.txt"; {COMPLETE}')
    assert done.code == 0, done.err
    assert set(project.statuses().values()) == {"done"}
    cache = str(project.path.parent / "cache")
    assert all(line.startswith(cache) for line in (project.notes / "turns").read_text().split())
    assert cache not in (project.notes / "gates").read_text()
    assert refs(project) == []
    assert_tidy(project)
    report = json.loads(ralph("report", "--json").out)
    host = os.uname().nodename
    assert [i["machines"] for i in report["iterations"]] == [[host]] * 3
    assert f"a | [ralph] Attempt 1 is on {host}" in done.err


@pytest.mark.slow
def test_setup_runs_once_for_each_machine_and_each_work_tree(project: Project) -> None:
    """On a machine once for a lockfile; here for each task, so that its checks can run."""
    project.settings(loop={"setup": f"echo x > installed; pwd >> {project.notes}/setup"})
    (project.path / ".gitignore").write_text("installed\n")
    (project.path / "package-lock.json").write_text("{}\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "settings")
    tasks(project, "a", "b", "c")
    done = project.run(f'cp installed "$id"; {COMPLETE}', "--fleet", "local", "--parallel", "1")
    assert done.code == 0, done.err
    places = (project.notes / "setup").read_text().split()
    assert len([place for place in places if "cache" in place]) == 1
    assert len([place for place in places if "cache" not in place]) == 3


@pytest.mark.slow
def test_what_an_agent_adds_to_the_list_is_the_projects(project: Project) -> None:
    """The copy of the list travels there and back; a task is nobody's to call done."""
    tasks(project, "a")
    project.git("add", "-A")
    project.git("commit", "-qm", "list")
    line = '{"id": "n", "title": "New", "status": "done", "createdAt": "2026-02-01"}'
    script = f"""[ $id = a ] && echo '{line}' >> .ralph/tasks.jsonl; touch $id; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert project.statuses() == {"a": "done", "n": "done"}
    assert project.turns("n") == 1


@pytest.mark.slow
def test_a_failed_turn_is_thrown_away_and_the_next_one_told(project: Project) -> None:
    tasks(project, "a")
    script = f'[ $n = 1 ] && touch wrong && exit 3; ls > "$id.txt"; {COMPLETE}'
    done = run(project, script)
    assert done.code == 0, done.err
    assert "wrong" not in (project.path / "a.txt").read_text()
    assert "were discarded" in project.prompt("a", 2)


@pytest.mark.slow
def test_a_file_that_git_cannot_carry_is_told(project: Project) -> None:
    tasks(project, "a")
    script = f"[ $n = 1 ] && git init -q inner && touch inner/x || touch a; {COMPLETE}"
    done = run(project, script)
    assert done.code == 0, done.err
    assert "inner/: git cannot carry it" in project.prompt("a", 2)


@pytest.mark.slow
def test_ctrl_c_ends_the_agents_and_resume_goes_on(project: Project) -> None:
    tasks(project, "a", "b")
    agent = project.agent(f'[ $n = 1 ] && sleep 100; touch "$id"; {COMPLETE}')
    words = ("tasks", "run", "--agent", agent, "--no-sandbox", *FLEET)
    running = Running(project.path, *words)
    running.await_that(lambda: project.turns("a") == project.turns("b") == 1)
    running.interrupt()
    running.send(signal.SIGINT)
    assert running.end().code == 130
    done = ralph("resume")
    assert done.code == 0, done.err
    assert set(project.statuses().values()) == {"done"}
    assert refs(project) == []
    assert_tidy(project)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--fleet", "tcp://10.0.0.1:8786"), "has no TLS"),
        (("--fleet", "nonsense!"), "is no address of a fleet"),
        (("--fleet", "local", "--pr", "stacked"), "is one branch"),
        (("--fleet", "tcp://127.0.0.1:9"), "127.0.0.1:9"),
    ],
)
def test_what_cannot_work_is_refused_and_nothing_is_lost(
    project: Project, flags: tuple[str, ...], words: str
) -> None:
    tasks(project, "a")
    done = project.run(COMPLETE, *flags)
    assert done.code == 2, done.err
    assert words in done.err
    assert project.statuses() == {"a": "pending"}
    assert Path(project.path / "README").exists()
