"""The workplace of a run whose turns change files: what is protected, contained and proven."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ralph.agents.cli_agent import CliAgent, Setup, take_file
from ralph.agents.kinds import split_flags, without
from ralph.agents.probe import Probe
from ralph.agents.turn_files import Filing, NumberedFiles
from ralph.files.state_dir import project_dir
from ralph.gates.protect import ProtectGate, Protector
from ralph.kernel.patience import Patience
from ralph.kernel.ports import Agent, Gate, NoTrees, Policy
from ralph.kernel.value import replace, value
from ralph.processes.child import Starter, start
from ralph.runner.agent_hooks import hook_environment, hook_flags, keep_what_there_is, told_window
from ralph.runner.checks import Checks
from ralph.runner.permissions import permission_flags
from ralph.runner.plan import Plan
from ralph.runner.survey import Workspace
from ralph.runner.wired import AgentReaders, RunContext

if TYPE_CHECKING:
    from ralph.git.checkpoint.trees import GitTrees
    from ralph.sandbox.run_layers import RunLayers


@value
class Workplace:
    """A run's workspace, and what keeps watch over it."""

    plan: Plan[Any]
    run: RunContext
    protector: Protector
    layers: "RunLayers | None"  # None: in place
    trees: "GitTrees | None"  # None: nobody asks what would be committed
    checks: Checks

    def law(self, *, always: bool = False) -> tuple[Gate, ...]:
        """The gate that puts back what nobody may change; `always`: also if the settings protect
        nothing, since the loop itself does."""
        if not self.plan.settings.protect and not always:
            return ()
        return (ProtectGate(self.protector, self.plan.workspace, self.run.directory),)

    def sandboxed(self, policy: Policy) -> Policy:
        """The policy; where turns are contained, nothing is judged before it has landed."""
        if self.layers is None:
            return policy
        from ralph.sandbox.profile import sandboxed

        return sandboxed(policy, self.layers)

    def agent(
        self, readers: AgentReaders, plan: Plan[Any] | None = None, env: Mapping[str, str] = {}
    ) -> Agent:
        """The agent that takes the turns: the plan's, or that of another `plan`."""
        plan, run_dir = plan or self.plan, self.run.directory
        contained = plan.sandbox.environment() if plan.sandbox else {}
        env = {**contained, **hook_environment(plan, run_dir), **env}
        if self.layers is None:
            return build_agent(plan, run_dir, readers, env=env, start=self.run.start)
        from ralph.sandbox.run_layers import InnerFiling, SandboxedAgent

        agent = build_agent(
            plan,
            run_dir,
            readers,
            env=env,
            filing=InnerFiling(NumberedFiles(run_dir)),
            start=self.layers.start,
            take_file=self.layers.take_file,
        )
        return SandboxedAgent(agent, self.layers)

    def world(self, patience: Patience, keep: Callable[[], str] = lambda: "") -> Workspace:
        """The world that the engine surveys; `keep` makes a checkpoint."""
        plan, trees = self.plan, self.trees or NoTrees()
        attention, backlog = self.run.attention, plan.backlog
        world = Workspace(attention, backlog, self.protector, trees=trees, keep=keep)
        if not patience.stall_after:
            return world
        from ralph.git.digest import TreeDigest

        return replace(world, progress=TreeDigest(plan.workspace, plan.environ))

    def prepare(self) -> list[str]:
        """Finish what a killed run has left, and know what there is before the first turn; what was
        done, in words."""
        notes = self.finish_landing()
        notes += keep_what_there_is(self.plan, self.run.directory, self.trees)
        if self.trees is not None:
            self.trees.begin()
            self.trees.pin()
        return notes

    def finish_landing(self) -> list[str]:
        """Finish what a killed run had left half in the project; what was done, in words."""
        plan, notes = self.plan, []
        layers = project_dir(plan.layer_root, plan.scope)
        if not os.path.isdir(os.path.join(layers, "sandboxes")):
            return []
        from ralph.sandbox.changes.landing import recover

        for kept in recover(plan.workspace, plan.layer_root):
            notes.append("A run was killed while its changes landed; that is finished now.")
            notes += [f"What was not applied is in {kept.saved}"] if kept.saved else []
        return notes


def workplace(
    plan: Plan[Any],
    run: RunContext,
    trees: "GitTrees | None",
    tell: Callable[[str], None] | None = None,
) -> Workplace:
    """Open the workplace; the run's end closes it. `tell` hears of its sandboxes."""
    store = os.path.join(run.directory, "protected")
    patterns = (*plan.settings.protect, *_hooks_elsewhere(plan))
    layers = None
    if plan.sandbox is not None:
        from ralph.runner.sandboxing import layers_of

        layers = layers_of(plan, run.directory)
    if layers is not None:
        layers.tell = tell or run.tell
        run.cleanup.callback(layers.close)
    checks = Checks(plan, run.directory, trees, layers, attention=run.attention, start=run.start)
    run.cleanup.callback(checks.close)
    return Workplace(plan, run, Protector(plan.workspace, patterns, store), layers, trees, checks)


def trees_of(plan: Plan[Any], run: RunContext) -> "GitTrees | None":
    """The trees that a commit would hold; None outside git."""
    from ralph.git.checkpoint.run_trees import trees_of_run

    return trees_of_run(plan.workspace, plan.environ, run.directory)


def _hooks_elsewhere(plan: Plan[Any]) -> tuple[str, ...]:
    """In a worktree or a subdirectory `.git/hooks` names nothing, but git still runs its hooks."""
    here = os.path.join(plan.workspace, ".git")
    if ".git/hooks" not in plan.settings.protect or os.path.isdir(here):
        return ()
    from ralph.git.digest import hooks_directory

    directory = hooks_directory(plan.workspace, plan.environ)
    return (directory,) if directory else ()


def build_agent(
    plan: Plan[Any],
    run_dir: str,
    readers: AgentReaders = AgentReaders(),
    *,
    env: Mapping[str, str] = {},
    filing: Filing | None = None,
    start: Starter = start,
    take_file: Callable[[str], str] = take_file,
    may_probe: bool = True,
) -> CliAgent:
    """The agent that takes the turns."""
    agent, flags = plan.settings.agent, split_flags(plan.settings.agent.flags)
    if agent.model:  # some CLIs refuse two
        flags = without(flags, plan.module.MODEL_FLAGS)
    help_text: Callable[[], str | None] = lambda: None  # noqa: E731
    if agent.probe and plan.module.PROBE:
        cache = os.path.join(plan.state_root, "probes.json")
        environ = plan.environment.values
        help_text = Probe(plan.command, plan.module.PROBE, environ, cache, may_ask=may_probe)
    setup = Setup(
        module=plan.module,
        command=plan.command,
        flags=(*flags, *permission_flags(plan), *hook_flags(plan)),
        model=agent.model,
        stream=plan.settings.stream_agent_output,
        prompt_via=agent.prompt_via,
        help_text=help_text,
        prices=plan.prices,
        workspace=plan.workspace,
        env={**plan.environment.values, "RALPH_RUN": os.path.basename(run_dir), **env},
        filing=told_window(plan, filing or NumberedFiles(run_dir)),
        start=start,
        take_file=take_file,
    )
    return CliAgent(setup, readers.on_events, readers.on_launch, readers.record)
