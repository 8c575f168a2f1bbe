"""Lists to import, and a GitHub with issues."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kits.forge import FakeForge, Issue, Sent

Json = dict[str, Any]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeForge]:
    """GitHub, with the issues of some/where, and a token for it."""
    with FakeForge(tmp_path / "no-repository", repository="some/where") as forge:
        for name, held in forge.environ.items():
            monkeypatch.setenv(name, held)
        yield forge


def has(hub: FakeForge, *issues: Issue) -> None:
    """These issues are there."""
    hub.issues[:] = issues


def asked(hub: FakeForge, number: int) -> list[Sent]:
    """The looks at an issue."""
    return hub.asked("GET", f"/issues/{number}")


def closed(hub: FakeForge) -> list[Sent]:
    """The changes of issues."""
    return hub.asked("PATCH")


def open_issue(number: int, **more: Any) -> Issue:  # noqa: ANN401
    """An open issue there."""
    return Issue(number, **{"title": f"Issue {number}", "body": "Please.", **more})


def issue(number: int, **more: Any) -> Json:  # noqa: ANN401
    """An open issue as `gh` shows it."""
    return {
        "number": number,
        "title": f"Issue {number}",
        "body": "Please.",
        "state": "OPEN",
        "labels": [],
        "url": f"https://github.com/some/where/issues/{number}",
        "createdAt": "2026-01-31T12:00:00Z",
        **more,
    }


def story(key: str, **more: Any) -> Json:  # noqa: ANN401
    """A story of a prd.json."""
    return {
        "id": key,
        "title": f"Do {key}",
        "description": "As a user",
        "acceptanceCriteria": ["It works"],
        "priority": 1,
        "passes": False,
        "notes": "",
        **more,
    }


def prd(path: Path, *stories: Json) -> str:
    """Write a prd.json; its text."""
    root = {"project": "App", "branchName": "ralph/app", "description": "An app"}
    text = json.dumps({**root, "userStories": list(stories)}, indent=2) + "\n"
    path.write_text(text)
    return text
