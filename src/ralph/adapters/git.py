"""What git knows about a workspace, for seeing progress."""

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping

_MOST_FILES = 50_000
_NOT_WORK = frozenset({".git", ".ralph", "node_modules", "__pycache__", ".venv"})


class TreeDigest:
    """A digest that changes with every commit and every changed file, Ralph's own left out."""

    def __init__(self, workspace: str, env: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._env = env

    def __call__(self) -> str:
        digest = hashlib.sha256()
        for part in self._by_git() or self._by_walking():
            digest.update(part)
        return digest.hexdigest()

    def _by_git(self) -> list[bytes]:
        """Branch, commit and status, and the times of the files that differ; [] without git."""
        listing = self._git("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
        if listing is None:
            return []
        entries = [e for e in listing.split(b"\0") if e and not _is_ours(e)]
        return [part for entry in entries for part in (entry, self._stamp(entry))]

    def _stamp(self, entry: bytes) -> bytes:
        path = entry.split(b" ", 8)[-1] if entry[:1] in (b"1", b"2") else entry[2:]
        return _stamp(os.path.join(os.fsencode(self._workspace), path))

    def _git(self, *arguments: str) -> bytes | None:
        try:
            done = subprocess.run(
                ("git", *arguments),
                cwd=self._workspace,
                env={**self._env, "GIT_OPTIONAL_LOCKS": "0"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except OSError:
            return None
        return done.stdout if done.returncode == 0 else None

    def _by_walking(self) -> Iterator[bytes]:
        seen = 0
        for folder, folders, names in os.walk(self._workspace):
            folders[:] = sorted(set(folders) - _NOT_WORK)
            for name in sorted(names):
                path = os.fsencode(os.path.join(folder, name))
                yield path + _stamp(path)
                seen += 1
                if seen >= _MOST_FILES:
                    return


def _is_ours(entry: bytes) -> bool:
    return entry.endswith(b" .ralph/") or b" .ralph/" in entry


def _stamp(path: bytes) -> bytes:
    try:
        info = os.lstat(path)
    except OSError:
        return b"gone"
    return f"{info.st_size}:{info.st_mtime_ns}".encode()
