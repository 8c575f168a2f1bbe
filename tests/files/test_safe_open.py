"""Files where the agent writes too: nothing in a file's place makes us wait, or write elsewhere."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.files.safe_open import create, open_regular, regular


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(path.parent)  # the name of a socket may not be long
        server.bind(path.name)


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


IRREGULAR: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "directory": os.mkdir,
    "socket": make_socket,
    "link to a device": link_to("/dev/zero"),
    "link to a terminal": link_to("/dev/tty"),
    "link to a directory": link_to("/"),
}


@pytest.mark.parametrize("kind", list(IRREGULAR))
def test_what_is_no_file_is_an_error_and_not_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    IRREGULAR[kind](tmp_path / "it")
    with pytest.raises(OSError) as caught:  # noqa: PT011  its words are looked at
        open_regular(str(tmp_path / "it"))
    assert caught.value.strerror in ("not a regular file", "Is a directory")


@pytest.mark.parametrize("name", ["none", "dangling", "file/below"])
def test_what_is_not_there_is_an_error_of_the_system(tmp_path: Path, name: str) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    with pytest.raises((FileNotFoundError, NotADirectoryError)):
        open_regular(str(tmp_path / name))


def test_a_file_is_read_also_by_a_link_that_a_person_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        with open_regular(str(tmp_path / name)) as file:
            assert file.read() == b"text"
            assert file.seek(0, os.SEEK_END) == 4


def test_a_descriptor_of_something_else_is_closed(tmp_path: Path) -> None:
    """What was exchanged between two looks."""
    reading, writing = os.pipe()
    with pytest.raises(OSError, match="not a regular file"):
        regular(reading, "it")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reading)
    os.close(writing)
    descriptor = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
    assert regular(descriptor, "it") == descriptor
    os.close(descriptor)


@pytest.mark.parametrize("kind", ["nothing", "file", "pipe", "socket", "link", "dangling"])
def test_a_new_file_takes_the_place_of_whatever_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    it, other = tmp_path / "it", tmp_path / "other"
    other.write_text("precious")
    makes: dict[str, Callable[[Path], object]] = {
        "nothing": lambda _: None,
        "file": lambda path: path.write_text("old and long"),
        "link": link_to("other"),
        "dangling": link_to("nowhere"),
        **IRREGULAR,
    }
    makes[kind](it)
    with os.fdopen(create(str(it)), "wb") as file:
        file.write(b"new")
    seen = it.lstat()
    assert (stat.S_ISREG(seen.st_mode), stat.S_IMODE(seen.st_mode)) == (True, 0o600)
    assert (it.read_text(), other.read_text()) == ("new", "precious")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_of_two_names_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("precious")
    os.link(tmp_path / "other", tmp_path / "it")
    os.close(create(str(tmp_path / "it"), 0o640))
    assert (tmp_path / "other").read_text() == "precious"
    assert stat.S_IMODE((tmp_path / "it").stat().st_mode) == 0o640


def test_a_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    with pytest.raises((IsADirectoryError, PermissionError)):
        create(str(tmp_path / "it"))
    assert (tmp_path / "it").is_dir()


def test_it_is_light() -> None:
    """ "imports os and stat only": `ralph job` needs it before anything else."""
    modules = "ralph.files.safe_open, ralph.processes.procfs"
    code = f"import sys; before = set(sys.modules); import {modules}; "
    code += "print(*set(sys.modules) - before)"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {
        "ralph",
        "ralph.files",
        "ralph.processes",
        *modules.split(", "),
    }
