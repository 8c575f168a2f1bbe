"""The sandbox of a run: which backend, whom it may call, and what people are told (ADR 26)."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ralph.adapters.sandbox.interface import OFF, ON, Capabilities, Network, Policy
from ralph.core.value import value
from ralph.errors import ConfigError

if TYPE_CHECKING:
    from ralph.adapters.sandbox.layers import Layers
    from ralph.cli.planning import Plan

DIRECT = "direct"  # in place, because someone said so
_GUARD = {"RALPH_GUARD": "1"}
_SETTINGS = "--settings"
_PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108


@value
class Sandboxing:
    """How a run is contained, once it was tried here."""

    backend: str
    can: Capabilities
    network: Network
    guard: str = ""  # how the agent is made to ask it, as a setting of its own; "" if it cannot be

    @property
    def guarded(self) -> bool:
        """What contains nothing has the guard before every shell command (ADR 25)."""
        return not self.can.contain

    def environment(self) -> dict[str, str]:
        """What the agent's environment says beside the usual."""
        guard = _GUARD if self.guarded else {}
        root = {"IS_SANDBOX": "1"} if self.can.contain and os.geteuid() == 0 else {}
        return {**guard, **root}

    def words(self) -> str:
        """The first line of a run about it."""
        names = ("contain", "rollback", "egress")
        can = ", ".join(name for name in names if getattr(self.can, name)) or "nothing"
        network = f"; network: {self.network}" if self.can.egress else ""
        return f"Sandbox: {self.backend} ({can}){network}{self._guard_words()}"

    def _guard_words(self) -> str:
        if not self.guarded:
            return ""
        if self.guard:
            return "; the guard judges shell commands"
        return "; no guard, unless a hook of your own asks it (RALPH_GUARD=1 is set)"


def sandboxing(plan: "Plan") -> Sandboxing | None:
    """What the settings ask for, tried for real; None to work in place. ConfigError if it cannot
    be had: what was asked for is never quietly left out."""
    wish = plan.settings.sandbox
    if wish is None:
        return None
    from ralph.adapters.sandbox import catalog

    policy = Policy(plan.environ, plan.state_root)
    found = catalog.usable(wish, plan.workspace, policy)
    network = _network(plan, found.name, found.can)
    return Sandboxing(found.name, found.can, network, _guard(plan, found.can))


def _network(plan: "Plan", name: str, can: Capabilities) -> Network:
    from ralph.adapters.agents import split_flags
    from ralph.adapters.sandbox.hosts import hosts_of
    from ralph.cli.sandbox_lines import network_of

    wish = None if plan.settings.network is None else network_of(plan.settings.network)
    if not can.egress:
        if wish not in (None, ON):
            raise ConfigError(
                f"sandbox {name} cannot keep an agent off the network",
                "Use overlay, or say that it may call everybody: --network on",
            )
        return ON
    if wish == ON and name == "srt":
        raise ConfigError("srt lets nobody call everybody", "Name the hosts: --network HOST,...")
    if wish in (OFF, ON):
        return wish
    flags = (*plan.command[1:], *split_flags(plan.settings.agent.flags))
    own = hosts_of(plan.kind, plan.environment.values, flags)
    return Network(hosts=tuple(dict.fromkeys((*own, *(wish.hosts if wish else ())))))


def layers_of(plan: "Plan", run_dir: str) -> "Layers | None":
    """The sandboxes of a run; None where it works in place."""
    if plan.sandbox is None or plan.sandbox.backend == DIRECT:
        return None
    from ralph.adapters.sandbox import catalog
    from ralph.adapters.sandbox.layers import Layers
    from ralph.adapters.sandbox.logins import Login

    policy = Policy(
        plan.environ,
        plan.state_root,
        network=plan.sandbox.network,
        visible=_visible(plan.command[0], plan.environ),
        home=plan.environ.get("HOME", ""),
    )
    backend = catalog.backend(plan.sandbox.backend)
    return Layers(
        backend,
        plan.workspace,
        policy,
        run_dir=run_dir,
        login=Login(plan.kind, plan.environment.values),
        most_grace=plan.settings.end_grace,
    )


def _visible(command: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Where the agent's program is, also if that is in a temporary directory."""
    found = shutil.which(command, path=environ.get("PATH"))
    if found is None:
        return ()
    real = os.path.realpath(found)
    head, package, _ = real.partition("/node_modules/")
    home = f"{head}{package.rstrip('/')}" if package else os.path.dirname(real)
    places = (os.path.dirname(os.path.abspath(found)), home)
    # A temporary directory itself is private: of what lies right in it only the file is shown.
    shown = (real if place in _PRIVATE else place for place in places)
    return tuple(dict.fromkeys(shown))


def _guard(plan: "Plan", can: Capabilities) -> str:
    """Settings that make the agent ask the guard; only claude takes any on its command line."""
    from ralph.adapters.agents import split_flags, value_in

    flags = (*plan.command[1:], *split_flags(plan.settings.agent.flags))
    if can.contain or plan.kind != "claude" or value_in(flags, (_SETTINGS,)):
        return ""
    # Isolated: what stands in the project must not be taken for Ralph.
    words = f"{shlex.quote(sys.executable)} -I -m ralph hook pre-tool"
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": words}]}
    return json.dumps({"hooks": {"PreToolUse": [hook]}})


def guard_flags(plan: "Plan") -> tuple[str, ...]:
    """What makes the agent ask the guard."""
    guard = plan.sandbox.guard if plan.sandbox else ""
    return (_SETTINGS, guard) if guard else ()
