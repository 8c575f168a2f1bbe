"""run-info.yaml: written with JSON scalars, read also as people and other programs write it."""

import json
import os
import re
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.journal.run_id import timestamp
from ralph.loops.supervise.run_info import RunInfo, read_run_info, write_run_info

FULL = RunInfo(
    run_id="r",
    parent_run_id="20261115-142200-0001-003",
    previous_run_id="20261115-142200-0001-002",
    agent="make",
    pid=4711,
    start_time="2026-11-15T14:22:33.000001Z",
    end_time="2026-11-15T14:23:33.999999Z",
    exit_code=2,
    status="failed",
    error_summary='it said: "no" # twice\nand left',
)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """The directory of a run."""
    directory = tmp_path / "r"
    directory.mkdir()
    return directory


def written(directory: Path, text: str | bytes) -> RunInfo | None:
    data = text.encode() if isinstance(text, str) else text
    (directory / "run-info.yaml").write_bytes(data)
    return read_run_info(str(directory))


def test_it_holds_the_fields_of_s_in_their_order(tmp_path: Path) -> None:
    """`run-info.yaml` has run_id, parent_run_id, ..., error_summary; "scalars are JSON"."""
    write_run_info(str(tmp_path), FULL)
    lines = (tmp_path / "run-info.yaml").read_text("utf-8").splitlines()
    names = [line.partition(": ")[0] for line in lines]
    assert names == [
        *("run_id", "parent_run_id", "previous_run_id", "agent", "pid", "start_time"),
        *("end_time", "exit_code", "status", "error_summary"),
    ]
    for line in lines:
        name, _, scalar = line.partition(": ")
        assert json.loads(scalar) == getattr(FULL, name)
    assert read_run_info(str(tmp_path)) == FULL


def test_what_goes_on_has_no_end(tmp_path: Path) -> None:
    write_run_info(str(tmp_path), RunInfo("r"))
    text = (tmp_path / "run-info.yaml").read_text()
    assert "end_time: null\nexit_code: null\n" in text
    assert 'status: "running"' in text
    assert read_run_info(str(tmp_path)) == RunInfo("r")


@given(
    text=st.text(
        st.characters() | st.sampled_from("\udc80\ud83d\x7f\x85\u2028\u2029\ufeff\uffff\0\"'#:\n")
    ),
    number=st.integers(-(2**31), 2**31) | st.none(),
)
def test_every_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory, text: str, number: int | None
) -> None:
    directory = tmp_path_factory.mktemp("run")
    info = RunInfo("r", agent=text, exit_code=number, error_summary=text)
    write_run_info(str(directory), info)
    data = (directory / "run-info.yaml").read_bytes()
    assert len(data.decode("utf-8").splitlines()) == 10, "one line each, whatever is a line break"
    back = read_run_info(str(directory))
    assert back is not None
    # Halves of a character that fit together are one character in JSON.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert (back.agent, back.error_summary, back.exit_code) == (whole, whole, number)


def test_characters_are_written_as_people_read_them(tmp_path: Path) -> None:
    """Many YAML readers do not put a character together again that is escaped by halves."""
    write_run_info(str(tmp_path), RunInfo("r", agent="Grüße 😀"))
    assert 'agent: "Grüße 😀"' in (tmp_path / "run-info.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run_id: r\npid: 12\n", RunInfo("r", pid=12)),
        ("---\nrun_id:   r  # mine\n...\n", RunInfo("r")),
        ("run_id: r\r\npid: 12\r\nstatus: failed\r\n", RunInfo("r", pid=12, status="failed")),
        ("\ufeffrun_id: r", RunInfo("r")),
        ("# a comment\n\nrun_id: r\nagent: 'it''s'\n", RunInfo("r", agent="it's")),
        ('run_id: r\nagent: "a # b" # c\n', RunInfo("r", agent="a # b")),
        ('run_id: "r"\npid: "12"\nexit_code: \'3\'', RunInfo("r", pid=12, exit_code=3)),
        ("run_id: r\nend_time: null\nexit_code: ~\npid:\n", RunInfo("r")),
        ("run_id: r\nend_time: NULL # not yet\nparent_run_id: ~\n", RunInfo("r")),
        ('run_id: r\nend_time: ""\n', RunInfo("r")),
        ("run_id: r\nend_time: 0001-01-01T00:00:00Z\n", RunInfo("r")),
        (
            "run_id: r\nend_time: 2026-01-01T00:00:00Z",
            RunInfo("r", end_time="2026-01-01T00:00:00Z"),
        ),
        ("run_id: r\ncolour: blue\nnested:\n  pid: 5\n- pid: 6\n", RunInfo("r")),
        ("run_id: r\npid: many\nexit_code: 1e3\n", RunInfo("r")),
        ("run_id: r\npid: 99999999999999999999\n", RunInfo("r")),
        ("run_id: r\nexit_code: -1\n", RunInfo("r", exit_code=-1)),
        ("run_id: 20261115\nagent: 007\n", RunInfo("r", agent="007")),
        ("run_id: a#b\nagent: x:y\n", RunInfo("r", agent="x:y")),
        ('run_id: r\nagent: "\\x41"\n', RunInfo("r", agent="\\x41")),
        ("run_id: r\nagent: one\nagent: two\n", RunInfo("r", agent="two")),
    ],
)
def test_what_others_write_is_understood(tmp_path: Path, text: str, expected: RunInfo) -> None:
    assert written(tmp_path, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "pid: 12\n",
        "run_id:\n",
        "run_id: ~\n",
        " run_id: r\n",
        "hello",
        b"\0\xff\xfe",
        "[1]",
    ],
)
def test_nonsense_is_none(tmp_path: Path, text: str | bytes) -> None:
    assert written(tmp_path, text) is None


def test_what_is_not_there_or_no_file_is_none(tmp_path: Path) -> None:
    """A pipe that nobody fills must not hold us up."""
    assert read_run_info(str(tmp_path)) is None
    assert read_run_info(str(tmp_path / "none")) is None
    os.mkfifo(tmp_path / "run-info.yaml")
    assert read_run_info(str(tmp_path)) is None
    (tmp_path / "run-info.yaml").unlink()
    (tmp_path / "run-info.yaml").mkdir()
    assert read_run_info(str(tmp_path)) is None


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "run-info.yaml").open("wb") as file:
        file.write(b"run_id: r\n")
        file.truncate(10**12)
    assert read_run_info(str(tmp_path)) == RunInfo("r")


def test_a_failed_write_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    write_run_info(str(tmp_path), RunInfo("r"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_run_info(str(tmp_path), FULL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)
    assert os.listdir(tmp_path) == ["run-info.yaml"]
    assert read_run_info(str(tmp_path)) == RunInfo("r")


@pytest.mark.parametrize("kind", ["pipe", "link", "device"])
def test_what_stands_in_the_way_is_neither_waited_for_nor_written_to(
    tmp_path: Path, kind: str
) -> None:
    other = tmp_path.parent / "other"
    other.write_text("precious")
    for name in ("run-info.yaml", f"run-info.yaml.{os.getpid()}.tmp"):
        if kind == "pipe":
            os.mkfifo(tmp_path / name)
        else:
            (tmp_path / name).symlink_to("/dev/full" if kind == "device" else other)
    write_run_info(str(tmp_path), FULL)
    assert read_run_info(str(tmp_path)) == FULL
    assert os.listdir(tmp_path) == ["run-info.yaml"]
    assert other.read_text() == "precious"


def test_a_directory_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / f"run-info.yaml.{os.getpid()}.tmp").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        write_run_info(str(tmp_path), FULL)


def test_it_is_for_its_owner_only(tmp_path: Path) -> None:
    write_run_info(str(tmp_path), FULL)
    assert (tmp_path / "run-info.yaml").stat().st_mode & 0o777 == 0o600


def test_the_id_is_the_directorys_name_whatever_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that says that it is another would be taken for it."""
    assert written(tmp_path, "run_id: ../../another\n") == RunInfo("r")
    assert read_run_info(f"{tmp_path}/") == RunInfo("r")
    monkeypatch.chdir(tmp_path)
    assert read_run_info(".") == RunInfo("r")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (1e9 + 0.5, "2001-09-09T01:46:40.500000Z"),
        (0.9999999, "1970-01-01T00:00:01.000000Z"),
        (1794752553.000001, "2026-11-15T14:22:33.000001Z"),
    ],
)
def test_times_are_utc_with_microseconds(now: float, expected: str) -> None:
    assert timestamp(now) == expected


@given(st.floats(0, 4e9))
def test_later_times_sort_later(now: float) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", timestamp(now))
    assert timestamp(now) <= timestamp(now + 0.001)
