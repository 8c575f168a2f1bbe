"""Why a kernel lets nobody have namespaces, and what to type."""

from contextlib import suppress

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


def namespace_remedy() -> str:
    """What to type, from what the kernel says of itself."""
    return next((r for n, value, r in _SYSCTLS if _sysctl(n) == value), _IN_CONTAINER)


def _sysctl(name: str) -> str:
    with suppress(OSError), open(f"/proc/sys/{name}", encoding="ascii") as file:
        return file.read().strip()
    return ""
