"""The title and the text of a pull request. What agents and lists wrote stays text."""

from collections.abc import Iterator

from ralph.kernel.value import value
from ralph.text.words import counted, duration, money
from ralph.ui.paper.markdown import plain_words

_TITLE = 72  # characters
_TEXT = 4000
LARGEST = 60_000  # characters; forges take 65,536
_OPEN, _CLOSE = "<details><summary>The run, as Ralph reports it</summary>\n\n", "\n\n</details>"


@value
class Subject:
    """What a pull request is about, as its loop knows it."""

    title: str
    text: str = ""  # a description
    issues: tuple[str, ...] = ()  # that it settles: owner/name#number


@value
class Account:
    """What the work took, and what speaks for it."""

    evidence: tuple[str, ...] = ()
    proof: str = ""
    iterations: int = 0
    seconds: float = 0.0
    dollars: float | None = None
    report: str = ""  # Markdown


def title_of(subject: Subject) -> str:
    line = " ".join(subject.title.split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1].rstrip()}…"


def body_of(subject: Subject, account: Account, *, closes: bool) -> str:
    """The text in Markdown; `closes` lets a merge close the issue."""
    lines = list(_lines(subject, account, closes=closes))
    text = "\n".join(lines)
    room = LARGEST - len(text) - len(_OPEN) - len(_CLOSE)
    report = account.report.strip()
    if len(report) > room:
        report = f"{report[: max(0, room - 20)].rpartition(chr(10))[0]}\n\n(cut)"
    return f"{text}\n{_OPEN}{report}{_CLOSE}\n" if account.report else f"{text}\n"


def _lines(subject: Subject, account: Account, *, closes: bool) -> Iterator[str]:
    if subject.text.strip():
        lines = subject.text[:_TEXT].strip().splitlines()
        yield from (f"> {plain_words(line, _TEXT)}".rstrip() for line in lines)
        yield ""
    if subject.issues:
        yield from (f"{'Closes' if closes else 'For'} {issue}" for issue in subject.issues)
        yield ""
    if account.evidence or account.proof:
        yield from ("### Why it is believed to be done", "")
        yield from (f"- {plain_words(line)}" for line in account.evidence)
        yield from (f"- {line}" for line in (account.proof,) if line)
        yield ""
    took = [counted(account.iterations, "iteration"), duration(account.seconds)]
    took += [money(account.dollars)] if account.dollars is not None else []
    yield from (f"It took {', '.join(took)}.", "")
