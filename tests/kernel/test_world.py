"""Signals from several places, and what is seen of a workspace."""

import pytest

from ralph.kernel.ports import Trees, Workspace
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.world import Signals, together
from ralph.testing.fakes import FakeTrees


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Signals(), Signals(), Signals()),
        (Signals(1, 5.0), Signals(1, 3.0), Signals(1, 3.0)),
        (Signals(2, 5.0), Signals(1, 6.0), Signals(2, 5.0)),
        (Signals(paused=True), Signals(1, 3.0), Signals(1, 3.0, paused=True)),
        (
            Signals(done_at=1.0, wait="why"),
            Signals(problem="no"),
            Signals(done_at=1.0, wait="why", problem="no"),
        ),
    ],
)
def test_what_is_asked_in_two_places_is_asked_once(
    one: Signals, other: Signals, both: Signals
) -> None:
    """ADR 7: `ralph stop` beside a Ctrl+C is no second signal."""
    assert together(one, other) == both
    assert together(other, one) == both


@pytest.mark.parametrize(
    ("trees", "watched", "tree"),
    [
        (Trees(), False, ""),
        (Trees(), True, "digest"),
        (FakeTrees({"a": "1"}), False, ""),
        (FakeTrees({"a": "1"}), True, "[('a', '1')] head"),
        (FakeTrees(broken="no git"), True, "digest"),
    ],
)
def test_progress_is_seen_in_the_tree_or_else_in_a_digest(
    trees: Trees, watched: bool, tree: str
) -> None:
    """It is not looked for where nobody watches for stalls; a broken git is told by the gates."""
    progress = (lambda: "digest") if watched else None
    paths = (("Makefile", "1"),)
    world = Workspace(Signals, Backlog, progress=progress, protected=lambda: paths, trees=trees)
    seen = world.snapshot()
    assert (seen.tree, seen.protected) == (tree, paths)
    assert world.checkpoint() == ""
