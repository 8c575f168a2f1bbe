"""Keeps a talk within the model's window: old outputs go first, then all is summed up. Pure."""

from collections.abc import Sequence

from ralph.kernel.value import replace, value
from ralph.own_agent.talk import Answer, Answers, Entry, Reply, Words, transcript

_FULL, _HALF = 0.8, 0.5  # of the window: where a talk is shortened, and to what
_STILL_LONG = 0.7  # of the window: where that was not enough
_RECENT = 4  # entries whose outputs stay
_SMALL = 200  # characters of an output that are not worth it
_CHARACTERS = 3.0  # a token: code has fewer than prose
_SUMMED = 0.5  # of the window, for what is to be summed up


@value
class Window:
    """How many tokens fit, and how many the talk had when it was last counted."""

    size: int
    tokens: int = 0
    characters: int = 0

    def counted(self, entries: Sequence[Entry], tokens: int) -> "Window":
        return replace(self, tokens=tokens, characters=length(entries))

    def estimate(self, entries: Sequence[Entry]) -> float:
        """Tokens of a talk: those that were counted last, and a guess at what has changed since."""
        return self.tokens + (length(entries) - self.characters) / _CHARACTERS

    def is_full(self, entries: Sequence[Entry]) -> bool:
        return self.estimate(entries) > _FULL * self.size

    def is_still_long(self, entries: Sequence[Entry]) -> bool:
        return self.estimate(entries) > _STILL_LONG * self.size

    def is_half(self, entries: Sequence[Entry]) -> bool:
        return self.estimate(entries) > _HALF * self.size


def length(entries: Sequence[Entry]) -> int:
    return sum(map(len, transcript(entries)))


def without_old_outputs(window: Window, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The talk with the oldest outputs cut, as many as have to be for half of the window."""
    kept = list(entries)
    for at, entry in enumerate(entries[:-_RECENT]):
        if not window.is_half(kept):
            break
        if isinstance(entry, Answers):
            kept[at] = Answers(tuple(map(_cut, entry.each)))
    return tuple(kept)


def _cut(answer: Answer) -> Answer:
    size = len(answer.output)
    if size <= _SMALL:
        return answer
    return replace(answer, output=f"[{size} characters are left out: ask again if you need them]")


def to_sum_up(window: Window, entries: Sequence[Entry]) -> str:
    """The talk as text, its middle left out where it is longer than a model could read."""
    text = "\n\n".join(transcript(entries))
    most = int(_SUMMED * window.size * 3)
    if len(text) <= most:
        return text
    return f"{text[: most // 3]}\n[...]\n{text[-2 * most // 3 :]}"


def summed_up(entries: Sequence[Entry], summary: str) -> tuple[Entry, ...]:
    """A talk that begins anew, with what was asked and where the work stands."""
    first = entries[0]
    asked = first.text if isinstance(first, Words | Reply) else ""
    told = f"{asked}\n\nYou have worked on this already. Where it stands:\n\n{summary}"
    return (Words(told),)
