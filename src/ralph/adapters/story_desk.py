"""What the host does about a list of stories around a turn (R, ADR 20)."""

import itertools
import json
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from ralph.adapters.files import shown_path, writable_dir
from ralph.adapters.story_file import PRD, PROMPT, TASKS, StoryFile, as_text
from ralph.adapters.story_gates import Lists
from ralph.adapters.story_marker import StoryMarker
from ralph.adapters.uncommitted import Corrections
from ralph.core.review import (
    APPROVED,
    AT_CAP,
    CHANGES_REQUESTED,
    NotAListError,
    snapshot,
    stories_of,
)
from ralph.core.review_mend import undone
from ralph.core.state import RunState
from ralph.core.task import Mode
from ralph.core.value import value
from ralph.errors import StateError

LAW = frozenset({"schema", "invariants", "transitions", "protect"})  # gates that put something back
Listing = Mapping[str, Any]


@value
class Desk:
    """Writes the marker, approves at the cap, and puts back what an agent may not touch."""

    lists: Lists
    marker: StoryMarker
    corrections: Corrections
    workspace: str
    run_dir: str
    now: Callable[[], float]

    # ------------------------------------------------------------ before a turn

    def announce(self, state: RunState) -> str:
        """Tell the hooks what this turn is; what a turn that was cut off had decided is no more."""
        before = self._before(state)
        said = self.undo(before, state.iteration) if state.cut_off else ""
        assert state.assignment is not None
        self.marker.write(state.assignment.mode.value, snapshot(before), self.now())
        return said

    def undo(self, before: Listing, iteration: int = 0) -> str:
        """Nothing of what was decided since counts; what was done, in words."""
        wanted = undone(before, self._now())
        if not self._differs(wanted):
            return ""
        said = self._put(wanted, iteration)
        self._commit(iteration)
        return f"Put right: {said}"

    # ------------------------------------------------------------ after a turn

    def approve_at_cap(self, state: RunState) -> str:
        """Approve what was reviewed for the last time and is still not liked; its id, or ""."""
        before = self._before(state)
        capped = self.lists.law(state).capped(before, self._now())
        if capped is not None:
            self._write(capped[0])
        names = [name for name, story in self._reviewed(state) if _is_at_cap(story)]
        if names:
            self._commit(state.iteration)
        return ", ".join(names)

    def correct(self, state: RunState) -> str:
        """Put back what the law has found, and commit that; what was done, in words."""
        found = [finding for finding in state.findings if finding.gate in LAW]
        if not found:
            return ""
        mended = self.lists.law(state).mended(self._before(state), self._now())
        wrong = mended is not None and self._differs(mended)
        said = self._put(mended, state.iteration) if mended is not None and wrong else ""
        trouble = self._commit(state.iteration)
        if trouble:
            return f"{said} It is not committed: {trouble}".strip()
        return said

    def outcome(self, state: RunState) -> str:
        """The review that this turn was, as JSON; "" if it was none."""
        reviewed = self._reviewed(state)
        if len(reviewed) != 1:
            return ""
        [(name, story)] = reviewed
        word = "auto_approved" if _is_at_cap(story) else story["reviewStatus"]
        branch = (self._now_or_nothing() or {}).get("branchName")
        told = {
            "story": name,
            "outcome": word,
            "count": story["reviewCount"],
            "feedback": story.get("reviewFeedback", ""),
            "list": branch,
        }
        return json.dumps(told, ensure_ascii=False)

    # ------------------------------------------------------------ parts

    def _before(self, state: RunState) -> Listing:
        return self.lists.store.listing(state.checkpoint)

    def _now(self) -> object:
        try:
            return self._file.listing()
        except NotAListError:
            return None

    def _now_or_nothing(self) -> Listing | None:
        return self.lists.after()

    @property
    def _file(self) -> StoryFile:
        return self.lists.file

    def _reviewed(self, state: RunState) -> list[tuple[str, Mapping[str, Any]]]:
        """Stories that this turn has reviewed, as far as the list stands now."""
        after = self._now_or_nothing()
        if after is None or state.assignment is None or state.assignment.mode is not Mode.REVIEW:
            return []
        had = snapshot(self._before(state))
        return [
            (name, story)
            for name, story in stories_of(after).items()
            if name in had
            and had[name]["reviewCount"] != story.get("reviewCount")
            and story.get("reviewStatus") in (APPROVED, CHANGES_REQUESTED)
        ]

    def _differs(self, listing: Listing) -> bool:
        now = self._now()  # compared as text: to Python, true is 1
        return not isinstance(now, dict) or as_text(now) != as_text(listing)

    def _put(self, listing: Listing, iteration: int) -> str:
        """Write the list; what stood there is kept for whoever wants to see it."""
        kept = self._keep(iteration)
        self._write(listing)
        return self._name(TASKS) + (f"; what stood there: {kept}" if kept else "")

    def _keep(self, iteration: int) -> str:
        base = writable_dir(self.workspace, self.run_dir)
        folder = os.path.join(base, "reverted", str(iteration))
        target = os.path.join(folder, TASKS)
        free = (f"{target}.{n}" for n in itertools.count(1))
        try:
            os.makedirs(folder, exist_ok=True)
            while os.path.lexists(target):  # kept by an earlier run
                target = next(free)
            if os.path.islink(self._file.path) or not os.path.isfile(self._file.path):
                shutil.move(self._file.path, target)
            else:  # a copy: whoever is killed here still has a list
                shutil.copy2(self._file.path, target)
        except OSError:
            return ""
        return shown_path(target, self.workspace)

    def _write(self, listing: Listing) -> None:
        try:
            self._file.write(listing)
        except OSError as error:
            raise StateError(
                f"cannot write {self._file.path}: {error.strerror}",
                "Make it writable, then: ralph resume",
            ) from error

    def _commit(self, iteration: int) -> str:
        subject = f"ralph: correct tasks.json (iteration {iteration})"
        paths = [self._name(name) for name in (TASKS, PRD, PROMPT)]
        return self.corrections.commit(paths, subject, os.path.basename(self.run_dir))

    def _name(self, name: str) -> str:
        path = os.path.join(os.path.dirname(self._file.path), name)
        return os.path.relpath(path, self.workspace)


def _is_at_cap(story: Mapping[str, Any]) -> bool:
    feedback = story.get("reviewFeedback")
    approved = story.get("reviewStatus") == APPROVED
    return approved and isinstance(feedback, str) and feedback.startswith(AT_CAP)
