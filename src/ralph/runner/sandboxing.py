"""The sandbox of a run: which backend, whom it may call, and what people are told (ADR 26)."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ralph.agents.acp import ACP
from ralph.agents.providers import OWN
from ralph.errors import ConfigError
from ralph.hosts.hosts import SOURCE
from ralph.kernel.value import replace
from ralph.processes.which import which
from ralph.runner.agent_setup import MACHINES, guard_words
from ralph.runner.plan import DIRECT, Plan, Sandboxing, Work
from ralph.sandbox.credentials import Secrets, at_home, secrets_of
from ralph.sandbox.interface import OFF, ON, Capabilities, Network, SandboxPolicy, is_within
from ralph.sandbox.network import on_the_network
from ralph.sandbox.tools import PRIVATE, is_hidden
from ralph.text.words import listed

if TYPE_CHECKING:
    from ralph.sandbox.run_layers import RunLayers

HIDING = ("overlay", "srt")  # where the home directory is this one, but for its credentials
_MOST_NAMED = 6


def in_sandbox(plan: Plan[Work]) -> Plan[Work]:
    """The plan with the sandbox that its settings name."""
    from ralph.sandbox import catalog

    assert plan.settings.sandbox is not None
    policy = SandboxPolicy(plan.environ, plan.state_root)
    found = catalog.usable(plan.settings.sandbox, plan.workspace, policy)
    ours = [one.agent for one in plan.agents if one.kind == ACP or one.command[0] == OWN]
    if found.name in MACHINES and ours:
        how = "" if OWN in ours else " by ACP"
        raise ConfigError(
            f"{ours[0]} cannot work{how} in {found.name}, a machine without this Ralph",
            "Take another sandbox (ralph sandbox probe), or another agent: --agent COMMAND",
        )
    network = _network(plan, found.name, found.can)
    # No agent of the run needs these; guardrails see what the agents see.
    agents = [(a.account, e) for a in plan.agents for e in (a.environment.values, plan.environ)]
    secrets = secrets_of(agents, plan.settings.sandbox_show)
    hides = hidden_words(secrets, plan.workspace, plan.environ) if found.name in HIDING else ""
    guard = "" if found.can.contain else guard_words(plan)
    sandbox = Sandboxing(found.name, found.can, network, secrets, guard, hides)
    others = tuple(replace(other, sandbox=sandbox) for other in plan.others)
    return replace(plan, sandbox=sandbox, others=others)


def hidden_words(secrets: Secrets, project: str, environ: Mapping[str, str]) -> str:
    """The hidden paths, as people write them; those in the project are not hidden."""
    real, home = os.path.realpath(project), environ.get("HOME", "")
    paths = [path for path in secrets.hidden if not is_within(os.path.realpath(path), real)]
    return listed([at_home(path, home) for path in paths], _MOST_NAMED)


def _network(plan: Plan[Any], name: str, can: Capabilities) -> Network:
    from ralph.agents.kinds import split_flags
    from ralph.sandbox.network import hosts_of, network_of

    try:
        wish = None if plan.settings.network is None else network_of(plan.settings.network)
    except ValueError as error:
        raise ConfigError(
            f"Invalid value for '--network': {error}", "Try: ralph run --help"
        ) from None
    if not can.egress:
        return on_the_network(f"sandbox {name}", wish, "an agent")
    if wish == ON and name == "srt":
        raise ConfigError("srt lets nobody call everybody", "Name the hosts: --network HOST,...")
    if wish in (OFF, ON):
        return wish
    own: list[str] = []
    for one in plan.agents:
        flags = (*one.command[1:], *split_flags(one.settings.agent.flags))
        own += hosts_of(one.account, one.environment.values, flags, one.model)
    return Network(hosts=tuple(dict.fromkeys((*own, *(wish.hosts if wish else ())))))


def layers_of(plan: Plan[Any], run_dir: str, state: str = "") -> "RunLayers | None":
    """The sandboxes of a run; None where it works in place. `state`: where they keep their layers
    instead of in the state directory."""
    if plan.sandbox is None or plan.sandbox.backend == DIRECT:
        return None
    from ralph.sandbox import catalog
    from ralph.sandbox.credentials import Login
    from ralph.sandbox.run_layers import RunLayers

    policy = SandboxPolicy(
        plan.environ,
        state or plan.layer_root,
        hidden=(plan.state_root, *plan.hidden),
        network=plan.sandbox.network,
        secret=plan.sandbox.secrets.hidden,
        visible=(*_visible(plan), *plan.sandbox.secrets.shown),
        programs=(*(one.command[0] for one in plan.agents), *_programs_of_guardrails(plan)),
        home=plan.environ.get("HOME", ""),
        host_commits=plan.loop.commits,
    )
    backend = catalog.backend(plan.sandbox.backend)
    return RunLayers(
        backend,
        os.path.realpath(plan.workspace),
        policy,
        run_dir=run_dir,
        logins=tuple(Login(one.account, one.environment.values) for one in plan.agents),
        most_grace=plan.settings.end_grace,
    )


def _visible(plan: Plan[Any]) -> tuple[str, ...]:
    """Directories of the agents' programs, and of ours for hooks, also in a temporary directory."""
    places = [place for one in plan.agents for place in _places(one.command[0], plan.environ)]
    if plan.loop.hooks or any(one.runs_ralph for one in plan.agents):
        places += filter(is_hidden, (SOURCE, sys.prefix, sys.base_prefix))
    return tuple(dict.fromkeys(places))


def _places(command: str, environ: Mapping[str, str]) -> list[str]:
    found = which(command, environ.get("PATH"))
    if found is None:
        return []
    real = os.path.realpath(found)
    head, package, _ = real.partition("/node_modules/")
    home = f"{head}{package.rstrip('/')}" if package else os.path.dirname(real)
    places = (os.path.dirname(os.path.abspath(found)), home)
    # A temporary directory itself is private: of what lies right in it only the file is shown.
    return [real if place in PRIVATE else place for place in places]


def _programs_of_guardrails(plan: Plan[Any]) -> Iterator[str]:
    """The programs that guardrails name by an absolute path, as far as one can see that."""
    for rail in plan.settings.guardrails:
        with suppress(ValueError):  # no line of shell
            named = (word.rpartition("=")[2] for word in shlex.split(rail.command))
            yield from filter(os.path.isabs, named)
