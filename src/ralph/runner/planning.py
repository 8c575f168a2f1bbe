"""Planning: from flags and settings to a run that could start. Nothing is begun here."""

import os
from collections.abc import Callable

from ralph.agents.clis import CLIS, Cli, Environment, Request, agent_environment
from ralph.agents.kinds import (
    INSTALLED_BY,
    Command,
    account_of,
    find_command,
    is_path_from,
    kind_of,
    named_command,
    split_flags,
)
from ralph.agents.own import own_model
from ralph.agents.providers import OWN
from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.git.scm import task_words
from ralph.kernel.facts import with_model
from ralph.kernel.limits import Limits
from ralph.kernel.roster import Roster, StepDown
from ralph.kernel.rules import Patience
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.value import replace, value
from ralph.runner.invocation import Invocation
from ralph.runner.money import asked_model, limit_of_money, prices_of, uncounted
from ralph.runner.plan import Plan, Work
from ralph.settings.explain import secrets_in
from ralph.settings.load import Loaded
from ralph.settings.other_agents import of_fallback, of_model
from ralph.settings.schema import Settings
from ralph.text.redact import know
from ralph.ui.lines import Briefing

_FALLBACKS, _STEP_DOWN = "agent.fallbacks", "loop.stepDown"
_PRICES = 'Give it prices, for example "prices": {"input": 1.25, "output": 10}'
_NOT_THERE = "Check the command and PATH, or take it out."
PUBLISHING = ("prompt", "backlog", "stories")  # the loops whose work is commits
FORGE_KEYS = (  # with which an agent could call its own work green, or merge it
    *("GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"),
    *("GITLAB_TOKEN", "CI_JOB_TOKEN"),
)
_STALL_AFTER = 3  # iterations without progress, unless someone says otherwise


@value
class PlanTerms:
    """Conditions under which a plan is refused, and the remedy."""

    remedy: str  # about a backlog that cannot be read
    money: tuple[str, ...] = ("maxCost",)  # the settings that limit what may be spent
    heals: bool = False  # the run itself puts a broken backlog right
    over: bool = False  # no agent will be started
    elsewhere: bool = False  # none will be here: whether there is one is not asked


def planned(
    loop: str,
    work: Work,
    invocation: Invocation,
    loaded: Loaded,
    backlog: Callable[[], Backlog],
    *,
    terms: PlanTerms,
) -> Plan[Work]:
    """The plan of a run of that loop in its workspace, with the limits of the settings."""
    plan = _by_agent(loop, work, invocation, loaded, backlog, terms=terms)
    return plan if terms.over else _published(plan, invocation)


def _by_agent(
    loop: str,
    work: Work,
    invocation: Invocation,
    loaded: Loaded,
    backlog: Callable[[], Backlog],
    *,
    terms: PlanTerms,
) -> Plan[Work]:
    """The plan as the agent of these settings takes turns in it."""
    tasks = backlog()
    if tasks.problem and not terms.heals:
        raise ConfigError(tasks.problem, terms.remedy)
    settings = loaded.settings
    command, cli, environment = _agent(invocation, settings, over=terms.over or terms.elsewhere)
    kind = cli.kind
    prices, words = prices_of(settings, cli, command, environment.values)
    if not terms.over:
        limit, priced = limit_of_money(loaded, terms.money), prices is not None
        if limit and (why := uncounted(settings, cli, command[0], kind, priced=priced)):
            raise ConfigError(f"{limit}: {why[0]}", why[1])  # it would be a lie (ADR 15)
        _refuse_what_cannot_work(settings, cli, command, tasks)
    here, root = invocation.workspace, state_root(invocation.environ)
    know(secrets_in(invocation.environ, settings, (here, root)))
    return Plan(
        loop_name=loop,
        work=work,
        workspace=here,
        environ=invocation.environ,
        loaded=loaded,
        backlog=backlog,
        limits=limits_of(settings),
        briefing=Briefing(
            iterations=settings.maximum_iterations,
            guardrails=frozenset(g.command for g in settings.guardrails),
            permission_hint=_permission_hint(cli, loaded),
        ),
        command=command,
        kind=kind,
        cli=cli,
        environment=environment,
        state_root=root,
        scope=here,
        project=project_dir(root, here),
        home=here,
        layer_root=root,
        prices=prices,
        price_words=words,
    )


def publishes(settings: Settings) -> bool:
    """True if its work leaves this machine: then nobody but the host has the key for that."""
    return settings.pr.mode is not None or settings.ci.enabled is True


def hidden_keys(settings: Settings) -> tuple[str, ...]:
    """Variables that neither the agent nor the checks get, which run its code."""
    keys = FORGE_KEYS if publishes(settings) else ()
    return tuple(key for key in keys if key not in settings.agent.env.keep)


def _published(plan: Plan[Work], invocation: Invocation) -> Plan[Work]:
    """The plan with the place that its work goes to, if it goes anywhere."""
    settings = plan.settings
    if plan.loop_name not in PUBLISHING:
        return plan
    if not publishes(settings):
        for name in ("pr.base", "pr.draft", "pr.merge"):
            flag = plan.loaded.origins.get(name) or ""
            if flag.startswith("--"):
                remedy = "Add --pr per-task, --pr stacked or --pr per-run."
                raise ConfigError(f"{flag} is for pull requests, and there are none", remedy)
        return plan
    if invocation.flags.get("dry_run"):
        return plan
    from ralph.runner.publishing.setup import destination

    return replace(plan, destination=destination(settings, plan.workspace, plan.environ))


def _command(invocation: Invocation, command: Command | None, *, over: bool) -> tuple[str, ...]:
    """The agent's command. A path is the project's, also for a program that works elsewhere. Of a
    list each item is a word."""
    if isinstance(command, tuple):
        return (*_command(invocation, command[0], over=over), *command[1:])
    here, find = invocation.workspace, named_command if over else find_command
    if command is not None and here != os.getcwd() and is_path_from(here, command):
        command = os.path.join(here, command)
    return find(command, invocation.environ)


def _permission_hint(cli: Cli, loaded: Loaded) -> str:
    """What to do about denied permissions; where there are no settings, `ralph init` does it."""
    hint = cli.permission_hint
    return hint if loaded.files or not hint else f"{hint} To have it proposed: ralph init"


def _agent(
    invocation: Invocation, settings: Settings, *, over: bool
) -> tuple[tuple[str, ...], Cli, Environment]:
    """The agent's command, which names the model that our own will use; and its environment."""
    environ, agent = invocation.environ, settings.agent
    command = _command(invocation, agent.command, over=over)
    cli = CLIS[kind_of(command, agent.kind)]
    asked = asked_model(settings, cli, command)
    environment = agent_environment(
        environ,
        account_of(agent.kind or cli.kind, command),
        keep=agent.env.keep,
        unset=(*agent.env.unset, *hidden_keys(settings)),
        put=agent.env.set,
        model=asked,
    )
    if cli.kind == OWN and not over:
        model = own_model(asked, environment.values)
        command = command if asked else (*command, "--model", str(model))
    return command, cli, environment


def _refuse_what_cannot_work(
    settings: Settings, cli: Cli, command: tuple[str, ...], backlog: Backlog
) -> None:
    """Refuse before the first iteration what would fail in each."""
    prompt = backlog.tasks[0].text if backlog.tasks else ""
    agent, flags = settings.agent, split_flags(settings.agent.flags)
    cli.launch(Request(command, prompt, flags, agent.model, prompt_via=agent.prompt_via))
    for task in settings.scm.tasks if settings.scm else ():
        task_words(task)
    if settings.notify.urls:
        from ralph.notify.notifier import notify_problem

        if problem := notify_problem(settings.notify.urls):
            raise problem


def with_fallbacks(plan: Plan[Work], invocation: Invocation, terms: PlanTerms) -> Plan[Work]:
    """The plan with the agents that its settings name beside the first, each checked as that one
    is. ConfigError if one could not take a turn, or not be counted against a limit of money."""
    settings, others = plan.settings, list[Plan[Work]]()
    limit = limit_of_money(plan.loaded, terms.money)
    for fallback in settings.agent.fallbacks:
        loaded = of_fallback(plan.loaded, fallback, settings.agent.command or plan.command[0])
        other = _another(plan, invocation, terms, _FALLBACKS, loaded)
        if limit and (why := _uncounted(other)):
            priceless = other.cli.reports == "tokens" and other.prices is None
            remedy = f"{_PRICES}, or take it out." if priceless else why[1]
            raise ConfigError(f"{_FALLBACKS}: {limit}: {why[0]}", remedy)
        others.append(other)
    if step := settings.loop.step_down:
        if plan.limits.dollars is None:
            remedy = "Set maxCost (--max-cost), or take it out."
            raise ConfigError(f"{_STEP_DOWN} needs a limit of money, and there is none", remedy)
        cheaper = of_model(plan.loaded, step.model)
        other = _another(plan, invocation, terms, _STEP_DOWN, cheaper)
        if why := _uncounted(plan) or _uncounted(other):
            priced = "Set agent.prices, or take it out."
            remedy = priced if plan.cli.reports == "tokens" else "Take it out."
            raise ConfigError(f"{_STEP_DOWN}: {why[0]}", remedy)
        others.append(other)
    return replace(plan, others=tuple(others), roster=roster_of(settings))


def _another(
    plan: Plan[Work], invocation: Invocation, terms: PlanTerms, where: str, loaded: Loaded
) -> Plan[Work]:
    """The plan as another agent takes turns in it."""
    terms, command = replace(terms, heals=True, money=()), loaded.settings.agent.command
    try:
        work, backlog = plan.work, plan.backlog
        return _by_agent(plan.loop_name, work, invocation, loaded, backlog, terms=terms)
    except ConfigError as error:
        remedy = error.remedy
        if "was not found" in error.message:  # there is no flag by which to name another
            program = command[0] if isinstance(command, tuple) else command
            install = INSTALLED_BY.get(program or "", "")
            remedy = f"Install it: {install}, or take it out." if install else _NOT_THERE
        raise ConfigError(f"{where}: {error.message}", remedy) from error


def _uncounted(plan: Plan[Work]) -> tuple[str, str] | None:
    """The reason why the cost of its turns cannot be counted, and a remedy; None if it can."""
    who, priced = with_model(os.path.basename(plan.command[0]), plan.model), plan.prices is not None
    return uncounted(plan.settings, plan.cli, who, plan.kind, priced=priced)


def sandboxed(plan: Plan[Work]) -> Plan[Work]:
    """The plan with the sandbox that the settings ask for, tried for real. ConfigError if it cannot
    be had: what was asked for is never quietly left out."""
    if plan.settings.sandbox is not None:
        from ralph.runner.sandboxing import in_sandbox

        return in_sandbox(plan)
    for name in ("network", "sandboxShow"):
        flag = plan.loaded.origins.get(name, "")
        if flag.startswith("--"):
            raise ConfigError(f"{flag} is for a sandbox, and there is none", "Add --sandbox.")
    return plan


def limits_of(settings: Settings) -> Limits:
    return Limits(settings.maximum_iterations, settings.max_time, settings.max_cost)


def patience_of(settings: Settings) -> Patience:
    """The run's patience with the agent, by the settings."""
    return Patience(
        settings.timeout,
        settings.idle_timeout,
        settings.result_grace,
        settings.stop_grace,
        settings.max_wait,
        settings.fail_after,
        settings.fail_delay,
        settings.stall_after,
        roster_of(settings),
    )


def roster_of(settings: Settings) -> Roster:
    """The places of the agents that the settings name."""
    agent, step = settings.agent, settings.loop.step_down
    down = None if step is None else StepDown(step.at, step.model)
    return Roster(len(agent.fallbacks), agent.fallback_after, down)


def wary_patience(loaded: Loaded) -> Patience:
    """The same for tasks and stories, where an agent stalls that changes nothing."""
    patience = patience_of(loaded.settings)
    if loaded.origins.get("stallAfter") is not None:
        return patience
    return replace(patience, stall_after=_STALL_AFTER)
