"""B with the real claude and codex: `ralph tasks run` proves, commits and records what they do."""

import json
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from agents.clis import OWN, Json
from agents.real_agents import Run, World
from kits.sandbox.stage import overlay_is_usable

COMPLETE = "<promise>COMPLETE</promise>"
CHECK = {"type": "test_passing", "command": "cat hello.txt"}
HELLO = {"id": "T-1", "title": "Say hello", "description": "Write hello.txt.", "priority": 1}
NOTE = {"id": "T-2", "title": "Take a note"}
USAGE = {"input": 1000, "output": 50}
IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")

pytestmark = [
    pytest.mark.agents,
    pytest.mark.parametrize("kind", ["claude", "codex", OWN]),
    pytest.mark.parametrize("where", ["in-place", pytest.param("overlay", marks=IN_OVERLAY)]),
]


def work(world: World, where: str, *tasks: Json) -> Run:
    """Run `ralph tasks run --json` over these tasks to its end."""
    lines = "".join(f"{json.dumps(task)}\n" for task in tasks)
    (world.repo / ".ralph" / "tasks.jsonl").write_text(lines)
    model = urlsplit(world.model.url).netloc
    place = ("--no-sandbox",) if where == "in-place" else ("--sandbox", where, "--network", model)
    command = (sys.executable, "-m", "ralph", "tasks", "run", "--json", *place)
    with open(world.root / "out", "wb") as out, open(world.root / "err", "wb") as err:
        process = subprocess.Popen(
            command, cwd=world.repo, env=world.environment(), stdout=out, stderr=err
        )
    world.started.append(process)
    return world.finish(process)


def write(world: World, name: str, text: str) -> Json:
    """A model's answer: write this file, with the agent's own tool for that."""
    if world.kind == "claude":
        given: object = {"file_path": str(world.repo / name), "content": f"{text}\n"}
        return {"tools": [{"name": "Write", "input": given}], "usage": USAGE}
    if world.kind == OWN:
        written = {"name": "write", "input": {"path": name, "content": f"{text}\n"}}
        return {"tools": [written], "usage": USAGE}
    patch = f"*** Begin Patch\n*** Add File: {name}\n+{text}\n*** End Patch\n"
    return {"tools": [{"name": "apply_patch", "input": patch}], "usage": USAGE}


def records(world: World, name: str) -> list[Json]:
    """The objects of one of Ralph's files."""
    text = (world.repo / ".ralph" / f"{name}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def iterations(world: World) -> list[Json]:
    """What progress.jsonl says of each."""
    return [entry for entry in records(world, "progress") if entry["type"] == "iteration"]


def test_two_tasks_are_proven_committed_and_recorded(world: World, where: str) -> None:
    """B §The Loop: one by a check that passes, whatever is said; one by an explicit claim."""
    world.plays(
        {"text": f"It is there. {COMPLETE}", "usage": USAGE},
        write(world, "hello.txt", "hello"),
        {"text": "Now it is.", "usage": USAGE},
        world.shell("echo note > note.txt", usage=USAGE),
        {"text": COMPLETE, "usage": USAGE},
    )
    run = work(world, where, {**HELLO, "completion": CHECK}, NOTE)
    assert run.code == 0, run.err
    subjects = world.git("log", "--format=%s").splitlines()
    assert subjects == ["T-2: Take a note", "T-1: Say hello", "Begin"]
    assert world.git("show", "HEAD:hello.txt", "HEAD:note.txt").split() == ["hello", "note"]
    assert not [line for line in world.git("status", "--short").splitlines() if "ralph" not in line]

    first, second = records(world, "tasks")
    assert (first["status"], second["status"]) == ("done", "done")
    proof = first["evidence"]
    assert (proof["kind"], proof["command"], proof["exitCode"]) == (*CHECK.values(), 0)
    assert (second["evidence"]["kind"], second["evidence"]["exitCode"]) == ("explicit", None)
    assert world.git("cat-file", "-t", second["evidence"]["tree"]) == "tree"

    told = iterations(world)
    judged = [(entry["taskId"], entry["iteration"], entry["status"]) for entry in told]
    assert judged == [("T-1", 1, "continue"), ("T-1", 2, "complete"), ("T-2", 1, "complete")]
    deltas = [entry["filesystemDelta"] for entry in told]
    assert deltas[0] == []
    assert deltas[1:] == [[{"path": name, "change": "added"}] for name in ("hello.txt", "note.txt")]
    assert (told[1]["actions"]["write"], told[2]["actions"]["bash"]) == (1, 1)
    assert all(entry["cost"] > 0 for entry in told)


def test_the_model_is_told_the_papers_the_task_and_what_failed(world: World, where: str) -> None:
    """B §The Loop: the index, the task, and what came of the iteration before."""
    (world.repo / "AGENTS.md").write_text("Use tabs.\n")
    world.git("add", "AGENTS.md")
    world.git("commit", "--quiet", "--message", "Papers")
    world.plays({"text": COMPLETE}, write(world, "hello.txt", "hello"), {"text": COMPLETE})
    run = work(world, where, {**HELLO, "completion": CHECK})
    assert run.code == 0, run.err
    asked, again = world.asked(0), world.asked(1)
    papers, task = '<file path="AGENTS.md">\nUse tabs.\n</file>', "Task T-1: Say hello"
    for words in (papers, task, "Write hello.txt.", "`cat hello.txt` exits with 0", COMPLETE):
        assert words in asked
        assert words in again
    failure = "Not complete yet: `cat hello.txt` exited with code 1."
    assert failure not in asked
    assert failure in again
    assert "No such file" in again
    assert "Iteration 2 of 10" in again


def test_a_question_parks_its_task_and_undoes_its_work(world: World, where: str) -> None:
    """B §Rollback: "Preserve failure logs for learning"; the next task starts."""
    world.plays(
        world.shell("echo half > half.txt"),
        {"text": "<promise>DECIDE: red or blue?</promise>"},
        world.shell("ls > seen.txt"),
        {"text": COMPLETE},
    )
    run = work(world, where, HELLO, NOTE)
    assert run.code == 3, run.err
    first, second = records(world, "tasks")
    assert (first["status"], first["question"]) == ("blocked", "red or blue?")
    assert second["status"] == "done"
    assert (world.repo / "seen.txt").read_text().split() == ["README.md", "seen.txt"]
    assert world.git("show", f"{first['saved']}:half.txt") == "half"
    assert world.git("log", "-1", "--format=%s") == "T-2: Take a note"
