"""What the tests of hooks share: events, a project with stories and a marker, real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ralph.hooks.stop import answer

Json = dict[str, Any]
RALPH = (sys.executable, "-m", "ralph", "hook")


def story(name: str = "US-001", **changes: object) -> Json:
    """A story as `ralph-plan` writes it (R §8)."""
    usual: Json = {"id": name, "title": "Add a page", "acceptanceCriteria": ["It is there."]}
    usual |= {"priority": 1, "passes": False, "reviewStatus": None, "reviewCount": 0}
    return {**usual, "reviewFeedback": "", "notes": "done so", "dependsOn": [], **changes}


def listing(*stories: Json) -> Json:
    return {"project": "p", "branchName": "b", "description": "d", "userStories": list(stories)}


def fields(**changes: object) -> Json:
    """A story in a snapshot (R §3)."""
    return {"passes": False, "reviewStatus": None, "reviewCount": 0, **changes}


def marker(**changes: object) -> Json:
    """What a run writes into `.ralph-active` (R §3); None leaves a field out."""
    usual: Json = {"timestamp": "2026-11-15T10:30:00Z", "pid": 1, "max_iterations": 15}
    usual |= {"mode": "sandbox", "skipReview": False, "reviewCap": 5, "iterationMode": "implement"}
    whole = {**usual, "preIterationSnapshot": {"US-001": fields()}, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def commit(project: Path) -> None:
    subprocess.run(["git", "add", "--all"], cwd=project, check=True)
    subprocess.run(["git", "commit", "-qm", "work", "--allow-empty"], cwd=project, check=True)


def begin(project: Path, mark: object = None, tasks: object = None) -> None:
    """A committed list of stories, and the marker of a run."""
    (project / "ralph").mkdir(exist_ok=True)
    tasks = listing(story()) if tasks is None else tasks
    (project / "ralph" / "tasks.json").write_text(json.dumps(tasks))
    (project / ".gitignore").write_text(".ralph-active\n")
    commit(project)
    (project / ".ralph-active").write_text(json.dumps(marker() if mark is None else mark))


def event(cwd: Path | str, **changes: object) -> Json:
    """A stop as Claude Code tells it; None leaves a field out."""
    usual: Json = {"session_id": "s-1", "cwd": str(cwd), "hook_event_name": "Stop"}
    whole = {**usual, "stop_hook_active": False, "last_assistant_message": "Done.", **changes}
    return {name: value for name, value in whole.items() if value is not None}


def reason(project: Path, **changes: object) -> str:
    """Why a stop is held; empty where it is let go."""
    said = answer(event(project, **changes), dict(os.environ), "/")
    if not said:
        return ""
    told = json.loads(said)
    assert "\n" not in said
    assert told["decision"] == "block"
    assert told["systemMessage"].startswith("Ralph held the stop: ")
    return str(told["reason"])


def run(
    argv: tuple[str, ...], sent: object, cwd: Path, **environ: str
) -> "subprocess.CompletedProcess[bytes]":
    """A real hook process; `sent` goes to its stdin, as JSON unless it is bytes."""
    raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    env = {**os.environ, **environ}
    return subprocess.run(argv, input=raw, cwd=cwd, env=env, capture_output=True, check=False)
