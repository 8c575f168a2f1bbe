"""One look at the work tree: where HEAD is, what differs from the index, what git leaves alone."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator

from ralph.errors import StateError
from ralph.files.digest import digest_of
from ralph.files.state_dir import lstat
from ralph.git.repository import Repository, RepositoryPlace, nul_split
from ralph.kernel.value import value

_STATUS = (
    *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"),
    *("--ignored=matching", "--no-ahead-behind", "--ignore-submodules=dirty"),
)
_FIELDS = {"1": 8, "u": 10, "?": 1, "!": 1}  # before the path
_LISTS = ("there", "gone", "staged", "added", "removed", "apart", "ignored")
_STAGED = {"A": "added", "D": "removed"}  # by git's letter
_LARGEST_TEXT = 16 << 20
_ORDINARY = (0o644, 0o755)


@value
class TreeStatus:
    """The work tree now; every path is relative to the top."""

    head: str
    branch: str
    there: tuple[str, ...] = ()  # new or changed since it was staged
    gone: tuple[str, ...] = ()  # in the index only
    staged: tuple[str, ...] = ()  # another in the index than in the commit
    added: tuple[str, ...] = ()  # of these, what the commit does not have
    removed: tuple[str, ...] = ()  # and what the index does not have
    apart: tuple[str, ...] = ()  # what git cannot keep: other repositories, unreadable files
    ignored: tuple[str, ...] = ()

    blind: bool = False  # something could not be read

    @property
    def changed(self) -> tuple[str, ...]:
        """Everything that is not as in the commit."""
        return tuple(sorted({*self.there, *self.gone, *self.staged, *self.apart}))


@value
class CleanLook:
    """A look by the user's own index that found no change, and when."""

    seen: TreeStatus
    index: tuple[int, ...]  # its signature
    when: float


def look(repository: Repository) -> TreeStatus:
    """Ask git once."""
    done = repository.run(*_STATUS)
    if done.code != 0:
        raise StateError(f"git status: {done.said}", "Try: git status")
    head = branch = ""
    found: dict[str, list[str]] = {name: [] for name in (*_LISTS, "blind")}
    for entry in nul_split(done.output):
        kind = entry[:1]
        if kind == "#":
            _, name, *rest = entry.split(" ", 2)
            if name == "branch.oid" and rest != ["(initial)"]:
                head = rest[0]
            elif name == "branch.head" and rest != ["(detached)"]:
                branch = f"refs/heads/{rest[0]}"
        elif kind in _FIELDS:
            fields = entry.split(" ", _FIELDS[kind])
            for name in _lists_for(repository.place, kind, fields[1], fields[-1]):
                found[name].append(fields[-1])
    blind = bool(found.pop("blind")) or "Permission denied" in done.said
    return TreeStatus(head, branch, blind=blind, **{name: tuple(found[name]) for name in _LISTS})


def _lists_for(place: RepositoryPlace, kind: str, how: str, path: str) -> Iterator[str]:
    """The lists of a `TreeStatus` that a path belongs to, and "blind" if unreadable."""
    if kind == "!" or place.is_ours(path):
        if not place.is_ours(path):
            yield "ignored"
    elif kind == "?":
        if path.endswith("/"):
            yield "apart"
        elif _readable(place.path(path)):
            yield "there"
        else:
            yield from ("blind", "apart")
    else:
        if how[0] != "." or kind == "u":
            yield "staged"
        if how[0] in _STAGED:
            yield _STAGED[how[0]]
        change = how[1] if kind == "1" else "u"
        if change != ".":
            readable = _readable(place.path(path))
            yield "gone" if readable is None or change == "D" else "there" if readable else "blind"


def _readable(path: str) -> bool | None:
    """True if git can read it; None for nothing, or a pipe, which git cannot keep."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        return None if isinstance(error, NotADirectoryError) else False
    if stat.S_ISREG(mode):
        return os.access(path, os.R_OK)
    return True if stat.S_ISLNK(mode) or stat.S_ISDIR(mode) else None


def modes_of(repository: Repository, paths: Iterable[str]) -> dict[str, int]:
    """The modes of those files whose mode git does not keep."""
    found = {path: lstat(repository.place.path(path)) for path in paths}
    modes = {
        p: stat.S_IMODE(at.st_mode) for p, at in found.items() if at and stat.S_ISREG(at.st_mode)
    }
    return {path: mode for path, mode in modes.items() if mode not in _ORDINARY}


def raw(repository: Repository, paths: Iterable[str]) -> dict[str, str]:
    """Keep the content of these files as it is, whatever git would make of it when it is staged.
    Git changes only texts: what is too large for one is not kept twice."""
    regular = []
    for path in paths:
        found = lstat(repository.place.path(path))
        if found and stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_TEXT:
            regular.append(path)
    return hashed(repository, regular, "-w", "--no-filters")


def hashed(repository: Repository, files: list[str], *options: str) -> dict[str, str]:
    """The blobs that git would make of these files, by their paths."""
    if not files:
        return {}
    # In octal, a line holds any name.
    names = b"".join(
        b'"' + b"".join(b"\\%03o" % c for c in os.fsencode(path)) + b'"\n' for path in files
    )
    said = repository.ask("hash-object", *options, "--stdin-paths", stdin=names)
    return dict(zip(files, said.decode().split(), strict=True))


def unreadable(repository: Repository) -> list[str]:
    """Paths that nobody can look into; directories end in a slash."""
    place, found = repository.place, []
    for folder, folders, names in os.walk(place.top):
        inner = os.path.relpath(folder, place.top)
        paths = {name: os.path.normpath(os.path.join(inner, name)) for name in (*folders, *names)}
        folders[:] = [name for name in folders if name != ".git" and not place.is_ours(paths[name])]
        for name in folders:
            path = place.path(paths[name])
            if not os.path.islink(path) and not os.access(path, os.R_OK | os.X_OK):
                found.append(f"{paths[name]}/")
        found += [paths[name] for name in names if _readable(place.path(paths[name])) is False]
    return found


def is_among(path: str, kept: Collection[str]) -> bool:
    """True if a path is one of these, or in a directory of these (which end in a slash)."""
    parts = path.rstrip("/").split("/")
    above = ("/".join(parts[:depth]) + "/" for depth in range(1, len(parts) + 1))
    return path in kept or any(directory in kept for directory in above)


def inner_changes(repository: Repository) -> dict[str, str]:
    """A digest of the changes inside each submodule that has some."""
    found = {path: inner_change(repository, path) for path in links(repository)}
    return {path: digest for path, digest in found.items() if digest}


def links(repository: Repository) -> list[str]:
    """The submodules, checked out or not."""
    if not os.path.lexists(repository.place.path(".gitmodules")):
        return []
    entries = repository.names("ls-files", "--stage", "-z")
    return [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]


def is_checked_out(repository: Repository, path: str) -> bool:
    """True if a submodule is a repository; without that git does not see what is written there."""
    return os.path.lexists(os.path.join(repository.place.path(path), ".git"))


def inner_change(repository: Repository, path: str) -> str:
    """A digest of the changes inside a submodule; "" for none."""
    inner = repository.place.path(path)
    if not is_checked_out(repository, path):
        walked = (os.path.join(at, name) for at, _, files in os.walk(inner) for name in files)
        found: list[object] = [*sorted(walked)]
    else:
        words = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", "HEAD", "--")
        changed = repository.inside(path, *words).output
        new = repository.inside(path, "ls-files", "--others", "--exclude-standard", "-z").output
        found = []
        for name in sorted({*nul_split(changed), *nul_split(new)}):
            at = lstat(os.path.join(inner, name))
            found.append((name, *((at.st_mode, at.st_size, at.st_mtime_ns) if at else ())))
    return digest_of([os.fsencode(repr(found))]) if found else ""
