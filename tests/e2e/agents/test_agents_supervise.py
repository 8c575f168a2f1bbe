"""S §Integration Tests with the real claude and codex: `ralph supervise` restarts them until DONE.

Whatever an attempt leaves behind fails the test: the world looks for it.
"""

import subprocess
import sys

import pytest

from agents.clis import OWN
from agents.real_agents import PROMPT, Run, World
from ralph.loops.supervise.run_info import RunInfo, read_run_info

pytestmark = [pytest.mark.agents, pytest.mark.parametrize("kind", ["claude", "codex", OWN])]

MARK = 'touch "$TASK_FOLDER/DONE"'
AGAIN = f"Continue working on the following:\n\n{PROMPT}"


def supervise(world: World, *arguments: str) -> Run:
    """Run `ralph supervise --json` to its end."""
    task = ("--task-dir", str(world.repo / "shop" / "login"), "-p", PROMPT, "--restart-delay", "0")
    command = (sys.executable, "-m", "ralph", "supervise", "--json", *task, *arguments)
    with open(world.root / "out", "wb") as out, open(world.root / "err", "wb") as err:
        process = subprocess.Popen(
            command, cwd=world.repo, env=world.environment(), stdout=out, stderr=err
        )
    world.started.append(process)
    return world.finish(process)


def attempts(world: World) -> list[RunInfo]:
    """What the run-info of each attempt says."""
    directories = sorted((world.repo / "shop" / "login" / "runs").iterdir())
    return [info for info in map(read_run_info, map(str, directories)) if info is not None]


def test_with_real_agent_execution(world: World) -> None:
    """S: "A zero exit code does NOT stop the loop — the agent must create the `DONE` file"."""
    world.plays(
        world.shell("echo hello > hello.txt"),
        {"text": "I think that is all."},
        world.shell(MARK),
        {"text": "Now it is."},
    )
    run = supervise(world)
    assert run.code == 0, run.err
    assert (run.verdicts, run.stop["evidence"]) == (["continue", "stop"], ["DONE marker present"])
    assert (world.repo / "hello.txt").read_text() == "hello\n"
    assert AGAIN not in world.asked(1)
    assert AGAIN in world.asked(2)
    first, second = attempts(world)
    assert (first.agent, first.exit_code, first.status) == (world.kind, 0, "completed")
    assert (second.previous_run_id, second.status) == (first.run_id, "completed")


def test_a_failed_agent_is_restarted(world: World) -> None:
    """S §Error Types: "Transient Errors: restart agent"."""
    broken = {"error": {"status": 400, "type": "api_error", "message": "boom"}}
    world.plays(broken, world.shell(MARK), {"text": "Done."})
    run = supervise(world)
    assert run.code == 0, run.err
    assert [info.status for info in attempts(world)] == ["failed", "completed"]


def test_process_group_cleanup(world: World) -> None:
    """S §Cleanup Flow: a tool's command in a session of its own ends with its attempt."""
    deaf = "trap '' INT TERM HUP; touch started; while :; do sleep 0.1; done"
    leave = f'setsid sh -c "{deaf}" >/dev/null 2>&1 & until [ -e started ]; do sleep 0.05; done'
    world.configure(endGrace=0.2)
    world.plays(world.shell(f"{leave}; {MARK}"), {"text": "Done."})
    run = supervise(world)
    assert run.code == 0, run.err
    assert not world.sweep()


def test_timeout_handling(world: World) -> None:
    """ADR 19: the wait timeout bounds "the agent itself when DONE appears while it works"."""
    world.configure(endGrace=0.2)
    world.plays(world.shell(f"{MARK}; sleep 300"))
    run = supervise(world, "--wait-timeout", "1")
    assert run.code == 0, run.err
    assert [turn["why"] for turn in run.turns] == ["still running 1.0s after DONE"]
    assert not world.sweep()
