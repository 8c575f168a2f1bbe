"""Abilities of this machine for a sandbox: each backend, and what it stands on, tried for real.

A run works in place unless it is told otherwise, so nothing here is a problem. A sandbox can do
three things, which come apart: contain (what the agent may touch), rollback (undo what it did),
egress (which hosts it may call).
"""

import ctypes
import os
from contextlib import suppress

from ralph.doctor.checks import Check, ok, warning
from ralph.doctor.machine import Machine, version_numbers
from ralph.errors import RalphError
from ralph.processes.keeper_main import is_possible
from ralph.sandbox.namespace.client import namespace_remedy

_PR_GET_CHILD_SUBREAPER = 37

_PROPERTIES = ("contain", "rollback", "egress")


def backends(machine: Machine) -> tuple[Check, ...]:
    """The choice of `auto` here, then each backend with its abilities, or why it has none."""
    from ralph.files.state_dir import state_root
    from ralph.sandbox import catalog
    from ralph.sandbox.backends import overlay
    from ralph.sandbox.interface import SandboxPolicy

    try:
        policy = SandboxPolicy(machine.environ, state_root(machine.environ))
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
    checks = [auto]
    for one in probed:
        does = ", ".join(name for name in _PROPERTIES if getattr(one.can, name))
        told = f"{does or 'none of the three'}; {one.can.why}"
        checks.append(ok(one.name, told if one.can.usable else f"not usable: {one.can.why}"))
    return tuple(checks)


def user_namespaces(machine: Machine) -> Check:
    """A child can be root in a world of its own."""
    name, needs = "user namespaces", "(for contain, rollback, egress)"
    path = machine.which("unshare")
    if path is None:
        found = f"not tried: there is no unshare on PATH {needs}"
        return warning(name, found, "On Linux install util-linux.")
    answer = machine.ask(path, "-Ur", "true")
    if answer.trouble:
        found = f"this machine cannot: {answer.trouble} {needs}"
        return warning(name, found, namespace_remedy())
    root = " as root; for others it was not tried" if os.geteuid() == 0 else ""
    return ok(name, f"this machine can make user namespaces{root} {needs}")


def bubblewrap(machine: Machine) -> Check:
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
    """A process can be the one that orphans below it are handed to. Asked, not set: a library must
    not adopt its host's children."""
    means, flag = "what an agent leaves behind", ctypes.c_int()
    with suppress(AttributeError, OSError):
        prctl = ctypes.CDLL(None).prctl
        if prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0) == 0:
            return ok("subreaper", f"this machine can adopt {means}")
    return warning("subreaper", f"this machine cannot adopt {means}", "Use Linux for long runs.")


def pidfd(_: Machine) -> Check:
    """The end of a child can be waited for like its output."""
    if not is_possible():
        text = "this machine cannot wait for a child by pidfd: it is asked 50 times a second"
        return warning("pidfd", text, "Use Linux 5.3 or newer.")
    return ok("pidfd", "this machine can wait for a child's end without asking for it")


SANDBOX = (user_namespaces, bubblewrap, subreaper, pidfd)
