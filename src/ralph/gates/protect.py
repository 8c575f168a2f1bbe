"""Tamper-evident paths (ADR 12): hashed before a turn, put back after it and between gates."""

import errno
import glob
import itertools
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from ralph.errors import StateError, failing
from ralph.files.digest import digest_of
from ralph.files.safe_open import create, open_regular
from ralph.files.state_dir import lstat, shown_path, writable_dir
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding

_Found = tuple[str, str, os.stat_result]  # a file's path from the workspace, and the whole of it
_LINK = b"link:"
_LARGEST = 64 << 20  # bytes of a protected file; of a larger one only size and time are known


class Protector:
    """Knows the protected files' digests, and keeps their contents so that they can come back."""

    def __init__(self, workspace: str, patterns: Iterable[str], store: str) -> None:
        self._workspace = workspace
        self._store = store
        own = tuple(patterns)
        self.patterns = self._own = (*own, *map(glob.escape, self._behind_links(own)))
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}  # marks of the file, and digest

    def protect_also(self, paths: Iterable[str]) -> None:
        """These files too, instead of those that were named here before."""
        own = tuple(map(glob.escape, paths))
        self.patterns = (*self._own, *own, *map(glob.escape, self._behind_links(own)))

    def digests(self) -> tuple[tuple[str, str], ...]:
        """(path, digest) of every protected file, sorted."""
        found = {path: self._digest(path, full, info) for path, full, info in self._files()}
        return tuple(sorted(found.items()))

    def put_back(self, path: str, digest: str | None, kept_in: str) -> bool:
        """Restore a path (None: it was not there). True if something stood there: it is kept."""
        import shutil

        full = os.path.join(self._workspace, path)
        copy = os.path.join(self._store, digest) if digest is not None else None
        if copy is not None and not os.path.lexists(copy):
            raise FileNotFoundError(errno.ENOENT, "no copy of it could be made")
        in_the_way = []
        parts = path.split(os.sep)[:-1] if copy is not None else []
        for depth in range(1, len(parts) + 1 if parts and parts[0] else 1):
            parent = os.path.join(*parts[:depth])  # a file may stand where a directory has to be
            there = os.path.join(self._workspace, parent)
            if os.path.lexists(there) and not os.path.isdir(there):
                in_the_way.append(parent)
        if os.path.lexists(full):
            in_the_way.append(path)
        for thing in in_the_way:
            # The path may be absolute or lead upwards; what is kept must not.
            target = free = kept_in + os.path.normpath(f"/{thing}")
            names = itertools.count(1)
            while os.path.lexists(free):  # kept by an earlier run
                free = f"{target}.{next(names)}"
            os.makedirs(os.path.dirname(free), exist_ok=True)
            _let_write(os.path.dirname(os.path.join(self._workspace, thing)))
            shutil.move(os.path.join(self._workspace, thing), free)
        if copy is not None:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            _let_write(os.path.dirname(full))
            shutil.copy2(copy, full, follow_symlinks=False)
        return bool(in_the_way)

    def _files(self) -> Iterator[_Found]:
        for match in self._matching(self.patterns):
            full, path = os.path.join(self._workspace, match), os.path.normpath(match)
            info = lstat(full)
            if info is None:
                continue
            if stat.S_ISDIR(info.st_mode):
                yield from _below(full, "" if path == "." else f"{path}/")
            else:
                yield path, full, info

    def _behind_links(self, patterns: tuple[str, ...]) -> Iterator[str]:
        """Links of the workspace over which protected paths lead, and where they end, before an
        agent can make one."""
        home = os.path.realpath(self._workspace)
        for path in self._matching(patterns):
            ways = (os.path.relpath(place, home) for place in _way(os.path.join(home, path)))
            yield from (way for way in ways if way.split(os.sep)[0] != os.pardir)

    def _matching(self, patterns: tuple[str, ...]) -> Iterator[str]:
        here = self._workspace
        for pattern in patterns:
            if glob.has_magic(pattern):
                yield from glob.iglob(pattern, root_dir=here, recursive=True, include_hidden=True)
            else:
                yield pattern

    def _digest(self, path: str, full: str, info: os.stat_result) -> str:
        """A digest of content and mode."""
        # The change time is among them: unlike the others, a program cannot set it back.
        marks = (info.st_ino, info.st_size, info.st_mode, info.st_mtime_ns, info.st_ctime_ns)
        known = self._known.get(path)
        if known is None or known[0] != marks:
            known = self._known[path] = (marks, self._keep(full, info))
        return known[1]

    def _keep(self, full: str, info: os.stat_result) -> str:
        try:
            content = _content(full, info.st_mode)
        except OSError:
            return f"unreadable-{info.st_size}-{info.st_mtime_ns}"
        if content is None:
            return f"special-{stat.S_IFMT(info.st_mode)}"  # a socket or device: never copied
        digest = digest_of([f"{info.st_mode:o}:".encode(), content])
        kept = os.path.join(self._store, digest)
        remedy = "Free some space, or choose another place: export RALPH_STATE_DIR=/some/where"
        with failing(f"cannot keep a copy of the protected file {full}", remedy, StateError):
            if not os.path.lexists(kept):
                os.makedirs(self._store, mode=0o700, exist_ok=True)
                _copy(full, info, content, kept)
        return digest


def _below(directory: str, prefix: str) -> Iterator[_Found]:
    """All files below a directory. Each turn looks three times: so no path is taken apart."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _below(entry.path, f"{prefix}{entry.name}/")
                else:
                    yield prefix + entry.name, entry.path, entry.stat(follow_symlinks=False)
    except OSError:
        pass  # it is gone, or nobody may look: then its files are missing


def _copy(full: str, info: os.stat_result, content: bytes, kept: str) -> None:
    """Write what was read of a file, with all that `shutil.copy2` will bring back of it."""
    if stat.S_ISLNK(info.st_mode):
        os.symlink(content.removeprefix(_LINK), kept)
        return
    with os.fdopen(create(kept), "wb") as file:
        file.write(content)
        with suppress(OSError):
            for name in os.listxattr(full) if sys.platform == "linux" else ():
                os.setxattr(file.fileno(), name, os.getxattr(full, name))
        os.fchmod(file.fileno(), stat.S_IMODE(info.st_mode))
    os.utime(kept, ns=(info.st_atime_ns, info.st_mtime_ns))


def _let_write(directory: str) -> None:
    if not os.access(directory, os.W_OK):
        os.chmod(directory, stat.S_IMODE(os.stat(directory).st_mode) | stat.S_IWUSR)


def _way(path: str) -> Iterator[str]:
    """The links that a path leads over, and, if there are any, its end."""
    place, left, links = os.sep, path.split(os.sep)[::-1], 0
    while left and links < 40:  # the kernel follows no more
        at = os.path.normpath(os.path.join(place, left.pop()))
        if os.path.islink(at):
            yield at
            links, target = links + 1, os.readlink(at)
            left += target.split(os.sep)[::-1]
            at = os.sep if os.path.isabs(target) else place
        place = at
    if links:
        yield place


def _content(full: str, mode: int) -> bytes | None:
    if stat.S_ISLNK(mode):
        return _LINK + os.fsencode(os.readlink(full))
    if not stat.S_ISREG(mode):
        return None
    with open_regular(full) as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


class ProtectGate:
    """A change of a protected path is a finding, and is undone."""

    name = "protect"
    always = True

    def __init__(
        self, protector: Protector, workspace: str, fallback: str, hooks: Iterable[str] = ()
    ) -> None:
        """`hooks` are directories in which git looks for what to run."""
        self._protector = protector
        self._workspace = workspace
        self._fallback = fallback  # for what was reverted, where .ralph cannot be written
        self._hooks = frozenset(map(os.path.normpath, hooks))
        self._owed: dict[str, str | None] = {}  # what could not be put back yet

    def check(self, case: Case) -> Iterator[Finding]:
        """Compare with what was there before the turn, and put back what differs, whoever changed
        it. What cannot be put back stays wanted: a change does not become right by lasting."""
        wanted: dict[str, str | None] = {**dict(case.state.snapshot.protected), **self._owed}
        after = dict(self._protector.digests())
        for path in sorted(wanted.keys() | after.keys()):
            if wanted.get(path) != after.get(path) and not self._is_idle(path, wanted):
                yield self._undo(path, wanted.get(path), case.state.iteration)

    def _is_idle(self, path: str, wanted: Mapping[str, str | None]) -> bool:
        """True for a new file among the hooks that nothing runs: a sample, as `git init` makes
        them, or one that is not executable where no hook was before that could call it."""
        directory, name = os.path.split(path)
        if directory not in self._hooks or path in wanted:
            return False
        if name.endswith(".sample"):
            return True
        info = lstat(os.path.join(self._workspace, path))
        executable = info is None or not stat.S_ISREG(info.st_mode) or info.st_mode & 0o111
        return not executable and not any(known.startswith(f"{directory}/") for known in wanted)

    def _undo(self, path: str, digest: str | None, iteration: int) -> Finding:
        for base in (writable_dir(self._workspace, self._fallback), self._fallback):
            kept_in = os.path.join(base, "reverted", str(iteration))
            try:
                kept = self._protector.put_back(path, digest, kept_in)
            except OSError as error:
                self._owed[path] = digest
                done = f"It could not be put back: {error.strerror}."
            else:
                self._owed.pop(path, None)
                where = shown_path(kept_in, self._workspace)
                done = "The change was undone" + (f"; it is kept in {where}." if kept else ".")
                break
        return Finding(self.name, f"Protected path {path} was changed. {done} Leave it alone.")
