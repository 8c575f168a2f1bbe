"""Wiring: from flags and settings to a plan, and from a plan to a policy and its ports."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ralph.adapters.agent import CliAgent, Setup
from ralph.adapters.agents import (
    AgentModule,
    Launch,
    Request,
    find_command,
    kind_of,
    module_of,
    split_flags,
    value_in,
    without,
)
from ralph.adapters.environment import Environment, agent_environment
from ralph.adapters.files import PromptFile, PromptInput, PromptText, project_dir, state_root
from ralph.adapters.guardrail import Guardrail, Place, slugs
from ralph.adapters.probe import Probe
from ralph.adapters.process import Starter, start
from ralph.adapters.protect import ProtectGate, Protector
from ralph.adapters.scm import ScmCommand, task_words
from ralph.adapters.world import Workspace
from ralph.core.claims import ResponseTag
from ralph.core.events import AgentEvent
from ralph.core.facts import Launching
from ralph.core.limits import Limits, Prices, per_million
from ralph.core.redact import secrets_of
from ralph.core.task import Backlog
from ralph.core.turn import Order
from ralph.core.value import value
from ralph.core.world import Signals
from ralph.errors import ConfigError
from ralph.ports import Policy
from ralph.profiles.harness import Wording, harness
from ralph.profiles.shared import Patience
from ralph.settings.load import Loaded, load
from ralph.settings.schema import Settings

if TYPE_CHECKING:
    from ralph.adapters.keeper_process import Launched


_FLAGS = {  # flag -> the setting it overrides
    "--maximum-iterations": "maximumIterations",
    "--completion-response": "completionResponse",
    "--stream-agent-output": "streamAgentOutput",
    "--tell-completion": "tellCompletion",
    "--agent": "agent.command",
    "--model": "agent.model",
    "--max-time": "maxTime",
    "--max-cost": "maxCost",
    "--max-wait": "maxWait",
    "--timeout": "timeout",
    "--idle-timeout": "idleTimeout",
    "--stop-grace": "stopGrace",
}


@value
class Invocation:
    """What someone typed, and where."""

    workspace: str
    environ: Mapping[str, str]
    flags: Mapping[str, Any]
    stdin: TextIO | None
    out: TextIO | None
    err: TextIO | None
    keeper: "Launched | None" = None  # one that was launched before


@value
class Plan:
    """A run that could start: everything checked, nothing begun."""

    workspace: str
    environ: Mapping[str, str]
    loaded: Loaded
    backlog: Callable[[], Backlog]
    command: tuple[str, ...]
    kind: str
    module: AgentModule
    environment: Environment
    state_root: str
    prices: Prices | None = None  # what tokens cost, where the agent does not tell
    price_words: str = ""  # where they come from, if not from the settings

    @property
    def model(self) -> str:
        """The model that is asked for, by Ralph's setting or the agent's own flag."""
        return asked_model(self.settings, self.module, self.command) or ""

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @property
    def project(self) -> str:
        """The workspace's directory in the state directory."""
        return project_dir(self.state_root, self.workspace)


def plan_run(invocation: Invocation) -> Plan:
    """Check everything that can be checked before a run begins."""
    backlog = _backlog(invocation)
    overrides = {
        setting: (invocation.flags[flag.removeprefix("--").replace("-", "_")], flag)
        for flag, setting in _FLAGS.items()
    }
    loaded = load(invocation.workspace, overrides)
    tasks = backlog()
    if tasks.problem:
        raise ConfigError(tasks.problem, "Give a prompt with -p TEXT or -f FILE.")
    agent = loaded.settings.agent
    command = find_command(agent.command, invocation.environ)
    kind = kind_of(command[0], agent.kind)
    module = module_of(kind)
    prices, price_words = prices_of(loaded.settings, module, command)
    _refuse_uncounted_money(loaded, module, command[0], kind, priced=prices is not None)
    _refuse_what_cannot_work(loaded.settings, module, command, tasks.tasks[0].text)
    environment = agent_environment(
        invocation.environ,
        agent.kind or os.path.basename(command[0]).lower(),
        keep=agent.env.keep,
        unset=agent.env.unset,
        put=agent.env.set,
    )
    root = state_root(invocation.environ)
    return Plan(
        invocation.workspace,
        invocation.environ,
        loaded,
        backlog,
        command,
        kind,
        module,
        environment,
        root,
        prices,
        price_words,
    )


def _backlog(invocation: Invocation) -> Callable[[], Backlog]:
    text, file = invocation.flags["prompt"], invocation.flags["prompt_file"]
    if (text is None) == (file is None):
        raise ConfigError(
            "give exactly one of --prompt and --prompt-file",
            'For example: ralph run -p "Make the tests pass" or ralph run -f PROMPT.md',
        )
    if file == "-":
        return PromptInput(invocation.stdin)
    return PromptText(text) if text is not None else PromptFile(file)


def asked_model(settings: Settings, module: AgentModule, command: tuple[str, ...]) -> str | None:
    """`agent.model`, else what the agent's own arguments ask for."""
    arguments = (*command[1:], *split_flags(settings.agent.flags))
    return settings.agent.model or value_in(arguments, module.MODEL_FLAGS)


def prices_of(
    settings: Settings, module: AgentModule, command: tuple[str, ...]
) -> tuple[Prices | None, str]:
    """What tokens cost: by the settings, else by the bundled list, and then in words (ADR 22)."""
    if settings.agent.prices:
        prices = settings.agent.prices.prices()
        return prices, f"agent.prices: {per_million(prices)}"
    model = asked_model(settings, module, command)
    if model is None or not module.REPORTS:
        return None, ""
    from ralph.core.pricelist import listed, price_words

    found = listed(model)
    if found is None:
        return None, ""
    # An agent that reports cost may not know this model's; then the list does.
    return found.prices, price_words(found) if module.REPORTS == "tokens" else ""


def _refuse_uncounted_money(
    loaded: Loaded, module: AgentModule, name: str, kind: str, *, priced: bool
) -> None:
    """A limit that nobody counts against would be a lie (ADR 15)."""
    settings = loaded.settings
    if settings.max_cost is None:
        return
    origin = loaded.origins["maxCost"]
    limit = origin if origin.startswith("--") else f"{origin}: maxCost"
    if module.REPORTS == "":
        raise ConfigError(f"{limit}: {name} reports no cost", "Use --max-time or -m instead.")
    if module.REPORTS == "tokens" and not priced:
        raise ConfigError(f"{limit}: {name} reports no cost, only tokens", _price_remedy(kind))
    if not settings.stream_agent_output:
        raise ConfigError(
            f"{limit}: without its stream {name} reports no cost", "Use --stream-agent-output."
        )


def _price_remedy(kind: str) -> str:
    from ralph.core.pricelist import known_models

    set_them = 'Set agent.prices, for example {"input": 1.25, "output": 10}'
    models = ", ".join(known_models(kind))
    if not models:
        return f"{set_them}, or use --max-time."
    return f"{set_them}, or name with --model one whose price is known: {models}."


def _refuse_what_cannot_work(
    settings: Settings, module: AgentModule, command: tuple[str, ...], prompt: str
) -> None:
    """What would fail in every iteration is refused before the first."""
    agent, flags = settings.agent, split_flags(settings.agent.flags)
    module.launch(Request(command, prompt, flags, agent.model, prompt_via=agent.prompt_via))
    for task in settings.scm.tasks if settings.scm else ():
        task_words(task)


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
