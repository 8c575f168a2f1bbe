"""Asks git whether a workspace changed, and where its hooks are."""

import os
from collections.abc import Iterator, Mapping

from ralph.files.digest import digest_of
from ralph.files.state_dir import lstat
from ralph.git.repository import call

# An agent may have written the repository's settings: no program of its own is run for a look.
_DEAF = ("-c", "core.fsmonitor=false")
_MOST_FILES = 50_000
_FIELDS_BEFORE_PATH = {b"1": 8, b"2": 9, b"u": 10, b"?": 1}  # of an entry, by its kind
_NOT_WORK = frozenset({".git", ".ralph", "node_modules", "__pycache__", ".venv"})


def git_path(workspace: str, env: Mapping[str, str], name: str) -> str | None:
    """The absolute path of a file of git's, such as `hooks`; None outside a repository."""
    return git_line(workspace, env, "rev-parse", "--path-format=absolute", "--git-path", name)


def git_output(workspace: str, env: Mapping[str, str], *arguments: str) -> bytes | None:
    """The output of a git command; None if it fails or there is no git."""
    done = call((*_DEAF, *arguments), workspace, {**env, "GIT_OPTIONAL_LOCKS": "0"})
    return done.output if done.code == 0 else None


def git_line(workspace: str, env: Mapping[str, str], *arguments: str) -> str | None:
    """The one line that a git command prints, without its end; None if it fails."""
    said = git_output(workspace, env, *arguments)
    return None if said is None else os.fsdecode(said.removesuffix(b"\n"))


def entry_path(entry: bytes) -> bytes:
    """The path in an entry of `git status --porcelain=v2 -z`. A header is taken for a path as it
    is, and so is the old name of a renamed file."""
    return entry.split(b" ", _FIELDS_BEFORE_PATH.get(entry[:1], 0))[-1]


class TreeDigest:
    """A digest that changes with every commit and every changed file, Ralph's own left out."""

    def __init__(self, workspace: str, env: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._env = env
        self._top: str | None = None  # what git's paths are relative to

    def __call__(self) -> str:
        return digest_of(self._by_git() or self._by_walking())

    def _by_git(self) -> list[bytes]:
        """Branch, commit and status, and the times of the files that differ; [] without git."""
        where = (self._workspace, self._env)
        changed = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
        listing = git_output(*where, *changed)
        if listing is None:
            return []
        if self._top is None:
            self._top = git_line(*where, "rev-parse", "--show-toplevel") or ""
        top = os.fsencode(self._top)
        parts = []
        for entry in filter(None, listing.split(b"\0")):
            path = entry_path(entry)
            if b".ralph" not in path.split(b"/"):
                parts += [entry, _stamp(os.path.join(top, path))]
        return parts

    def _by_walking(self) -> Iterator[bytes]:
        seen = 0
        for folder, folders, names in os.walk(self._workspace):
            folders[:] = sorted(set(folders) - _NOT_WORK)
            for name in sorted(names)[: _MOST_FILES - seen]:
                path = os.fsencode(os.path.join(folder, name))
                yield path + _stamp(path)
            seen += len(names)
            if seen >= _MOST_FILES:
                return


def _stamp(path: bytes) -> bytes:
    info = lstat(path)
    return f"{info.st_size}:{info.st_mtime_ns}".encode() if info else b"gone"
