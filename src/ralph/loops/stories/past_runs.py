"""Reads earlier runs over stories: turns that nobody has judged, and reviews."""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from ralph.errors import StateError
from ralph.files.safe_open import open_regular
from ralph.journal.runs import NONSENSE, Facts, Run, account_of, directories, runs_of
from ralph.kernel.facts import Started, Step
from ralph.kernel.state import Phase
from ralph.kernel.value import value
from ralph.loops.stories.file import StoryStore
from ralph.review.stats import Review, review_of
from ralph.runner.kept import work_of

STORE = "stories"  # in a run's directory, the lists before its turns
_TAKEN = "taken-over"  # a file in a run's directory: another run has judged what it left
_MOST = 20  # runs that are looked at
ARCHIVES, SUMMARY = "ralph-archive", "summary.md"
_ARCHIVED = re.compile(rb"^Archived: (\S+)", re.MULTILINE)
_LARGEST = 64 << 10  # bytes; the date stands near the top


@value
class Unjudged:
    """A run that was killed in the middle of a turn, or before that was judged."""

    run: str
    directory: str
    before: Mapping[str, Any]  # the list when that turn began

    def forget(self) -> None:
        """Mark it as judged."""
        with open(os.path.join(self.directory, _TAKEN), "w", encoding="utf-8"):
            pass


def unjudged(state: str, folder: str, but: str = "") -> list[Unjudged]:
    """The unjudged turns of runs over the stories of a folder, the latest first. `state` is the
    workspace's state directory; `but` is the run that asks."""
    real = os.path.realpath(folder)
    dead = ((run, _folder(run)) for run in runs_of(state) if run.id != but and not run.live)
    # A folder that no longer exists may have become another.
    ours = (run for run, its in dead if its and (its == real or not os.path.isdir(its)))
    return [left for left in map(_left, islice(ours, _MOST)) if left is not None]


def _left(run: Run) -> Unjudged | None:
    if os.path.lexists(os.path.join(run.directory, _TAKEN)):
        return None
    try:
        state = account_of(run).state
    except (StateError, *NONSENSE):
        return None  # a journal that was edited tells nothing
    if not state.iteration or state.stop is not None or state.phase is Phase.OPENING:
        return None
    before = StoryStore(os.path.join(run.directory, STORE)).listing(state.checkpoint)
    return Unjudged(run.id, run.directory, before)


def worked_since(state: str, run: str, folder: str) -> str:
    """The latest run over the stories of a folder that began after that one; "" if none did."""
    real = os.path.realpath(folder)
    later = (one.id for one in runs_of(state) if one.id > run and _folder(one) == real)
    return next(later, "")


def _folder(run: Run) -> str:
    """The real path of the folder that a run was for; "" if it was not over stories."""
    folder = (work_of(run.directory, "stories") or {}).get("folder")
    return os.path.realpath(folder) if isinstance(folder, str) else ""


def reviews_of(state: str, branch: str, since: float) -> list[Review]:
    """The reviews of the list with that branch, oldest first. `state` is the project's state
    directory; a journal that was edited tells what stands before the edit."""
    found = (review for run in reversed(runs_of(state)) for review in _reviews(run, since))
    return [review for review in found if review.branch == branch]


def _reviews(run: Run, since: float) -> Iterator[Review]:
    facts = Facts(run.journal).new()
    try:
        first = next(facts, None)
        if not isinstance(first, Started) or first.profile != "reviewed":
            return
        for fact in facts:
            if isinstance(fact, Step) and fact.key == "review" and fact.time > since:
                review = review_of(fact.detail)
                if review is not None:
                    yield review
    except (StateError, *NONSENSE):
        return


def last_archived(project: str) -> float:
    """The time when stories of this project were archived last; 0 if never."""
    folder = os.path.join(project, ARCHIVES)
    summaries = (os.path.join(folder, name, SUMMARY) for name in directories(folder))
    return max(map(_archived, summaries), default=0.0)


def _archived(summary: str) -> float:
    """The time in a summary, since a checkout makes files look new; else the file's time."""
    try:
        with open_regular(summary) as file:
            said = _ARCHIVED.search(file.read(_LARGEST))
            if said is None:
                return os.fstat(file.fileno()).st_mtime
            return datetime.fromisoformat(said[1].decode()).timestamp()
    except (OSError, ValueError, OverflowError):
        return 0.0
