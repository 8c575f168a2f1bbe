"""A task file in a workspace, and what stands in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.loops.backlog.store.task_file import TaskFile


@pytest.fixture
def file(workspace: Path) -> TaskFile:
    return TaskFile(str(workspace))


def path_of(workspace: Path) -> Path:
    (workspace / ".ralph").mkdir(exist_ok=True)
    return workspace / ".ralph" / "tasks.jsonl"


def write(workspace: Path, *records: dict[str, Any]) -> Path:
    path = path_of(workspace)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def titles(file: TaskFile) -> list[str]:
    return [task.title for task in file.read().backlog.tasks]
