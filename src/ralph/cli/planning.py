"""Planning: from flags and settings to a run that could start. Nothing is begun here."""

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from ralph.adapters.agents import (
    AgentModule,
    Request,
    find_command,
    kind_of,
    module_of,
    named_command,
    split_flags,
)
from ralph.adapters.environment import Environment, agent_environment
from ralph.adapters.files import (
    PromptFile,
    PromptInput,
    PromptText,
    project_dir,
    state_root,
    unwritable_state,
    write_atomically,
)
from ralph.adapters.scm import task_words
from ralph.cli.money import asked_model, limit_of_money, prices_of, refuse_uncounted, uncounted
from ralph.core.limits import Limits, Prices
from ralph.core.redact import know
from ralph.core.task import Backlog
from ralph.core.value import replace, value
from ralph.core.world import Signals
from ralph.errors import ConfigError, StateError
from ralph.settings.load import Loaded, combine, load
from ralph.settings.schema import Settings
from ralph.settings.secrecy import secrets_in
from ralph.settings.source import Layer

if TYPE_CHECKING:
    from ralph.adapters.keeper_process import Launched
    from ralph.adapters.task_hooks import Hooks
    from ralph.cli.backlog import TaskWork
    from ralph.cli.crew import Seat
    from ralph.cli.sandboxing import Sandboxing
    from ralph.cli.stories import StoryWork
    from ralph.cli.supervised import Supervision
    from ralph.core.state import RunState
    from ralph.ui import Reader
    from ralph.ui.lines import Briefing

PLAN = "plan.json"  # in a run's directory
AGENT_FLAGS = {  # flag -> the setting it overrides, of every run
    "--stream-agent-output": "streamAgentOutput",
    "--agent": "agent.command",
    "--model": "agent.model",
    "--timeout": "timeout",
    "--idle-timeout": "idleTimeout",
    "--stop-grace": "stopGrace",
}
_FLAGS = {
    **AGENT_FLAGS,
    "--maximum-iterations": "maximumIterations",
    "--completion-response": "completionResponse",
    "--tell-completion": "tellCompletion",
    "--max-time": "maxTime",
    "--max-cost": "maxCost",
    "--max-wait": "maxWait",
    "--sandbox": "sandbox",
    "--network": "network",
    "--sandbox-show": "sandboxShow",
    "--guard": "guard.enabled",
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
    hooks: "tuple[Hooks, ...]" = ()  # of a program that uses the library
    asked: Callable[[], Signals] | None = None  # what that program asks for; None: signals do
    follow: "Callable[[Briefing, RunState], Reader] | None" = None  # who reads along, from a state


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
    supervision: "Supervision | None" = None  # of a task, by `ralph supervise`
    sandbox: "Sandboxing | None" = None  # None: in place
    tasks: "TaskWork | None" = None  # of a backlog, by `ralph tasks run`
    seat: "Seat | None" = None  # of one worker, where several work on a backlog
    hooks: "tuple[Hooks, ...]" = ()
    stories: "StoryWork | None" = None  # of a PRD, by `ralph prd run`
    reviewer: "Plan | None" = None  # the same, as another agent takes turns in it

    @property
    def model(self) -> str:
        """The model that is asked for, by Ralph's setting or the agent's own flag."""
        return asked_model(self.settings, self.module, self.command) or ""

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @property
    def limits(self) -> Limits:
        """What the run may use up."""
        if self.tasks is not None:
            return self.tasks.bounds.within
        limits = limits_of(self.settings)
        if self.supervision is None:
            return limits
        return replace(limits, iterations=self.supervision.max_restarts)

    @property
    def scope(self) -> str:
        """The directory in which there may be one such run at a time (ADR 10)."""
        return self.workspace if self.supervision is None else self.supervision.folder.path

    @property
    def project(self) -> str:
        """That directory's place in the state directory; a worker has that of its foreman."""
        return self.seat.project if self.seat else project_dir(self.state_root, self.scope)

    @property
    def home(self) -> str:
        """Where the backlog and its records are: a worker works elsewhere."""
        return self.seat.home if self.seat else self.workspace

    @property
    def layer_root(self) -> str:
        """The state directory in which sandboxes keep their layers."""
        return self.seat.state if self.seat else self.state_root


def plan_run(invocation: Invocation) -> Plan:
    """Check everything that can be checked before a run begins."""
    backlog = _backlog(invocation)
    loaded = load(invocation.workspace, flag_overrides(invocation.flags, _FLAGS))
    plan = planned(invocation, loaded, backlog, "Give a prompt with -p TEXT or -f FILE.")
    return sandboxed(plan)


def sandboxed(plan: Plan) -> Plan:
    """The plan with the sandbox that the settings ask for, tried for real."""
    if plan.settings.sandbox is None:
        for name in ("network", "sandboxShow"):
            flag = plan.loaded.origins.get(name, "")
            if flag.startswith("--"):
                raise ConfigError(f"{flag} is for a sandbox, and there is none", "Add --sandbox.")
        return plan
    from ralph.cli.sandboxing import sandboxing

    return replace(plan, sandbox=sandboxing(plan))


def plan_again(invocation: Invocation, run_dir: str) -> Plan:
    """The plan of a run that was begun before: its own settings and prompt, as they were then."""
    path = os.path.join(run_dir, PLAN)
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        loaded = combine([Layer(f"run {os.path.basename(run_dir)}", kept["settings"])])
        if kept.get("tasks") is not None:
            return _tasks_again(invocation, loaded, kept["tasks"], run_dir)
        if kept.get("stories") is not None:
            return _stories_again(invocation, loaded, kept["stories"], run_dir)
        text, file_name = kept["prompt"], kept["prompt_file"]
        supervision = _restored(kept.get("supervision"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"cannot read what run {os.path.basename(run_dir)} was to do: {path}: {error}"
        raise StateError(message, "Start a new one: ralph run") from error
    backlog = _kept_prompt(text, file_name)
    remedy = "Put it back, then: ralph resume"
    if supervision is None:
        return sandboxed(planned(invocation, loaded, backlog, remedy))
    over = supervision.over
    plan = planned(invocation, loaded, backlog, remedy, heals=over, over=over)
    return replace(plan, supervision=supervision)


def _tasks_again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], run_dir: str
) -> Plan:
    from ralph.cli.backlog import plan_again

    return plan_again(invocation, loaded, kept, run_dir)


def _stories_again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], run_dir: str
) -> Plan:
    from ralph.cli.stories import plan_again

    return plan_again(invocation, loaded, kept, run_dir)


def _kept_prompt(text: str | None, file: str | None) -> Callable[[], Backlog]:
    if file is not None:
        return PromptFile(file)
    if text:
        return PromptText(text)
    from ralph.cli.supervised import no_prompt

    return no_prompt


def _restored(kept: "Mapping[str, Any] | None") -> "Supervision | None":
    if kept is None:
        return None
    from ralph.cli.supervised import restored

    return restored(kept)


def keep_plan(plan: Plan, run_dir: str) -> None:
    """Write down what the run is to do, for this user only: it may hold secrets."""
    kept = {
        "settings": plan.loaded.merged,
        **_kept_backlog(plan),
        "supervision": plan.supervision.kept() if plan.supervision else None,
    }
    try:
        write_atomically(os.path.join(run_dir, PLAN), json.dumps(kept), mode=0o600)
    except OSError as error:
        raise unwritable_state(run_dir, error) from error


def _kept_backlog(plan: Plan) -> dict[str, Any]:
    """What is to be done, or where that stands."""
    if plan.tasks is not None:
        return {"tasks": plan.tasks.kept()}
    if plan.stories is not None:
        return {"stories": plan.stories.kept()}
    file = plan.backlog.path if isinstance(plan.backlog, PromptFile) else None
    return {"prompt": None if file else plan.backlog().tasks[0].text, "prompt_file": file}


def flag_overrides(
    flags: Mapping[str, Any], settings: Mapping[str, str]
) -> dict[str, tuple[Any, str]]:
    """What was given on the command line, by the setting that each flag overrides."""
    return {
        setting: (flags[flag.removeprefix("--").replace("-", "_")], flag)
        for flag, setting in settings.items()
    }


def limits_of(settings: Settings) -> Limits:
    """What a run may use up."""
    return Limits(settings.maximum_iterations, settings.max_time, settings.max_cost)


def planned(
    invocation: Invocation,
    loaded: Loaded,
    backlog: Callable[[], Backlog],
    remedy: str,
    money: tuple[str, ...] = ("maxCost",),
    *,
    heals: bool = False,
    over: bool = False,
) -> Plan:
    """The plan; `remedy` is what to do about a prompt that cannot be read, `money` are the settings
    that limit what may be spent. A backlog that `heals` is put right by the run itself. Where all
    is `over` no agent will be started."""
    tasks = backlog()
    if tasks.problem and not heals:
        raise ConfigError(tasks.problem, remedy)
    sample = tasks.tasks[0].text if tasks.tasks else ""
    agent = loaded.settings.agent
    command = (named_command if over else find_command)(agent.command, invocation.environ)
    kind = kind_of(command[0], agent.kind)
    module = module_of(kind)
    prices, price_words = prices_of(loaded.settings, module, command)
    if not over:
        why = uncounted(loaded.settings, module, command[0], kind, priced=prices is not None)
        refuse_uncounted(limit_of_money(loaded, money), why)
        _refuse_what_cannot_work(loaded.settings, module, command, sample)
    environment = agent_environment(
        invocation.environ,
        agent.kind or os.path.basename(command[0]).lower(),
        keep=agent.env.keep,
        unset=agent.env.unset,
        put=agent.env.set,
    )
    root = state_root(invocation.environ)
    know(secrets_in(invocation.environ, loaded.settings, (invocation.workspace, root)))
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
        hooks=invocation.hooks,
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


def _refuse_what_cannot_work(
    settings: Settings, module: AgentModule, command: tuple[str, ...], prompt: str
) -> None:
    """What would fail in every iteration is refused before the first."""
    agent, flags = settings.agent, split_flags(settings.agent.flags)
    module.launch(Request(command, prompt, flags, agent.model, prompt_via=agent.prompt_via))
    for task in settings.scm.tasks if settings.scm else ():
        task_words(task)
