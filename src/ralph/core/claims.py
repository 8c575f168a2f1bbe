"""Which words count: claims in an agent's text, and the contracts they must meet (ADR 3).

A claim is a tag the assistant wrote. Whether it completes anything is for a contract to say, and
whether it is believed is for the rules.
"""

import json
import re
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ralph.core.value import replace, value

if TYPE_CHECKING:
    from ralph.core.turn import Turn

_TAG = re.compile(r"<(/?)(response|promise|result)>", re.IGNORECASE)
_LONGEST_TAG = len("</response>")
_LONGEST_CLAIM = 64 * 1024
_NO_REASON = "it gives no reason"


@value
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
    """Finds claims in text that comes in pieces, the same ones however it is cut; memory is flat.

    The first `<response>` is kept for ever (H: the first match wins), of all others the latest.
    A mention of an opening tag without its end, in prose, does not swallow a later claim.
    """

    def __init__(self, most: int = 32) -> None:
        self._text = ""  # what may still be part of a claim
        self._next = 0  # where in it the next tag may begin
        self._opened: dict[str, int] = {}  # where each kind of tag was opened last
        self._first: Claim | None = None
        self._latest: deque[Claim] = deque(maxlen=most)

    def feed(self, piece: str) -> bool:
        """Take the next piece of text; whether a claim was completed by it."""
        if "<" not in piece and "<" not in self._text:  # nothing is open and nothing begins
            self._text, self._next = "", 0
            return False
        self._text += piece
        found = False
        for tag in _TAG.finditer(self._text, self._next):
            self._next = tag.end()
            claim = self._take(tag)
            if claim is not None:
                found = True
                self._keep(claim)
        self._forget()
        return found

    def claims(self) -> tuple[Claim, ...]:
        """All claims that are kept, in the order in which they were made."""
        if self._first is None or any(c is self._first for c in self._latest):
            return tuple(self._latest)
        return (self._first, *self._latest)

    def _take(self, tag: re.Match[str]) -> Claim | None:
        """An opening tag is remembered, a closing one may complete a claim."""
        name = tag.group(2).lower()
        if not tag.group(1):
            self._opened[name] = tag.start()
            return None
        begin = self._opened.pop(name, None)
        if begin is None or tag.end() - begin > _LONGEST_CLAIM:
            return None
        self._opened.clear()
        return Claim(self._text[begin : tag.end()])

    def _keep(self, claim: Claim) -> None:
        if claim.tag == "response" and self._first is None:
            self._first = claim
        self._latest.append(claim)

    def _forget(self) -> None:
        """Drop what can no longer become part of a claim."""
        end = len(self._text)
        self._next = max(self._next, end - _LONGEST_TAG + 1)  # the end may be half a tag
        self._opened = {n: at for n, at in self._opened.items() if end - at < _LONGEST_CLAIM}
        start = min([self._next, *self._opened.values()])
        self._text = self._text[start:]
        self._next -= start
        self._opened = {name: at - start for name, at in self._opened.items()}


def find_claims(text: str) -> tuple[Claim, ...]:
    """All claims in one whole text."""
    if "<" not in text or "</" not in text:  # one character is found much faster than two
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


@value
class ResponseTag:
    """H: the first `<response>` tag equals the word, blanks around it and case aside."""

    word: str = "DONE"

    @property
    def marker(self) -> str:
        return f"<response>{self.word}</response>"

    def met_by(self, turn: "Turn") -> Claim | None:
        first = next((c for c in turn.claims if c.tag == "response"), None)
        return first if first is not None and self._is_said_by(first) else None

    def near_misses(self, turn: "Turn") -> tuple[str, ...]:
        if self.met_by(turn):
            return ()
        responses = [c for c in turn.claims if c.tag == "response"]
        if any(self._is_said_by(c) for c in responses):
            return (f"Only the first <response> tag counts, and it was {_shown(responses[0])}.",)
        near = [c for c in turn.claims if self._is_near(c)]
        return (
            *(f"{_shown(c)} is not {self.marker}." for c in near[:1]),
            *_overheard(turn, lambda c: c.tag == "response" and self._is_said_by(c)),
            *_bare(turn, self.word, self.marker),
        )

    def _is_said_by(self, claim: Claim) -> bool:
        return _same(claim.content, self.word)

    def _is_near(self, claim: Claim) -> bool:
        """The word in another tag, or among others; a plain "not yet" is no near miss."""
        if claim.tag == "response":
            return self.word.casefold() in claim.content.casefold()
        return self._is_said_by(claim)


@value
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


@value
class CompleteClaim:
    """B and R: the last promise or result of the turn says that the task is complete."""

    marker: str = "<promise>COMPLETE</promise>"

    def met_by(self, turn: "Turn") -> Claim | None:
        last = _last_status(turn)
        return last[0] if last is not None and last[1] == "complete" else None

    def near_misses(self, turn: "Turn") -> tuple[str, ...]:
        if self.met_by(turn):
            return ()
        near = [c for c in turn.claims if _same(c.content, "COMPLETE") and c.raw != self.marker]
        return (
            *(f"{_shown(c)} is not exactly {self.marker}." for c in near[:1]),
            *_overheard(turn, lambda c: c.raw == self.marker),
            *_bare(turn, "COMPLETE", self.marker),
        )


def asked(turn: "Turn", contract: Contract | None = None) -> str | None:
    """What the agent needs from a person: BLOCKED, DECIDE, or a question nobody answered. Where
    it goes on to meet the contract, that is its last word (ADR 3)."""
    last = _last_status(turn)
    if last is None or last[1] not in ("blocked", "decide"):
        return turn.question
    after = max(at for at, claim in enumerate(turn.claims) if claim is last[0])
    later = replace(turn, claims=turn.claims[after + 1 :])
    return None if contract is not None and contract.met_by(later) else last[2]


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
            return word.lower(), why.strip() or _NO_REASON
    if claim.tag == "result":
        return _result_status(claim.content)
    return None


def _result_status(content: str) -> tuple[str, str] | None:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):  # the agent wrote it: anything may stand there
        return None
    status = value.get("status") if isinstance(value, dict) else None
    if status not in ("complete", "blocked", "failed", "continue"):
        return None
    why = str(value.get("blocker") or value.get("error") or value.get("reason") or "")
    return status, why or (_NO_REASON if status == "blocked" else "")


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
