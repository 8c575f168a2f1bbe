"""Reads the reviews of a project's stories from the journals of its runs."""

import os
import re
from collections.abc import Iterator
from datetime import datetime

from ralph.errors import StateError
from ralph.files.safe_open import open_regular
from ralph.journal.runs import NONSENSE, Facts, Run, directories, runs_of
from ralph.kernel.facts import Started, Step
from ralph.review.stats import Review, review_of

ARCHIVES, SUMMARY = "ralph-archive", "summary.md"
_ARCHIVED = re.compile(rb"^Archived: (\S+)", re.MULTILINE)
_LARGEST = 64 << 10  # bytes; the date stands near the top


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
