"""What a tree of processes uses, from /proc."""

import os
import subprocess
import sys
import time

import pytest

from kits.adapters import await_that
from ralph.processes import procfs
from ralph.processes.usage import (
    Load,
    ProcessStat,
    ProcessTree,
    descendants,
    look,
    measure,
    tree_of,
)

BEFORE = {
    1: ProcessStat(0, "0", 5.0, 1000),
    10: ProcessStat(1, "5", 1.0, 2000),
    11: ProcessStat(10, "6", 2.0, 3000),
    13: ProcessStat(10, "7", 9.0, 100),
}
AFTER = {
    1: ProcessStat(0, "0", 5.0, 1000),
    10: ProcessStat(1, "5", 1.1, 2000),
    11: ProcessStat(10, "6", 2.5, 3000),
    12: ProcessStat(11, "8", 0.25, 500),  # born in between
    13: ProcessStat(10, "9", 0.25, 100),  # another process under the same pid
}


def test_a_tree_is_what_descends_from_its_root_and_the_root_apart() -> None:
    tree = tree_of(10, BEFORE, AFTER, seconds=1.0)
    assert tree.own == Load(1, 10.0, 2000)
    assert tree.below == Load(3, 100.0, 3600)
    assert tree.as_dict() == {
        "processes": 3,
        "cpu_percent": 100.0,
        "rss_bytes": 3600,
        "ralph": {"processes": 1, "cpu_percent": 10.0, "rss_bytes": 2000},
    }


def test_two_looks_at_the_same_moment_use_no_cpu() -> None:
    assert tree_of(10, AFTER, AFTER, seconds=0.0).below.cpu_percent == 0.0


@pytest.mark.parametrize(
    ("parents", "found"),
    [
        ({}, []),
        ({2: 1, 3: 2, 4: 3, 9: 8}, [2, 3, 4]),
        ({1: 3, 2: 1, 3: 2}, [2, 3]),  # a circle cannot be, and must not hang
        ({1: 1}, []),
    ],
)
def test_descendants(parents: dict[int, int], found: list[int]) -> None:
    seen = {pid: ProcessStat(parent, "", 0.0, 0) for pid, parent in parents.items()}
    assert sorted(descendants(1, seen)) == found


def test_the_tree_of_a_real_process() -> None:
    """A shell with a child: found, measured, and gone when it ends."""
    with subprocess.Popen(["sh", "-c", "sleep 300 & wait"], start_new_session=True) as shell:
        await_that(lambda: len(descendants(shell.pid, look())) == 1)
        tree = measure([shell.pid], time.sleep)[shell.pid]
        assert isinstance(tree, ProcessTree)
        assert tree.below.processes == 1
        assert tree.own.rss_bytes > 0
        os.killpg(shell.pid, 9)
    assert measure([shell.pid], time.sleep) == {}


def test_a_name_with_blanks_and_brackets_does_not_confuse(monkeypatch: pytest.MonkeyPatch) -> None:
    stat = "7 (a) b (c) S 3 " + " ".join(str(number) for number in range(5, 53))
    stats = {"7": stat, "8": "garbage", "9": "9 (x) S one"}
    monkeypatch.setattr(procfs, "pids", lambda: [7, 8, 9])
    monkeypatch.setattr(procfs, "_read", lambda path: stats[path.split("/")[2]].encode())
    (seen,) = look().items()
    assert seen[0] == 7
    assert seen[1].parent == 3
    assert seen[1].start == "22"


def test_without_proc_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(os, "listdir", lambda _: os.scandir("/no/such/proc"))
        assert look() == {}
    assert measure([], lambda _: pytest.fail("there is nothing to wait for")) == {}


def test_nobody_else_is_counted() -> None:
    """Ralph's own siblings are not its tree."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert other.pid not in descendants(other.pid, look())
        assert other.pid in descendants(os.getpid(), look())
        other.kill()
