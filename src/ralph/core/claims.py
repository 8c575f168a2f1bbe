"""Which words count: claims in an agent's text, and the contracts they must meet (DESIGN §4.2).

A claim is a tag the assistant wrote. Whether it completes anything is for a contract to say, and
whether it is believed is for the rules.
"""

import json
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ralph.core.turn import Turn

_OPEN = re.compile(r"<(response|promise|result)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(response|promise|result)>", re.IGNORECASE)
_LONGEST_CLAIM = 64 * 1024
_PARTIAL_TAG = len("</response>")


@dataclass(frozen=True, slots=True)
class Claim:
    """A tag as it was written: `<promise>DONE</promise>`."""

    raw: str

    @property
    def tag(self) -> str:
        """The tag's name, in lower case."""
        return self.raw[1 : self.raw.index(">")].lower()

    @property
    def content(self) -> str:
        """What stands between the tags, as written."""
        return self.raw[self.raw.index(">") + 1 : self.raw.rindex("<")]


class ClaimScanner:
    """Finds claims in text that comes in pieces; memory stays flat.

    The first `<response>` is kept for ever (H: the first match wins), of the others the latest.
    A mention of an opening tag without its end, in prose, does not swallow a later claim.
    """

    def __init__(self, most: int = 32) -> None:
        self._rest = ""
        self._first: Claim | None = None
        self._latest: deque[Claim] = deque(maxlen=most)

    def feed(self, text: str) -> None:
        """Take the next piece of text."""
        buffer, used = self._rest + text, 0
        for end in _CLOSE.finditer(buffer):
            begin = _last_open(buffer, end.group(1).lower(), used, end.start())
            if begin is not None:
                self._keep(Claim(buffer[begin : end.end()]))
                used = end.end()
        self._rest = _unfinished(buffer, used)

    def claims(self) -> tuple[Claim, ...]:
        """All claims that are kept, in the order in which they were made."""
        first = () if self._first is None or self._first in self._latest else (self._first,)
        return first + tuple(self._latest)

    def _keep(self, claim: Claim) -> None:
        if claim.tag == "response":
            if self._first is not None:
                return
            self._first = claim
        self._latest.append(claim)


def _last_open(buffer: str, tag: str, start: int, end: int) -> int | None:
    places = [m.start() for m in _OPEN.finditer(buffer, start, end) if m.group(1).lower() == tag]
    return places[-1] if places else None


def _unfinished(buffer: str, used: int) -> str:
    """What may still become a claim: from the last opening tag, else a tag cut in two."""
    opened = [m.start() for m in _OPEN.finditer(buffer, used)]
    start = opened[-1] if opened else max(used, len(buffer) - _PARTIAL_TAG)
    return buffer[start:][-_LONGEST_CLAIM:]


def find_claims(text: str) -> tuple[Claim, ...]:
    """All claims in one whole text."""
    if "</" not in text:
        return ()
    scanner = ClaimScanner()
    scanner.feed(text)
    return scanner.claims()


class Contract(Protocol):
    """What an agent must say for its task to count as claimed complete."""

    @property
    def marker(self) -> str:
        """The words to say, literally."""

    def met_by(self, turn: "Turn") -> Claim | None:
        """The claim that meets this contract, if there is one."""

    def near_misses(self, turn: "Turn") -> tuple[str, ...]:
        """Sentences about what came close but does not count, for the feedback and the log."""


@dataclass(frozen=True)
class ResponseTag:
    """H: the first `<response>` tag equals the word, blanks around it and case aside."""

    word: str = "DONE"

    @property
    def marker(self) -> str:
        return f"<response>{self.word}</response>"

    def met_by(self, turn: "Turn") -> Claim | None:
        first = next((c for c in turn.claims if c.tag == "response"), None)
        return first if first is not None and _same(first.content, self.word) else None

    def near_misses(self, turn: "Turn") -> tuple[str, ...]:
        if self.met_by(turn):
            return ()
        said = (c for c in turn.claims if c.tag == "response" or _same(c.content, self.word))
        return (
            *(f"{_shown(c)} is not {self.marker}." for c in list(said)[:1]),
            *_overheard(turn, lambda c: c.tag == "response" and _same(c.content, self.word)),
            *_bare(turn, self.word, self.marker),
        )


@dataclass(frozen=True)
class PromiseTag:
    """P: exactly `<promise>TOKEN</promise>`, case-sensitive, nothing inside but the token."""

    token: str = "DONE"  # noqa: S105  not a password: the word that is promised

    @property
    def marker(self) -> str:
        return f"<promise>{self.token}</promise>"

    def met_by(self, turn: "Turn") -> Claim | None:
        return next((c for c in turn.claims if c.raw == self.marker), None)

    def near_misses(self, turn: "Turn") -> tuple[str, ...]:
        if self.met_by(turn):
            return ()
        near = [c for c in turn.claims if _same(c.content, self.token)]
        return (
            *(f"{_shown(c)} is not exactly {self.marker}." for c in near[:1]),
            *_overheard(turn, lambda c: c.raw == self.marker),
            *_bare(turn, self.token, self.marker),
        )


@dataclass(frozen=True)
class CompleteClaim:
    """B and R: the last promise or result of the turn says that the task is complete."""

    marker: str = "<promise>COMPLETE</promise>"

    def met_by(self, turn: "Turn") -> Claim | None:
        last = _last_status(turn)
        return last[0] if last is not None and last[1] == "complete" else None

    def near_misses(self, turn: "Turn") -> tuple[str, ...]:
        if self.met_by(turn):
            return ()
        near = [c for c in turn.claims if _same(c.content, "COMPLETE")]
        return (
            *(f"{_shown(c)} is not exactly {self.marker}." for c in near[:1]),
            *_overheard(turn, lambda c: c.raw == self.marker),
            *_bare(turn, "COMPLETE", self.marker),
        )


def asked(turn: "Turn") -> str | None:
    """What the agent needs from a person: BLOCKED, DECIDE, or a question nobody answered."""
    last = _last_status(turn)
    if last is not None and last[1] in ("blocked", "decide"):
        return last[2]
    return turn.question


def said_failed(turn: "Turn") -> bool:
    """B: the agent itself says that this iteration failed."""
    last = _last_status(turn)
    return last is not None and last[1] == "failed"


def _last_status(turn: "Turn") -> tuple[Claim, str, str] | None:
    known = [(c, *s) for c in turn.claims if (s := _status(c)) is not None]
    return known[-1] if known else None


def _status(claim: Claim) -> tuple[str, str] | None:
    """(status, why) of a promise or of B's result object; None for anything else."""
    if claim.tag == "promise":
        word, colon, why = claim.content.partition(":")
        if claim.raw == "<promise>COMPLETE</promise>":
            return "complete", ""
        if colon and word in ("BLOCKED", "DECIDE"):
            return word.lower(), f"{word}: {why.strip()}"
    if claim.tag == "result":
        return _result_status(claim.content)
    return None


def _result_status(content: str) -> tuple[str, str] | None:
    try:
        value = json.loads(content)
    except ValueError:
        return None
    status = value.get("status") if isinstance(value, dict) else None
    if status not in ("complete", "blocked", "failed", "continue"):
        return None
    why = str(value.get("blocker") or value.get("error") or value.get("reason") or "")
    return status, f"BLOCKED: {why}" if status == "blocked" else why


def _same(said: str, wanted: str) -> bool:
    return said.strip().casefold() == wanted.strip().casefold()


def _shown(claim: Claim) -> str:
    return claim.raw if len(claim.raw) <= 80 else f"{claim.raw[:77]}..."


def _overheard(turn: "Turn", wanted: Callable[[Claim], bool]) -> tuple[str, ...]:
    if not any(wanted(c) for c in turn.overheard):
        return ()
    return ("The completion tag appeared only in tool output or in text that is not yours.",)


def _bare(turn: "Turn", word: str, marker: str) -> tuple[str, ...]:
    lines = turn.text.strip().splitlines()
    if not lines or not _same(lines[-1].strip("*_`.! "), word):
        return ()
    return (f"The bare word {word} does not count; the tag {marker} does.",)

