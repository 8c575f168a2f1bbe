"""What this machine can do for a sandbox: each backend, and what it stands on, tried for real.

A run works in place unless it is told otherwise, so nothing here is a problem. A sandbox can do
three things, which come apart: contain (what the agent may touch), rollback (undo what it did),
egress (whom it may call).
"""

import ctypes
import os
from typing import TYPE_CHECKING

from ralph.adapters.machine import Answer, Machine, version_numbers
from ralph.adapters.namespaces import namespace_remedy
from ralph.core.health import Check, ok, warning
from ralph.errors import RalphError

if TYPE_CHECKING:
    from ralph.adapters.sandbox.interface import Capabilities

_PR_GET_CHILD_SUBREAPER = 37
_NO_UNSHARE = "not tried: there is no unshare on PATH"
_INSTALL_UNSHARE = "On Linux install util-linux."
_PROPERTIES = ("contain", "rollback", "egress")


def backends(machine: Machine) -> tuple[Check, ...]:
    """What `auto` takes here, then each backend with what it does, or why it does not."""
    from ralph.adapters.files import state_root
    from ralph.adapters.sandbox import catalog, overlay
    from ralph.adapters.sandbox.interface import Policy

    try:
        policy = Policy(machine.environ, state_root(machine.environ))
        probed = catalog.probe_all(machine.workspace, policy)
    except RalphError as error:
        return (warning("sandbox: auto", error.message, error.remedy),)
    finally:
        overlay.LAUNCHER.close()
    name = catalog.chosen(probed)
    if name is None:
        remedy = "See the reasons below; in place: --no-sandbox"
        auto = warning("sandbox: auto", "nothing that can be undone is usable here", remedy)
    else:
        auto = ok("sandbox: auto", f"takes {name}, for ralph run --sandbox and ralph sandbox run")
    return (auto, *(ok(one.name, _told(one.can)) for one in probed))


def _told(can: "Capabilities") -> str:
    if not can.usable:
        return f"not usable: {can.why}"
    does = ", ".join(name for name in _PROPERTIES if getattr(can, name))
    return f"{does or 'none of the three'}; {can.why}"


def user_namespaces(machine: Machine) -> Check:
    """Whether a child can be root in a world of its own."""
    answer = _unshare(machine, "-Ur", "true")
    can = f"this machine can make user namespaces{_as_whom()}"
    return _ability("user namespaces", answer, can, "contain, rollback, egress")


def bubblewrap(machine: Machine) -> Check:
    """Whether bwrap is here and works."""
    path = machine.which("bwrap")
    if path is None:
        return ok("bwrap", "not installed; another way to contain, where namespaces work")
    version = machine.ask(path, "--version").version or "of an unknown version"
    works = machine.ask(path, "--ro-bind", "/", "/", "true")
    found = f"{version} at {path}"
    if works.trouble:
        return warning("bwrap", f"{found}: {works.trouble}", namespace_remedy())
    layers = version[0].isdigit() and version_numbers(version) >= (0, 11)
    more = ", and mount overlays" if layers else ", without overlays of its own (0.11 has them)"
    return ok("bwrap", f"{found}: this machine can contain with it{more}")


def subreaper(_: Machine) -> Check:
    """Whether a process can be the one that orphans below it are handed to."""
    means = "what an agent leaves behind"
    if _has_subreaper():
        return ok("subreaper", f"this machine can adopt {means}")
    return warning("subreaper", f"this machine cannot adopt {means}", "Use Linux for long runs.")


def pidfd(_: Machine) -> Check:
    """Whether the end of a child can be waited for like its output."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        text = "this machine cannot wait for a child by pidfd: it is asked 50 times a second"
        return warning("pidfd", text, "Use Linux 5.3 or newer.")
    return ok("pidfd", "this machine can wait for a child's end without asking for it")


def _unshare(machine: Machine, *arguments: str) -> Answer | None:
    path = machine.which("unshare")
    return None if path is None else machine.ask(path, *arguments)


def _ability(name: str, answer: Answer | None, can: str, needed_for: str) -> Check:
    if answer is None:
        return warning(name, f"{_NO_UNSHARE} (for {needed_for})", _INSTALL_UNSHARE)
    if answer.trouble:
        text = f"this machine cannot: {answer.trouble} (for {needed_for})"
        return warning(name, text, namespace_remedy())
    return ok(name, f"{can} (for {needed_for})")


def _as_whom() -> str:
    return " as root; for others it was not tried" if os.geteuid() == 0 else ""


def _has_subreaper() -> bool:
    """Asked, not set: a library must not adopt its host's children."""
    flag = ctypes.c_int()
    try:
        prctl = ctypes.CDLL(None).prctl
    except (AttributeError, OSError):
        return False
    return bool(prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0) == 0)


SANDBOX = (user_namespaces, bubblewrap, subreaper, pidfd)
