"""The backend `docker`: the older `docker sandbox`, which Docker Desktop had until 4.80. A virtual
machine whose copy of the project is synced with the project itself: it contains, and undoes
nothing."""

import json
import re
import time
from collections.abc import Iterable, Mapping

from ralph.adapters import keeper_process
from ralph.adapters.files import unwritable_state
from ralph.adapters.sandbox import place, pulled
from ralph.adapters.sandbox.base import real_project
from ralph.adapters.sandbox.guest import LONG, Guest, Tool, told
from ralph.adapters.sandbox.interface import Capabilities, Change, Kept, Network, Policy
from ralph.adapters.sandbox.manifest import Manifest
from ralph.adapters.sandbox.remote import (
    AGENT,
    Ours,
    Remote,
    at_home,
    login,
    name_of,
    program_of,
    set_up,
)
from ralph.errors import ConfigError

NAME = "docker"
WORDS = ("docker", "sandbox")
_NONE = "this docker has no `sandbox` (Docker Desktop 4.80 removed it; sbx came in its place)"
_WHY = (
    "docker sandbox answers, but no virtual machine was started to try it; it is synced with the "
    "project, so that nothing can be undone"
)
_OPEN = Capabilities(True, False, True, "a virtual machine that is synced with the project")
_NO_ROLLBACK = ("what was done is synced and cannot be undone", "Use another: ralph sandbox probe")
_SETTLE = 2.5  # seconds until what is written inside is outside too (R: 2 to 3)
_SETTLE_NAME = "RALPH_SANDBOX_SETTLE"
_RUNNING = "running"
_NOT_SEEN = re.compile(
    rb"\.ralph(?:-active|/.*)?|\.git/(?:objects|logs|refs/ralph)(?:/.*)?|\.git/(?:.*/)?[^/]+\.lock"
    rb"|\.git/(?:ORIG_HEAD|FETCH_HEAD|COMMIT_EDITMSG)",
    re.DOTALL,
)


def probe(project: str, policy: Policy) -> Capabilities:
    """Ask the tool for its machines: to make one would fetch an image, and take minutes."""
    why = _problem(policy)
    if not why:
        done = Tool(WORDS, policy.environ).ask("ls", "--json")
        why = f"docker sandbox does not answer: {told(done)}" if done.code else ""
    if why:
        return Capabilities(False, False, False, why, usable=False)
    return Capabilities(True, False, True, _WHY)


def _problem(policy: Policy) -> str:
    if not keeper_process.is_possible():
        return "needs Linux 5.3 or newer"
    if not program_of(WORDS, policy.environ):
        return "not installed"
    # Not by --help, which a docker without sandboxes answers too.
    return _NONE if Tool(WORDS, policy.environ).ask("version").code else ""


def open(project: str, policy: Policy) -> "Docker":  # noqa: A001  the interface has it so
    """A machine with the project at the same path; both are kept the same."""
    project = real_project(project)
    if why := _problem(policy):
        raise ConfigError(f"docker cannot be used: {why}", "See: ralph sandbox probe")
    guest = Guest(Tool(WORDS, policy.environ), name_of(project, "_"), project)
    ours = Ours(policy, project, guest.name)
    try:
        _ready(guest, policy, ours)
        kept = place.claim(policy.state, project)
        try:
            return Docker(policy, guest, kept, ours)
        except BaseException:
            kept.remove()
            raise
    except OSError as error:
        ours.release()
        raise unwritable_state(policy.state, error) from error
    except BaseException:
        ours.release()
        raise


def _ready(guest: Guest, policy: Policy, ours: Ours) -> None:
    """The sandbox that was left, if it will do, or a new one."""
    state = login(policy.environ)
    found = listed(guest.tool.must("list its sandboxes", "ls", "--json"))
    known = ours.was_left_awake() if found.get(guest.name) == _RUNNING else None
    if guest.name not in found:
        _create(guest, policy, ours, state)
    elif not ours.may_call(policy.network):
        ours.check_made(f"docker sandbox rm {guest.name}")
        guest.tool.must("remove the sandbox", "rm", guest.name, patience=LONG)
        ours.forget()
        _create(guest, policy, ours, state)
    elif known != files_of(guest.project):
        look_again(guest)
    set_up(guest, state)


def files_of(project: str) -> str:
    """What stands in the project, in a few letters: others once somebody has changed it. Ralph's
    records are nothing to the machine, and what git keeps beside its branches comes with them."""
    return Manifest(project, git=True).digest(but_for=_NOT_SEEN)


def listed(output: bytes) -> dict[str, str]:
    """The names in what `docker sandbox ls --json` says, and whether each runs."""
    try:
        found = json.loads(output)
        return {row["name"]: str(row.get("status", "")) for row in found.get("vms") or []}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ConfigError(
            "docker sandbox ls --json prints something else", "See: docker sandbox ls --json"
        ) from None


def _create(guest: Guest, policy: Policy, ours: Ours, state: str) -> None:
    ours.note()
    words = ("create", "--name", guest.name, AGENT, guest.project, state)
    try:
        guest.tool.must("make a sandbox", *words, patience=LONG)
        guest.tool.must("set the rules of a sandbox", *_rules(guest.name, policy.network))
    except BaseException:
        guest.tool.ask("rm", guest.name, patience=LONG)
        ours.forget()
        raise
    ours.note(policy.network)


def _rules(name: str, network: Network) -> tuple[str, ...]:
    allowed = [word for host in network.hosts for word in ("--allow-host", host)]
    default = "allow" if network.everybody else "deny"
    return ("network", "proxy", name, "--policy", default, *allowed)


def look_again(guest: Guest) -> None:
    """A file that was synced once is never taken from outside again, but when a machine is
    stopped and started (R §3)."""
    guest.tool.must("stop the sandbox", "stop", guest.name, patience=LONG)
    guest.tool.must("start the sandbox", "run", guest.name, "--", "--version", patience=LONG)


class Docker(Remote):
    """A virtual machine on the project itself; the machine is kept for the next time."""

    kind = NAME
    look = "look-all"

    def __init__(self, policy: Policy, guest: Guest, kept: place.Place, ours: Ours) -> None:
        super().__init__(policy, at_home(_OPEN, policy), guest, kept, ours)
        self._settle = _seconds(policy.environ)

    def look_again(self) -> None:
        """Take over what somebody changed in the project meanwhile, as after a pause."""
        look_again(self._guest)

    def settle(self) -> None:
        """Wait until what was written inside is outside too."""
        time.sleep(self._settle)

    def commit(self, *, everything: bool = False) -> Kept:
        """All is there already, or soon."""
        changes = self.changes()
        self.settle()
        return Kept(tuple(change.path for change in changes))

    def discard(self) -> None:
        """Never: ConfigError."""
        raise ConfigError(*_NO_ROLLBACK)

    def _compared(self, paths: list[bytes]) -> Iterable[Change]:
        return pulled.by_listing(paths, self._first, self._last)

    def _before(self, change: Change) -> str:
        return ""  # nobody has it any more

    def _leave(self) -> None:
        """End what runs in it."""
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
