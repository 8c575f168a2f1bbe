"""Archives stories (R §10): the archive is written, put in place, and then `ralph/` starts over.

If it is killed anywhere, nothing is lost: a file of `ralph/` is replaced only while its copy in
the archive is the same, tasks.json last, so that the next call sees how far it came.
"""

import os
import re
import shutil
from collections.abc import Mapping

from ralph.files.safe_open import open_regular
from ralph.journal.runs import directories
from ralph.kernel.value import value
from ralph.loops.stories.file import PRD, PROGRESS, TASKS, write_synced
from ralph.loops.stories.past_reviews import ARCHIVES, SUMMARY

MOVED = (PRD, PROGRESS, TASKS)  # in this order
_STAGING = ".unfinished"
_STARTED = re.compile(rb"^Started: .*$", re.MULTILINE)
Files = Mapping[str, bytes]


@value
class Archive:
    """The archives of a project, and the folder of its stories."""

    project: str
    folder: str

    @property
    def root(self) -> str:
        return os.path.join(self.project, ARCHIVES)

    def files(self) -> dict[str, bytes]:
        """The files to archive. Raises OSError if one is no file."""
        paths = {name: os.path.join(self.folder, name) for name in MOVED}
        return {name: _content(path) for name, path in paths.items() if os.path.lexists(path)}

    def names(self) -> list[str]:
        """The archives there are, the newest day first."""
        return sorted({*directories(self.root)} - {_STAGING}, reverse=True)

    def is_of(self, name: str, files: Files, fresh: Files) -> bool:
        """True if a call that was cut off has made it of these very files."""
        archive = os.path.join(self.root, name)
        try:
            kept = {each: _content(os.path.join(archive, each)) for each in (*files, SUMMARY)}
        except OSError:
            return False
        return files[TASKS] == kept[TASKS] and all(
            content == kept[each] or _undated(content) == _undated(fresh[each])
            for each, content in files.items()
        )

    def make(self, name: str, files: Files) -> str:
        """Make an archive of these files. Returns its name, with a number if that is taken."""
        staging = os.path.join(self.root, _STAGING)
        shutil.rmtree(staging, ignore_errors=True)
        os.makedirs(staging)
        try:
            for each, content in files.items():
                write_synced(os.path.join(staging, each), content)
            number, free = 1, name
            while os.path.lexists(os.path.join(self.root, free)):
                number += 1
                free = f"{name}-{number}"
            os.rename(staging, os.path.join(self.root, free))
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            self._forget_root()
            raise
        return free

    def reset(self, name: str, fresh: Files) -> None:
        """Start over, except for files that differ from the archive."""
        for each in MOVED:
            path = os.path.join(self.folder, each)
            if not os.path.lexists(path) or _content(path) == self._copy(name, each):
                _replace(path, fresh[each])

    def take_back(self, name: str, fresh: Files) -> None:
        """Undo `make`. Files that somebody has written since stay, and so does the archive then."""
        left = [each for each in MOVED if not self._restored(name, each, fresh[each])]
        if not left:
            shutil.rmtree(os.path.join(self.root, name))
            self._forget_root()

    def _restored(self, name: str, each: str, fresh: bytes) -> bool:
        path, copy = os.path.join(self.folder, each), self._copy(name, each)
        now = _content(path) if os.path.lexists(path) else None
        if now not in (None, copy) and _undated(now) != _undated(fresh):
            return False
        if copy is None and now is not None:
            os.unlink(path)
        elif copy is not None and now != copy:
            _replace(path, copy)
        return True

    def _copy(self, name: str, each: str) -> bytes | None:
        try:
            return _content(os.path.join(self.root, name, each))
        except FileNotFoundError:
            return None

    def _forget_root(self) -> None:
        try:
            os.rmdir(self.root)
        except OSError:
            pass  # there are other archives


def is_fresh(files: Files, fresh: Files) -> bool:
    """True if nobody has written into the texts yet, whatever the list says."""
    texts = [name for name in files if name != TASKS]
    return all(_undated(files[name]) == _undated(fresh[name]) for name in texts)


def _undated(content: bytes) -> bytes:
    """A file of another day may be as fresh."""
    return _STARTED.sub(b"Started:", content)


def _content(path: str) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _replace(path: str, content: bytes) -> None:
    temporary = f"{path}.ralph-archive.tmp"  # always the same: a call that is killed leaves one
    try:
        write_synced(temporary, content)
        os.replace(temporary, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
