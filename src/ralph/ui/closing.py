"""The last lines of a run: proof and places first, then how it ended, then what to do about it.

The answer stands at the bottom, where someone looks who comes back to the terminal in the morning.
"""

from collections.abc import Iterator
from typing import Any

from ralph.kernel.events import Usage
from ralph.kernel.facts import scm_task
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import RunState
from ralph.kernel.verdict import Reason, Stop
from ralph.text.words import counted, duration, listed, money
from ralph.ui.lines import Briefing, Line
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
_LISTS = ("gates", "left_out", "put_back", "yours", "mixed", "hidden")  # of a proof
_NOT_DONE = {"commit": "Not committed", "push": "Not pushed"}
_OBJECTS = ("!", "fatal:", "error:", "remote: error")  # how git begins such a line
SHORT_ID = 12  # characters
MOST_PATHS = 5  # that are named
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
    yield Line(ending_words(stop, state, briefing.turn), _TONES.get(stop.reason, Tone.BAD))
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


def ending_words(stop: Stop, state: RunState, turn: str) -> str:
    """`Completed after 2 iterations in 12s, $0.12.`: time asleep is not spent, and named apart."""
    spent = state.spent
    waited = f" and {duration(state.waited)} of waiting" if state.waited >= 1 else ""
    totals = f"{counted(spent.iterations, turn)} in {duration(spent.seconds)}{waited}"
    totals = ", ".join(filter(None, (totals, cost_words(spent))))
    if stop.reason is Reason.COMPLETED:
        return f"Completed after {totals}."
    why = stop.why.rstrip(".") or stop.reason.value
    named = "" if why == stop.reason.value else f" ({stop.reason.value})"
    return f"Stopped: {why}{named}. {totals}."


def cost_words(spent: Spent, limits: Limits = Limits()) -> str:
    """`$5.00 of $20.00 and 2 turns of unknown cost`; nothing where there was no cost at all."""
    parts = []
    if spent.dollars or limits.dollars:
        limit = f" of {money(limits.dollars)}" if limits.dollars else ""
        parts.append(f"{money(spent.dollars)}{limit}")
    if spent.uncounted and (parts or spent.usage != Usage()):
        parts.append(f"{counted(spent.uncounted, 'turn')} of unknown cost")
    return " and ".join(parts)


def _nobody_was_told(stop: Stop, state: RunState, briefing: Briefing) -> bool:
    """True if the limit is reached, no turn wrote the tag, and the prompt did not ask for it."""
    asked = not briefing.completion_sentence
    failure = state.turn.failure if state.turn else None
    waited = failure is not None and failure.passes  # it was never a matter of words
    return stop.reason is Reason.LIMIT and not state.claimed and not asked and not waited


def proof_words(state: RunState) -> str:
    """The tree that was proven and where it is; "" without a proof."""
    if state.proof is None:
        return ""
    commit = f"commit {state.commit[:SHORT_ID]}" if state.commit else "not committed"
    yours = f"your uncommitted files ({listed(state.proof.yours, MOST_PATHS)})"
    outside = f"{yours} and ignored files" if state.proof.yours else "ignored files"
    return f"tree {state.proof.tree[:SHORT_ID]}, {commit}; {outside} are outside the proof"


def owed_lines(state: RunState) -> Iterator[Line]:
    """SCM tasks that failed for good, each with what git has against it."""
    for step in state.owed:
        task = scm_task(step)
        lines = [line.strip() for line in step.detail.splitlines() if line.strip()]
        lines = lines or ["no reason given"]
        # Git begins with where it was pushing to.
        why = next((line for line in lines if line.startswith(_OBJECTS)), lines[0])
        words = _NOT_DONE.get(task.split()[0], f"SCM task {task} failed")
        yield Line(f"{words}: {why}", Tone.BAD)


def proof_dict(state: RunState) -> dict[str, Any]:
    """The proof, null without one, and what failed after it, for programs."""
    proof = state.proof and {
        "tree": state.proof.tree,
        "commit": state.commit or None,
        **{name: list(getattr(state.proof, name)) for name in _LISTS},
        "outside": "ignored files",
    }
    failed = [{"task": scm_task(step), "why": step.detail} for step in state.owed]
    return {"proof": proof, "scm_failed": failed}
