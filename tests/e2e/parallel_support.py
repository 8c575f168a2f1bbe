"""Runs by several workers: an agent's ways to wait for others, and what must be left."""

import os
from pathlib import Path
from typing import Any

from backlog_support import Json, Project
from run_support import Done

MEET = r"""
meet() {  # wait until so many tasks have had a turn
    touch "$NOTES/here-$id"
    while [ "$(ls "$NOTES" | grep -c '^here-')" -lt "$1" ]; do sleep 0.02; done
}
merged() {  # wait until a file is in the project
    while ! git -C "$PROJECT" cat-file -e HEAD:"$1" 2>/dev/null; do sleep 0.02; done
}
committed() {  # wait until a task is in the project
    while ! git -C "$PROJECT" log --format=%s | grep -q "^$1: "; do sleep 0.02; done
}
"""


def run(
    project: Project, script: str, *flags: str, workers: int = 4, sandbox: bool = False
) -> Done:
    """`ralph tasks run --parallel` with an agent that does this."""
    words = ("--parallel", str(workers), *flags)
    return project.run(f"{MEET}\n{script}", *words, sandbox=sandbox)


def tasks(project: Project, *names: str, **fields: Any) -> None:  # noqa: ANN401
    """Write a backlog of these."""
    listed: list[Json] = [
        {"id": name, "title": f"It is {name}", **fields.get(name, {})} for name in names
    ]
    project.tasks(*listed)


def assert_tidy(project: Project, *branches: str) -> None:
    """No worktree is left, and no branch but these; the tree is clean."""
    assert len(project.git("worktree", "list").splitlines()) == 1
    said = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert said == ["main", *branches]
    assert not project.dirt()
    assert not [
        name
        for place in Path(os.environ["RALPH_STATE_DIR"]).glob("*/worktrees")
        for name in os.listdir(place)
    ]
    kept = project.git("for-each-ref", "--format=%(refname)", "refs/ralph").split()
    assert all("/cut-" in ref for ref in kept), kept
