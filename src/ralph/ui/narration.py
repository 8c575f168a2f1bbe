"""A run's facts as sentences for people. Pure: a fact and the state before it in, lines out."""

import signal
from collections.abc import Iterator
from contextlib import suppress

from ralph.kernel.facts import (
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Landed,
    Launching,
    Proved,
    Resumed,
    Returned,
    Settled,
    Started,
    Step,
)
from ralph.kernel.rules import NO_CHILDREN
from ralph.kernel.state import Phase, RunState
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.verdict import (
    Accept,
    Boundary,
    Cause,
    Continue,
    Park,
    Reason,
    Stop,
    Wait,
)
from ralph.kernel.world import Signals
from ralph.text.plain import clean, first_line, one_line, shorten
from ralph.text.words import counted, duration, listed, money
from ralph.ui.attempt_words import RESTARTING, outcome, timeout
from ralph.ui.closing import closing_lines
from ralph.ui.gates import fed_back, gate_lines
from ralph.ui.lines import Briefing, Line, coming_time, service_words
from ralph.ui.live.board import Tally
from ralph.ui.story_words import STORY_STEPS, story_step, story_words
from ralph.ui.style import Tone

_LAST_LINES = 5
_CLAIM_SHOWN = 80
_WORTH_SAYING = 5.0  # seconds
_SCM = "scm:"
_PARKED = {
    Cause.LIMIT: "is blocked",
    Cause.STALLED: "is blocked",
    Cause.CRASH: "is blocked",
    Cause.QUESTION: "waits for you",
    Cause.PERSON: "is left alone",
}
_OF_A_TASK = {
    "commit": "Committed",
    "restore": "The task's changes are undone",
    "discard": "The iteration's changes are undone",
    "cut off": "What the cut-off iteration had changed is undone",
}


def narrate(fact: Fact, before: RunState, after: RunState, briefing: Briefing) -> Iterator[Line]:
    """The lines about a fact, given the states before and after it."""
    match fact:
        case Started():
            yield Line(f"Run {fact.run} ({fact.profile}) in {fact.workspace}", verbose=True)
        case Resumed():
            yield _resumed(before, briefing)
        case Began() | Launching():
            yield from _starting(fact, before, after, briefing)
        case Ended():
            yield from _ended(fact.turn, briefing)
        case Landed():
            yield from _landed(fact)
        case Checking() | Checked() | Proved():
            yield from gate_lines(fact, briefing)
        case Decided():
            decided = _attempted if briefing.attempts else _decided
            yield from decided(fact, before, briefing)
        case Step():
            yield from _step(fact, briefing)
        case Settled() | Returned():
            yield from _settled(fact, after, briefing)
        # Moved, Assigned: the worker tells what it does.


def heard(before: Signals, now: Signals) -> Iterator[Line]:
    """The lines when someone asks for something, or no longer does."""
    if now.cancels > before.cancels:
        how = "at once" if now.cancels > 1 else "after the current operation"
        yield Line(f"Asked to stop: the run ends {how}", Tone.NOTICE)
    if now.paused > before.paused:
        yield Line("Asked to pause: the run pauses before its next turn", Tone.NOTICE)
    if now.paused < before.paused:
        yield Line("Asked to go on", Tone.NOTICE)
    if now.done_at is not None and before.done_at is None:
        yield Line("Found DONE: the task is done", Tone.GOOD)


def _starting(
    fact: Began | Launching, before: RunState, after: RunState, briefing: Briefing
) -> Iterator[Line]:
    """A turn that was cut off by a crash is not begun again, only launched."""
    if isinstance(fact, Began):
        again = before.again
    elif before.cut_off and fact.role is not Role.MESSAGE:
        again = True
    else:
        return
    if briefing.tasks and isinstance(fact, Began) and after.task_iteration == 1 and not again:
        title = f": {one_line(fact.assignment.title)}" if fact.assignment.title else ""
        yield Line(f"Task {fact.assignment.task}{title}", Tone.HEAD)
    turn = f"{briefing.turn.capitalize()} {briefing.number(after)}"
    what = story_words(after) if briefing.stories else ""
    yield Line(f"{turn} starting{' again' if again else ''}{what}", Tone.HEAD)


def _resumed(before: RunState, briefing: Briefing) -> Line:
    if before.phase is Phase.TURN:
        return Line(f"Resumed: {briefing.turn} {briefing.number(before)} was cut off", Tone.HEAD)
    return Line(f"Resumed after {counted(before.iteration, briefing.turn)}", Tone.HEAD)


# ------------------------------------------------------------------ the agent's turn


def _ended(turn: Turn, briefing: Briefing) -> Iterator[Line]:
    if briefing.attempts:
        yield Line(f"Agent ended ({_turn_statistics(turn)})", verbose=True)
        yield from (Line(words, Tone.BAD) for words in timeout(turn))
    elif turn.failed:
        yield Line(_failure_words(turn), Tone.BAD)
    elif turn.silent:
        yield Line(f"Agent said nothing ({duration(turn.seconds)})", Tone.NOTICE)
    else:
        yield Line(f"Agent finished ({_turn_statistics(turn)})", verbose=True)
    quiet = not turn.failed and (not turn.silent or briefing.attempts)
    for name, said in (("stdout", turn.stray), ("stderr", turn.stderr)):
        for line in _last_lines(said):
            yield Line(f"  {name}: {line}", Tone.FAINT, verbose=quiet)
    if turn.denied:
        denied = ", ".join(dict.fromkeys(turn.denied))
        yield Line(f"Permission denied: {denied}. {briefing.permission_hint}".strip(), Tone.NOTICE)
    if turn.unknown:
        lines = counted(turn.unknown, "line")
        yield Line(f"{lines} of the agent's output not understood and skipped", verbose=True)


def _failure_words(turn: Turn) -> str:
    after = f"({duration(turn.seconds)})"
    match turn.ending:
        case Ending.UNSTARTABLE:
            return f"Agent could not be started: {turn.why}"
        case Ending.CUT:
            return f"Agent was cut off {after}: {turn.why}"
        case Ending.EXITED if turn.failure is not None:
            code = f", exit code {turn.exit_code}" if turn.exit_code else ""
            return f"Agent failed ({duration(turn.seconds)}{code}): {turn.failure.message}"
        case Ending.EXITED:
            name = ""
            if turn.exit_code is not None and turn.exit_code < 160:
                with suppress(ValueError):  # not every number is a signal's
                    name = f" ({signal.Signals(turn.exit_code - 128).name})"
            return f"Agent exited with code {turn.exit_code}{name} {after}"


def _turn_statistics(turn: Turn) -> str:
    parts = [duration(turn.seconds), counted(turn.tools, "tool call")]
    if turn.cost_usd is not None:
        parts.append(money(turn.cost_usd))
    return ", ".join(parts)


def _landed(fact: Landed) -> Iterator[Line]:
    """The lines about what came out of a sandbox. What a gate objects to is told by that gate."""
    changes = counted(fact.count, "change")
    where = f"; see {fact.saved}" if fact.saved else ""
    if not fact.kept and fact.count:
        yield Line(f"Sandbox: {changes} thrown away{where}", Tone.NOTICE)
    else:
        yield Line(f"Sandbox: {changes}", verbose=True)
    if fact.spared:
        yield Line(f"Not applied: {listed(fact.spared)}{where}", Tone.BAD)
    if fact.held:
        yield Line(f"Held for your review: {listed(fact.held)}{where}", Tone.NOTICE)
    if fact.refused:
        hosts = listed(fact.refused)
        yield Line(f"Not allowed to call: {hosts}. To allow it: --network", Tone.NOTICE)


# ------------------------------------------------------------------ verdicts


def _decided(fact: Decided, before: RunState, briefing: Briefing) -> Iterator[Line]:
    if fact.boundary is Boundary.CLOSING:
        yield _completion_attempt(fact, before)
    yield from (Line(f"Note: {note}", Tone.NOTICE) for note in fact.notes)
    match fact.verdict:
        case Wait() as wait:
            yield Line(_wait_words(wait, fact, before), Tone.NOTICE)
        case Continue(feedback=feedback) if fact.findings:
            yield from fed_back(fact.findings, feedback)
        case _:
            pass
    if isinstance(fact.verdict, Continue) and fact.verdict.after:
        words = f"Waiting {duration(fact.verdict.after)} before the next {briefing.turn}"
        yield Line(words, Tone.FAINT, verbose=fact.verdict.after < _WORTH_SAYING)


def _attempted(fact: Decided, before: RunState, briefing: Briefing) -> Iterator[Line]:
    """S §Restart Counter."""
    match fact:
        case Decided(boundary=Boundary.CLOSING, verdict=verdict) if before.turn is not None:
            words = outcome(before.iteration, before.turn, verdict, briefing.iterations)
            yield Line(words, Tone.BAD if before.turn.failed else Tone.PLAIN)
            if timeout(before.turn) and words.endswith(RESTARTING):
                which = briefing.which(before.iteration + 1)
                yield Line(f"Restarting agent (attempt {which})")
            if isinstance(verdict, Wait):
                yield Line(_wait_words(verdict, fact, before), Tone.NOTICE)
        case Decided(verdict=Stop(reason=Reason.LIMIT)) if before.iteration == briefing.iterations:
            which = f"Attempt {before.iteration}: " if before.iteration else ""
            yield Line(f"{which}Max restarts exceeded, stopping", Tone.NOTICE)
        case Decided(verdict=Wait() as wait):
            yield Line(_wait_words(wait, fact, before), Tone.NOTICE)


def _completion_attempt(fact: Decided, before: RunState) -> Line:
    """H §Verbose Output: completion detection attempts."""
    claims = before.turn.claims if before.turn else ()
    said = ", ".join(shorten(one_line(c.raw), _CLAIM_SHOWN, None, "...") for c in claims)
    answer = "believed" if isinstance(fact.verdict, Accept) else "not complete"
    return Line(f"Completion check: the agent said {said or 'no tag'}: {answer}", verbose=True)


def _wait_words(wait: Wait, fact: Decided, before: RunState) -> str:
    why = wait.why.rstrip(".")
    cause = service_words(before.turn) if fact.boundary is Boundary.CLOSING else ""
    why = f"{cause}: {why}" if cause else why
    why = why[:1].upper() + why[1:]
    if wait.until is None:
        return f"{why}; waiting to be resumed"
    if wait.until <= fact.time:
        return f"{why}; trying again"
    until, seconds = coming_time(wait.until, fact.time), duration(wait.until - fact.time)
    return f"{why}; waiting until {until} ({seconds})"


# ------------------------------------------------------------------ settling


def _step(fact: Step, briefing: Briefing) -> Iterator[Line]:
    if fact.key.startswith(_SCM):
        yield from _scm_step(fact, fact.key.removeprefix(_SCM))
    elif briefing.tasks and fact.ok and fact.key in _OF_A_TASK:
        yield from _task_step(fact)
    elif briefing.stories and fact.ok and fact.key in STORY_STEPS:
        yield from story_step(fact)
    elif fact.key == "children":
        if fact.detail:
            yield Line(f"Child runs: {fact.detail}", verbose=fact.detail == NO_CHILDREN)
    elif briefing.tasks and fact.key == "sync" and fact.detail:
        yield from _sync_step(fact)
    elif briefing.tasks and fact.key == "merge":
        return  # it is told with what follows from it
    elif not fact.ok:
        yield from _failed_step(fact.key, fact.detail)
    elif fact.detail:
        yield Line(f"{fact.key}: {first_line(fact.detail)}")
    else:
        yield Line(f"{fact.key}: done", verbose=True)


def _scm_step(fact: Step, task: str) -> Iterator[Line]:
    """Source control; a failure is reported and the run goes on (H §SCM Tasks)."""
    if task == "message cut off":
        return  # how the run ends says it
    if task in ("changes", "undone"):
        words = f"No commit: {first_line(fact.detail)}" if task == "changes" else fact.detail
        yield Line(words, Tone.NOTICE)
    elif task == "message":
        words = "Commit message" if fact.ok else "No commit"
        yield Line(f"{words}: {first_line(fact.detail)}", Tone.NOTICE, verbose=fact.ok)
    elif not fact.ok:
        yield from _failed_step(f"SCM task {task}", fact.detail)
    elif task.split()[:1] == ["commit"]:
        yield Line(f"Committed: {first_line(fact.detail) or 'done'}", Tone.GOOD)
    else:
        yield Line(f"SCM task {task} done", Tone.GOOD)


def _task_step(fact: Step) -> Iterator[Line]:
    """The lines about a task's work (B §Rollback)."""
    done = _OF_A_TASK[fact.key]
    if fact.key == "commit":
        words = f"{done}: {first_line(fact.detail)}" if fact.detail else "Nothing more to commit"
        yield Line(words, Tone.GOOD)
    elif fact.detail:
        yield Line(f"{done}; what there was is kept in {fact.detail}", Tone.NOTICE)


def _sync_step(fact: Step) -> Iterator[Line]:
    """The lines about what the list or issue that a task came from was told."""
    if fact.ok:
        yield Line(first_line(fact.detail), Tone.GOOD)
    else:
        yield Line(f"Not told: {first_line(fact.detail)}", Tone.NOTICE)
        yield Line("The task is done all the same. Try again: ralph tasks sync", Tone.NOTICE)


def _failed_step(name: str, detail: str) -> Iterator[Line]:
    first, *more = _last_lines(detail) or ["no reason given"]
    yield Line(f"{name} failed: {first}", Tone.BAD)
    yield from (Line(f"  {line}", Tone.FAINT) for line in more)


def _settled(fact: Settled | Returned, after: RunState, briefing: Briefing) -> Iterator[Line]:
    if isinstance(fact, Returned):
        yield _returned(fact, after)
        return
    match fact.verdict:
        case Stop() as verdict:
            yield from () if briefing.worker else closing_lines(verdict, after, briefing)
        case Park(why=why, cause=cause):
            task = after.assignment.task if after.assignment else "The task"
            yield Line(f"{task} {_PARKED[cause]}: {one_line(why)}", Tone.NOTICE)
        case Continue() if (merge := after.step("merge")) is not None and briefing.tasks:
            words = f"Not merged yet: {first_line(merge.detail)}; the agent is told"
            yield Line(words, Tone.NOTICE)
        case _:
            return


def _returned(fact: Returned, after: RunState) -> Line:
    """The line about what became of a task, beside what its worker has said."""
    task = one_line(clean(fact.task))
    where = f"; its work is on the branch {fact.branch}" if fact.branch else ""
    match fact.verdict:
        case Accept():
            return Line(f"{task} is done. So far: {Tally.of(after).words}", Tone.GOOD)
        case Park(cause=cause):
            return Line(f"{task} {_PARKED[cause]}{where}", Tone.NOTICE)
        case Stop(why=why):
            words = f"{task} is left in the middle: {one_line(why)}; no other task is begun"
            return Line(f"{words}{where}", Tone.NOTICE)
        case _:
            return Line(f"{task} is back{where}")


def _last_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]
