"""The last lines of a run: proof and places first, then how it ended, then what to do about it.

The answer stands at the bottom, where someone looks who comes back to the terminal in the morning.
"""

from collections.abc import Iterator

from ralph.kernel.events import Usage
from ralph.kernel.state import RunState
from ralph.kernel.verdict import Reason, Stop
from ralph.text.words import counted, duration, money
from ralph.ui.lines import Briefing, Line
from ralph.ui.proof import owed_lines, proof_words
from ralph.ui.style import Tone

_TONES = {Reason.COMPLETED: Tone.GOOD, Reason.LIMIT: Tone.NOTICE, Reason.INTERRUPTED: Tone.NOTICE}
_REMEDIES = {
    Reason.CONFIG: "Fix that and run it again.",
    Reason.BLOCKED: "It needs you: answer in the prompt or in the files, then run it again.",
    Reason.STALLED: "Nothing changed: read what the agent said, then make the prompt clearer.",
    Reason.FAILING: "Fix what the agent complains about, then run it again.",
    Reason.BUG: "This is a fault of Ralph, not of your work.",
    Reason.INTERRUPTED: "What was finished is kept. Go on: ralph resume",
}
_TASK_REMEDIES = {
    Reason.BLOCKED: 'Look: ralph tasks list. Answer: ralph tasks answer ID "...". '
    "Bring one back: ralph tasks edit ID --status pending. Then run it again.",
    Reason.LIMIT: "Go on with the rest: ralph tasks run",
    Reason.STALLED: "Look: ralph tasks list",
}
_STORY_REMEDIES = {
    Reason.BLOCKED: "It needs you: answer in progress.txt or the story's notes, then: "
    "ralph prd run",
    Reason.LIMIT: "Go on with the rest: ralph prd run. What the reviews found: ralph prd stats",
    Reason.STALLED: "Nothing changed: read what the agent said, then make the story clearer.",
}
_WORTH_READING = (Reason.STALLED, Reason.FAILING, Reason.BLOCKED)


def closing_lines(stop: Stop, state: RunState, briefing: Briefing) -> Iterator[Line]:
    """The lines that say how the run ended, for each reason there is."""
    done, parked = len(state.done), len(state.parked)
    if briefing.tasks and (done or parked):
        left = f", {parked} left to you" if parked else ""
        yield Line(f"Tasks: {done} done{left}", Tone.NOTICE if parked else Tone.GOOD)
    if not briefing.tasks and stop.reason is Reason.COMPLETED:
        yield from (Line(f"Evidence: {e}") for e in stop.evidence)
        passed = {text for text in stop.evidence if text.startswith("passed: ")}
        checked = bool(passed - {"passed: protect", "passed: secrets"})
        proof = proof_words(state) or ("no tree: not a git repository" if checked else "")
        yield from (Line(f"Evidence: {proof}"),) if proof else ()
    yield from owed_lines(state)
    quiet = briefing.tasks and stop.reason is Reason.BLOCKED  # it was another task's turn
    if stop.reason in _WORTH_READING and not quiet and state.turn and state.turn.stream:
        yield Line(f"Agent's output: {state.turn.stream}")
    if briefing.journal:
        yield Line(f"Journal: {briefing.journal}")
    yield Line(_ending(stop, state, briefing.turn), _TONES.get(stop.reason, Tone.BAD))
    own = _STORY_REMEDIES if briefing.stories else {}
    remedies = {**_REMEDIES, **(_TASK_REMEDIES if briefing.tasks else own)}
    if stop.reason in remedies:
        yield Line(remedies[stop.reason])
    if _nobody_was_told(stop, state, briefing):
        yield Line(
            f"Nothing said {briefing.marker}. Add to the prompt: "
            f'"{briefing.completion_sentence}"; --tell-completion adds it for you.',
            Tone.NOTICE,
        )


def _ending(stop: Stop, state: RunState, turn: str) -> str:
    """`Completed after 2 iterations in 12s, $0.12.`: time asleep is not spent, and named apart."""
    spent = state.spent
    waited = f" and {duration(state.waited)} of waiting" if state.waited >= 1 else ""
    cost = f", {money(spent.dollars)}" if spent.dollars else ""
    if spent.uncounted and (spent.dollars or spent.usage != Usage()):
        cost += f"{' and' if cost else ','} {counted(spent.uncounted, 'turn')} of unknown cost"
    totals = f"{counted(spent.iterations, turn)} in {duration(spent.seconds)}{waited}{cost}"
    if stop.reason is Reason.COMPLETED:
        return f"Completed after {totals}."
    why = stop.why.rstrip(".") or stop.reason.value
    named = "" if why == stop.reason.value else f" ({stop.reason.value})"
    return f"Stopped: {why}{named}. {totals}."


def _nobody_was_told(stop: Stop, state: RunState, briefing: Briefing) -> bool:
    """True if the limit is reached, no turn ever wrote the tag, and the prompt did not ask for
    it."""
    asked = not briefing.completion_sentence
    failure = state.turn.failure if state.turn else None
    waited = failure is not None and failure.passes  # it was never a matter of words
    return stop.reason is Reason.LIMIT and not state.claimed and not asked and not waited
