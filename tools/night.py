"""Makes the run that the pictures of the documentation show: 12 tasks in 30 iterations by four
workers, one task blocked, one claim not believed. The agent is scripted; everything else is real.

    python tools/night.py DIR [--pace SECONDS]    makes DIR/project and DIR/state
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from ralph.kernel.value import value
from ralph.testing.scripted_agent.install import install_agent

Json = dict[str, Any]
COMPLETE = "<promise>COMPLETE</promise>"
QUESTION = "<promise>DECIDE: which database, sqlite or postgres?</promise>"
CHECK = """\
\"\"\"Checks every module of the ledger that is there: each must say that it is whole.\"\"\"

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
wrong = 0
for path in sorted(Path(__file__).parent.glob("ledger/*.py")):
    module = importlib.import_module(f"ledger.{path.stem}")
    for found in module.problems():
        wrong += 1
        print(f"{path.name}: {found}")
print(f"{wrong} problems" if wrong else "all is well")
sys.exit(bool(wrong))
"""


@value
class Story:
    """One task, and what its agent does in each of its turns: the seconds that it takes."""

    module: str
    title: str
    turns: tuple[float, ...]
    lies_in: int = -1  # the turn in which it claims to be done, and is not
    asks: bool = False


STORIES = (
    Story("dates", "Parse dates in both formats", (3.1,)),
    Story("importer", "Write the importer", (4.2, 3.6, 2.9, 2.2)),
    Story("database", "Choose a database", (2.4, 1.1), asks=True),
    Story("export", "Export to CSV", (3.3, 2.7)),
    Story("totals", "Show totals by month", (4.8, 2.1, 3.0)),
    Story("rounding", "Round money half up", (2.2, 1.9, 2.8), lies_in=1),
    Story("rates", "Cache exchange rates", (5.2, 3.8)),
    Story("errors", "Say what failed, and where", (3.0, 2.6, 1.4)),
    Story("sorting", "Sort by any column", (2.9, 3.3)),
    Story("duplicates", "Find duplicates", (3.7, 4.4, 1.9)),
    Story("undo", "Undo the last import", (2.8, 2.0, 3.5)),
    Story("flags", "Document the flags", (1.6, 1.2)),
)


def module_text(story: Story, turn: int) -> str:
    """The module after so many turns; it is whole after the last."""
    steps = len(story.turns)
    lines = [f'"""{story.title}."""', ""]
    for step in range(1, turn + 2):
        lines += [
            "",
            f"def step_{step}(rows):",
            f"    return [row for row in rows if row != {step}]",
            "",
        ]
    lines += ["", "def problems():", f"    missing = {steps} - {turn + 1}"]
    lines += [f'    return [f"step {{{steps} - n}} is missing" for n in range(missing)]', ""]
    return "\n".join(lines)


def turn_of(story: Story, turn: int, pace: float) -> Json:
    """What the agent does in one turn."""
    is_last = turn == len(story.turns) - 1
    seconds, path = story.turns[turn], f"ledger/{story.module}.py"
    said = "Everything is in place." if is_last else "The next step is still missing."
    if story.lies_in == turn:
        said = "All of it works now."
    asks = story.asks and is_last
    claim = QUESTION if asks else COMPLETE if is_last or story.lies_in == turn else ""
    tokens = round(seconds * 9_000)
    return {
        "files": {} if asks else {path: module_text(story, turn)},
        "thinking": f"Step {turn + 1} of {len(story.turns)}; what did the check say?",
        "tools": [
            {"name": "Read", "input": {"file_path": path}, "output": '"""The module so far."""'},
            {"name": "Grep", "input": {"pattern": "def step_"}, "output": f"{turn} matches"},
            {"name": "Edit", "input": {"file_path": path}, "output": "Edited 4 lines."},
            {
                "name": "Bash",
                "input": {"command": "make test"},
                "run": f"sleep {seconds * pace}; make test",
            },
        ],
        "todo": [
            ["read it", "completed"],
            ["add the step", "completed" if is_last else "in_progress"],
        ],
        "text": [f"I look at {path} first.", f"{said}\n\n{claim}".rstrip()],
        "cost": round(seconds * 0.083, 3),
        "usage": {"input": tokens // 9, "output": tokens // 14, "cache_read": tokens},
    }


def agent(place: Path, pace: float) -> str:
    """An agent that plays the script of the task that it is asked for."""
    arms = []
    for number, story in enumerate(STORIES, 1):
        turns = [turn_of(story, turn, pace) for turn in range(len(story.turns))]
        path = install_agent(str(place / f"T-{number:03}"), turns)
        arms.append(f'*"Task T-{number:03}:"*) exec {shlex.quote(path)} "$@" ;;')
    path = install_agent(str(place / "other"), [{"text": "ok"}])
    text = "\n".join(['case "$*" in', *arms, f'*) exec {shlex.quote(path)} "$@" ;;', "esac"])
    program = place / "claude"
    program.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    program.chmod(0o755)
    return str(program)


def environment(place: Path) -> dict[str, str]:
    """Nothing outside of the place is read or written."""
    who = {"NAME": "A Person", "EMAIL": "person@example.com"}
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith("GIT_")},
        "RALPH_STATE_DIR": str(place / "state"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **{
            f"GIT_{role}_{key}": text
            for role in ("AUTHOR", "COMMITTER")
            for key, text in who.items()
        },
    }


def prepare(place: Path, pace: float) -> Path:
    """A project with the tasks, the check and the agent."""
    project = place / "project"
    (project / ".ralph").mkdir(parents=True)
    settings = {
        "agent": {"command": agent(place / "bin", pace), "kind": "claude"},
        "guardrails": [{"command": "make test", "hint": "Read what is missing."}],
        "failDelay": 0,
    }
    tasks = [
        {"id": f"T-{n:03}", "title": story.title, "createdAt": f"2026-01-{n:02}"}
        for n, story in enumerate(STORIES, 1)
    ]
    for name, text in (
        (".ralph/settings.json", json.dumps(settings, indent=2)),
        (".ralph/tasks.jsonl", "".join(f"{json.dumps(task)}\n" for task in tasks)),
        ("Makefile", "test:\n\t@python3 -B check.py\n"),
        ("check.py", CHECK),
        ("README.md", "# Ledger\n"),
    ):
        (project / name).write_text(text, "utf-8")
    for words in ("init -q -b main", "add -A", "commit -q -m Begin"):
        subprocess.run(["git", *words.split()], cwd=project, env=environment(place), check=True)
    return project


def night(place: Path, pace: float = 1.0) -> int:
    """The whole run; its exit code is 3, since one task waits for a person."""
    project = prepare(place, pace)
    words = ("tasks", "run", "--parallel", "4", "--no-sandbox", "--max-cost", "12", "-m", "60")
    command = [sys.executable, "-m", "ralph", *words]
    return subprocess.run(command, cwd=project, env=environment(place), check=False).returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path)
    parser.add_argument("--pace", type=float, default=1.0, help="seconds of one unit of work")
    given = parser.parse_args()
    sys.exit(night(given.place.resolve(), given.pace))
