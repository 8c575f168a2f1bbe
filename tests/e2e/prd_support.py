"""A project with stories, and what became of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

from kits import review_cases

Json = dict[str, Any]


def story(number: int = 1, **fields: Any) -> Json:  # noqa: ANN401
    """A story that is right, as far as the fields say nothing else."""
    given = {"title": f"Story {number}", "priority": number}
    return review_cases.story(f"US-{number:03}", **given | fields)


def approved(number: int = 1, reviews: int = 1, **fields: Any) -> Json:  # noqa: ANN401
    """A story that has survived its review."""
    decided = {"passes": True, "reviewStatus": "approved", "reviewCount": reviews, "notes": "done"}
    return story(number, **{**decided, **fields})


def listing(*stories: Json, branch: str = "ralph/login") -> Json:
    """A list of stories."""
    top = {"project": "shop", "branchName": branch, "description": "", "verifyCommands": []}
    return {**top, "userStories": list(stories)}


def write_stories(project: Path, *stories: Json, branch: str = "ralph/login") -> Path:
    """A ralph folder with these stories; its path."""
    folder = project / "ralph"
    folder.mkdir(exist_ok=True)
    (folder / "tasks.json").write_text(json.dumps(listing(*stories, branch=branch), indent=2))
    for name, text in (("prd.md", "# Shop\n"), ("prompt.md", "Do it.\n")):
        (folder / name).write_text(text)
    progress = "# Ralph Progress Log\nStarted: 2026-11-01\nPRD: shop\n\n---\n## Iteration 1\n"
    (folder / "progress.txt").write_text(progress)
    return folder


def git(project: Path, *arguments: str) -> str:
    """What git says; an error if it fails."""
    done = subprocess.run(
        ("git", *arguments), cwd=project, capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit_all(project: Path) -> None:
    """Commit everything."""
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "Plan")


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, git's own left out."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(directory).parts
    }
