"""A run whose turns are taken elsewhere goes on after a pause, a change of its settings or a kill
as one whose agents are here."""

import json
import os
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project
from parallel_support import assert_tidy, tasks
from run_support import Running, journals, ralph

from ralph.journal.journal import read_journal
from ralph.kernel.facts import Launching
from ralph.testing.scripted_agent.install import calls, install_agent

__all__ = ["project"]

WAIT = 'while [ ! -e "$NOTES/go-$id-$n" ]; do sleep 0.02; done; echo "$id" > "$id"'
FLEET = ("--no-sandbox", "--fleet", "local", "--parallel", "2")


@pytest.fixture(autouse=True)
def _where(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.path.parent / "cache"))


def settled(project: Project, **settings: object) -> None:
    project.settings(**settings)
    project.git("add", "-A")
    project.git("commit", "-qm", "settings")


def models() -> list[str]:
    (lead,) = journals()
    facts = (f for path in lead.parent.glob("runs/*/*.jsonl") for f in read_journal(str(path))[0])
    return [fact.model for fact in facts if isinstance(fact, Launching)]


def paused(project: Project, agent: dict[str, object], *flags: str) -> Running:
    """A run that has paused after the first turn of its one task."""
    settled(project, agent=agent)
    tasks(project, "a")
    running = Running(project.path, "tasks", "run", "--no-sandbox", *flags)
    running.await_that(lambda: project.turns("a") == 1)
    assert ralph("pause").code == 0
    (project.notes / "go-a-1").touch()
    running.await_that(lambda: "State      paused: " in ralph("status").out)
    return running


@pytest.mark.slow
def test_after_a_pause_other_machines_have_the_settings_of_then(project: Project) -> None:
    command = project.agent(f"{WAIT}; [ $n = 1 ] || {COMPLETE}")
    agent: dict[str, object] = {"command": command, "env": {"set": {"LEVEL": "1"}}}
    running = paused(project, agent, "--fleet", "local", "--parallel", "2")
    agent["env"] = {"set": {"LEVEL": "2"}}
    agent["command"] = project.agent(f'{WAIT}; echo "$LEVEL" > level; {COMPLETE}')
    project.settings(agent=agent)
    assert ralph("resume").code == 0
    (project.notes / "go-a-2").touch()
    done = running.end()
    assert done.code == 0, done.err
    assert (project.path / "level").read_text() == "2\n"
    assert_tidy(project)


@pytest.mark.parametrize("fleet", ["none", "local"])
def test_a_run_goes_on_as_it_began_wherever_its_turns_are_taken_now(
    project: Project, fleet: str
) -> None:
    """A crew stays one without a fleet, and a run without one takes none up in the middle."""
    command = project.agent(f"{WAIT}; [ $n = 1 ] || {COMPLETE}")
    agent: dict[str, object] = {"command": command}
    before = {"none": "local", "local": "none"}[fleet]
    settled(project, agent=agent, fleet={"address": before})
    tasks(project, "a")
    running = Running(project.path, "tasks", "run", "--no-sandbox", "--parallel", "1")
    running.await_that(lambda: project.turns("a") == 1)
    assert ralph("pause").code == 0
    (project.notes / "go-a-1").touch()
    running.await_that(lambda: "State      paused: " in ralph("status").out)
    project.settings(agent=agent, fleet={"address": fleet})
    assert ralph("stop").code == 0
    assert running.end().code == 130
    (project.notes / "go-a-2").touch()
    done = ralph("resume")
    assert done.code == 0, done.err
    assert project.statuses() == {"a": "done"}
    assert project.turns("a") == 2
    assert_tidy(project)


@pytest.mark.slow
def test_a_cheaper_model_is_taken_there_too(project: Project) -> None:
    first = {"text": "more", "cost": 0.9}
    last = {"text": "<promise>COMPLETE</promise>", "files": {"made": "x"}, "cost": 0.1}
    agent = install_agent(str(project.path.parent / "bin"), [first, last], kind="claude")
    step = {"at": 0.5, "model": "haiku"}
    settled(project, agent={"command": agent}, loop={"stepDown": step, "maxCostPerRun": 1.5})
    tasks(project, "a")
    done = ralph("tasks", "run", *FLEET)
    assert done.code == 0, done.err
    assert models() == ["", "haiku"]
    assert "haiku" in json.dumps(calls(agent)[1]["argv"])
    assert Path(project.path / "made").exists()


@pytest.mark.slow
def test_the_next_agent_goes_on_there(project: Project) -> None:
    """Also one that is named by its way from the project."""
    error = {"status": 429, "message": "You've hit your limit", "resets_at": 4e9}
    first = install_agent(str(project.path.parent / "bin"), [{"error": error}])
    spare = {"command": os.path.relpath(project.agent(f'echo "$id" > "$id"; {COMPLETE}'))}
    settled(project, agent={"command": first, "fallbacks": [spare]})
    tasks(project, "a", "b")
    done = ralph("tasks", "run", *FLEET)
    assert done.code == 0, done.err
    assert project.statuses() == {"a": "done", "b": "done"}
    assert len(calls(first)) == 2
    assert_tidy(project)
