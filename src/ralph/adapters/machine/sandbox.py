"""What this machine could do for a sandbox: each ability is tried for real, in a child.

`ralph run` works in place, so nothing here is a problem. A sandbox can do three things, which come
apart: contain (what the agent may touch), rollback (undo what it did), egress (whom it may call).
"""

import ctypes
import os
import shutil
import tempfile
from contextlib import suppress

from ralph.adapters.machine import Answer, Machine, first_words, version_numbers
from ralph.core.health import Check, ok, warning
from ralph.errors import RalphError

_PR_GET_CHILD_SUBREAPER = 37
_NO_UNSHARE = "not tried: there is no unshare on PATH"
_INSTALL_UNSHARE = "On Linux install util-linux."
_IN_CONTAINER = "In a container ask its host, for example: docker run --privileged ..."
_SYSCTLS = (  # a file of /proc/sys, the value that forbids namespaces, what to type
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("kernel/unprivileged_userns_clone", "0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=10000"),
)
# A file system that cannot hold the upper layer (overlayfs itself) still leaves memory. Inside we
# are root, so the directory that overlayfs makes with mode 000 can be removed.
_OVERLAY = """
try() {
    mkdir "$1/lower" "$1/upper" "$1/work" "$1/merged" &&
    layers="lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" &&
    mount -t overlay overlay -o "$layers,userxattr" "$1/merged" &&
    : > "$1/merged/file" && umount "$1/merged" && test -e "$1/upper/file"
}
mkdir "$1/disk" "$1/memory" || exit
if try "$1/disk" 2> /dev/null; then echo disk; rm -rf "$1/disk"; exit 0; fi
mount -t tmpfs tmpfs "$1/memory" && try "$1/memory" && echo memory
code=$?
rm -rf "$1/disk"
exit $code
"""


def usable(machine: Machine) -> Check:
    """Which sandbox `ralph sandbox run` takes here, tried for real; agents work in place."""
    from ralph.adapters.files import state_root
    from ralph.adapters.sandbox import catalog, overlay
    from ralph.adapters.sandbox.interface import Policy

    try:
        policy = Policy(machine.environ, state_root(machine.environ))
        name = catalog.choose(machine.workspace, policy).name
    except RalphError as error:
        return warning("ralph sandbox", error.message, error.remedy)
    finally:
        overlay.LAUNCHER.close()
    text = f"takes {name}; ralph run does not use it yet: agents work in place, with your rights"
    return ok("ralph sandbox", text)


def user_namespaces(machine: Machine) -> Check:
    """Whether a child can be root in a world of its own."""
    answer = _unshare(machine, "-Ur", "true")
    can = f"this machine can make user namespaces{_as_whom()}"
    return _ability("user namespaces", answer, can, "contain, rollback, egress")


def overlay(machine: Machine) -> Check:
    """Whether an overlay can be mounted there, so that changes can be seen and thrown away."""
    try:
        place = tempfile.mkdtemp(prefix="ralph-doctor-", dir=machine.environ.get("TMPDIR") or None)
    except OSError as error:
        text = f"not tried: there is no temporary directory: {error.strerror}"
        return warning("overlay", text, "Make one, and: export TMPDIR=/some/where")
    try:
        answer = _unshare(machine, "-Urm", "sh", "-c", _OVERLAY, "sh", place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    kept = "in memory" if answer and first_words(answer.said) == "memory" else "on disk"
    can = f"this machine can mount overlays, changes kept {kept}"
    return _ability("overlay", answer, can, "rollback")


def network_namespace(machine: Machine) -> Check:
    """Whether a child can be cut off from the network."""
    answer = _unshare(machine, "-Urn", "true")
    return _ability("network", answer, "this machine can cut a child off the network", "egress")


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


def sandbox_runtime(machine: Machine) -> Check:
    """Whether srt (sandbox-runtime) is here."""
    path = machine.which("srt")
    if path is None:
        return ok("srt", "not installed; it can contain and filter egress, without rollback")
    answer = machine.ask(path, "--version")
    if answer.trouble:
        return warning("srt", f"{path} {answer.trouble}", f"See what is wrong: {path} --version")
    version = answer.version or "of an unknown version"
    return ok("srt", f"{version} at {path}: it can contain and filter egress, without rollback")


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


def namespace_remedy() -> str:
    """What to type, from what the kernel says of itself."""
    return next((r for n, value, r in _SYSCTLS if _sysctl(n) == value), _IN_CONTAINER)


def _sysctl(name: str) -> str:
    with suppress(OSError), open(f"/proc/sys/{name}", encoding="ascii") as file:
        return file.read().strip()
    return ""


def _has_subreaper() -> bool:
    """Asked, not set: a library must not adopt its host's children."""
    flag = ctypes.c_int()
    try:
        prctl = ctypes.CDLL(None).prctl
    except (AttributeError, OSError):
        return False
    return bool(prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0) == 0)


SANDBOX = (
    usable,
    user_namespaces,
    overlay,
    network_namespace,
    bubblewrap,
    sandbox_runtime,
    subreaper,
    pidfd,
)
