"""Planning: from flags and settings to a run that could start. Nothing is begun here."""

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ralph.agents.clis import CLIS, Cli, Environment, Request, agent_environment
from ralph.agents.kinds import find_command, kind_of, named_command, split_flags
from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.git.scm import task_words
from ralph.kernel.limits import Limits, Prices
from ralph.kernel.ports import Policy
from ralph.kernel.rules import Patience
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.value import replace, value
from ralph.kernel.world import Signals
from ralph.notify.notifier import notify_problem
from ralph.runner.invocation import Invocation
from ralph.runner.loops import LOOPS
from ralph.runner.money import asked_model, limit_of_money, prices_of, uncounted
from ralph.runner.wired import RunContext, Wired
from ralph.settings.explain import secrets_in
from ralph.settings.load import ASSUMED, Loaded
from ralph.settings.schema import AgentSettings, Settings
from ralph.text.redact import know
from ralph.ui.lines import Briefing

if TYPE_CHECKING:
    from ralph.git.branch import WorkBranch
    from ralph.journal.recovery import History
    from ralph.kernel.verdict import Reason
    from ralph.sandbox.credentials import Secrets
    from ralph.sandbox.interface import Capabilities, Network

DIRECT = "direct"  # in place, because someone said so
IN_PLACE = "Sandbox: none (in place)."  # the first line about it
_STALL_AFTER = 3  # iterations without progress, unless someone says otherwise


class LoopWork(Protocol):
    """The part of a plan that only its own loop knows."""

    def kept(self) -> dict[str, Any]:
        """As JSON, for `ralph resume`; the settings are kept beside it."""


_Work_co = TypeVar("_Work_co", bound=LoopWork, covariant=True)
_Work = TypeVar("_Work", bound=LoopWork)


RUN_LIMITS = {  # by the flag of `ralph resume`: the settings that hold the limit
    "-m": ("maximumIterations",),
    "--max-time": ("maxTime",),
    "--max-cost": ("maxCost",),
}


@value
class Past:
    """A run that goes on: where it is kept, and how far it has come."""

    directory: str
    state: RunState


@value
class Loop:
    read: Callable[[Invocation], "Plan[Any]"]  # the command, into a plan; nothing is made
    again: Callable[[Invocation, Loaded, Mapping[str, Any], "Past"], "Plan[Any]"]  # to resume a run
    wire: Callable[["Plan[Any]", RunContext], Wired]
    policy: Callable[[Loaded], Policy]  # with its ladders as these settings have them, to look at
    first: Callable[["Plan[Any]"], Policy] | None = (
        None  # to look at what comes: it settles nothing
    )
    none_first: tuple[str, str] = ("nothing can be started", "")  # that, and what to type
    about: Callable[[Mapping[str, Any]], str] = lambda _: ""  # what it is to do, of what was kept
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: RUN_LIMITS)
    unattended: bool = True  # a sandbox is permission enough for the agent
    commits: bool = False  # the work itself, where a sandbox keeps the agent from it
    guarded: bool = True  # where nothing contains the agent
    hooks: tuple[str, ...] = ()  # that it brings along for the agent, beside the guard's
    begin: Callable[["Plan[Any]"], None] = lambda _: None  # once a new run has the lock
    ready: Callable[["Plan[Any]", RunContext], "Plan[Any]"] = lambda plan, _: plan  # to be wired
    supersedes: bool = False  # a run leaves nothing for an earlier one to go on with
    claims: bool = False  # its scope may be shared by people who share no state directory
    marks: Callable[["Plan[Any]"], Callable[[], Signals]] = lambda _: Signals
    jobs: Callable[["Plan[Any]", str, int], tuple[int, ...]] = lambda _plan, _run, _keeper: ()
    carry_out: "Callable[[Invocation, Plan[Any], str, History], Reason] | None" = None


def loop_named(name: str) -> Loop:
    """A loop of the table; ValueError for a name that is not in it."""
    if name not in LOOPS:
        raise ValueError(f"there is no loop {name!r}")
    loop = importlib.import_module(LOOPS[name][0]).LOOP
    assert isinstance(loop, Loop)
    return loop


@value
class Sandboxing:
    """The sandbox of a run, tried on this machine."""

    backend: str
    can: "Capabilities"
    network: "Network"
    secrets: "Secrets"
    guard: str = ""  # what is to be said of it, where nothing contains
    hides: str = ""  # the secrets in words

    def environment(self) -> dict[str, str]:
        """Variables for the agent beside the usual ones."""
        return {"IS_SANDBOX": "1"} if self.can.contain and os.geteuid() == 0 else {}

    def words(self) -> str:
        """The first line of a run about it."""
        if self.backend == DIRECT:
            return f"{IN_PLACE} {self.guard}"
        names = ("contain", "rollback", "egress")
        can = ", ".join(name for name in names if getattr(self.can, name)) or "nothing"
        network = f"; network: {self.network}" if self.can.egress else ""
        guard = f". {self.guard}" if self.guard else ""
        hides = f"; hidden: {self.hides}" if self.hides else ""
        return f"Sandbox: {self.backend} ({can}){network}{hides}{guard}"


@value
class Plan(Generic[_Work_co]):
    """A run that could start: everything checked, nothing begun."""

    loop_name: str
    work: _Work_co
    workspace: str
    environ: Mapping[str, str]
    loaded: Loaded
    backlog: Callable[[], Backlog]
    limits: Limits
    briefing: Briefing
    command: tuple[str, ...]
    kind: str
    cli: Cli
    environment: Environment
    state_root: str
    scope: str  # the directory in which there may be one such run at a time (ADR 10)
    project: str  # that directory's place in the state directory; a worker has its lead's
    home: str  # where the backlog and its records are: a worker works elsewhere
    layer_root: str  # the state directory in which sandboxes keep their layers
    prices: Prices | None = None  # what tokens cost, where the agent does not tell
    price_words: str = ""  # where they come from, if not from the settings
    sandbox: Sandboxing | None = None  # None: in place
    others: tuple["Plan[Any]", ...] = ()  # the same, as other agents take turns in it
    workers: int = 1  # how many tasks are worked on at once
    branch: "WorkBranch | None" = None  # that it has made for its work
    lead: str = ""  # the run that a worker belongs to
    task: str = ""  # the worker's
    raised: tuple[tuple[str, float], ...] = ()  # limits that a person gives the run to go on

    @property
    def loop(self) -> Loop:
        """The loop that reads, wires and shows it."""
        return loop_named(self.loop_name)

    @property
    def model(self) -> str:
        """The model that is asked for, by Ralph's setting or the agent's own flag."""
        return asked_model(self.settings, self.cli, self.command) or ""

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def untried(self) -> bool:
        """True if its guardrails are guessed, and none of them has run yet."""
        return self.loaded.origins.get("guardrails") == ASSUMED

    @property
    def is_contained(self) -> bool:
        """True if the agent works in a sandbox that it cannot leave."""
        return self.sandbox is not None and self.sandbox.can.contain

    @property
    def agents(self) -> "tuple[Plan[Any], ...]":
        """The plan as each of its agents takes turns in it."""
        return (self, *self.others)


@value
class PlanTerms:
    """Conditions under which a plan is refused, and the remedy."""

    remedy: str  # about a backlog that cannot be read
    money: tuple[str, ...] = ("maxCost",)  # the settings that limit what may be spent
    heals: bool = False  # the run itself puts a broken backlog right
    over: bool = False  # no agent will be started


def planned(
    loop: str,
    work: _Work,
    invocation: Invocation,
    loaded: Loaded,
    backlog: Callable[[], Backlog],
    *,
    terms: PlanTerms,
) -> Plan[_Work]:
    """The plan of a run of that loop in its workspace, with the limits of the settings."""
    tasks = backlog()
    if tasks.problem and not terms.heals:
        raise ConfigError(tasks.problem, terms.remedy)
    settings, agent = loaded.settings, loaded.settings.agent
    command = (named_command if terms.over else find_command)(agent.command, invocation.environ)
    kind = kind_of(command[0], agent.kind)
    cli = CLIS[kind]
    prices, words = prices_of(settings, cli, command)
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
        environment=_environment(invocation, agent, command[0]),
        state_root=root,
        scope=here,
        project=project_dir(root, here),
        home=here,
        layer_root=root,
        prices=prices,
        price_words=words,
    )


def _permission_hint(cli: Cli, loaded: Loaded) -> str:
    """What to do about denied permissions; where there are no settings, `ralph init` does it."""
    hint = cli.permission_hint
    return hint if loaded.files or not hint else f"{hint} To have it proposed: ralph init"


def _environment(invocation: Invocation, agent: AgentSettings, command: str) -> Environment:
    return agent_environment(
        invocation.environ,
        agent.kind or os.path.basename(command).lower(),
        keep=agent.env.keep,
        unset=agent.env.unset,
        put=agent.env.set,
    )


def _refuse_what_cannot_work(
    settings: Settings, cli: Cli, command: tuple[str, ...], backlog: Backlog
) -> None:
    """Refuse before the first iteration what would fail in each."""
    prompt = backlog.tasks[0].text if backlog.tasks else ""
    agent, flags = settings.agent, split_flags(settings.agent.flags)
    cli.launch(Request(command, prompt, flags, agent.model, prompt_via=agent.prompt_via))
    for task in settings.scm.tasks if settings.scm else ():
        task_words(task)
    if problem := notify_problem(settings.notify.urls):
        raise problem


def with_branch(plan: Plan[_Work], name: str | None) -> Plan[_Work]:
    """The plan with a new branch for its work, if one is named; it is not made yet."""
    if name is None:
        return plan
    from ralph.git.branch import planned_branch

    return replace(plan, branch=planned_branch(name, plan.workspace, plan.environ))


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
    )


def wary_patience(loaded: Loaded) -> Patience:
    """The same for tasks and stories, where an agent stalls that changes nothing."""
    patience = patience_of(loaded.settings)
    if loaded.origins.get("stallAfter") is not None:
        return patience
    return replace(patience, stall_after=_STALL_AFTER)
