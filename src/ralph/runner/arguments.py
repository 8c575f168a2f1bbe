"""Directories, texts and callers that commands are given. Only the standard library stands behind
it, so that a clone without any package can use it too."""

import os
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping
from contextlib import suppress

from ralph.errors import ConfigError, failing
from ralph.processes.ancestry import runs_above
from ralph.text.plain import one_line, safe
from ralph.ui.safe_stream import Channel

BRANCH_OF_RUN = "ralph/*"  # `--branch` without a name: after the run


def current_directory() -> str:
    remedy = "Go to one that is there, or name it: -C DIR"
    with failing("the current directory cannot be used", remedy):
        return os.getcwd()


def proper(text: str, what: str) -> str:
    """A text from the command line, if it is one."""
    with suppress(UnicodeEncodeError):
        text.encode()
        return text
    raise ConfigError(f"{what} is not UTF-8 text", "Convert it: iconv -f latin1 -t utf-8")


def text_of(data: bytes, what: str, most: int, remedy: str = "") -> str:
    """The text in these bytes, if it is one and not too long."""
    if len(data) > most:
        raise ConfigError(f"{what} is larger than {most >> 20} MB", remedy)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        code = "utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "latin1"
        words = f"If it is text, convert it: iconv -f {code} -t utf-8"
        raise ConfigError(f"{what} is not UTF-8 text (byte {error.start})", words) from error
    if "\0" in text:
        raise ConfigError(f"{what} contains a NUL byte: it is not text", "Name a file of text.")
    return text


def shown(text: str) -> str:
    """A text of somebody, safe on one line of a terminal."""
    return one_line(safe(text))


def warn(*words: str) -> None:
    """Tell people on stderr, one line each."""
    Channel(sys.stderr).write([f"[ralph] {shown(each)}" for each in words])


_CLAIM = "Within a turn say <promise>COMPLETE</promise>; the run checks it. "
_PEOPLE = "People type this in a terminal of their own."


def is_agents(environ: Mapping[str, str]) -> bool:
    """True if an agent calls us within its turn, or something that a run checks it with."""
    return bool(environ.get("RALPH_RUN")) or bool(runs_above())


def refuse_agents(environ: Mapping[str, str], what: str, remedy: str = _CLAIM) -> None:
    """Only people and the run itself may do this: an agent's word is a claim."""
    if is_agents(environ):
        why = "RALPH_RUN is set" if environ.get("RALPH_RUN") else "a run has started this process"
        raise ConfigError(f"an agent may not {what}: {why}", f"{remedy}{_PEOPLE}")
