"""Finds earlier runs over stories that were killed before their last turn was judged."""

import json
import os
from collections.abc import Mapping
from itertools import islice
from typing import Any

from ralph.errors import StateError
from ralph.journal.runs import NONSENSE, Run, account_of, runs_of
from ralph.kernel.state import Phase
from ralph.kernel.value import value
from ralph.loops.stories.memory_store import StoryStore

STORE = "stories"  # in a run's directory, the lists before its turns
_PLAN = "plan.json"
_TAKEN = "taken-over"  # a file in a run's directory: another run has judged what it left
_MOST = 20  # runs that are looked at


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
    try:
        with open(os.path.join(run.directory, _PLAN), encoding="utf-8") as file:
            kept = json.load(file)
        return os.path.realpath(kept["work"]["folder"]) if kept["loop"] == "stories" else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""
