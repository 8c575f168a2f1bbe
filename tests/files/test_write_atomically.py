"""A file is written whole or not at all."""

import os
import stat
from pathlib import Path
from threading import get_native_id

import pytest

from ralph.files.state_dir import write_atomically


def test_a_new_file_gets_the_mode_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    write_atomically(str(path), "clé\n", 0o600)
    assert path.read_text("utf-8") == "clé\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["settings.json"]


def test_the_mode_of_an_existing_file_stays(tmp_path: Path) -> None:
    """Settings may hold secrets: a private file stays private."""
    path = tmp_path / "settings.json"
    path.touch(0o600)
    write_atomically(str(path), "{}\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file it points at is written."""
    (tmp_path / "shared.json").write_text("old")
    (tmp_path / "settings.json").symlink_to("shared.json")
    write_atomically(str(tmp_path / "settings.json"), "{}\n")
    assert (tmp_path / "settings.json").is_symlink()
    assert (tmp_path / "shared.json").read_text() == "{}\n"


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl+C"]
)
def test_nothing_is_lost_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """H §Init Command: no partial file; a full disk is told with the path."""

    def fail(descriptor: int) -> None:
        raise error

    path = tmp_path / "settings.json"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((OSError, KeyboardInterrupt)):
        write_atomically(str(path), "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["settings.json"]


def test_a_link_in_place_of_the_new_file_is_not_followed(tmp_path: Path) -> None:
    """A sandboxed agent can foresee its name; what it leads to is the person's."""
    precious, path = tmp_path / "precious", tmp_path / "report.html"
    precious.write_text("mine")
    (tmp_path / f"report.html.{get_native_id()}.tmp").symlink_to(precious)
    write_atomically(str(path), "ours")
    assert (precious.read_text(), path.read_text()) == ("mine", "ours")
    assert not path.is_symlink()
