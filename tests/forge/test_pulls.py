"""Pull requests at the forge: one for a branch, whatever happens."""

import pytest
from forge_support import bare, forge, github, head, push

from kits.forge import FakeForge, PullRequest, client
from ralph.errors import ForgeError
from ralph.forge.port import Project, Proposal, Pull, PullState
from ralph.kernel.value import replace

__all__ = ["bare", "forge", "github", "head", "push"]

PROPOSAL = Proposal("ralph/a", "main", "Add a", "It adds a.\n\nCloses #1")


def test_the_project_and_the_open_pull_request_of_a_branch(forge: FakeForge, head: str) -> None:
    there = client(forge)
    project = there.project()
    assert project.name == "acme/shop"
    assert project.default_branch == "main"
    assert isinstance(project, Project)
    assert there.find("ralph/a") is None
    assert there.find("ralph") is None
    assert there.put(PROPOSAL) == there.find("ralph/a")


def test_a_second_proposal_changes_the_first(forge: FakeForge, head: str) -> None:
    there = client(forge)
    first = there.put(PROPOSAL)
    assert first == there.put(PROPOSAL) == there.pull(first.number)
    assert first == Pull(1, first.url, "ralph/a", "main", head)
    assert not forge.asked("PATCH") + forge.asked("PUT"), "nothing is different"
    there.put(replace(PROPOSAL, title="Add a and b", body="Both."))
    (pull,) = forge.pulls
    assert (pull.title, pull.body, pull.draft) == ("Add a and b", "Both.", False)


def test_one_that_was_closed_or_is_of_a_fork_is_not_ours(forge: FakeForge, head: str) -> None:
    forge.pulls.append(PullRequest(7, "ralph/a", "main", "Old", state="closed"))
    forge.pulls.append(PullRequest(8, "ralph/a", "main", "Of a fork", home="acme/fork"))
    forge.pulls.append(PullRequest(9, "ralph/ab", "main", "Another"))
    assert client(forge).put(PROPOSAL).number == 10


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("status", [0, 502])
def test_an_answer_that_does_not_come_doubles_nothing(
    forge: FakeForge, head: str, status: int, done: bool
) -> None:
    """What was opened is found; what was not is for the caller, who asks again."""
    forge.trouble("POST", status=status, done=done)
    there = client(forge)
    if done:
        assert there.put(PROPOSAL).number == 1
    else:
        with pytest.raises(ForgeError) as error:
            there.put(PROPOSAL)
        assert error.value.retry_after is not None
        assert there.put(PROPOSAL).number == 1
    assert len(forge.pulls) == 1


def test_labels_and_reviewers_that_are_refused_are_named(forge: FakeForge, head: str) -> None:
    proposal = replace(PROPOSAL, labels=("ralph",), reviewers=("Alice", "nobody"))
    assert client(forge).put(proposal).refused == ("nobody",)
    (pull,) = forge.pulls
    assert pull.labels == ["ralph"]
    assert [name.lower() for name in pull.reviewers] == ["alice"]


def test_a_label_or_a_team_that_is_refused_keeps_no_other_back(
    github: FakeForge, head: str
) -> None:
    github.no_labels.append("no")
    reviewers = ("alice", "nobody", "acme/reviewers", "acme/none")
    proposal = replace(PROPOSAL, labels=("ralph", "no"), reviewers=reviewers)
    assert client(github).put(proposal).refused == ("no", "nobody", "none")
    (pull,) = github.pulls
    assert pull.labels == ["ralph"]
    assert (pull.reviewers, pull.teams) == (["alice"], ["reviewers"])


def test_who_has_reviewed_is_not_asked_again(github: FakeForge, head: str) -> None:
    proposal = replace(PROPOSAL, labels=("ralph",), reviewers=("alice", "bob"))
    there = client(github)
    there.put(proposal)
    (pull,) = github.pulls
    pull.reviewers, pull.reviewed = ["bob"], ["alice"]
    asked = len(github.asked("POST"))
    assert there.put(proposal).refused == ()
    assert len(github.asked("POST")) == asked
    assert pull.reviewers == ["bob"]


def test_a_draft_stays_what_people_made_of_it(forge: FakeForge, head: str) -> None:
    there = client(forge)
    there.put(replace(PROPOSAL, draft=True))
    (pull,) = forge.pulls
    assert pull.draft
    pull.draft = False
    there.put(replace(PROPOSAL, draft=True, title="More"))
    assert (pull.draft, pull.title) == (False, "More")


@pytest.mark.parametrize(
    ("proposal", "words"),
    [
        (replace(PROPOSAL, base="none"), "base: invalid|target branch .none.: it does not exist"),
        (replace(PROPOSAL, branch="main"), "No commits between main and main|can't use same"),
    ],
)
def test_a_refusal_says_why(forge: FakeForge, head: str, proposal: Proposal, words: str) -> None:
    with pytest.raises(ForgeError, match=words) as error:
        client(forge).put(proposal)
    assert error.value.status == 422
    assert error.value.retry_after is None


def test_a_body_is_cut_at_the_end_of_a_line(forge: FakeForge, head: str) -> None:
    long = replace(PROPOSAL, body="a line of the report\n" * 50_000, title="so " * 200, draft=True)
    there = client(forge)
    assert there.put(long) == there.put(long)
    assert not forge.asked("PATCH") + forge.asked("PUT"), "nothing is different"
    (pull,) = forge.pulls
    assert len(pull.body) <= (65_536 if forge.kind == "github" else 1_000_000)
    lines = pull.body.splitlines()
    assert set(lines[:-2]) == {"a line of the report"}
    assert "cut" in lines[-1]


def test_the_same_words_are_said_once(forge: FakeForge, head: str) -> None:
    there = client(forge)
    number = there.put(PROPOSAL).number
    forge.page = 2
    for words in ("one", "two", "three", "one", "three\r\n"):
        there.comment(number, words)
    assert forge.pulls[0].comments == ["one", "two", "three"]


# ------------------------------------------------------------------ merging


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
def test_a_merge_is_of_that_very_commit(forge: FakeForge, head: str, method: str) -> None:
    there = client(forge)
    number = there.put(PROPOSAL).number
    with pytest.raises(ForgeError, match="not at 000000000000 any more") as error:
        there.merge(number, "0" * 40, method)
    assert error.value.status == 409
    there.merge(number, head, method)
    there.merge(number, head, method)
    assert there.pull(number).state is PullState.MERGED
    rebased = "rebase" if forge.kind == "github" else "merge"  # which its project decides
    assert forge.pulls[0].method == {"rebase": rebased}.get(method, method)
    assert forge.git("rev-parse", "main^") != head
    assert forge.git("show", "main:ralph-a.txt") == "work on ralph/a"


def test_what_cannot_be_merged_says_so(forge: FakeForge, head: str) -> None:
    there = client(forge)
    number = there.put(replace(PROPOSAL, draft=True)).number
    with pytest.raises(ForgeError, match="request 1 is not merged") as error:
        there.merge(number, head, "merge")
    assert (error.value.status, error.value.retry_after) == (405, None)


def test_a_merge_whose_answer_is_lost_is_done_once(forge: FakeForge, head: str) -> None:
    there = client(forge)
    number = there.put(PROPOSAL).number
    forge.trouble("PUT", status=502, done=True)
    there.merge(number, head, "merge")
    assert forge.git("rev-list", "--count", "--merges", "main") == "1"
