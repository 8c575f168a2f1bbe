"""A settings file is written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from ralph.errors import ConfigError
from ralph.settings.write import write


def test_the_file_is_pretty_json(tmp_path: Path) -> None:
    """H §Init Command prints and writes settings with an indent of two."""
    path = tmp_path / "settings.json"
    write(str(path), {"failAfter": 1, "agent": {"command": "clé"}})
    assert path.read_text("utf-8") == (
        '{\n  "failAfter": 1,\n  "agent": {\n    "command": "clé"\n  }\n}\n'
    )
    assert os.listdir(tmp_path) == ["settings.json"]


def test_the_mode_of_an_existing_file_stays(tmp_path: Path) -> None:
    """Settings may hold secrets: a private file stays private."""
    path = tmp_path / "settings.json"
    path.touch(0o600)
    write(str(path), {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file it points at is written."""
    (tmp_path / "shared.json").write_text("old")
    (tmp_path / "settings.json").symlink_to("shared.json")
    write(str(tmp_path / "settings.json"), {})
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
    with pytest.raises((ConfigError, KeyboardInterrupt)) as caught:
        write(str(path), {"failAfter": 1})
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["settings.json"]
    if isinstance(error, OSError):
        assert str(caught.value) == f"{path}: cannot be written: No space left on device."


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    """Never a traceback."""
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        write(str(tmp_path / "nowhere" / "settings.json"), {})
