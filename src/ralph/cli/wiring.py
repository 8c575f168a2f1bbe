"""Wiring: from a plan to a policy and its ports."""

import os
from collections.abc import Callable, Sequence

from ralph.adapters.agent import CliAgent, Setup
from ralph.adapters.agents import (
    Launch,
    split_flags,
    without,
)
from ralph.adapters.guardrail import Guardrail, Place, slugs
from ralph.adapters.probe import Probe
from ralph.adapters.process import Starter, start
from ralph.adapters.protect import ProtectGate, Protector
from ralph.adapters.scm import ScmCommand
from ralph.adapters.world import Workspace
from ralph.cli.planning import Plan
from ralph.core.claims import ResponseTag
from ralph.core.events import AgentEvent
from ralph.core.facts import Launching
from ralph.core.limits import Limits
from ralph.core.redact import secrets_of
from ralph.core.turn import Order
from ralph.core.world import Signals
from ralph.ports import Policy
from ralph.profiles.harness import Wording, harness
from ralph.profiles.shared import Patience
from ralph.settings.schema import Settings


def build_policy(
    plan: Plan, run_dir: str, protector: Protector, signals: "SignalSource", start: Starter
) -> Policy:
    """The harness profile as the settings want it."""
    settings = plan.settings
    protect = (ProtectGate(protector, plan.workspace, run_dir),) if settings.protect else ()
    return harness(
        limits_of(settings),
        patience_of(settings),
        wording_of(settings),
        (*protect, *_guardrails(plan, run_dir, signals, start)),
        _scm(plan, signals, start),
    )


def limits_of(settings: Settings) -> Limits:
    """What the run may use up."""
    return Limits(settings.maximum_iterations, settings.max_time, settings.max_cost)


def patience_of(settings: Settings) -> Patience:
    """How long the run bears with the agent."""
    return Patience(
        settings.timeout,
        settings.idle_timeout,
        settings.result_grace,
        settings.stop_grace,
        settings.max_wait,
        settings.fail_after,
        settings.stall_after,
    )


def wording_of(settings: Settings) -> Wording:
    """How the prompt is put together."""
    count_to = settings.maximum_iterations if settings.include_iteration_count_in_prompt else None
    return Wording(ResponseTag(settings.completion_response), settings.tell_completion, count_to)


def build_agent(
    plan: Plan,
    run_dir: str,
    on_events: Callable[[Sequence[AgentEvent]], None],
    on_launch: Callable[[Launch, Order], None] = lambda _launch, _order: None,
    record: Callable[[Launching], None] = lambda _: None,
    *,
    start: Starter = start,
    may_probe: bool = True,
) -> CliAgent:
    """The agent that takes the turns."""
    agent = plan.settings.agent
    env = {**plan.environment.values, "RALPH_RUN": os.path.basename(run_dir)}
    setup = Setup(
        module=plan.module,
        command=plan.command,
        flags=_flags(plan),
        model=agent.model,
        stream=plan.settings.stream_agent_output,
        prompt_via=agent.prompt_via,
        help_text=_help_text(plan, may_probe=may_probe),
        prices=plan.prices,
        workspace=plan.workspace,
        env=env,
        run_dir=run_dir,
        secrets=secrets_of({**plan.environ, **env}),
        start=start,
    )
    return CliAgent(setup, on_events, on_launch, record)


def _flags(plan: Plan) -> tuple[str, ...]:
    """Without a model of their own where the settings name one: some CLIs refuse two."""
    flags = split_flags(plan.settings.agent.flags)
    return without(flags, plan.module.MODEL_FLAGS) if plan.settings.agent.model else flags


def build_world(plan: Plan, protector: Protector, signals: "SignalSource") -> Workspace:
    """What the engine surveys."""
    if not plan.settings.stall_after:
        return Workspace(signals, plan.backlog, protector)
    from ralph.adapters.git import TreeDigest

    return Workspace(signals, plan.backlog, protector, TreeDigest(plan.workspace, plan.environ))


def build_protector(plan: Plan, run_dir: str) -> Protector:
    """Who knows the protected paths."""
    store = os.path.join(run_dir, "protected")
    return Protector(plan.workspace, (*plan.settings.protect, *_hooks_elsewhere(plan)), store)


def _hooks_elsewhere(plan: Plan) -> tuple[str, ...]:
    """In a worktree or a subdirectory `.git/hooks` names nothing, but git still runs its hooks."""
    here = os.path.join(plan.workspace, ".git")
    if ".git/hooks" not in plan.settings.protect or os.path.isdir(here):
        return ()
    from ralph.adapters.git import hooks_directory

    directory = hooks_directory(plan.workspace, plan.environ)
    return (directory,) if directory else ()


SignalSource = Callable[[], Signals]


def _guardrails(
    plan: Plan, run_dir: str, signals: SignalSource, start: Starter
) -> tuple[Guardrail, ...]:
    settings = plan.settings
    place = Place(
        plan.workspace,
        run_dir,
        plan.environ,
        settings.output_truncate_chars,
        signals,
        settings.stop_grace,
        settings.max_time,
        start,
    )
    names = slugs(tuple(g.command for g in settings.guardrails))
    return tuple(
        Guardrail(g.command, place, slug, g.fail_action, g.hint or "", g.timeout)
        for g, slug in zip(settings.guardrails, names, strict=True)
    )


def _scm(plan: Plan, signals: SignalSource, start: Starter) -> ScmCommand | None:
    scm = plan.settings.scm
    if scm is None or not scm.tasks:
        return None
    settings = plan.settings
    return ScmCommand(
        scm.command,
        scm.tasks,
        plan.workspace,
        plan.environ,
        signals,
        settings.stop_grace,
        settings.max_time,
        start,
    )


def _help_text(plan: Plan, *, may_probe: bool) -> Callable[[], str | None]:
    if not plan.settings.agent.probe or not plan.module.PROBE:
        return lambda: None
    cache = os.path.join(plan.state_root, "probes.json")
    env = plan.environment.values
    return Probe(plan.command, plan.module.PROBE, env, cache, may_ask=may_probe)
