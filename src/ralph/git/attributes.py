"""Attributes of a whole work tree in one file, so that later ones in it have no say."""

import re
from collections.abc import Iterable

# These change the content of a file: they are unspecified unless a line below says otherwise.
_RESET = "* !filter !text !eol !crlf !ident !working-tree-encoding"
_LINE = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^ \t\r]+))[ \t\r]+(.*)')  # a pattern may be quoted
_SPECIAL = re.compile(r"([\\*?\[])")


def flattened(files: Iterable[tuple[str, str]]) -> bytes:
    """The folder and the text of each file of attributes, as one; of two lines the last counts.
    Git reads it as `info/attributes`, which comes before every file in the work tree."""
    lines = [_RESET]
    for folder, text in files:
        for line in (line.strip(" \t\r") for line in text.split("\n")):
            if line.startswith("[attr]"):
                lines += [] if folder else [line]  # git knows macros at the top only
            elif line and not line.startswith("#") and (found := _LINE.fullmatch(line)):
                pattern = found[2] if found[1] is None else _unquoted(found[1])
                lines.append(f"{_quoted(_below(folder, pattern))} {found[3]}")
    return "\n".join((*lines, "")).encode("utf-8", "surrogateescape")


def _below(folder: str, pattern: str) -> str:
    """A pattern of a folder's file, as the top would write it."""
    if not folder or pattern.startswith("!"):
        return pattern
    where = _SPECIAL.sub(r"\\\1", folder)
    if "/" in pattern.rstrip("/"):
        return f"/{where}/{pattern.removeprefix('/')}"
    return f"/{where}/**/{pattern}"


def _unquoted(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        word = found[1]
        if word.isdecimal():
            return bytes([int(word, 8) & 0xFF]).decode("utf-8", "surrogateescape")
        return {"n": "\n", "t": "\t", "r": "\r", "b": "\b"}.get(word, word)

    joined = re.sub(r"\\([0-7]{3}|.)", plain, text)
    return joined.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _quoted(pattern: str) -> str:
    """As it is, unless git would take a part of it for something else."""
    if re.search(r'[\s"]', pattern) is None:
        return pattern
    text = pattern.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'.replace("\t", "\\t").replace("\r", "\\r")
