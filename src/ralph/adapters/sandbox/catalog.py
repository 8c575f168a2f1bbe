"""Every backend, and which one `auto` takes."""

import importlib
from collections.abc import Callable

from ralph.adapters.sandbox import BACKENDS
from ralph.adapters.sandbox.interface import Backend, Capabilities, Policy
from ralph.core.value import value
from ralph.errors import ConfigError

_BUILT = ("overlay", "worktree", "direct")
_NOT_BUILT = "Ralph does not use it yet"
# Never `direct`: working in place has to be asked for.
_AUTO = ("overlay", "worktree")


@value
class Probed:
    """A backend and what it does here."""

    name: str
    can: Capabilities


def backend(name: str) -> Backend:
    """A backend by its name. ConfigError for one that there is not."""
    if name not in BACKENDS:
        raise ConfigError(f"there is no sandbox {name!r}", f"Choose one of: {', '.join(BACKENDS)}")
    if name not in _BUILT:
        raise ConfigError(f"{name}: {_NOT_BUILT}", f"Choose one of: {', '.join(_BUILT)}")
    module: Backend = importlib.import_module(f"ralph.adapters.sandbox.{name}")
    return module


def probe_all(
    project: str, policy: Policy, which: Callable[[str], str | None]
) -> tuple[Probed, ...]:
    """Every backend, tried for real where Ralph can use it."""
    return tuple(Probed(name, _probe(name, project, policy, which)) for name in BACKENDS)


def chosen(probed: tuple[Probed, ...]) -> str | None:
    """What `auto` takes; None where nothing that can be undone is usable."""
    usable = {one.name for one in probed if one.can.usable}
    return next((name for name in _AUTO if name in usable), None)


def choose(project: str, policy: Policy) -> str:
    """The first usable backend, tried in order. ConfigError if there is none."""
    reasons = []
    for name in _AUTO:
        can = backend(name).probe(project, policy)
        if can.usable:
            return name
        reasons.append(f"{name}: {can.why}")
    told = "; ".join(reasons)
    raise ConfigError(f"no sandbox is usable here ({told})", "See: ralph sandbox probe")


def _probe(
    name: str, project: str, policy: Policy, which: Callable[[str], str | None]
) -> Capabilities:
    if name in _BUILT:
        return backend(name).probe(project, policy)
    found = which(name)
    here = f"{found} is installed" if found else "not installed"
    return Capabilities(False, False, False, f"{_NOT_BUILT}; {here}", usable=False)
