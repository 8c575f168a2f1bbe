"""Makes a run's gates, and the place where they run: the project or a clean room, in place or in a
sandbox."""

import os
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ralph.errors import ConfigError
from ralph.gates.guardrail import GatePlace, Guardrail, slugs
from ralph.kernel.value import replace
from ralph.kernel.world import hurried
from ralph.processes.child import Command
from ralph.runner.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.gates.clean_room import CleanRoom
    from ralph.git.checkpoint.trees import GitTrees
    from ralph.kernel.ports import Gate
    from ralph.kernel.verdict import Cut
    from ralph.kernel.world import Signals
    from ralph.processes.child import Starter
    from ralph.sandbox.run_layers import RunLayers


class Checks:
    """Makes the gates that every run has: guardrails, and who looks for secrets."""

    def __init__(
        self,
        plan: Plan[Any],
        run_dir: str,
        trees: "GitTrees | None",
        layers: "RunLayers | None",
        *,
        attention: "Callable[[], Signals]",
        start: "Starter",
    ) -> None:
        self._plan, self._run_dir, self._layers = plan, run_dir, layers
        self._attention, self._start, self._trees = attention, start, trees
        self._room = self._made_room(trees) if plan.settings.proof == "clean" else None
        self._of_room: RunLayers | None = None

    def secrets(self, tell: "Callable[[str], None]", *, history: bool = True) -> "tuple[Gate, ...]":
        """The gate that lets no secret be committed. Commits of the agent count where they stay in
        the `history`."""
        if self._trees is None:
            return ()
        from ralph.gates.secrets import SecretsGate

        allow = self._plan.settings.secrets.allow
        return (SecretsGate(self._trees, allow, tell, history=history),)

    def guardrails(self) -> "tuple[Gate, ...]":
        """Those of the settings."""
        settings, outside, inside = self._plan.settings, self._place(), self.inside
        names = slugs(tuple(g.command for g in settings.guardrails))
        return tuple(
            self.in_room(
                Guardrail(
                    g.command,
                    inside if g.sandbox else outside,
                    slug,
                    g.fail_action,
                    g.hint or "",
                    g.timeout,
                )
            )
            for g, slug in zip(settings.guardrails, names, strict=True)
        )

    def in_room(self, gate: "Gate") -> "Gate":
        """The gate in the clean room, where the run has one."""
        if self._room is None:
            return gate
        from ralph.gates.clean_room import InCleanRoom

        return InCleanRoom(gate, self._room)

    @cached_property
    def inside(self) -> GatePlace:
        """The place where commands run: a sandbox, if the agent has one that contains it."""
        sandbox, place = self._plan.sandbox, self._place()
        if self._layers is None or sandbox is None or not sandbox.can.contain:
            return place
        layers: RunLayers | None = self._layers
        if self._room is not None:
            from ralph.runner.sandboxing import layers_of

            plan = replace(self._plan, workspace=self._room.workspace)
            layers = layers_of(plan, self._run_dir, f"{self._room.top}-layers")
            self._of_room = layers
        assert layers is not None
        return replace(place, start=layers.check)

    def close(self) -> None:
        """Leave no room behind."""
        if self._of_room is not None:
            self._of_room.close()
        if self._room is not None:
            self._room.close()

    def _place(self) -> GatePlace:
        settings = self._plan.settings
        return GatePlace(
            self._plan.workspace,
            self._run_dir,
            self._plan.environ,
            settings.output_truncate_chars,
            self._attention,
            settings.stop_grace,
            self._plan.limits.seconds,
            self._start,
            self._room.workspace if self._room else "",
        )

    def _made_room(self, trees: "GitTrees | None") -> "CleanRoom":
        from ralph.gates.clean_room import CleanRoom

        if trees is None:
            where = self._plan.workspace
            raise ConfigError(
                f'proof: "clean" needs a git repository, and {where} is in none',
                'Try: git init && git add -A && git commit -m "Begin"',
            )
        return CleanRoom(trees, self._set_up)

    def _set_up(self, room: str) -> str:
        """Prepare the clean room where its checks run too: what is installed may be the agent's
        idea. What is missing afterwards; "" if nothing."""
        from ralph.gates.tree_setup import set_up

        line = self._plan.settings.loop.setup
        if line is None:
            return ""
        command = Command(("sh", "-c", line), room, self._plan.environ)
        log = os.path.join(self._run_dir, "clean-setup.log")
        ended, said = set_up(command, log, self.inside.start, self._hurry)
        if ended.code == 0 and ended.cut is None:
            return ""
        how = ended.cut.why if ended.cut else f"exit code {ended.code}"
        return f"loop.setup failed in a clean worktree ({how}):\n{said}"

    def _hurry(self) -> "Cut | None":
        return hurried(self._attention(), time.time(), self._plan.settings.stop_grace)
