"""Going on with a run, perhaps with new limits (ADR 35). Nothing is begun before `go_on`."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from ralph.errors import ConfigError, StateError
from ralph.journal.journal import JOURNAL
from ralph.journal.recovery import recover
from ralph.journal.way_on import limits_to_raise
from ralph.kernel.case import Case, decide
from ralph.kernel.facts import Resumed
from ralph.kernel.limits import least
from ralph.kernel.state import fold, replay
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Boundary, Reason, Stop
from ralph.processes.signals import SignalFiles
from ralph.runner.carry_out import carried_out, locked
from ralph.runner.invocation import Invocation, Raise
from ralph.runner.kept import FLEET_NOW, keep_plan, plan_again
from ralph.runner.plan import Past, Plan
from ralph.settings.load import value_at
from ralph.text.words import written

_SHOWN: dict[str, Callable[[Any], str]] = {
    "--max-time": written,
    "--max-cost": lambda dollars: f"{dollars:g}",
}


@value
class GoingOn:
    """A run that could go on: everything checked, nothing begun."""

    plan: Plan[Any]
    past: Past
    words: tuple[str, ...]  # how its limits change


def planned_on(invocation: Invocation, past: Past, raises: Sequence[Raise]) -> GoingOn:
    """Read what the run was to do, with new limits. ConfigError if it would end at once."""
    plan, words = plan_again(invocation, past), []
    raised: dict[str, float] = {}
    for each in raises:
        settings = plan.loop.limits.get(each.flag)
        if settings is None:
            known = ", ".join(plan.loop.limits)
            raise ConfigError(f"{each.flag} is no limit of this run", f"It has {known}.")
        said = {name: value_at(plan.settings, name) for name in settings}
        now, show = least(*said.values()), _SHOWN.get(each.flag, str)
        if each.more and now is None:
            message = f"{each.flag}: this run has no such limit to add to"
            raise ConfigError(message, f"Give the total: {each.flag} {show(each.amount)}")
        total = each.amount + (now or 0) * each.more
        raised |= {n: total for n in settings if n == settings[0] or said[n] is not None}
        words.append(f"{each.flag} {show(total)}" + (f" (was {show(now)})" if now else ""))
    if raised:
        plan = plan_again(invocation, past, raised)
    if past.state.has_ended:
        _refuse_the_end(plan, past)
    if plan.branch is not None:
        run = os.path.basename(past.directory)
        plan.branch.refuse_another(run, plan.workspace, plan.environ)
    return GoingOn(plan, past, tuple(words))


def reopened(plan: Plan[Any], past: Past) -> Resumed:
    """The fact with which it goes on."""
    return Resumed(time.time(), os.getpid(), plan.limits, plan.raised, plan.changed)


def _refuse_the_end(plan: Plan[Any], past: Past) -> None:
    """Refuse to go on where the first thing to decide would be the same end again."""
    if plan.loop.first is None:
        return
    fact = reopened(plan, past)
    state, signals = fold(past.state, fact), plan.loop.marks(plan)()
    case = Case(Boundary.OPENING, state, fact.time, signals=signals, backlog=plan.backlog())
    verdict = decide(case, plan.loop.first(plan).opening)
    if not isinstance(verdict, Stop) or verdict.reason is Reason.COMPLETED:
        return
    run = os.path.basename(past.directory)
    if verdict.reason is Reason.BLOCKED and plan.raised:
        return  # perhaps what is blocked lacked only that
    if verdict.reason is Reason.LIMIT:
        message = f"run {run} is at its limit: {verdict.why}"
        remedy = "Give more than it has spent." if plan.raised else _remedy(past, plan)
        raise ConfigError(message, remedy)
    message = f"run {run} cannot go on yet: {verdict.why}"
    raise ConfigError(message, plan.loop.none_first[1] or f"Then: ralph resume {run}")


def _remedy(past: Past, plan: Plan[Any]) -> str:
    """What to type where a limit is used up."""
    again = f"ralph resume {os.path.basename(past.directory)}"
    flags = limits_to_raise(replace(past.state, limits=plan.limits))
    if flags:
        return f"Raise it: {again} {flags}"
    return f"Go on tomorrow, or raise loop.maxCostPerDay in the settings, then: {again}"


def go_on(invocation: Invocation, going: GoingOn) -> int:
    """Carry on the run, with its own counters."""
    plan, past = going.plan, going.past
    with locked(plan, os.path.basename(past.directory)):
        history = recover(os.path.join(past.directory, JOURNAL), plan.prices_of_all)
        if replay(history.facts) != past.state:
            message = f"run {os.path.basename(past.directory)} has gone on meanwhile"
            raise StateError(message, "See: ralph status")
        if past.state.rereads or invocation.flags.get(FLEET_NOW):
            keep_plan(plan, past.directory)
        SignalFiles(past.directory).forget(past.state.heard)
        return carried_out(invocation, plan, past.directory, history)
