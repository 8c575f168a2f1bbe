"""Archives stories, for `ralph prd archive` (R §10). Only the standard library stands behind it:
the plugin's script does the same in a clone where no package is installed.

The archive is written, put in place, and then `ralph/` starts over. If that is killed anywhere,
nothing is lost: a file of `ralph/` is replaced only while its copy in the archive is the same,
tasks.json last, so that the next call sees how far it came.
"""

import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular, remove_file
from ralph.files.state_dir import project_dir, state_root
from ralph.git.path_commit import PathCommit
from ralph.journal.lock import NAME, Lock
from ralph.journal.runs import directories
from ralph.kernel.value import value
from ralph.loops.stories.file import PRD, PROGRESS, TASKS, write_synced
from ralph.loops.stories.folder import Folder, analytics_of, found_folder, fresh_files
from ralph.loops.stories.past_runs import ARCHIVES, SUMMARY, unjudged
from ralph.loops.stories.review_report import done_of, summary_text
from ralph.review.stats import Analytics, analytics
from ralph.runner.arguments import proper, refuse_agents, shown

HELP = """\
Archive prd.md, tasks.json and progress.txt with a summary, and start afresh.

They go to ralph-archive/<date>-<branch>/, ralph/ gets fresh templates, and git a commit of
nothing but that.

Examples:
  ralph prd archive                    ralph-archive/<date>-<branch>/
  ralph prd archive --label login      ralph-archive/<date>-login/

prompt.md is the project's own and stays. An archive that was cut off is
finished by the next call. Exit codes: 0, or 2 when nothing was archived.
"""
LABEL_HELP = "The archive's name after the date, instead of the branch."
_LONGEST_LABEL = 100
_DATE = re.compile(rb"^Started: (\d{4}-\d{2}-\d{2})", re.MULTILINE)
_AGAIN = "Fix that and run again: ralph prd archive"
MOVED = (PRD, PROGRESS, TASKS)  # in this order
_STAGING = ".unfinished"
_STARTED = re.compile(rb"^Started: .*$", re.MULTILINE)
Files = Mapping[str, bytes]


@value
class Archived:
    """An archive that was made or finished."""

    name: str
    stories: Analytics
    commit: str  # "" if nothing is committed
    behind: str  # why git's index does not know of the commit, if so
    finished: bool = False  # another call had begun it


def archived(
    ralph_dir: str, environ: Mapping[str, str], label: str | None = None, *, in_json: bool = False
) -> str:
    """Archive the stories of the current directory, and what is to be said about it. ConfigError,
    and then everything is as it was."""
    refuse_agents(environ, "archive its own stories")
    if label is not None:
        _refuse_bad(label)
    folder = found_folder(ralph_dir)
    # No run goes on here, and none begins meanwhile.
    lock = Lock(os.path.join(project_dir(state_root(environ), folder.project), NAME))
    lock.acquire("archive", time.time())
    try:
        archiving = _Archiving(folder, environ)
        done = archiving.archived(label)
    finally:
        lock.release()
    if not in_json:
        return "\n".join(map(shown, archiving.told(done)))
    record = {
        "archive": f"ralph-archive/{done.name}",
        "done": done.stories.done,
        "total": len(done.stories.stories),
        "commit": done.commit or None,
        "finished": done.finished,
        "behind": done.behind or None,
    }
    return json.dumps(record)


def _refuse_bad(given: str) -> None:
    """Refuse a label that could lead out of the archive folder."""
    remedy = "Name it like a file: ralph prd archive --label login"
    proper(given, "--label")
    if not given.strip():
        raise ConfigError("--label is blank", remedy)
    if "/" in given or "\\" in given or ".." in given or given[0] in "-.":
        message = f"--label {given!r} is no name: no slash, no '..', no '-' or '.' at the beginning"
        raise ConfigError(message, remedy)
    if not given.isprintable() or len(given.encode()) > _LONGEST_LABEL:
        message = f"--label must be of at most {_LONGEST_LABEL} bytes that can be printed"
        raise ConfigError(message, remedy)


class _Archiving:
    """One call of the command. What goes wrong is a ConfigError, and everything as it was."""

    def __init__(self, folder: Folder, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._listing = folder.listing()
        self._today = time.strftime("%Y-%m-%d")
        fresh = fresh_files(folder.project, self._today)
        self._archive = Archive(folder.project, folder.path, fresh)
        self._repository = PathCommit.around(folder.project, environ)

    def archived(self, label: str | None) -> Archived:
        """Archive, or finish what was begun."""
        root = self._archive.root
        if os.path.lexists(root) and (os.path.islink(root) or not os.path.isdir(root)):
            raise ConfigError(f"{root} is not a folder", "Move it away.")
        # What a killed run's last turn wrote about its stories may not be so.
        state = project_dir(state_root(self._environ), self._folder.project)
        for left in unjudged(state, self._folder.path):
            message = f"run {left.run} was killed before its last turn was judged"
            raise ConfigError(message, "Go on with it: ralph resume\nOr begin anew: ralph prd run")
        if self._repository is not None:
            self._repository.refuse_halves()
        try:
            files = self._archive.files()
            fresh = not self._archive.is_begun(self._listing, files)
            done = self._finished() if fresh else None
            if done is None and fresh and label is None and self._archive.names():
                where = self._folder.shown("")
                message = f"there is nothing to archive: {where} is as init made it"
                remedy = "Write some, or let Claude Code do it: /ralph:ralph-plan"
                raise ConfigError(message, remedy)
            return done or self._put_away(label, files)
        except OSError as error:
            where = error.filename or root
            raise ConfigError(f"cannot archive: {where}: {error.strerror}", _AGAIN) from error

    def _put_away(self, label: str | None, files: Mapping[str, bytes]) -> Archived:
        found = analytics_of(self._folder, self._environ)
        begun = self._begun(files)
        name = begun or self._made(label, files, found)
        try:
            self._archive.reset(name)
            commit, against = self._commit(name, found)
        except BaseException:
            self._archive.take_back(name)
            raise
        if against and not commit:
            self._archive.take_back(name)
            message = f"git did not take the archive, so everything is as it was: {against}"
            raise ConfigError(message, _AGAIN)
        return Archived(name, found, commit, against, bool(begun))

    def _made(self, label: str | None, files: Mapping[str, bytes], found: Analytics) -> str:
        """Make the archive; its name. What a name cannot hold of a branch becomes a dash."""
        listing = self._listing
        branch = listing.get("branchName")
        text = branch if isinstance(branch, str) else ""
        words = "".join(c if c.isalnum() or c in "._-" else "-" for c in text)
        own = words.strip("-.").encode()[:_LONGEST_LABEL].decode(errors="ignore") or "stories"
        title = " · ".join(str(listing[f]) for f in ("project", "branchName") if listing.get(f))
        started = _DATE.search(files.get(PROGRESS, b""))
        dates = (started[1].decode() if started else "", self._today)
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        summary = summary_text(found, title or "Stories", moment, dates).encode()
        return self._archive.make(f"{self._today}-{label or own}", {**files, SUMMARY: summary})

    def _begun(self, files: Mapping[str, bytes]) -> str:
        """The archive that a call which was killed has made of these files; "" if there is none.
        One that is committed is older than that."""
        pending = self._pending()
        new = (n for n in self._archive.names() if self._repository is None or n in pending)
        return next((name for name in new if self._archive.is_of(name, files)), "")

    def _pending(self) -> set[str]:
        """The archives that are not committed: their names, and those of their files."""
        if self._repository is None:
            return set()
        root, top = os.path.realpath(self._archive.root), self._repository.top
        paths = (os.path.join(top, path) for path in self._repository.pending(root))
        names = [os.path.relpath(path, root) for path in paths]
        return {part for name in names for part in (name, name.partition(os.sep)[0])}

    def _finished(self) -> Archived | None:
        """The list is fresh: only the commit of an archive that was begun may be missing."""
        pending = self._pending()
        for name in self._archive.names():
            path = os.path.join(self._archive.root, name, SUMMARY)
            if os.path.join(name, SUMMARY) in pending:
                found = analytics(Folder(self._folder.project, os.path.dirname(path)).listing())
                commit, against = self._commit(name, found)
                if against and not commit:
                    message = f"{path} is not committed: git does not take it: {against}"
                    raise ConfigError(message, _AGAIN)
                return Archived(name, found, commit, against, finished=True)
        return None

    def _commit(self, name: str, found: Analytics) -> tuple[str, str]:
        if self._repository is None:
            return "", ""
        ours = [os.path.join(self._archive.root, name)]
        ours += [self._folder.of(each) for each in MOVED]
        return self._repository(ours, f"Archive {name}: {done_of(found)}")

    def told(self, done: Archived) -> Iterator[str]:
        """The lines about it, for people."""
        here = os.path.relpath(self._folder.path, self._folder.project)
        if done.finished:
            yield f"Finished ralph-archive/{done.name}, which was begun before"
        else:
            yield f"Archived to ralph-archive/{done.name}: {done_of(done.stories)}"
        yield f"{here}/ has fresh templates; prompt.md stays"
        if not done.commit:
            why = "git ignores these files" if self._repository else "this is not a git repository"
            yield f"Nothing is committed: {why}"
            return
        yield f"Committed: {done.commit[:7]}"
        if done.behind:
            yield f"But git's index does not know of it: {done.behind}"
            yield f"Fix that, then type: git add --all -- {shlex.join((here, ARCHIVES))}"


@value
class Archive:
    """The archives of a project, the folder of its stories, and the files to start over with."""

    project: str
    folder: str
    fresh: Files

    @property
    def root(self) -> str:
        return os.path.join(self.project, ARCHIVES)

    def files(self) -> dict[str, bytes]:
        """The files to archive. Raises OSError if one is no file."""
        paths = {name: os.path.join(self.folder, name) for name in MOVED}
        return {name: _content(path) for name, path in paths.items() if os.path.lexists(path)}

    def is_begun(self, listing: Mapping[str, Any], files: Files) -> bool:
        """True if anybody has written stories, or into the texts."""
        if listing["userStories"] != json.loads(self.fresh[TASKS])["userStories"]:
            return True
        texts = [name for name in files if name != TASKS]
        return any(_undated(files[name]) != _undated(self.fresh[name]) for name in texts)

    def names(self) -> list[str]:
        """The archives there are, the newest day first."""
        return sorted({*directories(self.root)} - {_STAGING}, reverse=True)

    def is_of(self, name: str, files: Files) -> bool:
        """True if a call that was cut off has made it of these very files."""
        archive = os.path.join(self.root, name)
        try:
            kept = {each: _content(os.path.join(archive, each)) for each in (*files, SUMMARY)}
        except OSError:
            return False
        return files[TASKS] == kept[TASKS] and all(
            content == kept[each] or _undated(content) == _undated(self.fresh[each])
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

    def reset(self, name: str) -> None:
        """Start over, except for files that differ from the archive."""
        for each in MOVED:
            path = os.path.join(self.folder, each)
            if not os.path.lexists(path) or _content(path) == self._copy(name, each):
                _replace(path, self.fresh[each])

    def take_back(self, name: str) -> None:
        """Undo `make`. Files that somebody has written since stay, and so does the archive then."""
        left = [each for each in MOVED if not self._restored(name, each)]
        if not left:
            shutil.rmtree(os.path.join(self.root, name))
            self._forget_root()

    def _restored(self, name: str, each: str) -> bool:
        path, copy = os.path.join(self.folder, each), self._copy(name, each)
        now = _content(path) if os.path.lexists(path) else None
        if now not in (None, copy) and _undated(now) != _undated(self.fresh[each]):
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
        with suppress(OSError):  # there are other archives
            os.rmdir(self.root)


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
        remove_file(temporary)
