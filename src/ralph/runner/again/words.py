"""What came of judging a run again: in words, for programs, and counted."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ralph.journal.codec import encode
from ralph.kernel.events import Failure, Usage
from ralph.kernel.facts import Assigned, Began, Ended
from ralph.kernel.judging import SELECTION, Rejudged
from ralph.kernel.rules import describe_failure
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Answer, Continue, Cut, Park, Release, Stop, Wait
from ralph.runner.again.judged import Retold
from ralph.text.plain import one_line, safe, shorten
from ralph.text.words import counted, listed

_SHOWN = 160  # characters of what somebody said
_FIELDS = {  # of a turn, as people call them
    "cost_usd": "cost",
    "usage": "tokens",
    "tools": "tool calls",
    "tool_errors": "failed tool calls",
    "overheard": "claims that do not count",
    "stray": "text beside the stream",
    "unknown": "lines not understood",
    "wrote": "files written",
    "denied": "tools denied",
}


class Tally:
    """Counts what was judged again, and keeps what differs."""

    def __init__(self) -> None:
        self.facts = self.verdicts = self.streams = self.cut = self.by_another = 0
        self.differing: list[Retold] = []
        self.unjudged: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self._iterations: set[tuple[str, int]] = set()

    def add(self, retold: Retold) -> bool:
        """Count one fact; True if something differs there."""
        fact, judged, reading = retold.fact, retold.rejudged, retold.reading
        self.facts += 1
        if isinstance(fact, Began):
            self._iterations.add((retold.run, fact.iteration))
        elif fact is None and judged is not None:
            self._iterations.add((retold.run, judged.iteration))
        if isinstance(fact, Ended):
            self.cut += fact.turn.ending == "cut"
        if judged is not None and judged.unjudged:
            self.unjudged[judged.unjudged] += 1
        elif judged is not None and (judged.where != SELECTION or isinstance(fact, Assigned)):
            self.verdicts += 1
        self.by_another += judged is not None and judged.by_another
        if reading is not None and reading.unread:
            self.unread[reading.unread] += 1
        elif reading is not None:
            self.streams += 1
        differs = bool(judged and judged.differs) or bool(reading and reading.differences)
        if differs:
            self.differing.append(retold)
        return differs

    @property
    def counts(self) -> str:
        """`12 verdicts of 6 iterations, 6 streams`."""
        iterations = counted(len(self._iterations), "iteration")
        verdicts = f"{counted(self.verdicts, 'verdict')} of {iterations}"
        return f"{verdicts}, {counted(self.streams, 'stream')}"

    def lines(self) -> Iterator[str]:
        """What differs, a paragraph each; then what came of it all, and what was left out."""
        for retold in self.differing:
            yield from difference_lines(retold)
            yield ""
        first = "no difference"
        if self.differing:
            first = counted(len(self.differing), "difference")
        yield f"{first}: {self.counts}"
        yield from self._left_out()

    def _left_out(self) -> Iterator[str]:
        if self.by_another:
            yield f"the same by another rule: {counted(self.by_another, 'verdict')}"
        for why, count in self.unjudged.items():
            yield f"not judged again: {counted(count, 'verdict')}: {why}"
        for why, count in self.unread.items():
            yield f"not read again: {counted(count, 'stream')}: {why}"
        if self.cut:
            cuts = counted(self.cut, "cut")
            yield f"not judged again: {cuts} of a turn under way: facts do not time what was seen"

    def as_dict(self, run: str) -> dict[str, Any]:
        """The same for programs."""
        return {
            "run": run,
            "verdicts": self.verdicts,
            "iterations": len(self._iterations),
            "streams": self.streams,
            "differences": [_difference_dict(retold) for retold in self.differing],
            "unjudged": [{"why": why, "verdicts": n} for why, n in self.unjudged.items()],
            "unread": [{"why": why, "streams": n} for why, n in self.unread.items()],
            "cut": self.cut,
            "by_another_rule": self.by_another,
        }


def difference_lines(retold: Retold) -> Iterator[str]:
    """A difference in words: where it is, then and now, and what has changed."""
    judged, reading = retold.rejudged, retold.reading
    worker = f"{retold.run}, " if retold.worker else ""
    if reading is not None and reading.differences:
        where = f"{worker}{_place(reading.iteration, reading.task)}"
        yield f"{where}, {reading.stream} is read otherwise"
        for name, then, now in reading.differences:
            yield f"  {_FIELDS.get(name, name)}: {_shown(then)} then, {_shown(now)} now"
    if judged is None or not judged.differs:
        return
    yield f"{worker}{_place(judged.iteration, judged.task)}, {judged.where}"
    yield f"  then  {_answer(judged.then, judged.rule)}"
    yield f"  now   {_answer(judged.now, judged.rule_now)}"
    if judged.turn is not None:
        yield f"  about {_about(judged.turn, judged.findings)}"
    yield from (f"  {line}" for line in _why(judged))


def _why(judged: Rejudged) -> tuple[str, ...]:
    """What has changed: the stream's reading, or rules."""
    if judged.by_reading:
        return ("The stream is read otherwise, as said above.",)
    if judged.where == SELECTION and not judged.rule_now:
        return ("Tasks are selected otherwise.",)
    if judged.changes:
        return tuple(f"Changed: {change}." for change in judged.changes)
    names = [*dict.fromkeys(filter(None, (judged.rule, judged.rule_now)))]
    return (f"Changed: the code of {listed(names)}; names, order and parameters are the same.",)


def _place(iteration: int, task: str) -> str:
    return f"iteration {iteration}" + (f" ({task})" if task not in ("", "prompt") else "")


def _answer(answer: Answer | Assignment | None, rule: str) -> str:
    words = _words(answer)
    return f"{rule}: {words}" if rule else words


def _words(answer: Answer | Assignment | None) -> str:
    match answer:
        case None:
            return "nothing"
        case Assignment(task=task, mode=mode):
            return f"{task} is chosen, to {mode}"
        case Accept(evidence=evidence):
            return f"believed: {_line('; '.join(evidence))}"
        case Park(why=why, cause=cause):
            return f"left to a person ({cause}): {_line(why)}"
        case Wait(until=until, why=why):
            times = {None: "until resumed", 0.0: "no time"}
            when = times.get(until, f"until {until}")
            return f"waits {when}: {_line(why)}"
        case Stop(reason=reason, why=why):
            return f"the run ends ({reason}): {_line(why)}"
        case Continue(feedback=feedback, after=after):
            told = _line(" / ".join(piece.text for piece in feedback))
            words = f"goes on after {after:g}s" if after else "goes on"
            return f"{words}, told: {told}" if told else words
        case Release(why=why) | Cut(why=why):
            return f"let go: {_line(why)}" if why else "let go"


def _about(turn: Turn, findings: tuple[str, ...]) -> str:
    """What led to a verdict: what the turn claimed, or how it failed, and who objected."""
    claims = ", ".join(_line(claim.raw) for claim in turn.claims[-3:]) or "no claim"
    failed = f"; it failed: {_line(describe_failure(turn))}" if turn.failed else ""
    objects = f"; {listed(findings)} objected" if findings else ""
    return f"a turn with {claims}{failed}{objects}"


def _shown(found: object) -> str:
    if isinstance(found, Failure):
        return _line(found.message) + (f" ({found.status})" if found.status else "")
    if isinstance(found, Usage):
        return f"{found.all_input} in and {found.output} out"
    if isinstance(found, tuple):
        return ", ".join(_line(getattr(each, "raw", each)) for each in found) or "none"
    return _line(found) if found not in (None, "") else "none"


def _line(text: object) -> str:
    return shorten(" ".join(one_line(safe(str(text))).split()), _SHOWN, None, "...")


def _difference_dict(retold: Retold) -> dict[str, Any]:
    judged, reading = retold.rejudged, retold.reading
    about: dict[str, Any] = {"run": retold.run}
    about |= {"time": retold.fact.time} if retold.fact else {}
    if reading is not None and reading.differences:
        about |= {"iteration": reading.iteration, "task": reading.task, "stream": reading.stream}
        about["read"] = [
            {"field": name, "then": _json(then), "now": _json(now)}
            for name, then, now in reading.differences
        ]
    if judged is not None and judged.differs:
        about |= {
            "iteration": judged.iteration,
            "task": judged.task,
            "where": judged.where,
            "then": {"rule": judged.rule, "verdict": _json(judged.then)},
            "now": {"rule": judged.rule_now, "verdict": _json(judged.now)},
            "changes": list(judged.changes),
            "by_reading": judged.by_reading,
            "findings": list(judged.findings),
            "claims": [claim.raw for claim in judged.turn.claims] if judged.turn else [],
        }
    return about


def _json(found: object) -> Any:  # noqa: ANN401  JSON is what it is
    return encode(found)
