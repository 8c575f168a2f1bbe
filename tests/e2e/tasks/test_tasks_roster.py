"""The next agent for tasks (ADR 45): one at a time, several at once, and in a sandbox."""

import json
import os
import time
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project
from backlog_support import project as project  # noqa: PLC0414  a fixture
from run_support import Done, assert_clear, program, ralph

from kits.sandbox.stage import overlay_is_usable
from ralph.journal.journal import read_journal
from ralph.kernel.facts import Ended
from ralph.testing.scripted_agent.install import calls, install_agent

WORKS = f'echo "$id" > "$id.txt"; {COMPLETE}'


def run(project: Project, script: str, *flags: str) -> tuple[str, Done]:
    """`ralph tasks run` with a first agent that is always limited, and one that does this."""
    error = {"status": 429, "message": "You've hit your limit", "resets_at": time.time() + 3600}
    first = install_agent(str(project.path.parent / "bin"), [{"error": error}])
    agent = {"command": first, "fallbacks": [{"command": project.agent(script)}]}
    project.settings(agent=agent)
    project.tasks(*({"id": name, "title": f"It is {name}"} for name in ("T-1", "T-2")))
    done = ralph("tasks", "run", *flags)
    return first, done


def takers() -> dict[str, list[str]]:
    """Who took the turns of each run of the project, in order."""
    root = Path(os.environ["RALPH_STATE_DIR"])
    found = {}
    for journal in sorted(root.rglob("journal.jsonl")):
        facts = read_journal(str(journal))[0]
        found[journal.parent.name] = [f.turn.agent for f in facts if isinstance(f, Ended)]
    return found


def test_a_backlog_goes_on_with_the_next_agent(project: Project) -> None:
    first, done = run(project, WORKS, "--no-sandbox")
    assert_clear(done, 0, "claude cannot go on", "Agent: agent.sh", "Iteration 1/10 starting again")
    assert project.statuses() == {"T-1": "done", "T-2": "done"}
    assert len(calls(first)) == 1
    assert list(takers().values()) == [["claude", "agent.sh", "agent.sh"]]
    assert project.turns("T-1") == 1


def test_each_worker_has_a_roster_of_its_own(project: Project) -> None:
    first, done = run(project, WORKS, "--no-sandbox", "--parallel", "2")
    assert_clear(done, 0, "claude cannot go on")
    assert project.statuses() == {"T-1": "done", "T-2": "done"}
    assert sorted(takers().values()) == [[], ["claude", "agent.sh"], ["claude", "agent.sh"]]
    trees = {call["cwd"] for call in calls(first)}
    assert len(trees) == 2
    assert str(project.path) not in trees


LIMITED = """\
echo '{"type":"system","subtype":"init","session_id":"s"}'
echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"no"}'
exit 1"""
LOOKS = """\
cd "$HOME" && ls .codex/auth.json .gemini/oauth_creds.json > "$OLDPWD/seen.txt" 2>&1
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"item.started","item":{"id":"0","type":"command_execution","command":"ls"}}'
echo '{"type":"item.completed","item":{"id":"1","type":"agent_message",\
"text":"<promise>COMPLETE</promise>"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":10}}'"""


@pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")
def test_in_a_sandbox_every_agent_has_what_it_needs(project: Project) -> None:
    """The logins of both are shown, the hosts of both may be called; a third one's login is not."""
    home, above = Path(os.environ["HOME"]), project.path.parent
    for name in (".codex/auth.json", ".gemini/oauth_creds.json"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("{}")
    for name in ("one", "two"):
        (above / name).mkdir()
    first, spare = program(above / "one/claude", LIMITED), program(above / "two/codex", LOOKS)
    agent = {"command": first, "fallbacks": [{"command": spare}], "fallbackAfter": 0}
    project.settings(agent=agent)
    project.tasks({"id": "T-1", "title": "It is one"})
    done = ralph("tasks", "run", "--sandbox", "overlay")
    assert_clear(done, 0, "*.anthropic.com", "*.openai.com", "claude gets --dangerously-skip")
    said = (project.path / "seen.txt").read_text().splitlines()
    assert ".codex/auth.json" in said
    assert ".gemini/oauth_creds.json" not in said
    assert list(takers().values()) == [["claude", "codex"]]
    counted = [line["actions"] for line in project.lines("progress") if "actions" in line]
    assert [actions["bash"] for actions in counted] == [1]  # its stream is read as codex's


@pytest.mark.slow
def test_step_down_counts_what_all_workers_have_spent(project: Project) -> None:
    turn = {"files": {"x.txt": "1"}, "text": "<promise>COMPLETE</promise>", "cost": 0.9}
    agent = install_agent(str(project.path.parent / "bin"), [turn, {**turn, "files": {"y": "1"}}])
    loop = {"maxCostPerRun": 2, "stepDown": {"at": 0.4, "model": "haiku"}}
    project.settings(agent={"command": agent}, loop=loop)
    names = ("T-1", "T-2")
    project.tasks({"id": names[0]}, {"id": names[1], "dependencies": [names[0]]})
    done = ralph("tasks", "run", "--no-sandbox", "--parallel", "2")
    assert_clear(done, 0, "$0.90 of $2 spent: the model is haiku from here on")
    assert ["haiku" in call["argv"] for call in calls(agent)] == [False, True]


def test_money_that_nobody_can_count_is_told_of_the_next_agent(project: Project) -> None:
    _, done = run(project, WORKS, "--no-sandbox")
    assert "Money is not limited: agent.sh reports no cost" in done.err
    _, refused = run(project, WORKS, "--no-sandbox", "--max-cost", "3")
    assert_clear(refused, 2, "agent.fallbacks: --max-cost: agent.sh reports no cost")
    settings = json.loads((project.path / ".ralph" / "settings.json").read_text())
    assert settings["agent"]["fallbacks"]
