"""Reads and writes YAML scalars as they stand behind a key: `key: scalar # comment`.

What begins as JSON is read as JSON; of YAML only what stands on one line.
"""

import json
import re

_JSON = json.JSONDecoder(strict=False)
_SINGLE = re.compile(r"'((?:[^']|'')*+)'")
# One blank only: a long run of them that leads to no comment must not cost its square.
_COMMENT = re.compile(r"(?:^|\s)#")
_NOTHING = ("", "~", "null", "Null", "NULL")
# JSON lets these stand as they are; in YAML they are line breaks, or not allowed.
_UNUSUAL = (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
_ESCAPED = {code: f"\\u{code:04x}" for code in _UNUSUAL}


def written(text: str) -> str:
    """A text as both JSON and YAML read it back."""
    return json.dumps(text, ensure_ascii=False).translate(_ESCAPED)


def text_of(text: str) -> str | None:
    """A scalar as text, also where it looks like a number; None for null and nothing."""
    text = text.strip()
    if text[:1] in ('"', "'"):
        return _quoted(text)
    comment = _COMMENT.search(text)
    bare = text[: comment.start()].rstrip() if comment else text
    return None if bare in _NOTHING else bare


def _quoted(text: str) -> str:
    """Without its quotes; one that is not closed goes on to the end."""
    if text.startswith("'"):
        single = _SINGLE.match(text)
        return single[1].replace("''", "'") if single else text[1:]
    try:
        return str(_JSON.raw_decode(text)[0])
    except ValueError:  # YAML knows more escapes than JSON: these stay as they are
        inside, closed, rest = text[1:].rpartition('"')
        return inside if closed else rest
