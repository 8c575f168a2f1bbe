"""Words of a recap: verdicts as sentences, and texts of others short and clean enough to show."""

from collections.abc import Iterable, Iterator, Mapping

from ralph.kernel.contracts import says_done
from ralph.kernel.facts import Checked, Decided, Step
from ralph.kernel.findings import Finding
from ralph.kernel.prompt import told
from ralph.kernel.rules import describe_failure
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Continue, Park, Reason, Stop, Verdict, Wait
from ralph.review.stats import review_of
from ralph.text.plain import first_line, safe
from ralph.text.words import listed
from ralph.ui.recap.values import Check, Judgement, Settling

MOST = 4_000  # characters of a text, of which the beginning and the end are kept
_MOST_CLAIM = 300


def shown(text: str, most: int = MOST) -> str:
    """A text of somebody's, safe to show and to encode. Of a long one the middle is left out, by
    whole lines where it has some."""
    if len(text) > 4 * most:  # not all of ten megabytes is looked at
        return _joined(safe(text[: 2 * most]), safe(text[-2 * most :]), len(text) - 4 * most, most)
    text = safe(text)
    if len(text) > most:
        half = len(text) // 2
        text = _joined(text[:half], text[half:], 0, most)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _joined(head: str, tail: str, between: int, most: int) -> str:
    room = most // 2
    begin, end = head[:room], tail[-room:]
    begin = begin[: begin.rfind("\n", room // 2) + 1] or begin
    cut = end.find("\n", 0, room // 2) + 1
    end = end[cut:]
    left_out = len(head) - len(begin) + len(tail) - len(end) + between
    text = f"{begin.rstrip()}\n... {left_out} characters are left out here ...\n{end.lstrip()}"
    return text.encode("utf-8", "replace").decode()


def judgement_of(
    decided: Decided, turn: Turn | None, verdict: Verdict | None, rules: Mapping[str, str]
) -> Judgement:
    """The verdict as it was settled, and why."""
    final = verdict or decided.verdict
    done = [claim.raw for claim in turn.claims if says_done(claim)] if turn else []
    claims = tuple(shown(raw, _MOST_CLAIM) for raw in done)
    feedback = told(final.feedback) if isinstance(final, Continue) else ()
    evidence = final.evidence if isinstance(final, Accept | Stop) else ()
    return Judgement(
        decided.time,
        type(final).__name__.lower(),
        shown(_verdict_words(final, decided, has_claim=bool(claims))),
        shown(decided.rule),
        rules.get(decided.rule, ""),
        tuple(map(shown, evidence)),
        tuple(shown(f"{found.gate}: {_found(found)}") for found in decided.findings),
        tuple(map(shown, decided.notes)),
        claims,
        tuple(shown(piece.text) for piece in feedback),
        is_disbelieved=bool(claims) and _is_no(final),
    )


def _is_no(verdict: Verdict) -> bool:
    """True for the answer to a claim that is not believed; some are not judged at all."""
    if isinstance(verdict, Stop):
        return verdict.reason in (Reason.LIMIT, Reason.STALLED, Reason.FAILING)
    return isinstance(verdict, Continue | Park)


def _found(found: Finding) -> str:
    """The finding of a gate, in a line."""
    return first_line(found.text) if found.code is None else f"exit code {found.code}"


def _verdict_words(verdict: Verdict, decided: Decided, *, has_claim: bool) -> str:
    match verdict:
        case Accept():
            return "Believed: the task is done."
        case Park(why=why):
            return f"Left to a person: {why}"
        case Wait(until=None, why=why):
            return f"Waits to be resumed: {why}"
        case Wait(why=why):
            return f"Taken again: {why}"
        case Stop(reason=reason, why=why):
            return f"The run ends: {why or reason.value}"
        case Continue():
            gates = listed([*dict.fromkeys(found.gate for found in decided.findings)])
            claim = (
                "The claim is not believed" if has_claim else "Not done yet" if gates else "Goes on"
            )
            return f"{claim}: {gates} objected." if gates else f"{claim}."
        case _:
            return verdict.why


def checks_of(checked: Iterable[Checked]) -> Iterator[Check]:
    """The gates that ran, each with what it found."""
    for each in checked:
        yield Check(
            shown(each.gate, _MOST_CLAIM),
            each.seconds,
            tuple(map(_objection, each.findings)),
            next((found.code for found in each.findings if found.code is not None), None),
            next((shown(found.log) for found in each.findings if found.log), ""),
        )


def _objection(found: Finding) -> str:
    return shown(found.text if found.code is None else first_line(found.text))


def settling_of(step: Step) -> Settling:
    """A step, with a review in words."""
    review = review_of(step.detail) if step.key == "review" else None
    detail = step.detail
    if review is not None:
        detail = f"{review.story}: {review.outcome.replace('_', ' ')}"
    return Settling(shown(step.key, _MOST_CLAIM), step.ok, shown(detail), shown(step.commit))


def trouble_of(turn: Turn) -> str:
    """The reason why a turn was cut, failed or could not start; "" for one that did neither."""
    return shown(describe_failure(turn)) if turn.failed else ""
