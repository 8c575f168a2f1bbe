"""The turn of an attempt: planned by the run's settings with this machine's agent, environment and
sandbox, and taken as a worker here would take it."""

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import msgspec

from ralph.errors import ConfigError
from ralph.fleet.machine.pipe import HopelessError, Leash, Voice, tell
from ralph.fleet.port import Job
from ralph.journal.journal import JOURNAL, FileJournal
from ralph.kernel.facts import Fared, Launching, Sent
from ralph.kernel.limits import least
from ralph.kernel.state import NEW
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.turn import Order, Pulse, Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.kernel.world import Signals
from ralph.processes.child import Starter
from ralph.processes.signals import SignalFiles
from ralph.runner.invocation import Invocation
from ralph.runner.keeping import Attention
from ralph.runner.plan import Plan
from ralph.runner.planning import PlanTerms, hidden_keys, planned, sandboxed, with_fallbacks
from ralph.runner.wired import AgentReaders, RunContext
from ralph.runner.workplace import Workplace
from ralph.settings.load import Loaded, combine
from ralph.settings.schema import CiSettings, PullSettings
from ralph.settings.source import Layer
from ralph.ui.console import Console
from ralph.ui.style import Style

_OF_THE_RUN = "the settings of the run"


@value
class TurnWork:
    """Nothing but the turn: what it is about is in its prompt."""

    def kept(self) -> dict[str, Any]:
        """Nothing goes on from it."""
        return {}


def settings_of(job: Job) -> Loaded:
    """The settings that the turn needs; what is judged, is judged where the run is."""
    try:
        told = msgspec.json.decode(job.settings)
        if not isinstance(told, dict):
            raise ValueError("they are no object")
        loaded = combine([Layer(_OF_THE_RUN, told, is_flag=True)])
    except (ValueError, RecursionError, ConfigError) as error:
        raise HopelessError(f"{_OF_THE_RUN} cannot be read: {error}") from error
    settings = loaded.settings
    environment = settings.agent.env
    unset = (*environment.unset, *hidden_keys(settings))  # not for agents, wherever they work
    change = msgspec.structs.replace
    settings = change(
        settings,
        agent=change(settings.agent, env=change(environment, unset=unset)),
        sandbox=settings.sandbox or "auto",
        proof="tree",
        pr=PullSettings(),
        ci=CiSettings(),
        guardrails=(),
        scm=None,
    )
    return change(loaded, settings=settings)


def plan_of(
    loaded: Loaded, workspace: str, environ: Mapping[str, str], run_dir: str, hidden: str
) -> Plan[TurnWork]:
    """The plan of the turn in its work tree. ConfigError if this machine has not what it needs; a
    sandbox that contains is never quietly left out."""
    invocation = Invocation(workspace, environ, {}, None, None, None)
    terms = PlanTerms("", money=(), heals=True)
    plan = planned("backlog", TurnWork(), invocation, loaded, Backlog, terms=terms)
    dollars = least(loaded.settings.loop.max_cost_per_run, loaded.settings.max_cost)
    plan = replace(plan, limits=replace(plan.limits, dollars=dollars))
    plan = with_fallbacks(plan, invocation, terms)
    plan = replace(sandboxed(plan), layer_root=run_dir, hidden=(hidden,))
    if loaded.settings.sandbox == "auto" and not plan.is_contained:
        assert plan.sandbox is not None
        raise ConfigError(
            f"no sandbox that contains an agent is usable; {plan.sandbox.backend} does not",
            "Look there: ralph sandbox probe. Or ask for one by its name, such as --sandbox "
            f"{plan.sandbox.backend}",
        )
    return plan


def place_of(
    plan: Plan[TurnWork], run_dir: str, start: Starter, voice: Voice, cleanup: ExitStack
) -> Workplace:
    """The workplace of the turn; who starts us is told when the agent is about to start."""

    def launching(fact: Launching | Sent | Fared) -> None:
        assert isinstance(fact, Launching)
        told = {name: getattr(fact, name) for name in ("dialect", "agent", "model", "stream")}
        voice.say(launched=told)

    console = Console(
        None,
        None,
        Style(),
        stream=False,
        verbose=False,
        briefing=plan.briefing,
        clock=time.time,
    )
    journal = FileJournal(os.path.join(run_dir, JOURNAL))
    cleanup.callback(journal.close)
    attention = Attention(Signals, SignalFiles(run_dir), console)
    readers = AgentReaders(record=launching)
    run = RunContext(run_dir, NEW, journal, attention, readers, start, tell, cleanup)
    return Workplace(plan, run, None)


def take(place: Workplace, order: Order, leash: Leash, voice: Voice) -> Turn:
    """The turn, under way as long as the leash lets it. When that is too long, the run knows; an
    agent that had said its result by then, and only would not exit, has ended (ADR 6)."""

    def watch(pulse: Pulse) -> Cut | None:
        voice.beat(pulse)
        cut = leash.agents()
        return replace(cut, finished=True) if cut and pulse.since_result is not None else cut

    return place.agent().take_turn(order, watch)
