"""Reads and writes `run-info.yaml`: who runs, since when, and how it ended (S). We write JSON
scalars, and read what others write too: each line a key and a scalar."""

import os
import re
from dataclasses import fields
from typing import Any

from ralph.files.safe_open import read_or_nothing
from ralph.kernel.value import value
from ralph.loops.supervise.register_job import FILE, write_fields
from ralph.text.yaml_scalars import text_of

_LARGEST = 64 * 1024  # bytes; whatever is longer was not written by us
_LINE = re.compile(r"([A-Za-z_]\w*)\s*:(?:\s+(.*))?$")
_NOT_YET = "0001-01-01T"  # what Go writes for a time that is not known


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
_NAMES = tuple(field.name for field in fields(RunInfo))


def write_run_info(directory: str, info: RunInfo) -> None:
    """Replace a run's information. Raises OSError."""
    write_fields(directory, {name: getattr(info, name) for name in _NAMES})


def read_run_info(directory: str) -> RunInfo | None:
    """The information in a run's directory; None if there is none that makes sense.

    The run's id is the directory's name: the one in the file may be anybody's.
    """
    found: dict[str, Any] = {}
    content = read_or_nothing(os.path.join(directory, FILE), _LARGEST)
    for line in content.decode("utf-8-sig", "replace").split("\n"):
        fits = _LINE.match(line)
        text = text_of(fits[2] or "") if fits is not None and fits[1] in _NAMES else None
        if fits is None or not text:
            continue
        if fits[1] not in _NUMBERS:
            found[fits[1]] = text
        elif re.fullmatch(r"-?[0-9]{1,10}", text):
            found[fits[1]] = int(text)
    if found.get("end_time", "").startswith(_NOT_YET):
        del found["end_time"]
    if "run_id" not in found:
        return None
    return RunInfo(**{**found, "run_id": os.path.basename(os.path.abspath(directory))})
