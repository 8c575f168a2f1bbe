"""Ids that people write in front of a title: `T-001: title`, `**T-001** title`, `US-3 - title`."""

import re

_NAME = r"[A-Za-z][A-Za-z0-9]{0,30}(?:[-_.][A-Za-z0-9]{1,30}){0,6}"
_WHOLE = re.compile(_NAME)
_DASH = r"(?::(?=[ \t])|[ \t]{1,9}[-–—](?=[ \t]))"
_LEAD = re.compile(
    rf"(?:(?:\*\*|__)({_NAME}):?(?:\*\*|__){_DASH}?|\[({_NAME})\]:?|({_NAME}){_DASH})[ \t]+(?=\S)"
)


def is_id(name: str) -> bool:
    """Whether it is known as an id in front of a title: there is a dash in it, and a number."""
    fits = _WHOLE.fullmatch(name) is not None
    return fits and "-" in name and any("0" <= character <= "9" for character in name)


def leading_id(text: str) -> tuple[str, int]:
    """The id, and where the title begins; "" and 0 if there is none."""
    found = _LEAD.match(text)
    name = (found[1] or found[2] or found[3]) if found else ""
    return (name, found.end()) if found and is_id(name) else ("", 0)
