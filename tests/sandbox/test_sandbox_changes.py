"""What an upper layer tells: whiteouts, opaque directories, modes, links, and odd names."""

import os
from pathlib import Path

import pytest
from sandbox_support import directory, file, needs_overlay, policy, tree

from ralph.errors import ConfigError
from ralph.sandbox.backends import direct, overlay
from ralph.sandbox.interface import Change, ChangeKind, FileType

pytestmark = needs_overlay
ADDED, MODIFIED, DELETED = ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED
TABLE: list[tuple[str, list[Change]]] = [
    ("touch a; cat a", []),
    ("echo 1 > a", []),  # it says what it said before
    ("echo 2 > a", [file("a", MODIFIED)]),
    ("rm a", [file("a", DELETED)]),
    ("rm a; echo 2 > a", [file("a", MODIFIED)]),
    ("mv a b", [file("a", DELETED), file("b", ADDED)]),
    ("chmod 700 a", [file("a", ChangeKind.MODE)]),
    ("chmod 700 d", [directory("d", ChangeKind.MODE)]),
    ("chmod 700 .", [directory(".", ChangeKind.MODE)]),
    ("rm -r d", [directory("d", DELETED), file("d/x", DELETED), file("d/y", DELETED)]),
    # An opaque directory: what was in it is gone, though there is no whiteout for it.
    ("rm -r d; mkdir d; echo 1 > d/x; echo z > d/z", [file("d/y", DELETED), file("d/z", ADDED)]),
    (
        "rm -r d; echo 1 > d",
        [file("d", ADDED), directory("d", DELETED), file("d/x", DELETED), file("d/y", DELETED)],
    ),
    (
        "rm a; mkdir a; echo 1 > a/in",
        [directory("a", ADDED), file("a", DELETED), file("a/in", ADDED)],
    ),
    ("ln -s a s", [Change("s", ChangeKind.SYMLINK, FileType.LINK)]),
    ("ln -sfn d l", [Change("l", ChangeKind.SYMLINK, FileType.LINK)]),
    ("ln -sfn a l", []),
    ("rm l", [Change("l", DELETED, FileType.LINK)]),
    ("rm l; echo 1 > l", [file("l", MODIFIED)]),
    (
        "rm o; mkdir o; echo 1 > o/x",
        [directory("o", ADDED), Change("o", DELETED, FileType.LINK), file("o/x", ADDED)],
    ),
    ("mkdir -p n/m", [directory("n", ADDED), directory("n/m", ADDED)]),
    ("mkfifo p", [Change("p", ADDED, FileType.OTHER)]),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A few files, a directory, a link, and one that leads to a directory outside with an `x`."""
    place = tree(tmp_path / "project", a="1\n", d__x="1\n", d__y="1\n")
    tree(tmp_path / "outside", x="outside\n")
    (place / "l").symlink_to("a")
    (place / "o").symlink_to("../outside")
    return place


@pytest.mark.parametrize(("script", "expected"), TABLE, ids=[script for script, _ in TABLE])
def test_what_a_command_changed(project: Path, script: str, expected: list[Change]) -> None:
    """Interface: "`changes()` (added, modified, deleted, mode, symlink …)"."""
    with overlay.open(str(project), policy()) as sandbox:
        done = sandbox.bash(script)
        assert done.code == 0, done
        assert list(sandbox.changes()) == sorted(expected, key=lambda c: (c.path, c.kind))


@pytest.mark.parametrize(("script", "_"), TABLE, ids=[script for script, _ in TABLE])
def test_what_is_kept_is_what_the_sandbox_had(
    project: Path, tmp_path: Path, script: str, _: list[Change]
) -> None:
    """After a commit nothing differs any more; twice is as once."""
    with overlay.open(str(project), policy()) as sandbox:
        sandbox.bash(script)
        names = sandbox.fs.list()
        kept = sandbox.commit(everything=True)
        assert not kept.changed
        left = [c for c in sandbox.changes() if c.entry is not FileType.OTHER]
        assert left == []
    assert set(names) - {"p"} == set(os.listdir(project))
    assert (tmp_path / "outside" / "x").read_text() == "outside\n"


def test_a_file_that_became_a_directory_in_place(project: Path) -> None:
    """It is more than another mode."""
    with direct.open(str(project), policy()) as sandbox:
        assert sandbox.bash("rm a l; mkdir a; chmod 700 d; mkfifo l").code == 0
        assert sandbox.changes() == (
            directory("a", MODIFIED),
            directory("d", ChangeKind.MODE),
            Change("l", MODIFIED, FileType.OTHER),
        )


@pytest.mark.slow
def test_ten_thousand_changed_files(tmp_path: Path) -> None:
    """Bad input: "10,000 changed files"."""
    project = tree(tmp_path / "project", a="1\n")
    script = "import os\nfor n in range(10000): open(f'{n}', 'w').write('x')"
    with overlay.open(str(project), policy()) as sandbox:
        assert sandbox.eval(script).code == 0
        assert len(sandbox.changes()) == 10_000
        assert len(sandbox.commit().applied) == 10_000
    assert len(os.listdir(project)) == 10_001


def test_a_full_layer_is_an_error_of_the_command(tmp_path: Path) -> None:
    """Bad input: "full upper layer"."""
    project = tree(tmp_path / "project", a="1\n")
    with overlay.open(str(project), policy(memory=1024 * 1024)) as sandbox:
        done = sandbox.bash("head -c 3000000 /dev/zero > big")
        assert done.code != 0
        assert b"No space left" in done.error
        assert "memory" in sandbox.capabilities.why
        assert sandbox.fs.read("a") == b"1\n"
        sandbox.discard()
    assert os.listdir(project) == ["a"]


def test_a_layer_in_memory_is_kept_too(tmp_path: Path) -> None:
    """A layer that does not outlive us is copied to disk before anything is applied."""
    project = tree(tmp_path / "project", a="1\n", d__x="1\n")
    with overlay.open(str(project), policy(memory=1024 * 1024)) as sandbox:
        sandbox.bash("echo 2 > a; rm -r d; mkdir -m 500 e; ln -s a l; chmod 640 a")
        assert not sandbox.commit().spared
    assert (project / "a").read_text() == "2\n"
    assert (project / "a").stat().st_mode & 0o777 == 0o640
    assert (project / "e").stat().st_mode & 0o777 == 0o500
    assert sorted(os.listdir(project)) == ["a", "e", "l"]


def test_what_is_in_the_tree_from_the_beginning(tmp_path: Path) -> None:
    """Bad input: "sockets and devices in the tree": none is opened, none is in the way."""
    project = tree(tmp_path / "project", a="1\n")
    os.mkfifo(project / "pipe")
    with overlay.open(str(project), policy()) as sandbox:
        sandbox.bash("chmod 600 pipe; mv pipe p; echo 2 > a")
        kinds = {change.path: change.kind for change in sandbox.changes()}
        assert kinds == {"a": MODIFIED, "p": ADDED, "pipe": DELETED}
        for change in sandbox.changes():
            assert isinstance(sandbox.diff(change), str)


@pytest.mark.parametrize("where", ["/", "/no/such/place", "/etc/passwd"])
def test_what_cannot_be_a_project(where: str) -> None:
    with pytest.raises(ConfigError) as found:
        overlay.open(where, policy())
    assert found.value.remedy


def test_a_command_that_is_killed_with_its_sandbox(tmp_path: Path) -> None:
    """Bad input: "sandbox killed": an error, and nothing runs outside instead."""
    project = tree(tmp_path / "project", a="1\n")
    sandbox = overlay.open(str(project), policy())
    sandbox.spawn(["sleep", "1000"])
    os.kill(sandbox._keeper.pid, 9)
    with pytest.raises(OSError, match="lost"):
        sandbox.spawn(["touch", "outside"])
    sandbox.close()
    assert os.listdir(project) == ["a"]
