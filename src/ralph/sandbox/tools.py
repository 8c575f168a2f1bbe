"""The needs of programs in the places that a sandbox hides: a virtual environment below /tmp with
the interpreter behind it, a toolchain below /run, Ralph itself."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache

from ralph.processes.which import which
from ralph.sandbox.interface import SandboxPolicy

PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108  what is there is not shown
_LISTS = ("PYTHONPATH", "NODE_PATH")
_HOMES = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "JAVA_HOME", "GOROOT", "RUSTUP_HOME")
_OWN = (".venv", "venv")  # virtual environments of a project
_BINARIES = frozenset({"bin", "sbin"})
_BESIDE = ("lib", "libexec", "share", "pyvenv.cfg")  # one of them is beside a `bin` that needs it
_PACKAGES = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 2))
_RUNTIME = "/run/user"  # directories of users, with sockets that lead out of every sandbox
_MOST_LINKS = 40  # as the kernel has it


def needed(project: str, policy: SandboxPolicy) -> list[str]:
    """Hidden paths that the programs on PATH, the project's own and ours need; by all names."""
    environ = policy.environ
    searched = names(environ.get("PATH", "").split(os.pathsep))
    environments = [sys.prefix, environ.get("VIRTUAL_ENV", "")]
    environments += [os.path.join(project, name) for name in _OWN]
    environments += [os.path.dirname(directory) for directory in searched]
    places = [*map(_with_prefix, searched), _PACKAGES, sys.prefix, sys.base_prefix]
    places += [environ.get(name, "") for name in _HOMES]
    for name in _LISTS:
        places += environ.get(name, "").split(os.pathsep)
    for directory in filter(is_hidden, map(os.path.realpath, searched)):
        places += _linked(directory)
    for root in environments:  # each with the interpreter that it stands on
        if root and os.path.isfile(os.path.join(root, "pyvenv.cfg")):
            places += [root, *map(_place_of, _hops(os.path.join(root, "bin", "python")))]
    for program in policy.programs:
        if found := which(program, environ.get("PATH")):
            places += map(_place_of, _hops(os.path.abspath(found)))
    return [name for name in names(places) if is_hidden(name)]


def names(places: Iterable[str]) -> list[str]:
    """Each place as it is called, and by its real name; none twice, and nothing relative."""
    absolute = [os.path.abspath(place) for place in places if os.path.isabs(place)]
    both = (name for place in absolute for name in (place, os.path.realpath(place)))
    return list(dict.fromkeys(both))


def is_hidden(path: str) -> bool:
    """True if it lies in a place that a sandbox has for itself; not for that place."""
    return path.startswith(_private())


@cache
def _private() -> tuple[str, ...]:
    return tuple(f"{place}/" for place in names(PRIVATE))


def _linked(directory: str) -> list[str]:
    """Hidden targets of links in a directory of programs."""
    links: list[str] = []
    with suppress(OSError), os.scandir(directory) as entries:
        links = [os.path.realpath(entry.path) for entry in entries if entry.is_symlink()]
    return [_place_of(real) for real in links if is_hidden(real)]


def _hops(path: str) -> Iterator[str]:
    """A program by the names that links give it, one after the other, and by the real one."""
    yield os.path.realpath(path)
    for _ in range(_MOST_LINKS):
        yield path
        try:
            target = os.readlink(path)
        except OSError:
            return
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))


def _place_of(program: str) -> str:
    """Its packages, or its directory; only the file right in a temporary one, which is private."""
    head, package, _ = program.partition("/node_modules/")
    if package:
        return f"{head}{package.rstrip('/')}"
    directory = os.path.dirname(program)
    return program if directory in PRIVATE else _with_prefix(directory)


def _with_prefix(directory: str) -> str:
    """A directory of programs, with what lies beside it if it is one of an installation."""
    above = os.path.dirname(directory)
    shared = not is_hidden(above) or os.path.dirname(above) == _RUNTIME
    if os.path.basename(directory) not in _BINARIES or shared:
        return directory
    beside = any(os.path.lexists(os.path.join(above, name)) for name in _BESIDE)
    return above if beside else directory
