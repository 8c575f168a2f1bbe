"""One look at the work tree: where HEAD is, what differs from the index, what git leaves alone."""

import os
import stat
from collections.abc import Collection, Iterable

from ralph.adapters.digest import digest_of
from ralph.adapters.git_work import Repository, copy_index, scratch
from ralph.core.value import value
from ralph.errors import StateError

_STATUS = (
    *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"),
    *("--ignored=matching", "--no-ahead-behind", "--ignore-submodules=dirty"),
)
_FIELDS = {"1": 8, "u": 10, "?": 1, "!": 1}  # before the path
_LARGEST_TEXT = 16 << 20
_ORDINARY = (0o644, 0o755)


@value
class Seen:
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
    records: tuple[str, ...] = ()  # of `.ralph`, whatever was changed there
    blind: bool = False  # something could not be read

    @property
    def changed(self) -> tuple[str, ...]:
        """Everything that is not as in the commit."""
        return tuple(sorted({*self.there, *self.gone, *self.staged, *self.apart}))


def look(repository: Repository) -> Seen:
    """Ask git once."""
    done = repository.run(*_STATUS)
    if done.code != 0:
        raise StateError(f"git status: {done.said}", "Try: git status")
    found = _Entries(repository)
    for entry in os.fsdecode(done.output).split("\0"):
        found.take(entry)
    return found.seen(blind="Permission denied" in done.said)


class _Entries:
    """The entries of a status, by what is to be done about them."""

    def __init__(self, repository: Repository) -> None:
        self._place = repository.place
        self.head = self.branch = ""
        self.there: list[str] = []
        self.gone: list[str] = []
        self.staged: list[str] = []
        self.added: list[str] = []
        self.removed: list[str] = []
        self.apart: list[str] = []
        self.ignored: list[str] = []
        self.records: list[str] = []
        self.blind = False

    def seen(self, *, blind: bool) -> Seen:
        return Seen(
            self.head,
            self.branch,
            there=tuple(self.there),
            gone=tuple(self.gone),
            staged=tuple(self.staged),
            added=tuple(self.added),
            removed=tuple(self.removed),
            apart=tuple(self.apart),
            ignored=tuple(self.ignored),
            records=tuple(self.records),
            blind=self.blind or blind,
        )

    def take(self, entry: str) -> None:
        kind = entry[:1]
        if kind == "#":
            self._header(entry)
        elif kind in _FIELDS:
            fields = entry.split(" ", _FIELDS[kind])
            self._path(kind, fields[1], fields[-1])

    def _header(self, entry: str) -> None:
        _, name, *rest = entry.split(" ", 2)
        if name == "branch.oid" and rest != ["(initial)"]:
            self.head = rest[0]
        elif name == "branch.head" and rest != ["(detached)"]:
            self.branch = f"refs/heads/{rest[0]}"

    def _path(self, kind: str, how: str, path: str) -> None:
        if self._place.is_ours(path):
            self.records += [path] if kind != "!" else []
        elif kind == "!":
            self.ignored.append(path)
        elif kind == "?":
            self._untracked(path)
        else:
            self.staged += [path] if how[0] != "." or kind == "u" else []
            self.added += [path] if how[0] == "A" else []
            self.removed += [path] if how[0] == "D" else []
            self._tracked(path, how[1] if kind == "1" else "u")

    def _tracked(self, path: str, how: str) -> None:
        if how == ".":
            return
        found = _readable(self._place.path(path))
        if found is None or how == "D":
            self.gone.append(path)
        elif found:
            self.there.append(path)
        else:
            self.blind = True

    def _untracked(self, path: str) -> None:
        if path.endswith("/"):
            self.apart.append(path)
        elif _readable(self._place.path(path)):
            self.there.append(path)
        else:
            self.blind = True
            self.apart.append(path)


def _readable(path: str) -> bool | None:
    """Whether git can read what is there; None for nothing, or a pipe, which it cannot keep."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        return None if isinstance(error, NotADirectoryError) else False
    if stat.S_ISREG(mode):
        return os.access(path, os.R_OK)
    return True if stat.S_ISLNK(mode) or stat.S_ISDIR(mode) else None


def tree_of(repository: Repository, seen: Seen, run_dir: str) -> str:
    """The work tree as a tree in git; the real index is only read."""
    with scratch(run_dir) as directory:
        index = os.path.join(directory, "index")
        copy_index(repository.index, index)
        _forget_records(repository, index)
        done = repository.stage(index, seen.gone, seen.there)
        if done.code != 0:
            raise StateError(f"the work cannot be saved: {done.said}", "Try: git status")
        return repository.identifier("write-tree", index=index)


def _forget_records(repository: Repository, index: str) -> None:
    """What git keeps of `.ralph` is no part of the work. Seldom there: so look before asking."""
    name = os.fsencode(repository.place.records)
    try:
        with open(index, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return
    if name in data or data[4:8] == b"\0\0\0\4":  # version 4 does not spell names out
        words = ("rm", "-r", "--cached", "--quiet", "--force", "--ignore-unmatch", "--")
        repository.ask(*words, f":(top,literal){repository.place.records}", index=index)


def modes_of(repository: Repository, paths: Iterable[str]) -> dict[str, int]:
    """The modes of those files whose mode git does not keep."""
    modes: dict[str, int] = {}
    for path in paths:
        try:
            found = os.lstat(repository.place.path(path)).st_mode
        except OSError:
            continue
        if stat.S_ISREG(found) and stat.S_IMODE(found) not in _ORDINARY:
            modes[path] = stat.S_IMODE(found)
    return modes


def raw(repository: Repository, paths: Iterable[str]) -> dict[str, str]:
    """Keep what is in these files as it is, whatever git would make of it when it is staged. It
    makes something else only of texts: what is too large for one is not kept twice."""
    regular = [path for path in paths if _is_small_file(repository.place.path(path))]
    if not regular:
        return {}
    names = b"".join(_quoted(path) for path in regular)
    words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
    return dict(zip(regular, repository.ask(*words, stdin=names).decode().split(), strict=True))


def _is_small_file(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_TEXT


def _quoted(path: str) -> bytes:
    """A line for git, whatever is in the name."""
    return b'"' + b"".join(b"\\%03o" % letter for letter in os.fsencode(path)) + b'"\n'


def unreadable(repository: Repository) -> list[str]:
    """What nobody can look into; directories end in a slash."""
    place, found = repository.place, []
    for folder, folders, names in os.walk(place.top):
        inner = os.path.relpath(folder, place.top)
        paths = {name: os.path.normpath(os.path.join(inner, name)) for name in (*folders, *names)}
        folders[:] = [name for name in folders if name != ".git" and not place.is_ours(paths[name])]
        found += [f"{paths[each]}/" for each in folders if not _is_open(place.path(paths[each]))]
        found += [paths[each] for each in names if _readable(place.path(paths[each])) is False]
    return found


def _is_open(directory: str) -> bool:
    return os.path.islink(directory) or os.access(directory, os.R_OK | os.X_OK)


def is_among(path: str, kept: Collection[str]) -> bool:
    """Whether a path is one of these, or in a directory of these (which end in a slash)."""
    parts = path.rstrip("/").split("/")
    above = ("/".join(parts[:depth]) + "/" for depth in range(1, len(parts) + 1))
    return path in kept or any(directory in kept for directory in above)


def inner_changes(repository: Repository) -> dict[str, str]:
    """What is changed inside each submodule, as a digest; "" for nothing."""
    return {path: inner_change(repository, path) for path in links(repository)}


def links(repository: Repository) -> list[str]:
    """The submodules, whether they are checked out or not."""
    if not os.path.lexists(repository.place.path(".gitmodules")):
        return []
    said = os.fsdecode(repository.ask("ls-files", "--stage", "-z")).split("\0")
    return [entry.partition("\t")[2] for entry in said if entry.startswith("160000 ")]


def is_checked_out(repository: Repository, path: str) -> bool:
    """Whether a submodule is a repository; without that git does not see what is written there."""
    return os.path.lexists(os.path.join(repository.place.path(path), ".git"))


def inner_change(repository: Repository, path: str) -> str:
    """What is changed inside a submodule, as a digest; "" for nothing."""
    if not is_checked_out(repository, path):
        inner = repository.place.path(path)
        names = [os.path.join(at, name) for at, _, files in os.walk(inner) for name in files]
        return digest_of([os.fsencode(repr(sorted(names)))]) if names else ""
    words = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", "HEAD", "--")
    changed = repository.inside(path, *words).output
    new = repository.inside(path, "ls-files", "--others", "--exclude-standard", "-z").output
    names = sorted({*os.fsdecode(changed).split("\0"), *os.fsdecode(new).split("\0")} - {""})
    found = [(name, *_stamp(os.path.join(repository.place.path(path), name))) for name in names]
    return digest_of([os.fsencode(repr(found))]) if found else ""


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_mode, found.st_size, found.st_mtime_ns
