"""Acceptance criteria: lists of their own elsewhere, with us the end of the description, because an
agent must read them."""

from collections.abc import Sequence

_HEAD = "Acceptance criteria:"


def with_criteria(text: str, criteria: Sequence[str]) -> str:
    """A description with its criteria, as `without_criteria` finds them again."""
    if not criteria:
        return text
    lines = [f"- {one}".replace("\n", "\n  ") for one in criteria]
    block = "\n".join([_HEAD, *lines])
    return f"{text}\n\n{block}" if text else block


def without_criteria(text: str) -> tuple[str, tuple[str, ...]]:
    """The description and its criteria, where these are its end."""
    before, found, block = text.rpartition(f"{_HEAD}\n")
    if not found or (before and not before.endswith("\n\n")):
        return text, ()
    criteria: list[str] = []
    for line in block.split("\n"):
        if line.startswith("- "):
            criteria.append(line[2:])
        elif line.startswith("  ") and criteria:
            criteria[-1] += f"\n{line[2:]}"
        else:
            return text, ()
    return before[:-2], tuple(criteria)
