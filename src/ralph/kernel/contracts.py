"""Contracts that claims must meet (ADR 3), and what else an agent's tags say of its turn."""

import json
import re
from collections.abc import Callable
from typing import Any, Protocol

from ralph.kernel.claims import Claim
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace, value

_MOST_ARTIFACTS = 100
_NO_REASON = "it gives no reason"
_FINISHED = ("DONE", "COMPLETE", "COMPLETED", "FINISHED")  # an agent that means to be done
_AROUND = "*_`.! "  # what agents put around such a word
_MORE = re.compile(r"\b(?:not|no|continue|pending)\b", re.IGNORECASE)  # of an agent that is not


class Contract(Protocol):
    """The words by which an agent claims that its task is complete."""

    @property
    def marker(self) -> str:
        """The words to say, literally."""

    def met_by(self, turn: Turn) -> Claim | None:
        """The claim that meets this contract, if there is one."""

    def near_misses(self, turn: Turn) -> tuple[str, ...]:
        """Sentences about what came close but does not count, for the feedback and the log."""


@value
class ResponseTag:
    """H: the first `<response>` tag equals the word, blanks around it and case aside."""

    word: str = "DONE"

    @property
    def marker(self) -> str:
        return f"<response>{self.word}</response>"

    def met_by(self, turn: Turn) -> Claim | None:
        first = next((c for c in turn.claims if c.tag == "response"), None)
        return first if first is not None and self._is_claim(first) else None

    def near_misses(self, turn: Turn) -> tuple[str, ...]:
        if self.met_by(turn):
            return ()
        responses = [c for c in turn.claims if c.tag == "response"]
        if any(map(self._is_claim, responses)):
            first = f"Only the first <response> tag counts, and it was {_shown(responses[0])}"
            return (f"{first}: write no other than {self.marker}.",)
        near = [f"{_shown(c)} is not {self.marker}." for c in turn.claims if self._is_near(c)]
        return (*near[:1], *_unheard(turn, self.word, self.marker, self._is_claim))

    def _is_claim(self, claim: Claim) -> bool:
        return claim.tag == "response" and _same(claim.content, self.word)

    def _is_near(self, claim: Claim) -> bool:
        """Another tag or another word that says the same, or the word among others; a plain "not
        yet" is no near miss."""
        if claim.tag == "response" and self.word.casefold() in claim.content.casefold():
            return True
        complete = (_status(claim) or ("",))[0] == "complete"
        return complete or _finishes(claim.content, self.word)


@value
class PromiseTag:
    """P: exactly `<promise>TOKEN</promise>`, case-sensitive, nothing inside but the token."""

    token: str = "DONE"  # noqa: S105  not a password: the word that is promised

    @property
    def marker(self) -> str:
        return f"<promise>{self.token}</promise>"

    def met_by(self, turn: Turn) -> Claim | None:
        return next((c for c in turn.claims if c.raw == self.marker), None)

    def near_misses(self, turn: Turn) -> tuple[str, ...]:
        return () if self.met_by(turn) else _inexact(turn, self.token, self.marker)


@value
class CompleteClaim:
    """B and R: the last promise or result of the turn says that the task is complete."""

    marker: str = "<promise>COMPLETE</promise>"

    def met_by(self, turn: Turn) -> Claim | None:
        last = _last_status(turn)
        return last[0] if last is not None and last[1] == "complete" else None

    def near_misses(self, turn: Turn) -> tuple[str, ...]:
        return () if self.met_by(turn) else _inexact(turn, "COMPLETE", self.marker)


def says_done(claim: Claim) -> bool:
    """False for a claim that says something else: a question, a failure, that there is more to do.
    It need not meet the contract."""
    if claim.tag == "result" or claim.content.startswith(("BLOCKED:", "DECIDE:")):
        return (_status(claim) or ("",))[0] == "complete"
    return not _MORE.search(claim.content)


def asked(turn: Turn, contract: Contract | None = None) -> str | None:
    """The agent's request to a person: BLOCKED, DECIDE, or a question nobody answered. Where
    it goes on to meet the contract, that is its last word (ADR 3)."""
    last = _last_status(turn)
    if last is None or last[1] not in ("blocked", "decide"):
        return turn.question
    after = max(at for at, claim in enumerate(turn.claims) if claim is last[0])
    later = replace(turn, claims=turn.claims[after + 1 :])
    return None if contract is not None and contract.met_by(later) else last[2]


def said_failed(turn: Turn) -> bool:
    """B: the agent itself says that this iteration failed."""
    last = _last_status(turn)
    return last is not None and last[1] == "failed"


def artifacts_of(turn: Turn) -> tuple[str, ...]:
    """The paths that the agent names in its last result (B §Explicit Completion)."""
    named = last_result(turn).get("artifacts")
    texts = [path for path in named if isinstance(path, str)] if isinstance(named, list) else []
    return tuple(texts[:_MOST_ARTIFACTS])


def last_result(turn: Turn) -> dict[str, Any]:
    """The last object that the agent gives as its result (B §Iteration Result); {} if none."""
    objects = [_object(claim) for claim in turn.claims if claim.tag == "result"]
    return next((found for found in reversed(objects) if found), {})


def _object(claim: Claim) -> dict[str, Any]:
    try:
        found = json.loads(claim.content)
    except (ValueError, RecursionError):  # the agent wrote it
        return {}
    return found if isinstance(found, dict) else {}


def _last_status(turn: Turn) -> tuple[Claim, str, str] | None:
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
        found = _object(claim)
        status = found.get("status")
        if status in ("complete", "blocked", "failed", "continue"):
            why = str(found.get("blocker") or found.get("error") or found.get("reason") or "")
            return status, why or (_NO_REASON if status == "blocked" else "")
    return None


def _same(said: str, wanted: str) -> bool:
    return said.strip().casefold() == wanted.strip().casefold()


def _finishes(said: str, word: str) -> bool:
    """True for the word, or for one of other loops, whatever is around it."""
    return any(_same(said.strip(f"{_AROUND}\n"), finished) for finished in (word, *_FINISHED))


def _shown(claim: Claim) -> str:
    return claim.raw if len(claim.raw) <= 80 else f"{claim.raw[:77]}..."


def _inexact(turn: Turn, word: str, marker: str) -> tuple[str, ...]:
    """Near misses of a marker that has to be written to the letter."""
    near = [c for c in turn.claims if _finishes(c.content, word) and c.raw != marker]
    first = [f"{_shown(c)} is not exactly {marker}." for c in near[:1]]
    return (*first, *_unheard(turn, word, marker, lambda c: c.raw == marker))


def _unheard(
    turn: Turn, word: str, marker: str, is_claim: Callable[[Claim], bool]
) -> tuple[str, ...]:
    """Near misses outside the assistant's own tags."""
    said = []
    if any(map(is_claim, turn.overheard)):
        where = "only in tool output or in text that is not yours"
        said.append(f"{marker} stood {where}: say it yourself, once everything is done.")
    last = "".join(turn.text.strip().splitlines()[-1:]).strip(_AROUND)
    if last and _finishes(last, word):
        said.append(f"The bare word {last} does not count; the tag {marker} does.")
    return tuple(said)
