"""How urgent something is, where people say it in words: headings and labels.

Ours are numbers, and higher comes first; without any word it is 0.
"""

import re

OPTIONAL = -2
NAMES = {3: "Critical", 2: "High", 1: "Medium", -1: "Low"}
_WORDS = {"critical": 3, "urgent": 3, "highest": 3, "high": 2, "medium": 1, "low": -1}
_WORDS |= {"lowest": OPTIONAL}
_LEVELS = (3, 2, 1, -1, OPTIONAL)  # P0, P1, ...
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_SAID = re.compile(
    rf"\bprio(?:rity)?\b[ :/=_-]{{0,3}}({_WORD})\b"
    rf"|\b({_WORD})[ _-]{{1,3}}prio(?:rity)?\b|^({_WORD})$"
)
_LEVEL = re.compile(r"^(?:prio(?:rity)?[ :/=_-]{0,3})?p([0-4])\b")
_LONGEST = 80  # characters; what is longer is a sentence


def urgency(words: str) -> int | None:
    """How urgent it is by these words; None where they do not speak of that."""
    if len(words) > _LONGEST:
        return None
    text = words.casefold().strip(" \t*_:#")
    if found := _SAID.search(text):
        return _WORDS[found[1] or found[2] or found[3]]
    if found := _LEVEL.search(text):
        return _LEVELS[int(found[1])]
    return None
