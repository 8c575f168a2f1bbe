"""Reading a transcript from where it was read last, whatever stands in it."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from loop_support import DONE, assistant, call, moment, text

from ralph.loops.session.transcript import Seen, seen, size_of

START = 1_000_000.0


def look(path: Path, offset: int | None = 0, since: float = START) -> Seen:
    found = seen(str(path), offset, DONE, words=since, work=since)
    assert found is not None
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a transcript goes."""
    return tmp_path / "transcript.jsonl"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much each reading of a file gave."""
    sizes: list[int] = []

    def counted(descriptor: int, most: int, at: int) -> bytes:
        block = pread(descriptor, most, at)
        sizes.append(len(block))
        return block

    pread = os.pread
    monkeypatch.setattr(os, "pread", counted)
    return sizes


def line(*blocks: dict[str, Any], **changes: object) -> bytes:
    return json.dumps(assistant(*blocks, **changes)).encode() + b"\n"


def test_a_torn_last_line_waits(path: Path, read: list[int]) -> None:
    whole, torn = line(text("one")), line(text("two"))
    path.write_bytes(whole + torn[:-10])
    first = look(path)
    assert (first.texts, first.offset) == (["one"], len(whole))
    path.write_bytes(whole + torn)
    second = look(path, first.offset)
    assert (second.texts, second.offset) == (["two"], len(whole + torn))
    before = len(read)
    assert look(path, second.offset).texts == []
    assert len(read) == before


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"\n",
        b'not JSON "assistant"\n',
        b'{"type":"assistant","message":"\x01\x02"}\n',
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n',
        b'"assistant"\n["assistant"]\n',
        b'{"type":"assistant"}\n{"type":"assistant","message":{"content":7}}\n',
        b'{"type":"response_item"}\n{"type":"response_item","payload":{"type":7}}\n',
        b'{"type":"x","a":"assistant","b":' + b"[" * 5000 + b"\n",
        b'{"type":"user","x":"assistant"}\n',
        b"\0" * 3_000_000 + b"\n",
        b'"assistant"' + b"y" * (10 << 20) + b"\n",
    ],
    ids=range(12),
)
def test_noise_is_skipped(path: Path, noise: bytes) -> None:
    """Complaint: "control characters in a transcript killing the loop"."""
    path.write_bytes(line(text("one")) + noise + line(text("two")))
    found = look(path)
    assert (found.texts, found.offset) == (["one", "two"], path.stat().st_size)


def test_a_line_that_never_ends_is_given_up(path: Path) -> None:
    path.write_bytes(b"x" * (12 << 20))
    assert look(path).offset == 12 << 20


@pytest.mark.parametrize("offset", [200 << 20, None])
def test_what_is_old_costs_nothing(path: Path, read: list[int], offset: int | None) -> None:
    """ "1 GB costs what 1 MB costs"."""
    with open(path, "wb") as file:
        file.truncate(200 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" * (offset is None))
        file.write(line(call()))
    found = look(path, offset)
    assert len(found.calls) == 1
    assert 0 < sum(read) <= 4 << 20


def test_without_an_offset_times_tell_where_to_begin(path: Path, read: list[int]) -> None:
    old = line(text("old"), call("old"), timestamp=moment(3600)) * 20_000
    path.write_bytes(old + line(text("new"), call("new")))
    found = look(path, None, time.time() - 60)
    assert (found.texts, found.calls) == (["new"], {"new"})
    assert 0 < sum(read) <= 3 << 20
    assert look(path, path.stat().st_size + 1, time.time() - 60).texts == ["new"], "it shrank"


def test_however_much_is_new_all_of_it_counts(path: Path) -> None:
    """Tool calls since the loop began do; a line that is too long is no reason to forget others."""
    with open(path, "wb") as file:
        file.write(line(text("first"), call("one")))
        file.truncate(100 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + line(text("last")))
    found = look(path, 0)
    assert (found.texts, found.calls) == (["first", "last"], {"one"})


def test_lines_without_a_time_are_old_where_nobody_knows_their_place(path: Path) -> None:
    """A loop that began in a terminal knows no transcript yet: what came before does not count."""
    path.write_bytes(line(text("old"), call("old"), timestamp=None))
    assert (look(path, None).texts, look(path, None).calls) == ([], set())
    assert look(path, 0).texts == ["old"]


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ("2026-11-15T06:23:17.181Z", True),
        ("2026-11-15T06:23:17.180Z", False),
        ("2026-11-15T06:23:17Z", True),
        ("2026-11-15T06:23:17.000Z", True),
        ("2026-11-15T06:23:16Z", False),
        ("2026-11-15T07:23:17.181+01:00", True),
        ("2026-11-15T06:23:17.181+01:00", False),
        ("2026-99-99T99:99:99+99:99", True),
        ("yesterday", True),
        (None, True),
        (12, True),
    ],
)
def test_lines_from_before_never_count(path: Path, given: object, counts: bool) -> None:
    path.write_bytes(line(text("x"), call(), timestamp=given))
    found = look(path, 0, 1794723797.1815)
    assert bool(found.calls) is counts
    same = given in ("2026-11-15T06:23:17.181Z", "2026-11-15T07:23:17.181+01:00")
    assert bool(found.texts) is (counts and not same), "what was said in that instant is spent"


CODEX = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": DONE}]},
    {"type": "function_call", "name": "exec_command", "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": DONE},
    {"type": "reasoning", "content": [{"type": "text", "text": DONE}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
]
GEMINI: list[dict[str, Any]] = [
    {"type": "user", "content": [{"text": DONE}]},
    {"type": "gemini", "content": "", "toolCalls": [{"id": "c1", "result": [DONE]}]},
    {"type": "gemini", "content": "ok", "thoughts": [DONE]},
]


@pytest.mark.parametrize(
    "lines",
    [
        [{"type": "response_item", "timestamp": moment(), "payload": p} for p in CODEX],
        [{"timestamp": moment(), **record} for record in GEMINI],
    ],
    ids=["codex", "gemini"],
)
def test_other_hosts_are_understood(path: Path, lines: list[dict[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    found = look(path)
    assert [words for words in found.texts if words] == ["ok"]
    assert found.calls == {"c1"}


def test_what_cannot_be_read_is_none(path: Path, tmp_path: Path) -> None:
    os.mkfifo(path)
    for place in (str(path), str(tmp_path), str(tmp_path / "none"), "a\0b"):
        assert seen(place, 0, DONE, words=0, work=0) is None
    assert (size_of(""), size_of(str(tmp_path / "none")), size_of("a\0b")) == (None, 0, None)
