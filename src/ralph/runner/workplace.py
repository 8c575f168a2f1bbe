"""The workplace of a run whose turns change files: protected, contained, checked and proven."""

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ralph.agents.by_place import ByPlace
from ralph.agents.turn_files import NumberedFiles
from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir
from ralph.gates.guardrail import GatePlace, Guardrail, slugs
from ralph.gates.protect import ProtectGate, Protector
from ralph.kernel.ports import Agent, Gate, Gates, Policy, Trees, Workspace
from ralph.kernel.rules import Patience
from ralph.kernel.value import replace
from ralph.kernel.world import hurried
from ralph.processes.child import Command
from ralph.runner.agent_setup import build_agent, hook_environment, keep_uncommitted
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext

if TYPE_CHECKING:
    from ralph.gates.clean_room import CleanRoom
    from ralph.git.checkpoint.trees import GitTrees


class Workplace:
    """A run's workspace, and what keeps watch over it. The run's end closes it."""

    def __init__(
        self,
        plan: Plan[Any],
        run: RunContext,
        trees: "GitTrees | None",
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`trees` is None where nobody asks what would be committed; `tell` hears of sandboxes."""
        self.plan, self.run, self.trees = plan, run, trees
        elsewhere = _hooks_elsewhere(plan)
        self._hooks = (".git/hooks", *elsewhere)
        patterns = (*plan.settings.protect, *elsewhere)
        store = os.path.join(run.directory, "protected")
        self.protector = Protector(plan.workspace, patterns, store)
        self.layers = None  # None: in place
        if plan.sandbox is not None:
            from ralph.runner.sandboxing import layers_of

            self.layers = layers_of(plan, run.directory)
        if self.layers is not None:
            self.layers.tell = tell or run.tell
            run.cleanup.callback(self.layers.close)
        self._room = self._clean_room() if plan.settings.proof == "clean" else None
        self._outside = GatePlace(
            plan.workspace,
            run.directory,
            _of_checks(plan),
            plan.settings.output_truncate_chars,
            run.attention,
            plan.settings.stop_grace,
            plan.limits.seconds,
            run.start,
            self._room.workspace if self._room else "",
        )
        self.inside = self._inside()  # where commands run: contained, if the agent is

    def law(self, *, always: bool = False) -> Gates:
        """The gate that puts back what nobody may change; `always`: also if the settings protect
        nothing, since the loop itself does."""
        if not self.plan.settings.protect and not always:
            return ()
        where = (self.plan.workspace, self.run.directory)
        return (ProtectGate(self.protector, *where, self._hooks),)

    def secrets(self, *, history: bool = True) -> Gates:
        """The gate that lets no secret be committed. Commits of the agent count where they stay in
        the `history`."""
        if self.trees is None:
            return ()
        from ralph.gates.secrets import SecretsGate

        allow = self.plan.settings.secrets.allow
        return (SecretsGate(self.trees, allow, self.run.tell, history=history),)

    def guardrails(self) -> Gates:
        """Those of the settings."""
        rails, gates = self.plan.settings.guardrails, []
        names = slugs(tuple(rail.command for rail in rails))
        for rail, slug in zip(rails, names, strict=True):
            place = self.inside if rail.sandbox else self._outside
            action, hint = rail.fail_action, rail.hint or ""
            gates.append(Guardrail(rail.command, place, slug, action, hint, rail.timeout))
        return tuple(map(self.in_room, gates))

    def in_room(self, gate: Gate) -> Gate:
        """The gate in the clean room, where the run has one."""
        if self._room is None:
            return gate
        from ralph.gates.clean_room import InCleanRoom

        return InCleanRoom(gate, self._room)

    def _inside(self) -> GatePlace:
        plan, layers, room = self.plan, self.layers, self._room
        if layers is None or not plan.is_contained:
            return self._outside
        if room is not None:
            from ralph.runner.sandboxing import layers_of

            there = replace(plan, workspace=room.workspace)
            layers = layers_of(there, self.run.directory, f"{room.top}-layers")
            assert layers is not None
            self.run.cleanup.callback(layers.close)
        return replace(self._outside, start=layers.check)

    def _clean_room(self) -> "CleanRoom":
        from ralph.gates.clean_room import CleanRoom

        if self.trees is None:
            where = self.plan.workspace
            raise ConfigError(
                f'proof: "clean" needs a git repository, and {where} is in none',
                'Try: git init && git add -A && git commit -m "Begin"',
            )
        room = CleanRoom(self.trees, self._set_up)
        self.run.cleanup.callback(room.close)
        return room

    def _set_up(self, room: str) -> str:
        """Prepare the clean room where its checks run too: what is installed may be the agent's
        idea. What is missing afterwards; "" if nothing."""
        from ralph.gates.tree_setup import set_up

        settings, attention = self.plan.settings, self.run.attention
        if settings.loop.setup is None:
            return ""
        command = Command(("sh", "-c", settings.loop.setup), room, self.plan.environ)
        log = os.path.join(self.run.directory, "clean-setup.log")
        ended, said = set_up(
            command,
            log,
            self.inside.start,
            lambda: hurried(attention(), time.time(), settings.stop_grace),
        )
        if ended.code == 0 and ended.cut is None:
            return ""
        how = ended.cut.why if ended.cut else f"exit code {ended.code}"
        return f"loop.setup failed in a clean worktree ({how}):\n{said}"

    # -------------------------------------------------------------- ports

    def sandboxed(self, policy: Policy, *, lands: bool = True) -> Policy:
        """The policy; where turns are contained, nothing is judged before it has landed, or, where
        nothing is to land, before it is thrown away."""
        if self.layers is None:
            return policy
        from ralph.sandbox.profile import discarding, sandboxed

        return sandboxed(policy, self.layers) if lands else discarding(policy, self.layers)

    def agent(self, env: Mapping[str, str] = {}) -> Agent:
        """The agents that take the turns, each at its place on the roster."""
        agents = tuple(self._agent(plan, env) for plan in self.plan.agents)
        return ByPlace(agents, self.plan.roster.fallbacks) if len(agents) > 1 else agents[0]

    def _agent(self, plan: Plan[Any], env: Mapping[str, str]) -> Agent:
        run_dir, layers = self.run.directory, self.layers
        contained = plan.sandbox.environment() if plan.sandbox else {}
        env = {**contained, **hook_environment(plan, run_dir), **env}
        if layers is None:
            return build_agent(plan, run_dir, self.run.readers, env=env, start=self.run.start)
        from ralph.sandbox.run_layers import InnerFiling, SandboxedAgent

        agent = build_agent(
            plan,
            run_dir,
            self.run.readers,
            env=env,
            filing=InnerFiling(NumberedFiles(run_dir)),
            start=layers.start,
            take_file=layers.take_file,
        )
        return SandboxedAgent(agent, layers)

    def world(self, patience: Patience, keep: Callable[[], str] = lambda: "") -> Workspace:
        """The world that the engine surveys; `keep` makes a checkpoint."""
        plan, progress = self.plan, None
        if patience.stall_after:
            from ralph.git.digest import TreeDigest

            progress = TreeDigest(plan.workspace, plan.environ)
        asked, protected, trees = self.run.attention, self.protector.digests, self.trees or Trees()
        return Workspace(asked, plan.backlog, keep, progress, protected, trees, asked.take)

    def prepare(self) -> list[str]:
        """Finish what a killed run has left, before the first turn; what was done, in words."""
        notes = self.finish_landing()
        notes += keep_uncommitted(self.plan, self.run.directory, self.trees)
        if self.trees is not None:
            self.trees.begin()
            self.trees.pin()
            self.trees.hold()
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


def _of_checks(plan: Plan[Any]) -> Mapping[str, str]:
    """The environment of checks: all of it, but for what would let their code speak for CI."""
    if plan.destination is None:
        return plan.environ
    from ralph.runner.planning import hidden_keys

    hidden = hidden_keys(plan.settings)
    return {name: text for name, text in plan.environ.items() if name not in hidden}


def trees_of(plan: Plan[Any], run: RunContext) -> "GitTrees | None":
    """The trees that a commit would hold; None outside git."""
    from ralph.git.checkpoint.trees import trees_of_run

    return trees_of_run(plan.workspace, plan.environ, run.directory)


def _hooks_elsewhere(plan: Plan[Any]) -> tuple[str, ...]:
    """In a worktree or a subdirectory `.git/hooks` names nothing, but git still runs its hooks."""
    here = os.path.join(plan.workspace, ".git")
    if ".git/hooks" not in plan.settings.protect or os.path.isdir(here):
        return ()
    from ralph.git.digest import git_path

    directory = git_path(plan.workspace, plan.environ, "hooks")
    return (directory,) if directory else ()
