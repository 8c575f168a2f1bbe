"""`run-info.yaml`: who runs, since when, and how it ended (S). We write JSON scalars, and read
what people and other programs write too: each line a key and a scalar."""

import json
import os
import re
import stat
from typing import Any

from ralph.adapters.registration import FILE, timestamp, write_fields
from ralph.core.value import value

__all__ = ["RunInfo", "read_run_info", "timestamp", "write_run_info"]

_LARGEST = 64 * 1024  # bytes; whatever is longer was not written by us
_LINE = re.compile(r"([A-Za-z_]\w*)\s*:(?:\s+(.*))?$")
_NOT_YET = "0001-01-01T"  # what Go writes for a time that is not known
_NOTHING = ("", "~", "null", "Null", "NULL")
_DECODER = json.JSONDecoder(strict=False)


@value
class RunInfo:
    """One run of a task. No `end_time`: it goes on, or its process was killed."""

    run_id: str
    parent_run_id: str = ""
    previous_run_id: str = ""
    agent: str = ""
    pid: int | None = None
    start_time: str = ""
    end_time: str | None = None
    exit_code: int | None = None
    status: str = "running"  # completed, failed, stopped
    error_summary: str = ""


_NUMBERS = ("pid", "exit_code")
_NAMES = (
    *("run_id", "parent_run_id", "previous_run_id", "agent", "pid", "start_time"),
    *("end_time", "exit_code", "status", "error_summary"),
)


def write_run_info(directory: str, info: RunInfo) -> None:
    """Replace a run's information; OSError where it cannot be written."""
    write_fields(directory, {name: getattr(info, name) for name in _NAMES})


def read_run_info(directory: str) -> RunInfo | None:
    """What a run's directory says; None where it says nothing, or nothing that makes sense."""
    found: dict[str, Any] = {}
    for line in _text(os.path.join(directory, FILE)).split("\n"):
        fits = _LINE.match(line)
        if fits is not None and fits[1] in _NAMES:
            known = _number(fits[2]) if fits[1] in _NUMBERS else _scalar(fits[2])
            if known not in (None, ""):
                found[fits[1]] = known
    if found.get("end_time", "").startswith(_NOT_YET):
        del found["end_time"]
    return RunInfo(**found) if found.get("run_id") else None


def _text(path: str) -> str:
    """A file's beginning; nothing where there is none, and no wait for whoever fills a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        data = os.read(descriptor, _LARGEST) if regular else b""
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return data.decode("utf-8-sig", "replace")


def _number(written: str | None) -> int | None:
    text = _scalar(written)
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,10}", text) else None


def _scalar(written: str | None) -> str | None:
    """A scalar's text, whether JSON, quoted as YAML has it, or bare; None for null."""
    text = (written or "").strip()
    if text.startswith('"'):
        try:
            return str(_DECODER.raw_decode(text)[0])
        except ValueError:
            return text.rpartition('"')[0][1:]  # YAML knows more escapes than JSON
    if text.startswith("'"):
        quoted = re.match(r"'((?:[^']|'')*)'", text)
        return quoted[1].replace("''", "'") if quoted else text[1:]
    bare = re.split(r"(?:^|\s+)#", text, maxsplit=1)[0]
    return None if bare in _NOTHING else bare
