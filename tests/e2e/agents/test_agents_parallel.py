"""Several tasks at once with the real claude and codex: in worktrees, in place and in the overlay,
and on the machines of a fleet, of which two are here."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from agents.clis import OWN, Json
from agents.real_agents import PATIENCE, Run, World
from kits.sandbox.stage import overlay_is_usable
from ralph.testing.scripted_model.script import Script

COMPLETE = {"text": "<promise>COMPLETE</promise>"}
IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")

pytestmark = [
    pytest.mark.agents,
    pytest.mark.parametrize("kind", ["claude", "codex", OWN]),
    pytest.mark.parametrize(
        "where", ["in-place", *(pytest.param(w, marks=IN_OVERLAY) for w in ("overlay", "fleet"))]
    ),
]
RALPH = (sys.executable, "-m", "ralph")


@contextmanager
def fleet(world: World) -> Iterator[str]:
    """The address of a fleet of two workers. Their own environment pays."""
    environment = {**world.environment(), **world.cli.env(world.model.url)}
    command = (*RALPH, "fleet", "up", "--workers", "2")
    with open(world.root / "fleet", "wb") as err:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=err)
    world.started.append(process)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=PATIENCE)
        process.stdout.close()


def work(world: World, where: str, *names: str) -> Run:
    """Run `ralph tasks run --json` over these tasks to its end."""
    if where != "fleet":
        return worked(world, where, names, "--parallel", "3")
    with fleet(world) as address:
        return worked(world, "overlay", names, "--fleet", address)


def worked(world: World, where: str, names: tuple[str, ...], *flags: str) -> Run:
    lines = (json.dumps({"id": name, "title": f"It is {name}"}) for name in names)
    (world.repo / ".ralph" / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines))
    model = urlsplit(world.model.url).netloc
    place = ("--no-sandbox",) if where == "in-place" else ("--sandbox", where, "--network", model)
    command = (*RALPH, "tasks", "run", "--json", *flags, *place)
    with open(world.root / "out", "wb") as out, open(world.root / "err", "wb") as err:
        process = subprocess.Popen(
            command, cwd=world.repo, env=world.environment(), stdout=out, stderr=err
        )
    world.started.append(process)
    return world.finish(process)


def lane(world: World, task: str, *scripts: str) -> Json:
    """What the model says in the turns of a task: a shell command, then that it is complete."""
    turns = [turn for script in scripts for turn in (world.shell(script), COMPLETE)]
    return {"match": f"Task {task}:", "turns": turns}


def test_three_tasks_two_of_which_conflict(world: World, where: str) -> None:
    """Whichever of the two is merged last is told, resolves it, and is merged."""
    both = "printf 'one\\ntwo\\n' > shared.txt"
    world.model.server.script = Script(
        {
            "lanes": [
                lane(world, "T-1", "echo one > shared.txt", both),
                lane(world, "T-2", "echo two > shared.txt", both),
                lane(world, "T-3", "echo three > three.txt"),
            ]
        }
    )
    run = work(world, where, "T-1", "T-2", "T-3")
    assert run.code == 0, run.err
    assert world.git("show", "HEAD:shared.txt").split() == ["one", "two"]
    assert world.git("show", "HEAD:three.txt") == "three"
    subjects = world.git("log", "--format=%s").splitlines()
    assert sorted(subjects[:-1]) == [f"T-{n}: It is T-{n}" for n in (1, 2, 3)]
    assert len(world.git("worktree", "list").splitlines()) == 1
    assert not world.git("for-each-ref", "refs/heads/ralph")
    stop = json.loads(run.out.splitlines()[-1])
    assert (stop["type"], stop["reason"], stop["iterations"]) == ("stop", "completed", 4)
