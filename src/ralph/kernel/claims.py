"""Claims in an agent's text: tags that the assistant wrote (ADR 3).

A contract says whether one completes anything, and the rules whether it is believed.
"""

import re
from collections import deque

from ralph.kernel.value import value

_TAG = re.compile(r"<(/?)(response|promise|result)>", re.IGNORECASE)
_LONGEST_TAG = len("</response>")
_LONGEST_CLAIM = 64 * 1024


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
        """The text between the tags, as written."""
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
            if claim is None:
                continue
            found = True
            self._latest.append(claim)
            if claim.tag == "response" and self._first is None:
                self._first = claim
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
    if "<" not in text or "</" not in text:  # one character is found much faster than two
        return ()
    scanner = ClaimScanner()
    scanner.feed(text)
    return scanner.claims()
