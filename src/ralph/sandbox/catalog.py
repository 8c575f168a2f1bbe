"""The backends, and the choice that `auto` makes."""

import importlib

from ralph.errors import ConfigError
from ralph.kernel.value import value
from ralph.sandbox.backends.base import Backend
from ralph.sandbox.interface import Capabilities, SandboxPolicy
from ralph.sandbox.names import BACKENDS

# Never `direct`: working in place has to be asked for. Nor a machine of its own: to make one takes
# minutes and an account.
AUTO = ("overlay", "srt", "worktree")


@value
class Probed:
    """A backend and its abilities here."""

    name: str
    can: Capabilities


def backend(name: str) -> Backend:
    if name not in BACKENDS:
        raise ConfigError(f"there is no sandbox {name!r}", f"Choose one of: {', '.join(BACKENDS)}")
    module: Backend = importlib.import_module(f"ralph.sandbox.backends.{name}")
    return module


def usable(name: str, project: str, policy: SandboxPolicy) -> Probed:
    """A backend, tried; `auto` is the first that can be used. ConfigError if none can."""
    reasons = []
    for one in AUTO if name == "auto" else (name,):
        can = backend(one).probe(project, policy)
        if can.usable:
            return Probed(one, can)
        reasons.append(f"{one}: {can.why}")
    if name == "auto":
        told = "; ".join(reasons)
        raise ConfigError(f"no sandbox is usable here ({told})", "See: ralph sandbox probe")
    raise ConfigError(f"sandbox {reasons[0]}", "See what is usable: ralph sandbox probe")


def probe_all(project: str, policy: SandboxPolicy) -> tuple[Probed, ...]:
    return tuple(Probed(name, backend(name).probe(project, policy)) for name in BACKENDS)


def chosen(probed: tuple[Probed, ...]) -> str | None:
    """The choice of `auto`; None where nothing that can be undone is usable."""
    usable = {one.name for one in probed if one.can.usable}
    return next((name for name in AUTO if name in usable), None)
