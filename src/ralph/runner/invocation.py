"""A command as someone gave it, and the settings that its flags override."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from ralph.kernel.value import value
from ralph.kernel.world import Signals
from ralph.processes.signals import SignalFiles
from ralph.runner.arguments import BRANCH_OF_RUN

if TYPE_CHECKING:
    from ralph.kernel.state import RunState
    from ralph.processes.keeper_main import Launched
    from ralph.ui.lines import Briefing, Reader

AGENT_FLAGS = {  # flag -> the setting it overrides, in every loop
    "--stream-agent-output": "streamAgentOutput",
    "--agent": "agent.command",
    "--model": "agent.model",
    "--timeout": "timeout",
    "--idle-timeout": "idleTimeout",
    "--stop-grace": "stopGrace",
    "--notify": "notify",
}
SANDBOX_FLAGS = {  # in every loop whose turns may be sandboxed
    "--max-wait": "maxWait",
    "--sandbox": "sandbox",
    "--network": "network",
    "--sandbox-show": "sandboxShow",
    "--guard": "guard.enabled",
}
PLACE_FLAGS = {  # the same, where the work stays
    **SANDBOX_FLAGS,
    "--pr": "pr.mode",
    "--base": "pr.base",
    "--draft": "pr.draft",
    "--merge": "pr.merge",
    "--ci": "ci.enabled",
}


@value
class Raise:
    """A limit that a person gives a run that goes on."""

    flag: str
    amount: float
    more: bool = False  # on top of what the limit is; else the new total


@value
class Invocation:
    """A command as typed, with its directory, environment and streams."""

    workspace: str
    environ: Mapping[str, str]
    flags: Mapping[str, Any]
    stdin: TextIO | None
    out: TextIO | None
    err: TextIO | None
    keeper: "Launched | None" = None  # one that was launched before
    asked: Callable[[], Signals] | None = None  # what a program asks for; None: signals do
    lead: SignalFiles | None = None  # of the run that a worker works for: some notes are its
    follow: "Callable[[Briefing, RunState], Reader] | None" = None  # who reads along, from a state

    def branch(self, run_id: str) -> str | None:
        """The name of the new branch that is asked for, by default after the run."""
        asked = self.flags.get("branch")
        return f"ralph/{run_id}" if asked == BRANCH_OF_RUN else asked


def flag_overrides(
    flags: Mapping[str, Any], settings: Mapping[str, str]
) -> dict[str, tuple[Any, str]]:
    """The given flags, by the setting that each overrides."""
    return {
        setting: (flags[flag.removeprefix("--").replace("-", "_")], flag)
        for flag, setting in settings.items()
    }
