"""Lists of stories for the tests of their law: a test says what matters in it."""

from typing import Any

Story = dict[str, Any]
Listing = dict[str, Any]


def story(name: str = "US-001", **changes: Any) -> Story:  # noqa: ANN401  also what it must not be
    """A story as R §8 has it, not begun."""
    return {
        "id": name,
        "title": f"The title of {name}",
        "description": "",
        "acceptanceCriteria": ["it works"],
        "priority": 1,
        "passes": False,
        "reviewStatus": None,
        "reviewCount": 0,
        "reviewFeedback": "",
        "notes": "",
        "dependsOn": [],
        **changes,
    }


def waiting(name: str = "US-001", count: int = 0, **changes: Any) -> Story:  # noqa: ANN401
    """Implemented, and not reviewed since."""
    given = {"reviewStatus": "needs_review", "reviewCount": count}
    return story(name, **given | changes)


def returned(name: str = "US-001", count: int = 1, **changes: Any) -> Story:  # noqa: ANN401
    """Reviewed, with changes requested."""
    given = {"reviewStatus": "changes_requested", "reviewFeedback": "mend it"}
    return story(name, **given | {"reviewCount": count} | changes)


def approved(name: str = "US-001", count: int = 1, **changes: Any) -> Story:  # noqa: ANN401
    """Reviewed and good."""
    given = {"reviewStatus": "approved", "passes": True, "notes": "done"}
    return story(name, **given | {"reviewCount": count} | changes)


def listing(*stories: object, **changes: object) -> Listing:
    """A whole tasks.json."""
    return {
        "project": "p",
        "branchName": "ralph/p",
        "description": "d",
        "verifyCommands": [],
        "userStories": list(stories),
        **changes,
    }
