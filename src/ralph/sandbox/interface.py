"""The words of sandboxes: places to run that can be undone (B §Execution Environment, §Rollback).

Three properties come apart: contain (what a command may touch), rollback (whether that can be
undone), egress (whom it may call).
"""

import stat
from collections.abc import Iterable, Mapping
from enum import StrEnum

from ralph.kernel.value import value


@value
class Capabilities:
    """The abilities of a backend here; `why` says what they rest on, or what is missing."""

    contain: bool
    rollback: bool
    egress: bool
    why: str
    usable: bool = True
    lacks: str = ""  # what the policy asked for and is not to be had here, of an open sandbox


def unusable(why: str) -> Capabilities:
    return Capabilities(False, False, False, why, usable=False)


@value
class Network:
    """Hosts that a sandbox may call: everybody, or these, which may be none. A host is `NAME`,
    `NAME:PORT` or `*.DOMAIN`, reached by a proxy. `127.0.0.1:PORT` and `localhost:PORT` are that
    port of this machine, to be had in the sandbox as it is here."""

    everybody: bool = False
    hosts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "on" if self.everybody else ",".join(self.hosts) or "off"


OFF, ON = Network(), Network(everybody=True)


@value
class SandboxPolicy:
    """The properties wanted of a sandbox. It hides the state directory, which keeps its layer."""

    environ: Mapping[str, str]
    state: str
    network: Network = OFF
    hidden: tuple[str, ...] = ()  # more directories that are not to be seen
    # Files and directories with credentials: not to be seen, unless they lie in the project.
    secret: tuple[str, ...] = ()
    # What is to be seen, read only, although it lies in /tmp or in something secret.
    visible: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()  # what shall run, beside the programs on PATH
    memory: int = 0  # bytes; not 0: the layer is kept in memory, and is no larger
    # The home directory, which may be above the project: what is written there works and is
    # thrown away. "": it is as read only as the rest of the host.
    home: str = ""
    name: str = ""  # of the layer, for who comes after us; "" is one that is its own
    kept: bool = False  # somebody comes back to the layer of that name, or does so now
    host_commits: bool = False  # what is done in it; nobody there needs to
    awake: bool = False  # more of the kind follow: a machine need not be stopped till `rest`


def is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


class ChangeKind(StrEnum):
    """The way a path changed."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    MODE = "mode"
    SYMLINK = "symlink"  # a link that is new, or leads elsewhere now


class FileType(StrEnum):
    """The type of a file."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"  # a socket, a pipe, a device


_TYPES = {
    stat.S_IFREG: FileType.FILE,
    stat.S_IFDIR: FileType.DIRECTORY,
    stat.S_IFLNK: FileType.LINK,
}


def type_of(mode: int) -> FileType:
    return _TYPES.get(stat.S_IFMT(mode), FileType.OTHER)


@value
class Change:
    """One path that differs from the project; bytes that are no UTF-8 are surrogates."""

    path: str
    kind: ChangeKind
    entry: FileType = FileType.FILE

    @property
    def gone(self) -> bool:
        return self.kind is ChangeKind.DELETED


def ordered(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Each change once, sorted by path."""
    return tuple(sorted(set(changes), key=lambda change: (change.path, change.kind)))


@value
class Spared:
    """A change that was not applied, and why."""

    path: str
    why: str


@value
class CommitResult:
    """The result of a commit. `held` waits for review, others have changed `changed` meanwhile."""

    applied: tuple[str, ...] = ()
    held: tuple[Spared, ...] = ()
    changed: tuple[Spared, ...] = ()
    failed: tuple[Spared, ...] = ()
    saved: str = ""  # the directory with what was not applied

    @property
    def spared(self) -> tuple[Spared, ...]:
        """Everything that was not applied."""
        return (*self.held, *self.changed, *self.failed)


@value
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    output: bytes
    error: bytes
    late: bool = False  # it was ended, since it took too long
