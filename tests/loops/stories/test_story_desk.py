"""The host's work on a real list of stories, and the gates that judge it after a turn (R §5b)."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kits.review_cases import story
from kits.work_tree import git, new_repository
from ralph.git.uncommitted import Corrections
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment, Mode
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary
from ralph.loops.stories.file import StoryStore
from ralph.loops.stories.folder import Folder
from ralph.loops.stories.gates import CleanGate, Lists, StoryListGate, law_gates
from ralph.loops.stories.prompt import StoryTerms
from ralph.loops.stories.settlement import StoryDesk, StoryMarker

ONE = story("US-1", title="One")
SENT = {"reviewStatus": "needs_review"}
APPROVED = {"passes": True, "reviewStatus": "approved", "notes": "done"}
RETURNED = {"reviewStatus": "changes_requested", "reviewFeedback": "mend it"}


class Place:
    """A project with two stories, and a turn of a run in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.top = new_repository(tmp_path / "project")
        self.path = self.top / "ralph" / "tasks.json"
        self.path.parent.mkdir()
        self.run_dir = tmp_path / "run-1"
        self.run_dir.mkdir()
        folder = Folder(str(self.top), str(self.path.parent), str(self.path.parent))
        store = StoryStore(str(self.run_dir / "lists"))
        self.lists = Lists(folder, store, StoryTerms(15, review_cap=2))
        self.marker = StoryMarker(str(self.top), {"ralphDir": "ralph"})
        self.desk = StoryDesk(
            self.lists,
            self.marker,
            Corrections(str(self.top), os.environ),
            str(self.top),
            str(self.run_dir),
            lambda: 1000.0,
        )
        self.tell()
        self.commit("Stories")

    def tell(self, **changes: object) -> None:
        """Somebody writes the list, with these fields of the first story."""
        stories = [{**ONE, **changes}, {**ONE, "id": "US-2", "title": "Two"}]
        top = {"project": "p", "branchName": "b", "description": "d", "verifyCommands": []}
        self.path.write_text(json.dumps({**top, "userStories": stories}))

    def commit(self, subject: str) -> None:
        git(self.top, "add", "--all")
        git(self.top, "commit", "--quiet", "--message", subject)

    def begun(self, mode: Mode, turn: Turn = Turn(text="done", tools=1)) -> RunState:
        kept = self.lists.store.keep(self.lists.folder.file)
        work = Assignment("US-1", "One", mode)
        return RunState(iteration=1, assignment=work, checkpoint=kept, turn=turn)

    def found(self, state: RunState) -> tuple[Finding, ...]:
        """All that the law objects to."""
        case = Case(Boundary.CLOSING, state, 0.0)
        return tuple(each for gate in law_gates(self.lists) for each in gate.check(case))

    def corrected(self, state: RunState) -> str:
        return self.desk.correct(replace(state, findings=self.found(state)))

    def first(self, text: str = "") -> Mapping[str, Any]:
        """The first story, as the file says, or another text."""
        return dict(json.loads(text or self.path.read_text())["userStories"][0])

    def at_head(self) -> Mapping[str, Any]:
        return self.first(git(self.top, "show", "HEAD:ralph/tasks.json"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# ------------------------------------------------------------------ the law


def test_a_story_that_its_own_turn_approved_is_not(place: Place) -> None:
    """R: "Only review iterations may approve": put back, kept, and the correction committed."""
    state = place.begun(Mode.IMPLEMENT)
    place.tell(**APPROVED)
    place.commit("It is done, I say")
    assert {finding.gate for finding in place.found(state)} == {"transitions"}
    assert place.corrected(state).startswith("ralph/tasks.json; what stood there: .ralph/reverted")
    assert (place.first()["passes"], place.at_head()["passes"]) == (False, False)
    assert git(place.top, "log", "-1", "--format=%s") == "ralph: correct tasks.json (iteration 1)"
    assert place.found(state) == ()


def test_a_legal_turn_is_left_alone(place: Place) -> None:
    state = place.begun(Mode.IMPLEMENT)
    place.tell(**SENT)
    place.commit("To its review")
    assert (place.found(state), place.corrected(state)) == ((), "")
    assert git(place.top, "log", "-1", "--format=%s") == "To its review"


def test_what_is_no_list_is_put_back_whole(place: Place) -> None:
    state = place.begun(Mode.IMPLEMENT)
    place.path.write_text("[]")
    assert {finding.gate for finding in place.found(state)} == {"schema"}
    assert place.corrected(state)
    assert place.first()["id"] == "US-1"


def test_a_forgery_that_is_only_in_git_is_corrected_too(place: Place) -> None:
    """A clone of it would be believed, though the file is right."""
    state = place.begun(Mode.IMPLEMENT)
    place.tell(**APPROVED)
    place.commit("Forged")
    place.tell()
    assert place.found(state) == ()
    place.corrected(state)
    assert place.at_head()["passes"] is False


@pytest.mark.parametrize("turn", [Turn(exit_code=1), Turn()], ids=["failed", "silent"])
def test_a_review_that_never_was_is_no_fault(place: Place, turn: Turn) -> None:
    """ADR 4: a turn that failed has reviewed nothing; one that works must review."""
    place.tell(**SENT)
    assert place.found(place.begun(Mode.REVIEW, turn)) == ()
    assert len(place.found(place.begun(Mode.REVIEW))) == 1


def test_what_a_turn_that_was_cut_off_decided_is_undone_before_the_next(place: Place) -> None:
    place.tell(**SENT)
    state = replace(place.begun(Mode.REVIEW), turn=None, cut_off=True)
    place.tell(**APPROVED, reviewCount=1)
    place.commit("Approved by half a review")
    assert place.desk.announce(state).startswith("Put right: ralph/tasks.json")
    assert (place.first()["passes"], place.at_head()["passes"]) == (False, False)
    marker = json.loads(Path(place.marker.path).read_text())
    assert marker["preIterationSnapshot"]["US-1"]["reviewStatus"] == "needs_review"
    assert (place.desk.announce(state), marker["iterationMode"]) == ("", "review")


# ------------------------------------------------------------------ the cap


def test_the_last_review_ends_the_cycle(place: Place) -> None:
    """R §6: approved by the host, with the concerns that are left; a killed host finds its own."""
    place.tell(**SENT, reviewCount=1)
    state = place.begun(Mode.REVIEW)
    place.tell(**RETURNED, reviewCount=2)
    for _ in range(2):
        assert place.desk.land(state) == {"cap": "US-1 is approved at the review cap"}
    assert place.first()["reviewFeedback"] == "[AUTO-APPROVED AT CAP] mend it"
    assert place.at_head()["passes"] is True
    assert json.loads(place.desk.outcome(state))["outcome"] == "auto_approved"
    assert git(place.top, "rev-list", "--count", "HEAD") == "3"


def test_before_the_cap_a_story_goes_back(place: Place) -> None:
    place.tell(**SENT)
    state = place.begun(Mode.REVIEW)
    place.tell(**RETURNED, reviewCount=1)
    assert place.desk.land(state) == {}
    assert place.first()["passes"] is False


# ------------------------------------------------------------------ between gates


def test_what_a_check_does_to_the_list_is_undone(place: Place) -> None:
    """ADR 33: whatever code a check runs; and a link in its place leads nowhere."""
    state = place.begun(Mode.IMPLEMENT)
    gate = StoryListGate(place.lists, place.desk.put_back)
    case = Case(Boundary.CLOSING, state, 0.0)
    assert list(gate.check(case)) == []
    place.desk.land(state)
    right = place.path.read_bytes()
    place.tell(**APPROVED)
    assert len(list(gate.check(case))) == 1
    assert place.path.read_bytes() == right
    place.path.unlink()
    place.path.symlink_to(place.top / "b")
    assert len(list(gate.check(case))) == 1
    assert (place.path.read_bytes(), (place.top / "b").read_text()) == (right, "b\n")


def test_everything_is_committed_but_a_persons_own(place: Place) -> None:
    """Check 3; and where git cannot tell, nothing counts as committed."""
    case = Case(Boundary.CLOSING, place.begun(Mode.IMPLEMENT), 0.0)
    where = (str(place.top), os.environ, "ralph")
    gate = CleanGate(*where, repository=True, left_alone=frozenset({"mine"}))
    (place.top / "mine").write_text("x")
    assert list(gate.check(case)) == []
    (place.top / "new").write_text("x")
    (found,) = gate.check(case)
    assert "new" in found.text
    (place.top / ".git" / "HEAD").unlink()
    (found,) = gate.check(case)
    assert "nothing counts as committed" in found.text
    assert list(CleanGate(*where, repository=False).check(case)) == []
