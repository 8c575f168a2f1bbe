"""Diffs of the trees and commits that a run has seen, long after it.

They are read through a git directory of our own that holds no setting but ours: whatever an agent
has written into the repository's, git runs no program and fetches nothing for a diff.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ralph.git.repository import GitResult, Repository
from ralph.kernel.value import value

_SETTINGS = """[core]
\trepositoryformatversion = {}
\tbare = true
\tattributesFile = {}
\tquotePath = false
\tbigFileThreshold = 1m
"""
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"
_OURS = {
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
_DIFF = (
    *("--literal-pathspecs", "diff-tree", "-r", "--root", "--no-commit-id", "--no-renames"),
    *("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"),
)
_COUNTS = ("diff-tree", "--stdin", "-r", "-z", "--root", "--numstat", "--no-renames", *_DIFF[6:])
_NAME = re.compile("(?:[0-9a-f]{40}|[0-9a-f]{64})")  # of an object
_WHAT = re.compile(f"{_NAME.pattern}(?: {_NAME.pattern})?")
_HEAD = re.compile(rf"({_WHAT.pattern})(?:\n|\Z)")  # of two trees a line, of a commit an entry
_PATIENCE = 30.0  # seconds for git
_Git = Callable[[Iterable[str], str], GitResult]  # told its words and what it reads
_MOST_BROKEN = 20  # objects that are gone: then nothing more is asked for


@value
class LineCount:
    """A file that differs, and how many lines; None for one that is binary, or larger than 1 MB."""

    path: str
    added: int | None
    removed: int | None


class PastDiffs:
    """What is asked for is a commit, or two trees with a blank between: the older one first."""

    def __init__(self, repository: Repository, patience: float = _PATIENCE) -> None:
        self._objects = os.path.join(repository.place.common, "objects")
        self._environ = {k: v for k, v in repository.environ.items() if not k.startswith("GIT_")}
        self._is_ours = repository.place.is_ours
        self._is_sha256 = len(repository.place.zeros) > 40
        self._patience, self._hung = patience, False  # what hangs once does so again

    def counts(self, asked: Iterable[str]) -> dict[str, tuple[LineCount, ...]]:
        """The files of each of these in which it differs, without Ralph's own. What git does not
        know any more is left out."""
        left = [what for what in dict.fromkeys(asked) if _WHAT.fullmatch(what)]
        found: dict[str, tuple[LineCount, ...]] = {}
        with self._reading() as git:
            for _ in range(_MOST_BROKEN if left else 0):
                done = git(_COUNTS, "".join(f"{what}\n" for what in left))
                found |= dict(_told(os.fsdecode(done.output).split("\0")))
                if done.code == 0:
                    break
                # Git ends at a file that is gone, in the middle of what it told last.
                told = [n for n, what in enumerate(left) if what in found]
                if not told:
                    break
                del found[left[told[-1]]]
                left = left[told[-1] + 1 :]
        return {
            what: tuple(file for file in files if not self._is_ours(file.path))
            for what, files in found.items()
        }

    def patch(self, what: str, paths: Sequence[str]) -> str:
        """The difference in these files as text; "" where git does not know it any more."""
        if not paths or not _WHAT.fullmatch(what):
            return ""
        with self._reading() as git:
            done = git((*_DIFF, "-p", *what.split(), "--", *paths), "")
        return done.output.decode("utf-8", "replace") if done.code == 0 else ""

    @contextmanager
    def _reading(self) -> Iterator[_Git]:
        with tempfile.TemporaryDirectory(prefix="ralph-git-") as directory:
            for name in ("refs", "objects"):
                os.mkdir(os.path.join(directory, name))
            with open(os.path.join(directory, "HEAD"), "w", encoding="utf-8") as file:
                file.write("ref: refs/heads/unborn\n")
            with open(os.path.join(directory, "config"), "w", encoding="utf-8") as file:
                file.write(_SETTINGS.format(int(self._is_sha256), os.devnull))
                file.write(_SHA256 if self._is_sha256 else "")
            own = {"GIT_DIR": directory, "GIT_OBJECT_DIRECTORY": self._objects}
            environ = {**self._environ, **_OURS, **own}
            yield lambda words, stdin: self._asked(words, directory, environ, stdin)

    def _asked(
        self, words: Iterable[str], directory: str, environ: Mapping[str, str], stdin: str
    ) -> GitResult:
        """Ask git, and wait only so long: an agent may have put a pipe among the objects."""
        if not self._hung:
            try:
                done = subprocess.run(
                    ("git", "-C", directory, *words),
                    input=stdin.encode(),
                    capture_output=True,
                    env=environ,
                    timeout=self._patience,
                    check=False,
                    start_new_session=True,
                )
                return GitResult(done.returncode, done.stdout, "")
            except subprocess.TimeoutExpired:
                self._hung = True
            except (OSError, ValueError) as error:  # such as a path with a zero in it
                return GitResult(127, b"", str(error))
        return GitResult(124, b"", "git takes too long")


def _told(parts: Iterable[str]) -> Iterator[tuple[str, tuple[LineCount, ...]]]:
    """What was asked, and the files below it."""
    what, files = "", list[LineCount]()
    for part in parts:
        rest = part
        while found := _HEAD.match(rest):
            if what:
                yield what, tuple(files)
            what, files, rest = found[1], [], rest[found.end() :]
        if not rest:
            continue
        added, _, rest = rest.partition("\t")
        removed, _, path = rest.partition("\t")
        files.append(LineCount(path, _number(added), _number(removed)))
    if what:
        yield what, tuple(files)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
