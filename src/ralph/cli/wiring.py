"""Wiring: from a plan to a policy and its ports."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ralph.adapters.agent import CliAgent, Setup, take_file
from ralph.adapters.agents import Launch, split_flags, without
from ralph.adapters.files import project_dir, ralph_dir_problem
from ralph.adapters.journal import FileJournal
from ralph.adapters.probe import Probe
from ralph.adapters.process import Starter, start
from ralph.adapters.protect import ProtectGate, Protector
from ralph.adapters.scm import ScmCommand
from ralph.adapters.turn_files import Filing, NumberedFiles
from ralph.adapters.world import Workspace
from ralph.cli.agent_hooks import (
    IN_PLACE,
    guard_words,
    hook_environment,
    hook_flags,
    keep_what_there_is,
    told_window,
)
from ralph.cli.checks import Checks
from ralph.cli.permissions import permission_flags
from ralph.cli.planning import Plan
from ralph.core.claims import ResponseTag
from ralph.core.events import AgentEvent
from ralph.core.facts import Launching
from ralph.core.state import RunState
from ralph.core.turn import Order
from ralph.core.value import replace, value
from ralph.core.words import listed
from ralph.core.world import Signals
from ralph.ports import Agent, Gate, NoTrees, Policy
from ralph.profiles.harness import Wording, harness, is_commit
from ralph.profiles.shared import Patience
from ralph.settings.load import Loaded
from ralph.settings.schema import Settings
from ralph.ui import Reader

if TYPE_CHECKING:
    from ralph.adapters.git_trees import GitTrees
    from ralph.adapters.sandbox.interface import Kept
    from ralph.adapters.sandbox.layers import Layers

SignalSource = Callable[[], Signals]
_STALL_AFTER = 3  # iterations without progress, unless someone says otherwise


@value
class AgentReaders:
    """Who hears of an agent's work."""

    on_events: Callable[[Sequence[AgentEvent]], None] = lambda _: None
    on_launch: Callable[[Launch, Order], None] = lambda _launch, _order: None
    record: Callable[[Launching], None] = lambda _: None


class Wiring(Protocol):
    """A profile and what it needs of the world."""

    def readers(self, journal: FileJournal) -> tuple[Reader, ...]:
        """Who reads along beside the display."""

    def signals(self) -> Signals:
        """What is asked for where only this profile looks."""

    def jobs(self, keeper: int) -> tuple[int, ...]:
        """Processes below the keeper that outlive a turn."""

    def prepare(self) -> list[str]:
        """Put in order what a killed run has left; what was done, in words."""

    def notes(self) -> list[str]:
        """What people want to know before the first turn."""

    def policy(
        self, attention: SignalSource, start: Starter, tell: Callable[[str], None]
    ) -> Policy:
        """The profile as settings and flags want it; `tell` is for what takes long. It is asked for
        first."""

    def agent(self, readers: AgentReaders, start: Starter) -> Agent:
        """Who takes the turns."""

    def world(self, attention: SignalSource) -> Workspace:
        """What the engine surveys, and by whose trees."""

    def close(self) -> None:
        """Let go of whatever was opened."""


def wiring_of(plan: Plan, run_dir: str, state: RunState) -> Wiring:
    """The wiring of the plan's profile; `state` is where a run goes on."""
    if plan.supervision is not None:
        from ralph.cli.supervised import SuperviseWiring

        return SuperviseWiring(plan, run_dir, state)
    if plan.seat is not None:
        from ralph.cli.worker_wiring import WorkerWiring

        return WorkerWiring(plan, run_dir, state)
    if plan.tasks is not None:
        from ralph.cli.tasks_wiring import TasksWiring

        return TasksWiring(plan, run_dir, state)
    if plan.stories is not None:
        from ralph.cli.stories_wiring import StoriesWiring

        return StoriesWiring(plan, run_dir, state)
    return HarnessWiring(plan, run_dir)


class HarnessWiring:
    """The prompt loop in its workspace; every profile that works there has it in common."""

    def __init__(self, plan: Plan, run_dir: str) -> None:
        self._plan = plan
        self._run_dir = run_dir
        self._protector = _protector(plan, run_dir)
        self._layers = _layers(plan, run_dir)
        self._trees = self._own_trees()
        self._executed_by: Checks | None = None

    def _own_trees(self) -> "GitTrees | None":
        """What would be committed, where gates or a commit want to know."""
        plan = self._plan
        if not plan.settings.guardrails and not (plan.settings.scm and plan.settings.scm.tasks):
            return None
        from ralph.adapters.run_trees import trees_of_run

        return trees_of_run(plan.workspace, plan.environ, self._run_dir)

    def readers(self, journal: FileJournal) -> tuple[Reader, ...]:
        """Nobody else."""
        return ()

    def signals(self) -> Signals:
        """Nothing else is looked at."""
        return Signals()

    def jobs(self, keeper: int) -> tuple[int, ...]:
        """Nothing outlives a turn."""
        return ()

    def prepare(self) -> list[str]:
        """Finish what a killed run had left half in the project, and know what there is."""
        notes = self._finished()
        notes += keep_what_there_is(self._plan, self._run_dir, self._trees)
        if self._trees is not None:
            self._trees.begin()
            self._trees.pin()
            notes += self._left_out_words(self._trees.yours())
        return notes

    def _finished(self) -> list[str]:
        notes = []
        for kept in self._recovered():
            notes.append("A run was killed while its changes landed; that is finished now.")
            notes += [f"What was not applied is in {kept.saved}"] if kept.saved else []
        return notes

    def _left_out_words(self, yours: tuple[str, ...]) -> list[str]:
        scm = self._plan.settings.scm
        if not yours or scm is None or not any(map(is_commit, scm.tasks)):
            return []
        return [f"Not committed yet, and left out of this run's commits: {listed(yours, 5)}"]

    def notes(self) -> list[str]:
        """Where turns run, who checks, and where that is told."""
        plan = self._plan
        where = plan.sandbox.words() if plan.sandbox else f"{IN_PLACE} {guard_words(plan)}"
        return [where, *self._checks()]

    def _recovered(self) -> "tuple[Kept, ...]":
        """What a killed run had left half in the project, and is finished now."""
        plan = self._plan
        layers = project_dir(plan.layer_root, plan.scope)
        if not os.path.isdir(os.path.join(layers, "sandboxes")):
            return ()
        from ralph.adapters.sandbox.landing import recover

        return recover(plan.workspace, plan.layer_root)

    def _checks(self) -> list[str]:
        if not self._plan.settings.guardrails:
            return ["No guardrail is configured: only the agent's word will count."]
        if problem := ralph_dir_problem(self._plan.workspace):
            return [f"{problem}. The guardrails' logs go beside the journal instead."]
        return []

    def policy(
        self, attention: SignalSource, start: Starter, tell: Callable[[str], None]
    ) -> Policy:
        """The profile as the settings want it."""
        policy = self._profile(attention, start, tell)
        if self._layers is None:
            return policy
        from ralph.profiles.sandboxed import sandboxed

        self._layers.tell = tell
        return sandboxed(policy, self._layers)

    def _profile(
        self, attention: SignalSource, start: Starter, tell: Callable[[str], None]
    ) -> Policy:
        plan, settings = self._plan, self._plan.settings
        checks = self._checked_by(attention, start)
        commits = settings.scm is not None and settings.scm.tasks
        return harness(
            plan.limits,
            self._patience(),
            wording_of(settings),
            (*(checks.secrets(tell) if commits else ()), *checks.guardrails()),
            _scm(plan, attention, start, self._trees),
            law=self._law(),
        )

    def _checked_by(self, attention: SignalSource, start: Starter) -> Checks:
        """Who makes the gates, once it is known who listens and who starts things."""
        where = (self._plan, self._run_dir, self._trees, self._layers)
        self._executed_by = Checks(*where, attention=attention, start=start)
        return self._executed_by

    def _law(self) -> tuple[Gate, ...]:
        """What nobody may change, and who puts it back."""
        named = self._plan.tasks is not None or self._plan.stories is not None
        if not self._plan.settings.protect and not named:
            return ()
        return (ProtectGate(self._protector, self._plan.workspace, self._run_dir),)

    def agent(self, readers: AgentReaders, start: Starter) -> Agent:
        """The agent that takes the turns."""
        return self._agent_of(self._plan, readers, start)

    def _own_environment(self) -> dict[str, str]:
        """What the agent's environment says for this profile alone."""
        return {}

    def _agent_of(self, plan: Plan, readers: AgentReaders, start: Starter) -> Agent:
        sandbox = plan.sandbox.environment() if plan.sandbox else {}
        env = {**sandbox, **hook_environment(plan, self._run_dir), **self._own_environment()}
        if self._layers is None:
            return build_agent(plan, self._run_dir, readers, env=env, start=start)
        from ralph.adapters.sandbox.layers import InnerFiling, SandboxedAgent

        agent = build_agent(
            plan,
            self._run_dir,
            readers,
            env=env,
            filing=InnerFiling(NumberedFiles(self._run_dir)),
            start=self._layers.start,
            take_file=self._layers.take_file,
        )
        return SandboxedAgent(agent, self._layers)

    def close(self) -> None:
        """Leave no sandbox open, and no clean room."""
        if self._executed_by is not None:
            self._executed_by.close()
        if self._layers is not None:
            self._layers.close()

    def world(self, attention: SignalSource) -> Workspace:
        """What the engine surveys."""
        plan, trees = self._plan, self._trees or NoTrees()
        world = Workspace(attention, plan.backlog, self._protector, trees=trees)
        if not self._patience().stall_after:
            return world
        from ralph.adapters.git import TreeDigest

        return replace(world, progress=TreeDigest(plan.workspace, plan.environ))

    def _patience(self) -> Patience:
        return patience_of(self._plan.settings)


def _layers(plan: Plan, run_dir: str) -> "Layers | None":
    if plan.sandbox is None:
        return None
    from ralph.cli.sandboxing import layers_of

    return layers_of(plan, run_dir)


def patience_of(settings: Settings) -> Patience:
    """How long the run bears with the agent."""
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
    """The same for runs over tasks and stories, where somebody stalls who changes nothing."""
    patience = patience_of(loaded.settings)
    if loaded.origins.get("stallAfter") is not None:
        return patience
    return replace(patience, stall_after=_STALL_AFTER)


def wording_of(settings: Settings) -> Wording:
    """How the prompt is put together."""
    count_to = settings.maximum_iterations if settings.include_iteration_count_in_prompt else None
    return Wording(ResponseTag(settings.completion_response), settings.tell_completion, count_to)


def build_agent(
    plan: Plan,
    run_dir: str,
    readers: AgentReaders = AgentReaders(),
    *,
    env: Mapping[str, str] | None = None,
    filing: Filing | None = None,
    start: Starter = start,
    take_file: Callable[[str], str] = take_file,
    may_probe: bool = True,
) -> CliAgent:
    """The agent that takes the turns."""
    agent = plan.settings.agent
    own = {"RALPH_RUN": os.path.basename(run_dir), **(env or {})}
    env = {**plan.environment.values, **own}
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
        filing=told_window(plan, filing or NumberedFiles(run_dir)),
        start=start,
        take_file=take_file,
    )
    return CliAgent(setup, readers.on_events, readers.on_launch, readers.record)


def _flags(plan: Plan) -> tuple[str, ...]:
    """Without a model of their own where the settings name one: some CLIs refuse two."""
    flags = split_flags(plan.settings.agent.flags)
    if plan.settings.agent.model:
        flags = without(flags, plan.module.MODEL_FLAGS)
    return (*flags, *permission_flags(plan), *hook_flags(plan))


def _protector(plan: Plan, run_dir: str) -> Protector:
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


def _scm(
    plan: Plan, signals: SignalSource, start: Starter, trees: "GitTrees | None"
) -> ScmCommand | None:
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
        trees,
    )


def _help_text(plan: Plan, *, may_probe: bool) -> Callable[[], str | None]:
    if not plan.settings.agent.probe or not plan.module.PROBE:
        return lambda: None
    cache = os.path.join(plan.state_root, "probes.json")
    env = plan.environment.values
    return Probe(plan.command, plan.module.PROBE, env, cache, may_ask=may_probe)
