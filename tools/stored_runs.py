"""Records anew the runs that `ralph replay` is held to in tests/captures/runs: real agents on a
scripted model, every loop of Ralph, nothing of this machine in them.

    make stored-runs                all of them
    make stored-runs RUNS="crew"    those of this name
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests")]

from agents.clis import Json  # noqa: E402
from agents.real_agents import World  # noqa: E402
from agents.test_agents_loop import DONE as PROMISED  # noqa: E402
from agents.test_agents_loop import types  # noqa: E402
from agents.test_agents_plugin import install  # noqa: E402
from agents.test_agents_prd import APPROVE, REJECT, RESUBMIT, SUBMIT, turn  # noqa: E402
from agents.test_agents_prd import stories as write_stories  # noqa: E402

from ralph.journal.journal import JOURNAL, SEED, chained  # noqa: E402
from ralph.runner.kept import PLAN  # noqa: E402
from ralph.testing.scripted_model.script import Script  # noqa: E402
from ralph.testing.scripted_model.server import ScriptedModel  # noqa: E402

RUNS = ROOT / "tests" / "captures" / "runs"
RALPH = (sys.executable, "-m", "ralph")
HOME = "/home/you"  # of whoever might have had these runs
KEPT = ("journal.jsonl", "plan.json", "agent-stdout.txt")
DONE = {"text": "All is well. <response>DONE</response>"}
COMPLETE = {"text": "It is there. <promise>COMPLETE</promise>"}
FAILS = {"error": {"status": 400, "type": "api_error", "message": "the service said no"}}
MOST_SECONDS = 120


def prompt(world: World) -> None:
    """A claim that a guardrail objects to, a near miss, and one that is believed."""
    rail = {"command": "test -f hello.txt"}
    world.configure(guardrails=[rail], scm={"command": "git", "tasks": ["commit"]}, failDelay=0)
    world.plays(
        DONE,
        {"text": "I am done: DONE"},
        world.shell("echo hello > hello.txt"),
        DONE,
        message=({"text": "Say hello"},),
    )
    ralph(world, "run", "-p", "Write hello.txt.", "-m", "5")


def failing(world: World) -> None:
    """A service that fails, twice in a row."""
    world.configure(failAfter=2, failDelay=0)
    world.plays(FAILS)
    ralph(world, "run", "-p", "Write hello.txt.", "-m", "5", code=5)


def tasks(world: World) -> None:
    """A task with a check of its own, one that asks a person, one that is claimed."""
    backlog(
        world,
        {"id": "T-1", "title": "Say hello", "completion": check("test -f hello.txt")},
        {"id": "T-2", "title": "Choose a color"},
        {"id": "T-3", "title": "Take a note"},
    )
    world.plays(
        {"text": "Not yet."},
        world.shell("echo hello > hello.txt"),
        {"text": "There it is."},
        {"text": "<promise>DECIDE: red or blue?</promise>"},
        world.shell("echo note > note.txt"),
        COMPLETE,
    )
    ralph(world, "tasks", "run", "--no-sandbox", code=3)


def crew(world: World) -> None:
    """Two workers at three tasks, of which one waits for another."""
    backlog(
        world,
        {"id": "T-1", "title": "Say hello"},
        {"id": "T-2", "title": "Say goodbye"},
        {"id": "T-3", "title": "Say both", "blockedBy": ["T-1"]},
    )
    named = (("T-1", "hello"), ("T-2", "goodbye"), ("T-3", "both"))
    lanes = [
        {"match": f"Task {task}:", "turns": [world.shell(f"echo {word} > {word}.txt"), COMPLETE]}
        for task, word in named
    ]
    world.model.server.script = Script({"lanes": lanes, "turns": [COMPLETE]}, {})
    ralph(world, "tasks", "run", "--parallel", "2", "--no-sandbox")


def stories(world: World) -> None:
    """A story through implementation, a review that asks for changes, and approval."""
    write_stories(world, 1)
    rejects, approves = {**REJECT, "reviewCount": 1}, {**APPROVE, "reviewCount": 2}
    turns = (SUBMIT, rejects, RESUBMIT, approves)
    world.plays(*(answer for fields in turns for answer in turn(world, 1, fields)))
    ralph(world, "prd", "run", "--no-sandbox")


def supervise(world: World) -> None:
    """An attempt that fails, one that only talks, one that writes DONE."""
    world.plays(
        FAILS,
        {"text": "I think that is all."},
        world.shell('touch "$TASK_FOLDER/DONE"'),
        {"text": "Now it is."},
    )
    folder = ("--task-dir", str(world.repo / "shop" / "login"), "-p", "Build the login page.")
    ralph(world, "supervise", *folder, "--restart-delay", "0", "--max-restarts", "5")


def session(world: World) -> None:
    """A promise without work, a stop without a word, and one after work."""
    install(world)
    world.plays(PROMISED, {"text": "Well."}, world.shell("echo hello > hello.txt"), PROMISED)
    types(world, "/ralph:ralph-loop Write hello.txt")


SCENARIOS: dict[str, tuple[str, Callable[[World], None]]] = {  # the agent, and what it does
    "prompt-claude": ("claude", prompt),
    "prompt-gemini": ("gemini", prompt),
    "failing-codex": ("codex", failing),
    "tasks-opencode": ("opencode", tasks),
    "crew-codex": ("codex", crew),
    "stories-claude": ("claude", stories),
    "supervise-codex": ("codex", supervise),
    "session-claude": ("claude", session),
}


def check(command: str) -> Json:
    return {"type": "test_passing", "command": command}


def backlog(world: World, *listed: Json) -> None:
    world.configure(failDelay=0)
    lines = "".join(f"{json.dumps(task)}\n" for task in listed)
    (world.repo / ".ralph" / "tasks.jsonl").write_text(lines)


def ralph(world: World, *words: str, code: int = 0) -> None:
    done = subprocess.run(
        (*RALPH, *words),
        cwd=world.repo,
        env=world.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    if done.returncode != code:
        raise SystemExit(f"ralph {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")


# ------------------------------------------------------------------ recording


def record(name: str, path: str) -> None:
    """Play a scenario, and keep its run."""
    kind, scenario = SCENARIOS[name]
    with a_world(kind, path) as world:
        scenario(world)
        world.sweep()
        hidden = Hidden(world)
        found = [
            journal
            for journal in (world.root / "ralph_state_dir").glob("*/runs/*/journal.jsonl")
            if not journal.parent.is_symlink()  # to a supervised task's
        ]
        place = RUNS / name
        shutil.rmtree(place, ignore_errors=True)
        if found:
            (journal,) = found
            keep(journal.parent, place, hidden)
            for attempt in world.repo.glob("shop/login/runs/*"):
                keep(attempt, place / attempt.name, hidden)
        else:
            (loop,) = (world.root / "ralph_state_dir").glob("sessions/*.loop")
            place.mkdir(parents=True)
            (place / "session.loop").write_bytes(hidden.clean(loop.read_bytes()))
            (place / "transcript.jsonl").write_bytes(hidden.clean(transcript_of(loop)))
    done = subprocess.run((*RALPH, "replay", target(place)), check=False)
    if done.returncode:
        raise SystemExit(f"{name} was recorded, and differs already")


def transcript_of(loop: Path) -> bytes:
    """The transcript of a loop, without the lists of what its agent could use."""
    transcript = Path(json.loads(loop.read_bytes())["transcript"]).read_bytes()
    lines = transcript.splitlines(keepends=True)
    listing = (b'"skill_listing"', b'"agent_listing_delta"')
    return b"".join(line for line in lines if not any(word in line for word in listing))


def target(place: Path) -> str:
    """What `ralph replay` is told of it."""
    loop = place / "session.loop"
    return str(loop if loop.exists() else place)


@contextmanager
def a_world(kind: str, path: str) -> Iterator[World]:
    with tempfile.TemporaryDirectory() as root, ScriptedModel([]) as model:
        repo = Path(root, "shop")
        git = ("git", "-C", str(repo))
        subprocess.run(("git", "init", "-q", "-b", "main", str(repo)), check=True)
        subprocess.run((*git, "config", "user.name", "You"), check=True)
        subprocess.run((*git, "config", "user.email", "you@example.com"), check=True)
        (repo / "README.md").write_text("A shop.\n")
        subprocess.run((*git, "add", "--all"), check=True)
        subprocess.run((*git, "commit", "-qm", "Begin"), check=True)
        world = World(kind, Path(root), repo, path, model)
        world.configure()
        yield world
        world.sweep()


class Hidden:
    """Puts neutral words for all that is this machine's."""

    def __init__(self, world: World) -> None:
        root, url = str(world.root), world.model.url
        here = [f"{root}/home", root, os.path.realpath(root)]
        pairs = [(place, HOME) for place in here]
        pairs += [(place.replace("/", "-"), HOME.replace("/", "-")) for place in here]
        pairs += [(url, "http://127.0.0.1:8000"), (url.split("//")[1], "127.0.0.1:8000")]
        agents = [part for part in world.path.split(os.pathsep) if "agents" in part]
        pairs += [(part, "/opt/agents") for part in agents]
        self._pairs = [(one.encode(), other.encode()) for one, other in pairs]
        self._words = [socket.gethostname(), str(Path.home()), tempfile.gettempdir(), str(ROOT)]

    def clean(self, data: bytes) -> bytes:
        for one, other in self._pairs:
            data = data.replace(one, other)
        found = (rb"(?<!\w)" + re.escape(word.encode()) for word in self._words)
        left = [pattern for pattern in found if re.search(pattern, data)]
        if left:
            raise SystemExit(f"this machine is still in it: {left}")
        return data


def keep(source: Path, place: Path, hidden: Hidden) -> None:
    """Copy what is needed to judge a run again: journals, chained anew, the plan, and streams."""
    place.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_dir() and path.name == "runs":
            for worker in sorted(path.iterdir()):
                keep(worker, place / "runs" / worker.name, hidden)
        elif path.name in KEPT or (path.suffix == ".stream" and ".message" not in path.name):
            data = hidden.clean(path.read_bytes())
            data = rechained(data) if path.name == JOURNAL else data
            data = tidy(data) if path.name == PLAN else data
            (place / path.name).write_bytes(data)


def rechained(data: bytes) -> bytes:
    """The lines of a journal, each with the hash of what stands there now."""
    last, lines = SEED, []
    for line in data.decode().splitlines():
        body = line.rpartition(',"hash":"')[0] + "}"
        last = chained(body, last)
        lines.append(f'{body[:-1]},"hash":"{last}"}}\n')
    return "".join(lines).encode()


def tidy(data: bytes) -> bytes:
    """The kept plan without the settings: the journal tells those that were in force."""
    kept: dict[str, Any] = json.loads(data)
    return json.dumps({**kept, "settings": {}, "said": {}}, indent=1).encode() + b"\n"


def main() -> None:
    parser = argparse.ArgumentParser("stored_runs", description=(__doc__ or "").split(":")[0])
    parser.add_argument("names", nargs="*", help=f"any part of: {', '.join(SCENARIOS)}")
    wanted = parser.parse_args().names
    agents = os.environ.get("RALPH_AGENTS_BIN", "")
    node = os.path.dirname(shutil.which("node") or "")
    path = os.pathsep.join(filter(None, (agents, node, os.environ["PATH"])))
    for name in SCENARIOS:
        if not wanted or any(part in name for part in wanted):
            print(name, flush=True)
            record(name, path)


if __name__ == "__main__":
    main()
