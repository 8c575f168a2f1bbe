"""An evaluation in words: the table, Markdown, and the lines about what was left without result."""

from collections.abc import Iterator

from ralph.evaluation.standings import AgentRates, Standings
from ralph.evaluation.statistics import Rate
from ralph.evaluation.trials import Result, TaskCheck
from ralph.evaluation.verdict import ERROR, PASSED
from ralph.text.plain import first_line, plain
from ralph.text.words import counted, duration, listed, money
from ralph.ui.paper.markdown import plain_words, table

HEAD = ("AGENT", "PASSED", "PASS RATE", "SAID DONE", "FALSE CLAIMS", "COST", "TIME", "ERRORS")
LEGEND = "Rates with their 95% intervals. A false claim: it said done, and the check failed."
_MOST_WHY = 160


def rate_words(found: Rate) -> str:
    """`70% (60-79)`: the rate, and its interval of 95 %."""
    if not found.of:
        return "-"
    return f"{found.share:.0%} ({_percent(found.low)}-{_percent(found.high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def cost_words(rates: AgentRates) -> str:
    """All that its trials cost; `+` where some did not tell."""
    if rates.cost_usd is None:
        return "-"
    return f"{money(rates.cost_usd)}{'+' if rates.uncounted else ''}"


def row_of(rates: AgentRates) -> tuple[str, ...]:
    """The cells of an agent, in the order of `HEAD`."""
    return (
        plain(rates.agent),
        f"{rates.passes.count} of {rates.passes.of}",
        rate_words(rates.passes),
        str(rates.falsehoods.of),
        rate_words(rates.falsehoods),
        cost_words(rates),
        "-" if rates.seconds is None else duration(rates.seconds),
        str(rates.errors or "-"),
    )


def notes(found: Standings) -> Iterator[str]:
    """What a reader of the table has to know beside it."""
    for check in found.tasks:
        if check.problem:
            yield f"Not tried: {check.task}: {first_line(check.problem)}."
        if check.passes_at_start:
            yield (
                f"{check.task}: its check passes before anybody has worked, so it measures nothing."
            )
    for rates in found.agents:
        if rates.tampered:
            times = counted(rates.tampered, "trial")
            yield f"{rates.agent} changed protected files in {times}; they were put back."
    whys = dict.fromkeys(
        f"{result.trial.agent}: {why_words(result)}"
        for result in found.results
        if result.verdict.outcome == ERROR
    )
    if whys:
        yield f"Errors, which count for nothing: {listed([*whys], 3, '; ')}."
    if found.limit:
        yield f"It ended before all was done: {found.limit}."
    if found.without_result:
        yield f"{found.without_result} of {counted(found.planned, 'trial')} have no result."


def why_words(result: Result) -> str:
    """Why a trial did not pass, on one line."""
    why = plain(first_line(result.verdict.why))
    return why if len(why) <= _MOST_WHY else f"{why[: _MOST_WHY - 1]}…"


def outcome_words(result: Result) -> str:
    """`passed`, `failed, but said done`, `error`."""
    verdict = result.verdict
    if verdict.outcome == PASSED:
        return "passed" if verdict.claimed else "passed, without saying done"
    return f"{verdict.outcome}, but said done" if verdict.false_claim else verdict.outcome


def markdown(found: Standings) -> str:
    """The standings for a pull request or a chat."""
    agents = [rates.agent for rates in found.agents]
    lines = [f"## {plain_words(found.suite)}: {counted(len(agents), 'agent')} evaluated", ""]
    lines += table(
        (word.capitalize() for word in HEAD),
        (map(plain_words, row_of(rates)) for rates in found.agents),
    )
    lines += ["", LEGEND, "", *(f"- {plain_words(note)}" for note in notes(found)), ""]
    lines += table(
        ("Task", *map(plain_words, agents)), (_matrix_row(found, c) for c in found.tasks)
    )
    return "\n".join([*lines, ""])


def _matrix_row(found: Standings, check: TaskCheck) -> Iterator[str]:
    yield plain_words(check.task)
    for cell in found.cells:
        if cell.task == check.task:
            yield f"{cell.passed} of {cell.trials}" if cell.trials else "–"
