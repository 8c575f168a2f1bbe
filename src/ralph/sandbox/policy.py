"""The plan of a sandbox of namespaces, and the environment of its commands, from a policy."""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ralph.errors import ConfigError
from ralph.files.safe_open import read_or_nothing
from ralph.git.digest import git_line, git_output
from ralph.sandbox.interface import Network, SandboxPolicy, is_within
from ralph.sandbox.tools import PRIVATE, names, needed

if TYPE_CHECKING:
    from ralph.sandbox.namespace.inside import MountPlan

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_OURSELVES = ("localhost", "127.0.0.1", "::1")
_LOOPBACK = ("localhost", "127.0.0.1")
MOST_PORTS = 64  # a message holds so many descriptors, and some more
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def plan_of(project: str, policy: SandboxPolicy, place: str) -> "MountPlan":
    """The plan for a real project, with a directory for the layer. ConfigError for bad ports."""
    network = policy.network
    limited = "on" if network.everybody else "proxy" if network.hosts else "off"
    hidden = [os.path.realpath(path) for path in (policy.state, *policy.hidden)]
    # No layer over a home that takes something from the project, or shows what is hidden.
    home = os.path.realpath(policy.home) if policy.home else "/"
    taken = any(is_within(home, apart) for apart in (project, *hidden))
    if home == "/" or not os.path.isdir(home) or home in PRIVATE or taken:
        home = ""
    # What programs need, wherever it lies, but for what is not to be seen at all.
    tools = needed(project, policy)
    tools = [path for path in tools if not any(is_within(path, d) for d in (project, *hidden))]
    # Read only: what git writes outside of the project, a commit in a linked worktree say, would be
    # lost with the layer over the home directory, and is refused instead.
    repository = repository_outside(project, policy.environ, home)
    return {
        "project": os.fsencode(project),
        "place": os.fsencode(place),
        "memory": policy.memory,
        "network": limited,
        "ports": list(local_ports(network)),
        "root": os.geteuid() == 0,
        "home": os.fsencode(home),
        "hidden": list(map(os.fsencode, hidden)),
        "secret": list(map(os.fsencode, secret_paths(project, policy))),
        "visible": list(map(os.fsencode, (*names(policy.visible), *tools, *repository))),
    }


def secret_paths(project: str, policy: SandboxPolicy) -> list[str]:
    """The credentials that are there, by their real names, but for what is in the project."""
    real = dict.fromkeys(os.path.realpath(path) for path in policy.secret)
    found = [path for path in real if path != "/" and not is_within(path, project)]
    there = [path for path in found if os.path.isdir(path) or os.path.isfile(path)]
    return [p for p in there if not any(p != above and is_within(p, above) for above in there)]


def repository_outside(project: str, environ: Mapping[str, str], home: str = "") -> list[str]:
    """Paths that git needs of a project's repository outside of it, its own directory first. Where
    the project is a directory of a repository, that is also the rest of its files, unless the home
    directory shows them anyway."""
    git = os.path.join(project, ".git")
    linked = os.path.islink(git) or os.path.exists(os.path.join(git, "commondir"))
    parts = [os.path.join(git, name) for name in ("HEAD", "objects", "refs")]
    whole = not linked and all(map(os.path.exists, parts))  # as it mostly is
    if whole or not _may_be_in_one(project):
        return []
    paths = []
    for what in ("--git-common-dir", "--show-toplevel"):  # "" if git finds none that it would use
        said = git_line(project, environ, "rev-parse", "--path-format=absolute", what)
        paths.append(os.path.realpath(said) if said else "")
    found, top = paths
    if not found or not is_within(project, top) or is_within(found, project):
        return []
    if top in PRIVATE and not git_output(project, environ, "ls-files", "-z", "--", "."):
        return []  # somebody's stray `git init`, which everything there seems to be in
    seen = top in (project, "/", *PRIVATE) or (home and is_within(top, home))
    return [found] if seen else [found, top]


def _may_be_in_one(directory: str) -> bool:
    """True if it is worth asking git, which takes longer than the rest of a sandbox."""
    if os.path.lexists(os.path.join(directory, ".git")):
        return True
    above = os.path.dirname(directory)
    return above != directory and _may_be_in_one(above)


def refuse_mounts(project: str) -> None:
    """ConfigError for a project in which other file systems are mounted."""
    lines = read_or_nothing("/proc/self/mountinfo").split(b"\n")
    fields = [line.split(b" ")[4] for line in lines if line]
    places = [_ESCAPED.sub(lambda found: bytes((int(found[1], 8),)), field) for field in fields]
    for place in map(os.fsdecode, places):
        if place.startswith(f"{project}/"):
            raise ConfigError(
                f"{place} is mounted in the project, which cannot have a layer over it then",
                "Unmount that, or use worktree.",
            )


def refuse_within(state: str, project: str) -> None:
    """ConfigError for a project in Ralph's state directory, which every sandbox hides."""
    state = os.path.realpath(state)
    if is_within(project, state):
        how = "is" if project == state else "lies in"
        raise ConfigError(
            f"{project} {how} Ralph's state directory, which a sandbox hides",
            "Put that elsewhere: export RALPH_STATE_DIR=~/.local/state/ralph",
        )


def local_ports(network: Network) -> dict[int, str]:
    """Ports of this machine's loopback that can be had in a sandbox, each with the name to call."""
    ports: dict[int, str] = {}
    for host in () if network.everybody else network.hosts:
        name, _, text = host.partition(":")
        if name.lower() in _LOOPBACK and text:
            ports.setdefault(int(text), name.lower())
    if len(ports) > MOST_PORTS:
        raise ConfigError(
            f"{len(ports)} ports of this machine are more than {MOST_PORTS}",
            "Name the host alone, which is reached by the proxy: --network localhost",
        )
    return ports


def environment_of(policy: SandboxPolicy, backend: str, port: int) -> dict[str, str]:
    """The environment of commands: temporary files are private; the proxy's port, or 0."""
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
