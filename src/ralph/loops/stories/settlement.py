"""The host's work on a list of stories around a turn (R, ADR 20)."""

import copy
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from ralph.errors import StateError, failing
from ralph.files.state_dir import shown_path, writable_dir
from ralph.git.checkpoint.commit import in_one_line
from ralph.git.uncommitted import Corrections, HostCommit, Subject
from ralph.git.uncommitted_text import MARKER
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Mode
from ralph.kernel.value import value
from ralph.loops.stories.file import PRD, PROMPT, TASKS, as_text
from ralph.loops.stories.folder import Folder
from ralph.loops.stories.gates import Lists
from ralph.loops.stories.past_runs import ARCHIVES
from ralph.loops.stories.policy import Desk
from ralph.review.law import (
    APPROVED,
    AT_CAP,
    CHANGES_REQUESTED,
    NotAListError,
    has_shape,
    parsed,
    snapshot,
    stories_of,
)
from ralph.review.repair import undone, unproven
from ralph.review.stats import AUTO_APPROVED, Review

# Gates that put something back.
LAW = frozenset({"schema", "invariants", "transitions", "protect", "story list"})
_LONGEST_FEEDBACK = 4000  # characters; the whole is in the prompt
Listing = Mapping[str, Any]
_ANEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@value
class StoryDesk(Desk):
    """Writes the marker, approves at the cap, and puts back what an agent may not touch."""

    lists: Lists
    marker: "StoryMarker"
    corrections: Corrections
    workspace: str
    run_dir: str
    now: Callable[[], float]
    host_commit: HostCommit | None = None  # where the agent cannot

    def announce(self, state: RunState) -> str:
        before = self.lists.before(state)
        said = self._set(undone(before, self.lists.now()), state.iteration) if state.cut_off else ""
        assert state.assignment is not None
        self.marker.write(state.assignment.mode.value, snapshot(before), self.now())
        return said

    def take_over(self, before: Listing) -> str:
        """Take back what an unjudged turn of another run gained. Returns what was done."""
        now = self.lists.after()
        return "" if now is None else self._set(unproven(before, now), 0)

    def _set(self, wanted: Listing, iteration: int) -> str:
        if said := self._put(wanted, iteration):
            self._corrected(iteration)
        return said and f"Put right: {said}"

    def land(self, state: RunState) -> dict[str, str]:
        """As the protocol has it; first the folder of stories is put back in its place."""
        self._own_folder(state.iteration)
        self.corrections.unhide([self._folder.shown(name) for name in (TASKS, PRD, PROMPT)])
        done = {}
        if story := self._approved_at_cap(state):
            done["cap"] = f"{story} is approved at the review cap"
        if self.host_commit is not None and state.turn is not None and not state.turn.failed:
            subject = self._subject(state)
            if self.host_commit(subject, os.path.basename(self.run_dir)):
                done["commit"] = subject
        self.lists.let_stand()
        return done

    def put_back(self, text: bytes, iteration: int) -> str:
        """Replace the list by these bytes. Returns where the old one is kept."""
        self._own_folder(iteration)
        path = self._folder.of(TASKS)
        kept = self._keep(path, iteration) if os.path.lexists(path) else ""
        self._write(text)
        return kept

    def _own_folder(self, iteration: int) -> None:
        """A link or a file in the folder's place would lead everything that follows elsewhere."""
        folder = self._folder.path
        if os.path.islink(folder) or (os.path.lexists(folder) and not os.path.isdir(folder)):
            self._keep(folder, iteration)
            os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            with suppress(OSError):  # it is not ours: then what follows says so
                os.chmod(folder, 0o755)  # noqa: S103  whoever has closed it

    def _approved_at_cap(self, state: RunState) -> str:
        """The story that the host approves, also if it was killed before it had committed that."""
        law, before = self.lists.law(state), self.lists.before(state)
        capped = law.capped(before, self.lists.now())
        if capped is not None:
            self._write(as_text(capped[0]))
        reviewed = [name for name, story in self._reviewed(state) if self._is_at_cap(story)]
        if len(reviewed) != 1 or law.problems(before, self.lists.now()):
            return ""
        subject = f"ralph: approve {reviewed[0]} at the review cap (iteration {state.iteration})"
        self._commit(subject, (TASKS,))
        return reviewed[0]

    def _subject(self, state: RunState) -> str:
        """R §6, step 6: how a turn's work is committed."""
        assert state.assignment is not None
        name, title = state.assignment.task, state.assignment.title
        match state.assignment.mode:
            case Mode.IMPLEMENT:
                return in_one_line(f"feat: [{name}] - {title}")
            case Mode.REVIEW_FIX:
                return in_one_line(f"fix: [{name}] - address review feedback")
            case Mode.REVIEW:
                words = [str(s["reviewStatus"]).replace("_", " ") for _, s in self._reviewed(state)]
                return in_one_line(f"review: [{name}] - {', '.join(words) or 'nothing decided'}")

    def correct(self, state: RunState) -> str:
        found = [finding for finding in state.findings if finding.gate in LAW]
        if not found and not self._is_forged_in_git():
            return ""
        repaired = self.lists.law(state).repaired(self.lists.before(state), self.lists.now())
        said = self._put(repaired, state.iteration) if repaired is not None else ""
        if trouble := self._corrected(state.iteration):
            return f"{said} It is not committed: {trouble}".strip()
        return said

    def _is_forged_in_git(self) -> bool:
        """True if the last commit calls a story approved that is not, whatever the file says:
        a clone of it would be believed."""
        raw, now = self.corrections.at_head(self._folder.shown(TASKS)), self.lists.after()
        try:
            head = parsed(raw) if raw is not None else None
        except NotAListError:
            return False  # then there is nothing in it to believe
        if now is None or not has_shape(head):
            return False
        lawful = {name for name, story in stories_of(now).items() if story.get("passes") is True}
        return any(
            story.get("passes") and name not in lawful for name, story in stories_of(head).items()
        )

    def outcome(self, state: RunState) -> str:
        reviewed = self._reviewed(state)
        if len(reviewed) != 1:
            return ""
        [(name, story)] = reviewed
        outcome = AUTO_APPROVED if self._is_at_cap(story) else str(story["reviewStatus"])
        feedback = str(story.get("reviewFeedback", ""))
        branch = (self.lists.after() or {}).get("branchName")
        return Review(name, outcome, story["reviewCount"], feedback, str(branch)).detail()

    def passed(self, state: RunState) -> bool:
        return _passes(self.lists.after(), state.task) and not _passes(
            self.lists.before(state), state.task
        )

    def send_back(self, state: RunState, why: str) -> None:
        """CI's word is a review of the host's: the story is to be mended and reviewed again."""
        now = copy.deepcopy(self.lists.after())
        if now is None or not _passes(now, state.task):
            return
        fields: dict[str, object] = {"passes": False}
        if not self.lists.terms.skip_review:
            fields |= {"reviewStatus": CHANGES_REQUESTED, "reviewFeedback": why[:_LONGEST_FEEDBACK]}
        for story in now["userStories"]:
            if story["id"] == state.task:
                story.update(fields)
        self._write(as_text(now))
        self._commit(f"ralph: CI is red for {state.task} (iteration {state.iteration})", (TASKS,))
        self.lists.let_stand()

    @property
    def _folder(self) -> Folder:
        return self.lists.folder

    def _reviewed(self, state: RunState) -> list[tuple[str, Mapping[str, Any]]]:
        """Stories that this turn has reviewed, as far as the list stands now."""
        after = self.lists.after()
        if after is None or state.assignment is None or state.assignment.mode is not Mode.REVIEW:
            return []
        had = snapshot(self.lists.before(state))
        return [
            (name, story)
            for name, story in stories_of(after).items()
            if name in had
            and had[name]["reviewCount"] != story.get("reviewCount")
            and story.get("reviewStatus") in (APPROVED, CHANGES_REQUESTED)
        ]

    def _put(self, listing: Listing, iteration: int) -> str:
        """Write the list if it differs, and keep the old one. Returns what was done."""
        now, text = self.lists.now(), as_text(listing)  # compared as text: to Python, true is 1
        if isinstance(now, dict) and as_text(now) == text:
            return ""
        kept = self._keep(self._folder.of(TASKS), iteration)
        self._write(text)
        return self._folder.shown(TASKS) + (f"; what stood there: {kept}" if kept else "")

    def _keep(self, path: str, iteration: int) -> str:
        """Copy the list, so that a kill leaves one; move away anything that is no file. Returns
        where it is, or "" if that is not possible."""
        base = writable_dir(self.workspace, self.run_dir)
        folder = os.path.join(base, "reverted", str(iteration))
        target = os.path.join(folder, os.path.basename(path))
        free = (f"{target}.{n}" for n in itertools.count(1))
        try:
            os.makedirs(folder, exist_ok=True)
            while os.path.lexists(target):  # kept by an earlier run
                target = next(free)
            if os.path.isfile(path) and not os.path.islink(path) and path == self._folder.of(TASKS):
                shutil.copy2(path, target)
            else:
                shutil.move(path, target)
        except OSError:
            return ""
        return shown_path(target, self.workspace)

    def _write(self, text: bytes) -> None:
        file, remedy = self._folder.file, "Make it writable, then: ralph resume"
        with failing(f"cannot write {file.path}", remedy, StateError):
            file.write(text)

    def _corrected(self, iteration: int) -> str:
        def subject(paths: Sequence[str]) -> str:
            tops = ((path.partition("/")[0], os.path.basename(path)) for path in paths)
            found = {ARCHIVES if top == ARCHIVES else name for top, name in tops}
            names = [name for name in (TASKS, PRD, PROMPT, ARCHIVES) if name in found]
            return f"ralph: correct {', '.join(names)} (iteration {iteration})"

        return self._commit(subject, (TASKS, PRD, PROMPT), (ARCHIVES,))

    def _commit(self, subject: Subject, names: Iterable[str], more: Iterable[str] = ()) -> str:
        paths = [*(self._folder.shown(name) for name in names), *more]
        return self.corrections.commit(paths, subject, os.path.basename(self.run_dir))

    def _is_at_cap(self, story: Mapping[str, Any]) -> bool:
        """True if the host has approved it, and not the agent in words of ours."""
        feedback, count = story.get("reviewFeedback"), story.get("reviewCount")
        late = isinstance(count, int) and count >= self.lists.terms.review_cap
        approved = late and story.get("reviewStatus") == APPROVED
        return approved and isinstance(feedback, str) and feedback.startswith(AT_CAP)


def _passes(listing: Listing | None, name: str) -> bool:
    return listing is not None and stories_of(listing).get(name, {}).get("passes") is True


@value
class StoryMarker:
    """The marker of one run, which must hold the workspace's lock."""

    workspace: str
    fields: dict[str, Any]  # what is the same for every turn

    @property
    def path(self) -> str:
        return os.path.join(self.workspace, MARKER)

    def write(self, mode: str, snapshot: dict[str, Any], now: float) -> None:
        """Describe the next turn to the hooks, replacing whatever stands there. If that fails, the
        host judges alone."""
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        turn = {"iterationMode": mode, "preIterationSnapshot": snapshot}
        text = json.dumps({"timestamp": stamp, **self.fields, **turn}, indent=2)
        try:
            self.remove()
            # Anew, and never through a link: whatever comes between, nothing is followed.
            with os.fdopen(os.open(self.path, _ANEW, 0o644), "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
        except OSError:
            self.remove()

    def remove(self) -> None:
        """The run has ended, or the next turn begins."""
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):  # there is none, or it is not ours to remove
            os.unlink(self.path)
