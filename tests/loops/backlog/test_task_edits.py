"""Which lines of the task file are a person's: notes outside the workspace."""

import hashlib
import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.errors import StateError
from ralph.loops.backlog.store.watch import EDITS, known, moment, note

LINE = b'{"id":"T-1"}'
OTHER = b'{"id":"T-2"}'


@pytest.fixture
def project(tmp_path: Path) -> str:
    """The project's state directory, which nobody has made yet."""
    return str(tmp_path / "state" / "project-12345678")


def noted(task_id: str, line: bytes) -> tuple[str, str]:
    return task_id, hashlib.sha256(line).hexdigest()


def test_a_line_that_is_noted_is_known(project: str) -> None:
    assert known(project) == set()
    note(project, [("T-1", LINE)])
    note(project, [("T-2", OTHER)])
    assert known(project) == {noted("T-1", LINE), noted("T-2", OTHER)}


def test_a_line_is_known_for_its_own_task_only(project: str) -> None:
    note(project, [("T-1", OTHER)])
    assert noted("T-2", OTHER) not in known(project)


def test_only_what_was_noted_since_a_moment_is_known(project: str) -> None:
    """An old line that an agent brings back is nobody's word of now."""
    assert moment(project) == 0
    note(project, [("T-1", LINE)])
    since = moment(project)
    assert known(project, since) == set()
    note(project, [("T-2", OTHER)])
    assert known(project, since) == {noted("T-2", OTHER)}
    note(project, [("T-1", LINE)])
    assert known(project, since) == {noted("T-1", LINE), noted("T-2", OTHER)}


def test_notes_are_for_this_user_only_and_never_for_git(project: str) -> None:
    note(project, [("T-1", LINE)])
    assert stat.S_IMODE(os.stat(project).st_mode) == 0o700
    assert stat.S_IMODE(Path(project, EDITS).stat().st_mode) == 0o600
    assert Path(project, ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"\n\n",
        b'{"id":"T-9","sha2',
        b"not JSON\n",
        b"[1]\n7\nnull\n",
        b'{"id":"T-9"}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
)
def test_lines_that_make_no_sense_are_left_out(project: str, odd: bytes) -> None:
    """Also one that a kill has torn off: the next one stands on a line of its own."""
    note(project, [("T-1", LINE)])
    with Path(project, EDITS).open("ab") as file:
        file.write(odd)
    note(project, [("T-2", OTHER)])
    assert known(project) == {noted("T-1", LINE), noted("T-2", OTHER)}


def test_a_moment_behind_the_end_knows_nothing(project: str) -> None:
    """Someone has emptied the file."""
    note(project, [("T-1", LINE)])
    assert known(project, 1_000_000) == set()


MANY = """
import sys
from ralph.loops.backlog.store.watch import note
for number in range(50):
    note(sys.argv[1], [(f"T-{sys.argv[2]}-{number}", b"{}")])
"""


def test_several_at_once_lose_nothing(project: str) -> None:
    words = [sys.executable, "-c", MANY, project]
    writers = [subprocess.Popen([*words, str(number)]) for number in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert len(known(project)) == 200
    lines = Path(project, EDITS).read_bytes().splitlines()
    assert all(json.loads(line) for line in lines if line)  # a blank one costs nothing


def as_directory(path: Path) -> None:
    path.mkdir()


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_link(path: Path) -> None:
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("make", [as_directory, as_pipe, as_link])
def test_something_odd_in_its_place_is_an_error_and_no_hang(
    project: str, make: Callable[[Path], None]
) -> None:
    os.makedirs(project)
    make(Path(project, EDITS))
    with pytest.raises(StateError, match="cannot write the state directory") as refused:
        note(project, [("T-1", LINE)])
    assert "RALPH_STATE_DIR" in refused.value.remedy
    assert known(project) == set()


def test_a_full_disk_is_told(project: str) -> None:
    """Whoever cannot note a line does not write it either."""
    note(project, [("T-1", LINE)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (moment(project) + 10, before[1]))
    try:
        with pytest.raises(StateError, match="No space"):
            note(project, [("T-2", OTHER)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert known(project) == {noted("T-1", LINE)}
    note(project, [("T-2", OTHER)])
    assert known(project) == {noted("T-1", LINE), noted("T-2", OTHER)}


def test_the_state_directory_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(StateError, match="cannot write the state directory"):
        note(str(tmp_path / "state" / "project"), [("T-1", LINE)])
