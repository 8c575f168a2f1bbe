"""The sandbox of a run: which backend, whom it may call, and what people are told (ADR 26)."""

import os
import shlex
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ralph.adapters.sandbox.credentials import Secrets, at_home, secrets_of
from ralph.adapters.sandbox.interface import OFF, ON, Capabilities, Network, Policy
from ralph.adapters.sandbox.plan import is_within
from ralph.adapters.sandbox.tools import PRIVATE, is_hidden
from ralph.cli.agent_hooks import IN_PLACE, guard_words, hook_places
from ralph.core.value import value
from ralph.core.words import listed
from ralph.errors import ConfigError

if TYPE_CHECKING:
    from ralph.adapters.sandbox.layers import Layers
    from ralph.cli.planning import Plan

DIRECT = "direct"  # in place, because someone said so
HIDING = ("overlay", "srt")  # where the home directory is this one, but for its credentials
_MOST_NAMED = 6


@value
class Sandboxing:
    """How a run is contained, once it was tried here."""

    backend: str
    can: Capabilities
    network: Network
    guard: str = ""  # what is to be said of it, where nothing contains
    secrets: Secrets = Secrets()
    hides: str = ""  # the same in words

    def environment(self) -> dict[str, str]:
        """What the agent's environment says beside the usual."""
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
    guard = "" if found.can.contain else guard_words(plan)
    secrets = _secrets(plan)
    words = hidden_words(secrets, plan.workspace, plan.environ)
    hides = words if found.name in HIDING else ""
    return Sandboxing(found.name, found.can, network, guard, secrets, hides)


def _secrets(plan: "Plan") -> Secrets:
    """What neither agent needs; guardrails see the same as they do."""
    agents = [(a.kind, e) for a in _both(plan) for e in (a.environment.values, plan.environ)]
    return secrets_of(agents, plan.settings.sandbox_show)


def hidden_words(secrets: Secrets, project: str, environ: Mapping[str, str]) -> str:
    """What is hidden, as people write it; what is in the project is not."""
    real, home = os.path.realpath(project), environ.get("HOME", "")
    paths = [path for path in secrets.hidden if not is_within(os.path.realpath(path), real)]
    return listed([at_home(path, home) for path in paths], _MOST_NAMED)


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
    own: list[str] = []
    for one in _both(plan):
        flags = (*one.command[1:], *split_flags(one.settings.agent.flags))
        own += hosts_of(one.kind, one.environment.values, flags)
    return Network(hosts=tuple(dict.fromkeys((*own, *(wish.hosts if wish else ())))))


def layers_of(plan: "Plan", run_dir: str, state: str = "") -> "Layers | None":
    """The sandboxes of a run; None where it works in place. `state`: where they keep their layers
    instead of in the state directory."""
    if plan.sandbox is None or plan.sandbox.backend == DIRECT:
        return None
    from ralph.adapters.sandbox import catalog
    from ralph.adapters.sandbox.layers import Layers
    from ralph.adapters.sandbox.logins import Login

    policy = Policy(
        plan.environ,
        state or plan.layer_root,
        hidden=(plan.state_root,),
        network=plan.sandbox.network,
        secret=plan.sandbox.secrets.hidden,
        visible=(*_visible(plan), *plan.sandbox.secrets.shown),
        programs=_programs(plan),
        home=plan.environ.get("HOME", ""),
    )
    backend = catalog.backend(plan.sandbox.backend)
    return Layers(
        backend,
        plan.workspace,
        policy,
        run_dir=run_dir,
        logins=tuple(Login(one.kind, one.environment.values) for one in _both(plan)),
        most_grace=plan.settings.end_grace,
    )


def _visible(plan: "Plan") -> tuple[str, ...]:
    """Where the agents' programs are, and ours for its hooks, also if that is in a temporary
    directory."""
    places = [place for one in _both(plan) for place in _places(one.command[0], plan.environ)]
    if plan.stories is not None:
        places += [place for place in hook_places() if is_hidden(place)]
    return tuple(dict.fromkeys(places))


def _places(command: str, environ: Mapping[str, str]) -> list[str]:
    found = shutil.which(command, path=environ.get("PATH"))
    if found is None:
        return []
    real = os.path.realpath(found)
    head, package, _ = real.partition("/node_modules/")
    home = f"{head}{package.rstrip('/')}" if package else os.path.dirname(real)
    places = (os.path.dirname(os.path.abspath(found)), home)
    # A temporary directory itself is private: of what lies right in it only the file is shown.
    return [real if place in PRIVATE else place for place in places]


def _programs(plan: "Plan") -> tuple[str, ...]:
    """The agents', and what guardrails name by an absolute path."""
    words = (word for rail in plan.settings.guardrails for word in _words(rail.command))
    named = (word.rpartition("=")[2] for word in words)
    return (*(one.command[0] for one in _both(plan)), *filter(os.path.isabs, named))


def _words(command: str) -> list[str]:
    """A line of shell, as far as one can see without running it."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _both(plan: "Plan") -> "tuple[Plan, ...]":
    """The run as each of its agents takes turns in it."""
    return (plan,) if plan.reviewer is None else (plan, plan.reviewer)
