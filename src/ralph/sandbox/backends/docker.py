"""The backend `docker`: the older `docker sandbox`, which Docker Desktop had until 4.80. A virtual
machine whose copy of the project is synced with the project itself: it contains, and undoes
nothing."""

import json
import re
import time
from collections.abc import Iterable, Mapping

from ralph.errors import ConfigError
from ralph.sandbox import layer_store
from ralph.sandbox.backends import machine
from ralph.sandbox.backends.base import missing_keeper, real_project
from ralph.sandbox.backends.guest import LONG, Guest, SandboxTool
from ralph.sandbox.backends.machine import AGENT, Ours, Remote
from ralph.sandbox.changes import pulled
from ralph.sandbox.changes.manifest import Manifest
from ralph.sandbox.interface import (
    Capabilities,
    Change,
    CommitResult,
    SandboxPolicy,
    unusable,
)

NAME = "docker"
WORDS = ("docker", "sandbox")
_NONE = "this docker has no `sandbox` (Docker Desktop 4.80 removed it; sbx came in its place)"
_WHY = (
    "docker sandbox answers, but no virtual machine was started to try it; it is synced with the "
    "project, so that nothing can be undone"
)
_OPEN = Capabilities(True, False, True, "a virtual machine that is synced with the project")

_SETTLE = 2.5  # seconds until what is written inside is outside too (R: 2 to 3)
_SETTLE_NAME = "RALPH_SANDBOX_SETTLE"
_RUNNING = "running"
_NOT_SEEN = re.compile(
    rb"\.ralph(?:-active|/.*)?|\.git/(?:objects|logs|refs/ralph)(?:/.*)?|\.git/(?:.*/)?[^/]+\.lock"
    rb"|\.git/(?:ORIG_HEAD|FETCH_HEAD|COMMIT_EDITMSG)",
    re.DOTALL,
)


def probe(project: str, policy: SandboxPolicy) -> Capabilities:
    """Ask the tool for its machines: to make one would fetch an image, and take minutes."""
    why = _problem(policy) or machine.not_answering(WORDS, policy.environ)
    return unusable(why) if why else Capabilities(True, False, True, _WHY)


def _problem(policy: SandboxPolicy) -> str:
    tool = SandboxTool(WORDS, policy.environ)
    if why := missing_keeper() or ("" if tool.is_installed() else "not installed"):
        return why
    # Not by --help, which a docker without sandboxes answers too.
    return _NONE if tool.ask("version").code else ""


def open(project: str, policy: SandboxPolicy) -> "Docker":  # noqa: A001  the interface has it so
    """A machine with the project at the same path; both are kept the same."""
    project = real_project(project)
    if why := _problem(policy):
        raise ConfigError(f"docker cannot be used: {why}", "See: ralph sandbox probe")
    guest = Guest(SandboxTool(WORDS, policy.environ), machine.name_of(project, "_"), project)
    with machine.opening(policy, guest) as (ours, kept):
        _ready(guest, policy, ours)
        return Docker(policy, guest, kept, ours)


def _ready(guest: Guest, policy: SandboxPolicy, ours: Ours) -> None:
    """Make sure of a machine: the one that was left, if it will do, or a new one."""
    state = machine.login(policy.environ)
    found = listed(guest.tool.must("list its sandboxes", "ls", "--json"))
    known = ours.was_left_awake() if found.get(guest.name) == _RUNNING else None
    if guest.name in found and not ours.may_call(policy.network):
        ours.check_made(f"docker sandbox rm {guest.name}")
        machine.remove(guest, ours)
        del found[guest.name]
    if guest.name not in found:
        network = policy.network
        words = ("--name", guest.name, AGENT, guest.project, state)
        allowed = [word for host in network.hosts for word in ("--allow-host", host)]
        default = "allow" if network.everybody else "deny"
        rules = ("network", "proxy", guest.name, "--policy", default, *allowed)
        machine.create(guest, ours, network, words, rules)
    elif known != files_of(guest.project):
        look_again(guest)
    machine.set_up(guest, state)


def files_of(project: str) -> str:
    """A digest of the project's files. Ralph's records are nothing to the machine, and what git
    keeps beside its branches comes with them."""
    return Manifest(project, git=True).digest(but_for=_NOT_SEEN)


def listed(output: bytes) -> dict[str, str]:
    """Names in the output of `docker sandbox ls --json`, each with its status."""
    try:
        found = json.loads(output)
        return {row["name"]: str(row.get("status", "")) for row in found.get("vms") or []}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ConfigError(
            "docker sandbox ls --json prints something else", "See: docker sandbox ls --json"
        ) from None


def look_again(guest: Guest) -> None:
    """Restart a machine: a file that was synced once is never taken from outside again, but when a
    machine is stopped and started (R §3)."""
    guest.stop()
    guest.tool.must("start the sandbox", "run", guest.name, "--", "--version", patience=LONG)


class Docker(Remote):
    """A virtual machine on the project itself; the machine is kept for the next time."""

    kind = NAME
    look = "look-all"
    no_rollback = "what was done is synced and cannot be undone"

    def __init__(
        self, policy: SandboxPolicy, guest: Guest, kept: layer_store.LayerDir, ours: Ours
    ) -> None:
        super().__init__(policy, _OPEN, guest, kept, ours)
        self._settle = _seconds(policy.environ)

    def look_again(self) -> None:
        """Take over changes that somebody made to the project meanwhile, as after a pause."""
        look_again(self._guest)

    def settle(self) -> None:
        time.sleep(self._settle)

    def commit(self, *, everything: bool = False) -> CommitResult:
        kept = super().commit()
        self.settle()
        return kept

    def _compared(self, paths: list[bytes]) -> Iterable[Change]:
        return pulled.by_listing(paths, self._first, self._last)

    def _leave(self) -> None:
        try:
            self.settle()
            self._lull(files_of(self.origin) if self.policy.awake else "")
        finally:
            self._place.remove()
            self._ours.release()


def _seconds(environ: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(environ[_SETTLE_NAME]))
    except (KeyError, ValueError):
        return _SETTLE
