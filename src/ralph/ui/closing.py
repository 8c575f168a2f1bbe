"""The last lines of a run: how it ended and what it cost, then what is done, what is not and why,
what is left to a person, and what to type next.

They are what someone reads who comes back to the terminal in the morning: about ten lines.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ralph.journal.way_on import limits_to_raise
from ralph.kernel.events import Usage
from ralph.kernel.facts import Published, scm_task
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import RunState
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Reason, Stop
from ralph.review.law import APPROVED, CHANGES_REQUESTED
from ralph.review.stats import Review, review_of
from ralph.text.plain import first_line, one_line, shorten
from ralph.text.words import counted, duration, listed, money
from ralph.ui.lines import MOST_PATHS, SHORT_ID, Briefing, Line
from ralph.ui.style import Tone

_TONES = {Reason.COMPLETED: Tone.GOOD, Reason.LIMIT: Tone.NOTICE, Reason.INTERRUPTED: Tone.NOTICE}
_LABEL = 11  # columns
_MOST_ROWS = 3  # below one label
_SHOWN = 100  # characters of what others wrote
_NEXT = {  # what to type where nothing better is known
    Reason.CONFIG: "ralph resume  # once that is fixed",
    Reason.BLOCKED: "ralph resume  # once you have answered in the prompt or in the files",
    Reason.STALLED: "ralph logs  # read what the agent said, then make the prompt clearer",
    Reason.FAILING: "ralph logs  # fix what the agent complains about, then: ralph resume",
    Reason.BUG: "This is a fault of Ralph, not of your work: please report it.",
    Reason.INTERRUPTED: "ralph resume  # what was finished is kept",
}
_NEXT_OF_TASKS = {
    Reason.STALLED: "ralph tasks list",
}
_NEXT_OF_PLANNING = {
    Reason.BLOCKED: 'ralph tasks plan "GOAL"  # with the answer in the goal',
}
_NEXT_OF_STORIES = {
    Reason.COMPLETED: "ralph prd stats  # what the reviews found; then: ralph prd archive",
    Reason.BLOCKED: "ralph prd run  # once you have answered in progress.txt or the story's notes",
    Reason.STALLED: "ralph logs  # read what the agent said, then make the story clearer",
}
_LISTS = ("gates", "left_out", "put_back", "yours", "mixed", "hidden")  # of a proof
_OF_A_PULL = ("number", "url", "branch", "base", "task", "commit", "merged")
_NOT_DONE = {"commit": "Not committed", "push": "Not pushed"}
_OBJECTS = ("!", "fatal:", "error:", "remote: error")  # how git begins such a line
_CLAIMED, _PASSED = "claimed: ", "passed: "  # how evidence begins
_WAITING = re.compile(r"; (?=\S+ (?:asks:|is blocked|was not begun:|waits for ))")
_LAW = ("protect", "secrets", "sandbox")  # gates that prove nothing about the work
_WORTH_READING = (Reason.STALLED, Reason.FAILING, Reason.BLOCKED)


@value
class Closing:
    """The end of a run in words, or how far it has come."""

    outcome: str  # one sentence; "" while it goes on
    done: tuple[str, ...] = ()
    proof: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  # not done, and why
    yours: tuple[str, ...] = ()
    next: tuple[str, ...] = ()  # commands to type
    pulls: tuple[str, ...] = ()


def closing_of(stop: Stop | None, state: RunState, briefing: Briefing) -> Closing:
    """The words for the end of a run, for each reason there is."""
    done, yours = tuple(_done(stop, state, briefing)), tuple(_yours(state))
    if stop is None:
        return Closing("", done, left=tuple(_not_done(stop, state, briefing)), yours=yours)
    blocked = briefing.tasks and stop.reason is Reason.BLOCKED
    several = waiting_words(stop) if blocked else []
    if len(several) > 1:  # each on a line of its own
        stop = replace(stop, why="what is left needs you")
    else:
        several = []
    completed = stop.reason is Reason.COMPLETED and not briefing.tasks
    return Closing(
        ending_words(stop, state, briefing),
        done,
        tuple(_proof(stop, state)) if completed else (),
        tuple(several or _not_done(stop, state, briefing)),
        yours,
        tuple(_next(stop, state, briefing, several)),
        tuple(map(pull_words, state.pulls)),
    )


def waiting_words(stop: Stop) -> list[str]:
    """The reasons why a backlog is blocked, each on its own."""
    return _WAITING.split(stop.why)


def closing_lines(stop: Stop, state: RunState, briefing: Briefing) -> Iterator[Line]:
    """The lines that say how the run ended."""
    closing = closing_of(stop, state, briefing)
    yield Line(closing.outcome, _TONES.get(stop.reason, Tone.BAD))
    yield from rows("Done", closing.done)
    yield from rows("Pulls", closing.pulls)
    yield from rows("Proof", closing.proof)
    yield from rows("Not done", closing.left, Tone.NOTICE)
    yield from rows("Yours", closing.yours, Tone.NOTICE)
    # Of a blocked backlog the last turn was another task's.
    turn = None if briefing.tasks and stop.reason is Reason.BLOCKED else state.turn
    if stop.reason in _WORTH_READING and turn is not None and turn.stream:
        yield from rows("Output", [turn.stream])
    yield from rows("Journal", [briefing.journal] if briefing.journal else [])
    yield from rows("Next", closing.next, Tone.HEAD)


def rows(label: str, texts: Sequence[str], tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    """The label before the first text, and no more lines than people read."""
    rest = len(texts) - _MOST_ROWS
    shown = texts if rest <= 1 else [*texts[:_MOST_ROWS], f"and {rest} more"]
    for text in shown:
        yield Line(f"{label:<{_LABEL}}{text}", tone)
        label = ""


def ending_words(stop: Stop, state: RunState, briefing: Briefing) -> str:
    """`Completed after 2 iterations in 12s, $0.12.`: time asleep is not spent, and named apart."""
    spent = state.spent
    waited = f" and {duration(state.waited)} of waiting" if state.waited >= 1 else ""
    totals = f"{counted(spent.iterations, briefing.turn)} in {duration(spent.seconds)}{waited}"
    totals = ", ".join(filter(None, (totals, cost_words(spent))))
    if briefing.tasks and (state.done or state.parked):
        left = f", {len(state.parked)} left to you" if state.parked else ""
        totals += f": {counted(len(state.done), 'task')} done{left}"
    if stop.reason is Reason.COMPLETED:
        return f"Completed after {totals}."
    why = stop.why.rstrip(".") or stop.reason.value
    named = "" if why == stop.reason.value else f" ({stop.reason.value})"
    return f"Stopped: {why}{named}. {totals}."


def _done(stop: Stop | None, state: RunState, briefing: Briefing) -> Iterator[str]:
    """Commits of a prompt, tasks with theirs, or stories; the newest first."""
    if briefing.stories or briefing.attempts:
        approved = (f"{r.story} is approved" for r in _reviews(state) if r.outcome == APPROVED)
        is_complete = stop is not None and stop.reason is Reason.COMPLETED
        yield from stop.evidence if stop is not None and is_complete else approved
        return
    made = state.delivered[::-1]
    if briefing.tasks:  # one that CI has sent back is committed, and not done
        made = tuple({work.task: work for work in made[::-1] if work.task in state.done}.values())
        made = made[::-1]
    width = max((len(one_line(each.task)) for each in made[:_MOST_ROWS]), default=0)
    for each in made:
        task = f"{one_line(each.task):<{width}}  " if briefing.tasks else ""
        commit = f"{each.commit[:SHORT_ID]}  " if each.commit else ""
        yield f"{task}{commit}{_short(each.what)}".rstrip()


def _proof(stop: Stop, state: RunState) -> Iterator[str]:
    """The checks that passed, and on which tree; or that there was only the agent's word."""
    if checks := _checks(stop):
        where = " (no tree: not a git repository)"
        if state.proof is not None:
            made = "" if state.commit else ", not committed"
            where = f" on tree {state.proof.tree[:SHORT_ID]}{made}; ignored files aside"
        yield f"{listed(checks)} passed{where}"
    elif _is_claimed(stop):
        yield "only the agent's word: no guardrail is configured"


def _checks(stop: Stop) -> list[str]:
    """The gates that say something about the work, by name."""
    names = [text.removeprefix(_PASSED) for text in stop.evidence if text.startswith(_PASSED)]
    return [name for name in names if name not in _LAW]


def _is_claimed(stop: Stop) -> bool:
    return any(text.startswith(_CLAIMED) for text in stop.evidence)


def _not_done(stop: Stop | None, state: RunState, briefing: Briefing) -> Iterator[str]:
    """Whatever failed after the proof; and of a run that is not complete, the reasons."""
    yield from (line.text for line in owed_lines(state))
    if stop is not None and stop.reason is Reason.COMPLETED:
        return
    if briefing.tasks:
        yield from (f"{one_line(task)}: {_short(why)}" for task, why in state.parked)
        if state.task_iteration:
            yield f"{one_line(state.task)} is in the middle: iteration {briefing.number(state)}"
    if briefing.stories:
        yield from _unapproved(state)
    yield from (_short(line.text) for line in found_lines(state))
    failure = state.turn.failure if state.turn else None
    waited = failure is not None and failure.passes  # it was never a matter of words
    if stop is None:
        return
    if stop.reason is Reason.LIMIT and not state.claimed and briefing.marker and not waited:
        untold = "; --no-tell-completion keeps the agent from being told" if briefing.untold else ""
        yield f"Nothing said {briefing.marker}{untold}"


def _unapproved(state: RunState) -> Iterator[str]:
    """The stories that this run has worked on, and nobody has approved."""
    reviews = _reviews(state)
    for review in reviews:
        if review.outcome == CHANGES_REQUESTED:
            yield f"{review.story} needs changes: {_short(review.feedback)}"
    if state.task and state.task not in {review.story for review in reviews}:
        yield f"{one_line(state.task)} is not approved yet"


def _yours(state: RunState) -> Iterator[str]:
    """Work of a person's that the run left alone, and changes that wait for a review."""
    if state.proof is not None and state.proof.yours:
        paths = listed(state.proof.yours, MOST_PATHS)
        yield f"{paths}: not committed before the run, and not by it"
    if state.landed is not None and state.landed.held:
        yield f"{listed(state.landed.held, MOST_PATHS)}: for your review, in {state.landed.saved}"


def _next(stop: Stop, state: RunState, briefing: Briefing, waiting: Iterable[str]) -> list[str]:
    """The command to type next, with a comment as shells have it."""
    reason = stop.reason
    if briefing.tasks and reason is Reason.BLOCKED:
        return list(next_of_waiting([*waiting, stop.why], published=bool(state.pulls)))
    own = _NEXT_OF_PLANNING if briefing.planning else {}
    own = _NEXT_OF_STORIES if briefing.stories else _NEXT_OF_TASKS if briefing.tasks else own
    if reason in own:
        return [own[reason]]
    if reason is Reason.LIMIT:
        more = " ".join(filter(None, ("ralph resume", limits_to_raise(state))))
        return [f"{more}  # goes on; what was spent stays counted"]
    if reason is Reason.COMPLETED:
        return list(_next_of_done(stop, state))
    if reason is Reason.CONFIG and state.turn is not None and state.turn.barred:
        return ["ralph init  # sets the agent's permission flags; then: ralph resume"]
    return [_NEXT[reason]]


def _next_of_done(stop: Stop, state: RunState) -> Iterator[str]:
    """How to look at the work."""
    commits = [each.commit[:SHORT_ID] for each in state.delivered if each.commit]
    if commits:
        yield f"git log --stat {commits[0]}^.." if commits[1:] else f"git show {commits[0]}"
    elif state.proof is not None and not state.commit:
        yield "git status  # the work is in your files, and not committed"
    elif _is_claimed(stop) and not _checks(stop):
        yield "ralph init  # adds checks, so that the next run proves its work"


def next_of_waiting(waiting: Iterable[str], *, published: bool = False) -> Iterator[str]:
    """How to bring back tasks that wait for a person. Where work was `published`, more shall be."""
    for words, command in (
        (r"(\S+) asks: ", 'ralph tasks answer {} "..."'),
        (r"(\S+) is blocked", "ralph tasks edit {} --status pending"),
    ):
        found = (re.match(words, each) for each in waiting)
        yield from [command.format(match[1]) for match in found if match][:1]
    flag = ", with --pr as before" if published else ""
    yield f"ralph tasks run  # afterwards{flag}; all that wait: ralph tasks list"


def _reviews(state: RunState) -> list[Review]:
    """The last review of each story in this run."""
    found = (review_of(detail) for detail in state.reviews)
    return list({each.story: each for each in found if each is not None}.values())


def _short(text: str) -> str:
    return shorten(first_line(text), _SHOWN, None, "...")


def found_lines(state: RunState) -> Iterator[Line]:
    """The objections of the last turn's gates, each in a line."""
    for finding in state.findings:
        log = f", output in {finding.log}" if finding.log else ""
        code = f"exit code {finding.code}{log}"
        words = first_line(finding.text) if finding.code is None else code
        yield Line(f"{finding.gate}: {words}", Tone.BAD)


def cost_words(spent: Spent, limits: Limits = Limits()) -> str:
    """`$5.00 of $20.00 and 2 turns of unknown cost`; nothing where there was no cost at all."""
    parts = []
    if spent.dollars or limits.dollars:
        limit = f" of {money(limits.dollars)}" if limits.dollars else ""
        parts.append(f"{money(spent.dollars)}{limit}")
    if spent.uncounted and (parts or spent.usage != Usage()):
        parts.append(f"{counted(spent.uncounted, 'turn')} of unknown cost")
    return " and ".join(parts)


def proof_words(state: RunState) -> str:
    """The tree that was proven and where it is; "" without a proof."""
    if state.proof is None:
        return ""
    commit = f"commit {state.commit[:SHORT_ID]}" if state.commit else "not committed"
    return f"tree {state.proof.tree[:SHORT_ID]}, {commit}; ignored files are outside the proof"


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


def pull_words(pull: Published) -> str:
    """`#12 ralph/T-1 -> main  https://...`"""
    merged = ", merged" if pull.merged else ""
    return f"#{pull.number} {pull.branch} -> {pull.base}{merged}  {pull.url}"


def proof_dict(state: RunState) -> dict[str, Any]:
    """The proof, null without one, and what failed after it, for programs."""
    proof = state.proof and {
        "tree": state.proof.tree,
        "commit": state.commit or None,
        **{name: list(getattr(state.proof, name)) for name in _LISTS},
        "outside": "ignored files",
    }
    failed = [{"task": scm_task(step), "why": step.detail} for step in state.owed]
    pulls = [{name: getattr(pull, name) for name in _OF_A_PULL} for pull in state.pulls]
    return {"proof": proof, "scm_failed": failed, "pulls": pulls}
