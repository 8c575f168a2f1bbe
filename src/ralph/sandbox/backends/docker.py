"""The backend `docker`: the older `docker sandbox`, which Docker Desktop had until 4.80. A virtual
machine whose copy of the project is synced with it: it contains, and undoes nothing."""

import json
import re
import time
from collections.abc import Iterable, Mapping

from ralph.errors import ConfigError
from ralph.sandbox.backends import machine
from ralph.sandbox.backends.base import missing_keeper, real_project
from ralph.sandbox.backends.guest import LONG, Guest, SandboxTool
from ralph.sandbox.backends.machine import KeptMachine, Remote
from ralph.sandbox.changes.manifest import Manifest, by_stamps
from ralph.sandbox.interface import Capabilities, Change, CommitResult, SandboxPolicy, unusable

NAME = "docker"
WORDS = ("docker", "sandbox")
_NONE = "this docker has no `sandbox` (Docker Desktop 4.80 removed it; sbx came in its place)"
_WHY = (
    "docker sandbox answers, but no virtual machine was started to try it; it is synced with the "
    "project, so that nothing can be undone"
)
_OPEN = Capabilities(True, False, True, "a virtual machine that is synced with the project")

_SETTLE = 2.5  # seconds until what is written inside is outside too (R: 2 to 3)
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
        _ready(ours)
        return Docker(_OPEN, ours, kept)


def _ready(ours: KeptMachine) -> None:
    guest, network = ours.guest, ours.policy.network
    status = listed(guest.tool.must("list its sandboxes", "ls", "--json")).get(guest.name)

    def reuse() -> bool:
        known = ours.was_left_awake()
        if status != "running" or known != files_of(guest.project):
            look_again(guest)
        return True

    allowed = [word for host in network.hosts for word in ("--allow-host", host)]
    default = "allow" if network.everybody else "deny"
    rules = ("network", "proxy", guest.name, "--policy", default, *allowed)
    ours.ready(None if status is None else reuse, words=("--name", guest.name), rules=rules)


def files_of(project: str) -> str:
    """A digest of the project's files, less Ralph's records and what git keeps beside branches."""
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
    """Restart a machine: only then a file that was synced once is taken anew (R §3)."""
    guest.stop()
    guest.tool.must("start the sandbox", "run", guest.name, "--", "--version", patience=LONG)


class Docker(Remote):
    """A virtual machine on the project itself; the machine is kept for the next time."""

    kind = NAME
    look = "look-all"
    no_rollback = "what was done is synced and cannot be undone"

    def commit(self, *, everything: bool = False) -> CommitResult:
        kept = super().commit()
        time.sleep(_seconds(self.policy.environ))
        return kept

    def _compared(self) -> Iterable[Change]:
        return by_stamps(self._first, self._last)

    def _let_go(self) -> None:
        time.sleep(_seconds(self.policy.environ))
        self._lull(files_of(self.origin) if self.policy.awake else "")


def _seconds(environ: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(environ["RALPH_SANDBOX_SETTLE"]))
    except (KeyError, ValueError):
        return _SETTLE
