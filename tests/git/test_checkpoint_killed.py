"""A restore that is killed at any call of git, and called again, ends as if nothing had been."""

import os
import shutil
import sys
from itertools import count
from pathlib import Path

import pytest

from kits.fork_server import run
from kits.thorough import dealt
from kits.work_tree import State, git, new_repository, saved, state, work_of
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.work import Checkpoint

# Kills who calls it, before or after call number $KILL_AT.
GIT = """#!/bin/sh
count=$(($(cat "$KILL_DIR/count" 2>/dev/null || echo 0) + 1))
echo $count > "$KILL_DIR/count"
[ "$count" = "$KILL_AT" ] && [ "$KILL_WHEN" = before ] && kill -KILL $PPID && exit 1
[ "$count" = "$KILL_AT" ] || exec "$REAL_GIT" "$@"
"$REAL_GIT" "$@"
code=$?
kill -KILL $PPID
exit $code
"""
HANDS = 12  # to which the calls are dealt
CHILD = """
import os, sys
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.work import Checkpoint
work = WorkTree(sys.argv[1], os.environ, sys.argv[2])
print(work.restore(Checkpoint.of(sys.argv[3]), "cut-1"))
"""


def prepare(place: Path) -> tuple[WorkTree, Checkpoint, State]:
    """Somebody's work, a checkpoint of it, and an agent that changed everything."""
    top = new_repository(place / "top")
    (top / "a" / "one").write_text("a person's\n")
    (top / "staged").write_text("staged\n")
    git(top, "add", "staged")
    work = work_of(top)
    point, was = work.checkpoint(), state(top)
    (top / ".gitignore").write_text("junk\n")
    (top / "a" / "one").write_text("the agent's\n")
    (top / "junk").write_text("junk\n")
    (top / "new").write_text("new\n")
    (top / "b").unlink()
    git(top, "commit", "--quiet", "--all", "--message", "The agent's")
    git(top, "checkout", "--quiet", "-b", "other")
    git(top, "init", "--quiet", "vendor")
    (top / "tool").unlink()
    return work, point, was


def killed(place: Path, work: WorkTree, point: Checkpoint, number: int, when: str) -> bool:
    """Restore in a process of its own; whether it was killed at that call."""
    tools = place / "bin"
    tools.mkdir()
    (tools / "git").write_text(GIT)
    (tools / "git").chmod(0o755)
    own = {"KILL_DIR": str(place), "KILL_AT": str(number), "KILL_WHEN": when}
    real = {"REAL_GIT": shutil.which("git") or "", "PATH": f"{tools}:{os.environ['PATH']}"}
    words = [sys.executable, "-c", CHILD, work.workspace, work.run_dir, point.text()]
    code, _, err = run(words, {**os.environ, **own, **real})
    assert code in (0, -9), err
    return code != 0


@pytest.mark.parametrize("hand", dealt(range(HANDS), 1))
def test_a_killed_restore_is_called_again(tmp_path: Path, hand: int) -> None:
    """B §Rollback, and: what a run was killed in is done again when it goes on."""
    for moment in count(hand, HANDS):
        number, when = moment // 2 + 1, ("before", "after")[moment % 2]
        place = tmp_path / str(moment)
        work, point, was = prepare(place)
        again = killed(place, work, point, number, when)
        ref = WorkTree(work.workspace, os.environ, work.run_dir).restore(point, "cut-1")
        assert ref == "refs/ralph/run-1/cut-1", number
        assert state(place / "top") == was, number
        kept = saved(place / "top", ref)
        assert {"junk", "new", "a/one"} <= set(kept), number
        assert git(place / "top", "show", f"{ref}:a/one") == "the agent's"
        assert git(place / "top", "show", f"{ref}:.gitignore") == "junk"
        assert Path(work.run_dir, "aside", "cut-1", "vendor").is_dir()
        if not again:
            break
    assert number > 10
