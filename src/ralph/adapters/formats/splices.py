"""Texts that are changed in a few places, and nowhere else."""

from collections.abc import Iterable

Splice = tuple[int, int, str]  # from, to, and what comes there


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """The text with all of these, whose places are those of the text as it is now."""
    parts: list[str] = []
    at = 0
    for start, end, new in sorted(splices):
        parts += [text[at:start], new]
        at = max(at, end)
    return "".join([*parts, text[at:]])
