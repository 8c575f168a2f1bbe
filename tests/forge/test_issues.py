"""Issues at a forge, in the shape that our format reads."""

import json

import pytest
from forge_support import bare, forge, github

from kits.forge import FakeForge, Issue, PullRequest, client
from ralph.errors import ForgeError
from ralph.formats.github import FORMAT

__all__ = ["bare", "forge", "github"]


def keys(text: str) -> list[str]:
    """The issues as they are imported."""
    return [item.key.rpartition("#")[2] for item in FORMAT.read(text, "issues").items]


@pytest.fixture
def issues(forge: FakeForge) -> FakeForge:
    forge.issues += [
        Issue(1, "One", None, labels=["bug"]),
        Issue(2, "Two", "Please\r\n", labels=["bug", "ready"]),
        Issue(3, "Three", state="closed", reason="not_planned"),
    ]
    return forge


@pytest.mark.parametrize(
    ("labels", "state", "found"),
    [
        ((), "open", ["2", "1"]),
        (("ready",), "open", ["2"]),
        (("bug", "ready"), "open", ["2"]),
        ((), "all", ["3", "2", "1"]),
        ((), "closed", ["3"]),
        (("none",), "all", []),
    ],
)
def test_which_issues(
    issues: FakeForge, labels: tuple[str, ...], state: str, found: list[str]
) -> None:
    issues.page = 1
    assert keys(client(issues).issues("acme/shop", labels, state)) == found


def test_an_issue_as_it_is_imported(issues: FakeForge) -> None:
    there = client(issues)
    (two,) = FORMAT.read(there.issue("acme/shop", "2"), "x").items
    assert (two.fields["title"], two.fields["description"]) == ("Two", "Please\n")
    assert (two.fields["status"], two.fields["tags"]) == ("pending", ["bug", "ready"])
    (three,) = FORMAT.read(there.issue("acme/shop", "3"), "x").items
    dropped = "cancelled" if issues.kind == "github" else "done"  # which GitLab does not tell apart
    assert three.fields["status"] == dropped
    with pytest.raises(ForgeError) as error:
        there.issue("acme/shop", "9")
    assert error.value.status == 404


def test_an_issue_is_closed_and_opened_again(issues: FakeForge) -> None:
    there = client(issues)
    there.turn("acme/shop", "1", done=True, comment="Done.")
    there.turn("acme/shop", "1", done=True, comment="Done.")
    one = issues.issue(1)
    assert (one.state, one.comments) == ("closed", ["Done."])
    there.turn("acme/shop", "1", done=False, comment="Not done.")
    assert (one.state, one.comments) == ("open", ["Done.", "Not done."])


@pytest.mark.parametrize("done", [True, False])
def test_a_comment_whose_answer_is_lost_is_made_once(issues: FakeForge, done: bool) -> None:
    there = client(issues)
    issues.trouble("POST", status=502, done=done)
    if done:
        there.turn("acme/shop", "1", done=True, comment="Done.")
    else:
        with pytest.raises(ForgeError):
            there.turn("acme/shop", "1", done=True, comment="Done.")
    assert issues.issue(1).comments == ["Done."] * done
    assert issues.issue(1).state == ("closed" if done else "open")


def test_pull_requests_and_doubles_are_none(github: FakeForge) -> None:
    """A list that is changed while it is read shows one twice."""
    github.issues += [Issue(1, "One"), Issue(1, "One")]
    github.pulls.append(PullRequest(2, "a", "main", "A pull request"))
    assert keys(client(github).issues("acme/shop", ())) == ["1"]


def test_a_milestone_is_kept(github: FakeForge) -> None:
    body = {
        "number": 7,
        "title": "One",
        "state": "open",
        "html_url": "https://github.com/acme/shop/issues/7",
        "milestone": {"number": 3, "title": "Soon", "description": None, "due_on": None},
        "assignees": [{"login": "alice", "node_id": "U_1"}],
    }
    github.trouble("issues/7", status=200, body=body)
    (found,) = json.loads(client(github).issue("acme/shop", "7"))
    assert found["milestone"] == {"number": 3, "title": "Soon", "description": "", "dueOn": None}
    assert found["assignees"] == [{"id": "U_1", "login": "alice"}]
    assert list(found) == sorted(found)
