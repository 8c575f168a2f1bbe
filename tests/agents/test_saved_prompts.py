"""Prompts on disk: one that did not change is a link, and none changes another's."""

import errno
import os
import stat
from pathlib import Path

import pytest

from ralph.agents.turn_files import SavedPrompts


def save(directory: Path, *prompts: bytes) -> list[Path]:
    """These prompts, saved one after the other."""
    saved = SavedPrompts()
    paths = [directory / f"{number:03d}.prompt" for number, _ in enumerate(prompts, 1)]
    for path, prompt in zip(paths, prompts, strict=True):
        saved.save(str(path), prompt)
    return paths


@pytest.mark.parametrize(
    "prompts",
    [(b"a", b"a", b"a"), (b"a", b"b", b"a", b"a"), (b"", b""), (b"x" * 1_000_000,) * 2],
)
def test_every_prompt_is_there_as_it_was_for_its_owner_only(
    tmp_path: Path, prompts: tuple[bytes, ...]
) -> None:
    paths = save(tmp_path, *prompts)
    assert [path.read_bytes() for path in paths] == list(prompts)
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}


def test_only_a_prompt_like_the_last_one_is_a_link(tmp_path: Path) -> None:
    paths = save(tmp_path, b"a", b"a", b"b", b"b", b"a")
    assert [path.stat().st_nlink for path in paths] == [2, 2, 2, 2, 1]


def test_an_iteration_that_is_taken_again_changes_no_other(tmp_path: Path) -> None:
    """A resumed run takes the iteration anew in which it was killed."""
    first, second, third = save(tmp_path, b"a", b"a", b"a")
    SavedPrompts().save(str(second), b"another")
    assert [path.read_bytes() for path in (first, second, third)] == [b"a", b"another", b"a"]


def test_the_same_iteration_twice_keeps_its_prompt(tmp_path: Path) -> None:
    saved, path = SavedPrompts(), tmp_path / "001.prompt"
    for prompt in (b"a", b"a", b"b"):
        saved.save(str(path), prompt)
        assert path.read_bytes() == prompt


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV])
def test_without_links_each_prompt_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """FAT has none, some network file systems refuse them, ext4 allows 65,000."""

    def refused(_from: str, _to: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refused)
    paths = save(tmp_path, b"a", b"a")
    assert [(path.read_bytes(), path.stat().st_nlink) for path in paths] == [(b"a", 1)] * 2


def test_a_prompt_that_someone_removed_is_written_again(tmp_path: Path) -> None:
    saved = SavedPrompts()
    first, second = tmp_path / "001.prompt", tmp_path / "002.prompt"
    saved.save(str(first), b"a")
    first.unlink()
    saved.save(str(second), b"a")
    assert second.read_bytes() == b"a"
