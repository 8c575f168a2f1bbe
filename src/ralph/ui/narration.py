"""A run's facts as sentences for people. Pure: a fact and the state before it in, lines out."""

import signal
from collections.abc import Iterator
from contextlib import suppress

from ralph.kernel import facts
from ralph.kernel.prompt import told
from ralph.kernel.rules import NO_CHILDREN
from ralph.kernel.state import Phase, RunState
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.verdict import (
    Accept,
    Bench,
    Boundary,
    Cause,
    Continue,
    Park,
    Reason,
    Stop,
    Wait,
)
from ralph.kernel.world import PAUSE, RESUME, STOP, STOP_NOW, Origin, Request, Signals
from ralph.text.plain import clean, first_line, one_line, shorten
from ralph.text.words import counted, duration, listed, money
from ralph.ui.attempt_words import RESTARTING, outcome, timeout
from ralph.ui.lines import MOST_PATHS, SHORT_ID, Briefing, Line, coming_time, service_words
from ralph.ui.live.activity import Tally
from ralph.ui.style import Tone

_LAST_LINES = 5
_CLAIM_SHOWN = 80
_FEEDBACK_SHOWN = 200
_NOTE_SHOWN = 200
_REFUSALS_SHOWN = 5  # of one turn
_VALUE_SHOWN = 100
_WORTH_SAYING = 5.0  # seconds
_SCM = "scm:"
_PARKED = {
    Cause.LIMIT: "is blocked",
    Cause.STALLED: "is blocked",
    Cause.CRASH: "is blocked",
    Cause.QUESTION: "waits for you",
    Cause.PERSON: "is left alone",
    Cause.REVIEW: "is blocked",
}
_UNDONE = {
    "restore": "The task's changes are undone",
    "discard": "The iteration's changes are undone",
    "cut off": "What the cut-off iteration had changed is undone",
}
_FARED = {"lost": "is lost", "failed": "came to nothing", "ignored": "is not believed"}
_OF_A_TASK = frozenset({"commit", *_UNDONE})
_OF_A_PULL = {"push": "Pushed", facts.CI: "CI passes"}
_OF_A_STORY = frozenset({"review", "correct", "cap", "commit"})


def narrate(
    fact: facts.Fact, before: RunState, after: RunState, briefing: Briefing
) -> Iterator[Line]:
    """The lines about a fact, given the states before and after it."""
    match fact:
        case facts.Started():
            yield Line(f"Run {fact.run} ({fact.profile}) in {fact.workspace}", verbose=True)
        case facts.Resumed() | facts.Asked():
            yield from _steered(fact, before, briefing)
        case facts.Began() | facts.Launching():
            yield from _starting(fact, before, after, briefing)
        case facts.Ended():
            yield from _ended(fact.turn, briefing)
        case facts.Landed() | facts.Sent() | facts.Fared():
            yield from _away(fact)
        case facts.Checking() | facts.Checked() | facts.Proved():
            yield from _gate(fact, briefing)
        case facts.Decided():
            yield from (_attempted if briefing.attempts else _decided)(fact, before, briefing)
        case facts.Step():
            yield from _step(fact, briefing)
        case facts.Settled() | facts.Returned():
            yield from _settled(fact, after, briefing)
        case _:
            yield from _published(fact, before)


def heard(before: Signals, now: Signals) -> Iterator[Line]:
    """The lines when someone asks for something, or no longer does."""
    new = [request for request in now.requests if request not in before.requests]
    by = {request.request: by_whom(request) for request in new}
    if now.cancels > before.cancels:
        how = "at once" if now.cancels > 1 else "after the current operation"
        who = by.get(STOP_NOW if now.cancels > 1 else STOP, "")
        yield Line(f"Asked to stop{who}: the run ends {how}", Tone.NOTICE)
    if now.paused > before.paused and not any(request.text for request in new):
        words = f"Asked to pause{by.get(PAUSE, '')}: the run pauses before its next turn"
        yield Line(words, Tone.NOTICE)
    if now.paused < before.paused:
        yield Line(f"Asked to go on{by.get(RESUME, '')}", Tone.NOTICE)
    if now.done_at is not None and before.done_at is None:
        yield Line("Found DONE: the task is done", Tone.GOOD)


def _steered(
    fact: facts.Resumed | facts.Asked, before: RunState, briefing: Briefing
) -> Iterator[Line]:
    if isinstance(fact, facts.Asked):
        yield Line(asked_words(fact.request), Tone.NOTICE)
        return
    cut = f": {briefing.turn} {briefing.number(before)} was cut off"
    whole = f" after {counted(before.iteration, briefing.turn)}"
    raised = "".join(f", {name} is now {amount:g}" for name, amount in fact.raised)
    yield Line(f"Resumed{cut if before.phase is Phase.TURN else whole}{raised}", Tone.HEAD)
    yield from (Line(f"  {changed_words(each)}") for each in fact.changed)


def changed_words(changed: tuple[str, str, str]) -> str:
    """`maximumIterations is now 5 (was 3)`: a setting that was read again."""
    name, *values = changed
    was, now = (shorten(one_line(clean(each)), _VALUE_SHOWN, None, "...") for each in values)
    return f"{name} is now {now} (was {was})"


def by_whom(request: Request) -> str:
    """` (web)`: the way by which a request came, unless it was typed."""
    return "" if request.origin is Origin.CLI else f" ({request.origin})"


def asked_words(request: Request) -> str:
    """A request that a run has heard."""
    match request.request:
        case "note":
            return note_words(request)
        case "answer":
            return f"Answer to {request.task}{by_whom(request)}: {_shown(request)}"
        case "pause" if request.text:  # nobody asked again: it could not go on
            return f"Stays paused{by_whom(request)}: {_shown(request)}"
        case "resume":
            return f"Asked to go on{by_whom(request)}"
        case _:
            return f"Asked to {request.request.replace('-', ' ')}{by_whom(request)}"


def note_words(note: Request) -> str:
    """`Note from web for T-003: Use tabs.`"""
    task = f" for {note.task}" if note.task else ""
    return f"Note from {note.origin}{task}: {_shown(note)}"


def _shown(request: Request) -> str:
    return shorten(" ".join(clean(request.text).split()), _NOTE_SHOWN, None, "...")


def _starting(
    fact: facts.Began | facts.Launching, before: RunState, after: RunState, briefing: Briefing
) -> Iterator[Line]:
    """A turn that was cut off by a crash is not begun again, only launched."""
    yield from _handed_over(fact, before)
    if isinstance(fact, facts.Began):
        again = before.again
    elif before.cut_off and fact.role is not Role.MESSAGE:
        again = True
    else:
        return
    if briefing.tasks and isinstance(fact, facts.Began) and after.task_iteration == 1 and not again:
        title = f": {one_line(fact.assignment.title)}" if fact.assignment.title else ""
        yield Line(f"Task {fact.assignment.task}{title}", Tone.HEAD)
    turn = f"{briefing.turn.capitalize()} {briefing.number(after)}"
    what = ""
    if briefing.stories and (story := after.assignment) is not None:
        title = f" ({one_line(story.title)})" if story.title else ""
        what = f": {story.mode} {one_line(story.task)}{title}"
    yield Line(f"{turn} starting{' again' if again else ''}{what}", Tone.HEAD)


def _handed_over(fact: facts.Fact, before: RunState) -> Iterator[Line]:
    """The line about an agent that is not the one of the turn before."""
    if isinstance(fact, facts.Launching) and fact.role is not Role.MESSAGE:
        is_review = fact.role is Role.REVIEW
        if (before.reviewer if is_review else before.agent) not in ("", fact.who):
            yield Line(f"{'Reviewer' if is_review else 'Agent'}: {fact.who}", Tone.NOTICE)


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
    refused = [one for one in turn.permissions if not one.allowed]
    for one in refused[:_REFUSALS_SHOWN]:
        yield Line(one_line(one.refusal), Tone.NOTICE)
    if turn.asked:
        allowed = turn.asked - len(refused)
        told = f"{counted(allowed, 'request')} of the agent allowed, {len(refused)} refused"
        yield Line(told, verbose=True)
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


def _away(fact: facts.Landed | facts.Sent | facts.Fared) -> Iterator[Line]:
    """The lines about a turn in a sandbox or on another machine. That it is done its end tells."""
    if isinstance(fact, facts.Landed):
        yield from _landed(fact)
        return
    if isinstance(fact, facts.Sent):
        yield Line(f"Attempt {fact.attempt} is sent: {fact.ref}", verbose=True)
        return
    where = f" on {one_line(fact.host)}" if fact.host else ""
    why = f": {one_line(fact.detail)}" if fact.detail else ""
    words = f"Attempt {fact.attempt}{where} {_FARED.get(fact.how, fact.how)}{why}"
    if fact.how == "placed":
        yield Line(f"Attempt {fact.attempt} is{where}", Tone.FAINT)
    elif fact.how != "done":
        yield Line(words, Tone.BAD)


def _landed(fact: facts.Landed) -> Iterator[Line]:
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


def _gate(
    fact: facts.Checking | facts.Checked | facts.Proved, briefing: Briefing
) -> Iterator[Line]:
    """H §Guardrails: print exit status and fail action. Other gates speak only if they object."""
    if isinstance(fact, facts.Proved):
        yield from _proved(fact)
        return
    if isinstance(fact, facts.Checking):
        if briefing.announces(fact.gate):
            yield Line(f"Running guardrail: {fact.gate}")
        return
    is_command, took = briefing.announces(fact.gate), f"({duration(fact.seconds)})"
    for finding in fact.findings:
        log = f", output in {finding.log}" if finding.log else ""
        text = first_line(finding.text)
        words = f"{finding.gate}: {text.rstrip('.') if log else text}{log}"
        if finding.code is not None and briefing.announces(finding.gate):
            action = f"fail action {finding.placement}"
            words = f"Guardrail exited with code {finding.code} {took}: {action}{log}"
        yield Line(words, Tone.BAD)
    if not fact.findings and is_command:
        yield Line(f"Guardrail exited with code 0 {took}", Tone.GOOD)
    elif not fact.findings:
        yield Line(f"{fact.gate}: nothing found {took}", verbose=True)


def _proved(proof: facts.Proved) -> Iterator[Line]:
    """The lines about a proof; what it leaves out is said always, the rest only if asked for."""
    yield Line(f"Proven: tree {proof.tree[:SHORT_ID]}", verbose=True)
    for words, paths in (
        ("Left out of the commit (made by checks only)", proof.left_out),
        ("Restored (checks change it every time)", proof.put_back),
        ("A turn changed it too, so your own changes in it are committed as well", proof.mixed),
        ("Left out of the commit (outside of this directory)", proof.outside),
        ("Ignored by new rules, so outside the proof", proof.hidden),
    ):
        if paths:
            yield Line(f"{words}: {listed(paths, MOST_PATHS)}", Tone.NOTICE)


def _published(fact: facts.Fact, before: RunState) -> Iterator[Line]:
    """A wait is told once, however often it is looked again. Of a task that is handed out or moved
    its worker tells."""
    if isinstance(fact, facts.Published):
        new = fact.number not in (pull.number for pull in before.pulls)
        how = "Merged pull" if fact.merged else "Pull" if new else "Updated pull"
        way = f"{fact.branch} -> {fact.base}"
        yield Line(f"{how} request #{fact.number}: {way}  {fact.url}", Tone.GOOD)
    elif isinstance(fact, facts.Resting) and not before.crew:
        if fact.why == getattr(before.resting, "why", ""):
            return
        yield Line(f"Waiting: {fact.why}", Tone.FAINT)


def _decided(fact: facts.Decided, before: RunState, briefing: Briefing) -> Iterator[Line]:
    if fact.boundary is Boundary.CLOSING:
        # H §Verbose Output: completion detection attempts.
        claims = before.turn.claims if before.turn else ()
        said = ", ".join(shorten(one_line(c.raw), _CLAIM_SHOWN, None, "...") for c in claims)
        answer = "believed" if isinstance(fact.verdict, Accept) else "not complete"
        words = f"Completion check: the agent said {said or 'no tag'}: {answer}"
        yield Line(words, verbose=True)
    yield from (Line(f"Note: {note}", Tone.NOTICE) for note in fact.notes)
    match fact.verdict:
        case Wait() as wait:
            yield Line(_wait_words(wait, fact, before), Tone.NOTICE)
        case Continue(feedback=feedback) if fact.findings:
            kept = told(feedback)  # a gate before a REPLACE is not heard (H)
            named = dict.fromkeys(f.gate for f in fact.findings if f.feedback() in kept)
            wiped = [f.gate for f in fact.findings if f.feedback() in feedback]
            wiped = [gate for gate in dict.fromkeys(wiped) if gate not in named]
            without = f", but not what {', '.join(wiped)} found" if wiped else ""
            if named:
                words = f"the agent is told what {', '.join(named)} found{without}"
                yield Line(f"Not done yet: {words}")
    if isinstance(fact.verdict, Continue) and fact.verdict.after:
        words = f"Waiting {duration(fact.verdict.after)} before the next {briefing.turn}"
        yield Line(words, Tone.FAINT, verbose=fact.verdict.after < _WORTH_SAYING)


def _attempted(fact: facts.Decided, before: RunState, briefing: Briefing) -> Iterator[Line]:
    """S §Restart Counter."""
    attempt, turn, verdict = before.iteration, before.turn, fact.verdict
    limited = isinstance(verdict, Stop) and verdict.reason is Reason.LIMIT
    if fact.boundary is Boundary.CLOSING and turn is not None:
        words = outcome(attempt, turn, verdict, briefing.iterations)
        yield Line(words, Tone.BAD if turn.failed else Tone.PLAIN)
        if timeout(turn) and words.endswith(RESTARTING):
            yield Line(f"Restarting agent (attempt {briefing.which(attempt + 1)})")
    elif limited and attempt == briefing.iterations:
        which = f"Attempt {attempt}: " if attempt else ""
        yield Line(f"{which}Max restarts exceeded, stopping", Tone.NOTICE)
    if isinstance(verdict, Wait):
        yield Line(_wait_words(verdict, fact, before), Tone.NOTICE)


def _wait_words(wait: Wait, fact: facts.Decided, before: RunState) -> str:
    if wait.bench is not None:
        return _bench_words(wait, wait.bench, fact.time)
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


def _bench_words(wait: Wait, bench: Bench, now: float) -> str:
    """`claude cannot go on: ...; the next agent does, and claude is asked again after 05:00:00`"""
    again = f"{bench.agent} is not asked again in this run"
    if bench.until is not None:
        when = f"{coming_time(bench.until, now)} ({duration(bench.until - now)})"
        again = f"{bench.agent} is asked again after {when}"
    next_ = "the next agent does"
    if wait.until:
        when = f"{coming_time(wait.until, now)} ({duration(wait.until - now)})"
        next_ = f"no other can before {when}"
    return f"{wait.why.rstrip('.')}; {next_}, and {again}"


def _step(fact: facts.Step, briefing: Briefing) -> Iterator[Line]:
    if fact.key.startswith(_SCM):
        yield from _scm_step(fact, fact.key.removeprefix(_SCM))
    elif fact.ok and (
        (briefing.tasks and fact.key in _OF_A_TASK)
        or (briefing.stories and fact.key in _OF_A_STORY)
    ):
        yield from _done_step(fact)
    elif fact.key in _OF_A_PULL and (fact.ok or fact.key == facts.CI):
        words = _OF_A_PULL[fact.key] if fact.ok else "CI is red"
        yield Line(f"{words}: {first_line(fact.detail)}", Tone.GOOD if fact.ok else Tone.BAD)
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


def _scm_step(fact: facts.Step, task: str) -> Iterator[Line]:
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


def _sync_step(fact: facts.Step) -> Iterator[Line]:
    """The lines about what the list or issue that a task came from was told."""
    if fact.ok:
        yield Line(first_line(fact.detail), Tone.GOOD)
    else:
        yield Line(f"Not told: {first_line(fact.detail)}", Tone.NOTICE)
        yield Line("The task is done all the same. Try again: ralph tasks sync", Tone.NOTICE)


def _done_step(fact: facts.Step) -> Iterator[Line]:
    """The lines about what the host did with a task's work (B §Rollback) or a list of stories, and
    what a review found. What was approved at the cap is told by its review."""
    first = first_line(fact.detail)
    if fact.key == "review":
        yield from _reviewed(fact.detail)
    elif fact.key == "commit":
        yield Line(f"Committed: {first}" if fact.detail else "Nothing more to commit", Tone.GOOD)
    elif fact.key == "correct" and fact.detail:
        yield Line(f"Put right: {first}", Tone.NOTICE)
    elif fact.key in _UNDONE and fact.detail:
        words = f"{_UNDONE[fact.key]}; what there was is kept in {fact.detail}"
        yield Line(words, Tone.NOTICE)


def _reviewed(detail: str) -> Iterator[Line]:
    """The line about what a review found."""
    from ralph.review.law import APPROVED, CHANGES_REQUESTED
    from ralph.review.stats import AUTO_APPROVED, review_of

    outcomes = {
        APPROVED: ("approved", Tone.GOOD),
        CHANGES_REQUESTED: ("changes requested", Tone.NOTICE),
        AUTO_APPROVED: ("approved at the review cap", Tone.NOTICE),
    }
    if (review := review_of(detail)) is not None:
        words, tone = outcomes[review.outcome]
        feedback = shorten(first_line(review.feedback), _FEEDBACK_SHOWN, None, "...")
        why = f": {feedback}" if feedback else ""
        yield Line(f"{one_line(review.story)} {words} (review {review.count}){why}", tone)


def _failed_step(name: str, detail: str) -> Iterator[Line]:
    first, *more = _last_lines(detail) or ["no reason given"]
    yield Line(f"{name} failed: {first}", Tone.BAD)
    yield from (Line(f"  {line}", Tone.FAINT) for line in more)


def _settled(
    fact: facts.Settled | facts.Returned, after: RunState, briefing: Briefing
) -> Iterator[Line]:
    if isinstance(fact, facts.Returned):
        yield _returned(fact, after)
        return
    match fact.verdict:
        case Stop() as verdict if not briefing.worker:
            from ralph.ui.closing import closing_lines  # it knows of every loop, and comes last

            yield from closing_lines(verdict, after, briefing)
        case Park(why=why, cause=cause):
            task = after.task or "The task"
            yield Line(f"{task} {_PARKED[cause]}: {one_line(why)}", Tone.NOTICE)
        case Continue() if (merge := after.step("merge")) is not None and briefing.tasks:
            words = f"Not merged yet: {first_line(merge.detail)}; the agent is told"
            yield Line(words, Tone.NOTICE)


def _returned(fact: facts.Returned, after: RunState) -> Line:
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
