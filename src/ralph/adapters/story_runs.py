"""Runs over stories that came before: what one has left when it was killed is not yet judged."""

import json
import os

from ralph.adapters.runs import NONSENSE, Run, account_of, runs_of
from ralph.adapters.story_store import StoryStore
from ralph.core.life import Account
from ralph.core.state import Phase
from ralph.core.value import value
from ralph.errors import StateError

STORE = "stories"  # in a run's directory, the lists before its turns
_PLAN = "plan.json"


@value
class Unjudged:
    """A run that was killed in the middle of a turn, or before that was judged."""

    run: str
    store: StoryStore
    checkpoint: str


def unjudged(state: str, folder: str, but: str = "") -> Unjudged | None:
    """What the last run over the stories of a folder has left, if that is not judged. `state` is
    the workspace's state directory; `but` is the run that asks."""
    for run in runs_of(state):
        if run.id == but or run.live or not _is_of(run, folder):
            continue
        try:
            account = account_of(run)
        except (StateError, *NONSENSE):
            continue  # a journal that was edited tells nothing
        if account.state.iteration:
            return _left(run, account)
    return None


def _left(run: Run, account: Account) -> Unjudged | None:
    state = account.state
    if state.stop is not None or state.phase is Phase.OPENING:
        return None
    return Unjudged(run.id, StoryStore(os.path.join(run.directory, STORE)), state.checkpoint)


def worked_since(state: str, run: str, folder: str) -> str:
    """The latest run over these stories that began after that one; "" if none did."""
    later = (one.id for one in runs_of(state) if one.id > run and _is_of(one, folder))
    return next(later, "")


def _is_of(run: Run, folder: str) -> bool:
    try:
        with open(os.path.join(run.directory, _PLAN), encoding="utf-8") as file:
            kept = str(json.load(file)["stories"]["folder"])
            return os.path.realpath(kept) == os.path.realpath(folder)
    except (OSError, ValueError, KeyError, TypeError):
        return False
