"""Tamper-evident paths (DESIGN §4.16): hashed before a turn, put back after it."""

import glob
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator

from ralph.core.case import Case
from ralph.core.gates import Finding

Entry = tuple[int, int, int, int, int]


class Protector:
    """Knows the protected files' digests, and keeps their contents so that they can come back."""

    def __init__(self, workspace: str, patterns: Iterable[str], store: str) -> None:
        self._workspace = workspace
        self._patterns = tuple(patterns)
        self._store = store
        self._known: dict[str, tuple[Entry, str]] = {}

    def digests(self) -> tuple[tuple[str, str], ...]:
        """(path, digest) of every protected file, sorted."""
        return tuple((path, self._digest(path)) for path in sorted(set(self._files())))

    def put_back(self, path: str, digest: str | None, kept_in: str) -> None:
        """Undo what was done to a path; what stands there now is kept. None: it was not there."""
        full = os.path.join(self._workspace, path)
        if os.path.lexists(full):
            target = os.path.join(kept_in, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.move(full, target)
        if digest is not None:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            shutil.copy2(os.path.join(self._store, digest), full, follow_symlinks=False)

    def _files(self) -> Iterator[str]:
        for pattern in self._patterns:
            for path in self._matches(pattern):
                full = os.path.join(self._workspace, path)
                if os.path.isdir(full) and not os.path.islink(full):
                    yield from self._below(full)
                elif os.path.lexists(full):
                    yield os.path.normpath(path)

    def _matches(self, pattern: str) -> list[str]:
        if not glob.has_magic(pattern):
            return [pattern]
        return glob.glob(pattern, root_dir=self._workspace, recursive=True, include_hidden=True)

    def _below(self, directory: str) -> Iterator[str]:
        for folder, _, names in os.walk(directory):
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), self._workspace)

    def _digest(self, path: str) -> str:
        full = os.path.join(self._workspace, path)
        info = os.lstat(full)
        # The change time is among them: unlike the others, a program cannot set it back.
        entry = (info.st_ino, info.st_size, info.st_mode, info.st_mtime_ns, info.st_ctime_ns)
        known = self._known.get(path)
        if known is None or known[0] != entry:
            known = self._known[path] = (entry, self._keep(full, info.st_mode))
        return known[1]

    def _keep(self, full: str, mode: int) -> str:
        if stat.S_ISLNK(mode):
            content = b"link:" + os.fsencode(os.readlink(full))
        elif stat.S_ISREG(mode):
            with open(full, "rb") as file:
                content = file.read()
        else:
            return f"special-{stat.S_IFMT(mode)}"  # a socket or device: named, never copied
        digest = hashlib.sha256(f"{mode:o}:".encode() + content).hexdigest()
        kept = os.path.join(self._store, digest)
        if not os.path.lexists(kept):
            os.makedirs(self._store, mode=0o700, exist_ok=True)
            shutil.copy2(full, kept, follow_symlinks=False)
        return digest


class ProtectGate:
    """A change of a protected path is a finding, and is undone."""

    name = "protect"
    always = True

    def __init__(self, protector: Protector, ralph_dir: str) -> None:
        self._protector = protector
        self._ralph_dir = ralph_dir

    def check(self, case: Case) -> Iterator[Finding]:
        """Compare before and after the turn, and put back what differs."""
        before, after = dict(case.state.snapshot.protected), dict(case.snapshot.protected)
        kept_in = os.path.join(self._ralph_dir, "reverted", str(case.state.iteration))
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                yield self._undo(path, before.get(path), kept_in)

    def _undo(self, path: str, digest: str | None, kept_in: str) -> Finding:
        try:
            self._protector.put_back(path, digest, kept_in)
            done = f"The change was undone; it is kept in {kept_in}."
        except OSError as error:
            done = f"It could not be put back: {error.strerror}."
        return Finding(self.name, f"Protected path {path} was changed. {done} Leave it alone.")
