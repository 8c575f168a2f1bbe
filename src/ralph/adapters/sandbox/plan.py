"""What a sandbox of namespaces shall be, from a project and a policy; and what its commands find in
their environment."""

import os
import re
from typing import TYPE_CHECKING

from ralph.adapters.sandbox.interface import Network, Policy
from ralph.errors import ConfigError

if TYPE_CHECKING:
    from ralph.adapters.sandbox.furnish import Plan

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_OURSELVES = ("localhost", "127.0.0.1", "::1")
_LOOPBACK = ("localhost", "127.0.0.1")
_LARGEST_PORT = 65535
MOST_PORTS = 64  # a message holds so many descriptors, and some more
_PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108  what is over them can be written anyway
_LARGEST_POINTER = 4096
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def plan_of(project: str, policy: Policy, place: str) -> "Plan":
    """The plan for a real project, with a directory for the layer. ConfigError for bad ports."""
    network = policy.network
    limited = "on" if network.everybody else "proxy" if network.hosts else "off"
    hidden = [os.path.realpath(path) for path in (policy.state, *policy.hidden)]
    home = _home(project, policy.home, hidden)
    visible = [os.path.realpath(path) for path in policy.visible]
    # Read only: what git writes outside of the project, a commit in a linked worktree say, would be
    # lost with the layer over the home directory, and is refused instead.
    visible += repository_outside(project, home)
    return {
        "project": os.fsencode(project),
        "place": os.fsencode(place),
        "memory": policy.memory,
        "network": limited,
        "ports": list(local_ports(network)),
        "root": os.geteuid() == 0,
        "home": os.fsencode(home),
        "hidden": [os.fsencode(path) for path in hidden],
        "visible": [os.fsencode(path) for path in visible],
    }


def _home(project: str, wanted: str, hidden: list[str]) -> str:
    """The home directory, if a layer over it takes nothing from the project and shows nothing that
    is hidden; else ""."""
    home = os.path.realpath(wanted) if wanted else "/"
    if home == "/" or not os.path.isdir(home) or home in _PRIVATE:
        return ""
    return "" if any(_is_within(home, place) for place in (project, *hidden)) else home


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def repository_outside(project: str, home: str = "") -> list[str]:
    """What git needs of a project's repository that lies outside of it, its own directory first.

    Where a directory of a repository is the project, that is also the rest of its files, unless the
    home directory shows them anyway.
    """
    here = project
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return []
        here = above
    found = _pointed_to(os.path.join(here, ".git"))
    if _is_within(found, project):
        return []
    seen = here in (project, "/", *_PRIVATE) or (home and _is_within(here, home))
    return [found] if seen else [found, here]


def mounted_in(project: str) -> list[str]:
    """Where other file systems are mounted below a project."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            places = [_ESCAPED.sub(_unescaped, line.split(b" ")[4]) for line in file]
    except OSError:
        return []
    return [place for place in map(os.fsdecode, places) if place.startswith(f"{project}/")]


def _unescaped(found: "re.Match[bytes]") -> bytes:
    return bytes((int(found[1], 8),))


def refuse_within(state: str, project: str) -> None:
    """ConfigError for a project in Ralph's state directory, which every sandbox hides."""
    state = os.path.realpath(state)
    if _is_within(project, state):
        how = "is" if project == state else "lies in"
        raise ConfigError(
            f"{project} {how} Ralph's state directory, which a sandbox hides",
            "Put that elsewhere: export RALPH_STATE_DIR=~/.local/state/ralph",
        )


def _pointed_to(path: str) -> str:
    """What a `.git` stands for: itself, or what a linked worktree's or a submodule's file names."""
    if os.path.isdir(path):
        return os.path.realpath(path)
    own = os.path.join(os.path.dirname(path), _text(path).removeprefix("gitdir: "))
    shared = _text(os.path.join(own, "commondir"))
    return os.path.realpath(os.path.join(own, shared) if shared else own)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(_LARGEST_POINTER).removesuffix(b"\n"))
    except OSError:
        return ""


def local_ports(network: Network) -> dict[int, str]:
    """The ports of this machine's loopback that can be had in a sandbox, each with the name to
    call. ConfigError for what is no port."""
    entries = [] if network.everybody else [host.partition(":") for host in network.hosts]
    ports: dict[int, str] = {}
    for name, _, port in entries:
        if name.lower() in _LOOPBACK and port:
            ports.setdefault(_port(name, port), name.lower())
    if len(ports) > MOST_PORTS:
        raise ConfigError(
            f"{len(ports)} ports of this machine are more than {MOST_PORTS}",
            "Name the host alone, which is reached by the proxy: --network localhost",
        )
    return ports


def _port(name: str, text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 0 < number <= _LARGEST_PORT:
        raise ConfigError(
            f"{name}:{text}: {text!r} is no port",
            f"Say one from 1 to {_LARGEST_PORT}, as in: --network {name}:8080",
        )
    return number


def environment_of(policy: Policy, backend: str, port: int) -> dict[str, str]:
    """What commands find: temporary files are private, and the proxy's port, if there is one."""
    environ = {**policy.environ, "TMPDIR": "/tmp", "RALPH_SANDBOX": backend}  # noqa: S108
    environ["GIT_DISCOVERY_ACROSS_FILESYSTEM"] = "1"  # a repository may be above the project
    if not policy.network.everybody:
        names = (*_PROXIES, *(name.upper() for name in _PROXIES), "no_proxy", "NO_PROXY")
        environ = {name: text for name, text in environ.items() if name not in names}
    if port:
        # A name without a port is all of its ports, which only the proxy can reach.
        proxied = {host.lower() for host in policy.network.hosts}
        direct = ",".join(host for host in _OURSELVES if host not in proxied)
        for name in _PROXIES:
            environ[name] = environ[name.upper()] = f"http://127.0.0.1:{port}"
        environ["no_proxy"] = environ["NO_PROXY"] = direct
    return environ
