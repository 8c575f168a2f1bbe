"""Diffs of what a run has seen, in a repository whose settings an agent may have written."""

import os
from pathlib import Path

import pytest

from kits.work_tree import git
from ralph.git.past_diffs import LineCount, PastDiffs
from ralph.git.repository import Repository, find

GONE = "1" * 40


@pytest.fixture(params=["sha1", "sha256"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A repository with one commit."""
    place = tmp_path / "project"
    place.mkdir()
    git(place, "init", "-q", "-b", "main", f"--object-format={request.param}")
    git(place, "config", "user.name", "P")
    git(place, "config", "user.email", "p@example.com")
    committed(place, {"a.txt": "one\n"})
    return place


def committed(place: Path, files: dict[str, str | bytes]) -> str:
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    git(place, "add", "-A", "-f")
    git(place, "commit", "-q", "-m", "work")
    return git(place, "rev-parse", "HEAD")


def trees(place: Path, old: str = "HEAD~1", new: str = "HEAD") -> str:
    return (
        git(place, "rev-parse", f"{old}^{{tree}}")
        + " "
        + git(place, "rev-parse", f"{new}^{{tree}}")
    )


def diffs(place: Path) -> PastDiffs:
    return PastDiffs(
        Repository(find(str(place), os.environ, str(place.parent / "run")), os.environ)
    )


def test_commits_and_pairs_of_trees(place: Path) -> None:
    first = git(place, "rev-parse", "HEAD")
    names: dict[str, str | bytes] = {
        "a.txt": "two\n",
        "new\nline é.txt": "x\ny",
        "sub/bin": b"\0\1",
        ".ralph/x": "ours",
    }
    commit = committed(place, names)
    large = committed(place, {"large.txt": "x\n" * 700_000})
    pair, same = trees(place, first, commit), trees(place, "HEAD", "HEAD")
    found = diffs(place).counts([pair, commit, first, same, large, "; rm -rf", "--stdin"])
    files = (
        *(LineCount("a.txt", 1, 1), LineCount("new\nline é.txt", 2, 0)),
        LineCount("sub/bin", None, None),
    )
    assert found == {
        pair: files,
        commit: files,
        same: (),
        first: (LineCount("a.txt", 1, 0),),
        large: (LineCount("large.txt", None, None),),
    }
    patch = diffs(place).patch(pair, ["a.txt", "sub/bin"])
    assert "-one\n+two\n" in patch
    assert "Binary files /dev/null and b/sub/bin differ" in patch
    assert "é" not in patch
    assert diffs(place).patch(commit, ["a.txt"]) == diffs(place).patch(pair, ["a.txt"])


def test_what_is_gone_is_left_out(place: Path) -> None:
    """Git removes what no branch holds any more after two weeks."""
    commit = committed(place, {"a.txt": "two\n"})
    lost = committed(place, {"b.txt": "lost\n"})
    last = committed(place, {"c.txt": "three\n"})
    blob = git(place, "rev-parse", f"{lost}:b.txt")
    (place / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    gone = GONE * 2 if len(commit) == 64 else GONE
    gone = gone[: len(commit)]
    found = diffs(place).counts([commit, gone, lost, f"{gone} {gone}", last])
    assert list(found) == [commit, last]
    assert diffs(place).patch(lost, ["b.txt"]) == ""
    known = diffs(place)
    (place / ".git").rename(place.parent / "elsewhere")
    assert known.counts([commit]) == {}
    assert known.patch(commit, ["a.txt"]) == ""


def test_git_is_not_waited_for_for_ever(place: Path) -> None:
    """A pipe among the objects holds git up; what hung once is not asked again."""
    commit = git(place, "rev-parse", "HEAD")
    alternates = place / ".git" / "objects" / "info" / "alternates"
    os.mkfifo(alternates)
    repository = Repository(find(str(place), os.environ, str(place.parent / "run")), os.environ)
    past = PastDiffs(repository, patience=0.2)
    assert past.counts([commit]) == {}
    alternates.unlink()
    assert past.counts([commit]) == {}
    assert diffs(place).counts([commit])[commit] == (LineCount("a.txt", 1, 0),)


def test_a_repository_whose_objects_have_no_path(place: Path) -> None:
    commit = git(place, "rev-parse", "HEAD")
    repository = Repository(find(str(place), os.environ, str(place.parent / "run")), os.environ)
    (place / ".git" / "commondir").write_bytes(b"a\0b\n")
    assert PastDiffs(repository).counts([commit]) == {}


def test_nothing_that_the_repository_says_is_run(place: Path, tmp_path: Path) -> None:
    """External diffs, converters, a remote that would send what is missing, replaced objects."""
    first = git(place, "rev-parse", "HEAD")
    commit = committed(place, {"a.txt": "two\n", ".gitattributes": "* diff=evil\n"})
    ran = tmp_path / "ran"
    evil = f"touch {ran}; cat"
    for name, text in {
        "diff.external": evil,
        "diff.evil.command": evil,
        "diff.evil.textconv": evil,
        "core.pager": evil,
        "core.fsmonitor": evil,
        "diff.orderFile": "/dev/zero",
        "extensions.partialClone": "evil",
        "remote.evil.promisor": "true",
        "remote.evil.url": "ext::sh -c",
        "remote.evil.uploadpack": evil,
        "color.ui": "always",
    }.items():
        git(place, "config", name, text)
    (place / ".git" / "info" / "attributes").write_text("* diff=evil\n")
    git(place, "update-ref", f"refs/replace/{commit}", first)
    gone = "1" * len(commit)
    known = diffs(place)
    assert [file.path for file in known.counts([commit, gone])[commit]] == [
        ".gitattributes",
        "a.txt",
    ]
    assert "\x1b" not in known.patch(commit, ["a.txt"])
    assert "+two" in known.patch(commit, ["a.txt"])
    assert not ran.exists()
