"""A task's folder: its layout, its ids, and markers that are compared by what was seen (S)."""

import os
from pathlib import Path

import pytest

from ralph.errors import ConfigError
from ralph.loops.supervise.folder import folder_at, folder_of
from ralph.loops.supervise.marks import marker_at


def test_the_layout_is_that_of_s() -> None:
    """S: `<root>/<project>/<task>/{TASK.md, DONE, ...}` and `<root>/<project>/PROJECT-...`."""
    folder = folder_of("/root", "my-project", "task-001")
    assert folder.path == "/root/my-project/task-001"
    assert (folder.project, folder.task) == ("my-project", "task-001")
    within = "/root/my-project/task-001"
    assert folder.done == f"{within}/DONE"
    assert folder.wait == f"{within}/WAIT_WITHOUT_RESTART"
    assert folder.task_file == f"{within}/TASK.md"
    assert folder.bus == f"{within}/TASK-MESSAGE-BUS.md"
    assert folder.project_bus == "/root/my-project/PROJECT-MESSAGE-BUS.md"
    assert folder.runs == f"{within}/runs"
    assert folder.run_dir("r-1") == f"{within}/runs/r-1"


@pytest.mark.parametrize("good", ["a", "0", "a-", "task-001", "9lives", "x" * 200])
def test_an_id_is_lower_case_letters_digits_and_hyphens(good: str) -> None:
    """Ids are `[a-z0-9][a-z0-9-]*`."""
    assert folder_of("/r", good, good).path == f"/r/{good}/{good}"


@pytest.mark.parametrize(
    "bad", ["", "-a", "A", "a_b", "a.b", "..", "a/b", " a", "a\n", "ä", "a\0", "٣"]
)
@pytest.mark.parametrize("kind", ["project", "task"])
def test_anything_else_is_refused_in_words(kind: str, bad: str) -> None:
    """ "anything else is 2"."""
    ids = {"project": "p", "task": "t", kind: bad}
    with pytest.raises(ConfigError) as refused:
        folder_of("/r", **ids)
    assert f"is no {kind} id" in refused.value.message
    assert repr(bad) in refused.value.message
    assert "--task-dir" in refused.value.remedy


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/root/My Project/Task 1", ("/root/My Project/Task 1", "My Project", "Task 1")),
        ("/root/p/t/", ("/root/p/t", "p", "t")),
        ("/root/p/x/../t", ("/root/p/t", "p", "t")),
        ("/t", ("/t", "", "t")),
        ("/", ("/", "", "")),
    ],
)
def test_a_directory_is_taken_as_it_is_named(path: str, expected: tuple[str, str, str]) -> None:
    """`--task-dir` takes directory names as they are."""
    folder = folder_at(path)
    assert (folder.path, folder.project, folder.task) == expected


def test_given_ids_win_over_the_directorys_names(workspace: Path) -> None:
    folder = folder_at("t", project="p", task="")
    assert (folder.path, folder.project, folder.task) == (str(workspace / "t"), "p", "")
    assert folder_at("t").project == "workspace"


def test_a_marker_is_known_by_its_inode_and_its_time(tmp_path: Path) -> None:
    """ "compare inode and mtime seen then, never the clock"."""
    path = tmp_path / "WAIT_WITHOUT_RESTART"
    assert marker_at(str(path)) is None
    path.touch()
    first = marker_at(str(path))
    assert first is not None
    assert marker_at(str(path)) == first
    os.utime(path, ns=(1, 1))
    touched = marker_at(str(path))
    assert touched == (first[0], 1)
    other = tmp_path / "other"
    other.touch()
    os.utime(other, ns=(1, 1))
    other.replace(path)
    assert marker_at(str(path)) not in (None, touched)


def test_a_marker_that_cannot_be_seen_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file/marker", "link", "no/such", "x" * 300):
        assert marker_at(str(tmp_path / name)) is None
    assert marker_at(str(tmp_path)) is not None
