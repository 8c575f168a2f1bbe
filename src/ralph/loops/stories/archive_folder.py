"""Archives stories, for `ralph prd archive` (R §10). Only the standard library stands behind it:
the plugin's script does the same in a clone where no package is installed."""

import json
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.git.path_commit import PathCommit
from ralph.journal.lock import NAME, Lock
from ralph.kernel.value import value
from ralph.loops.stories.archive import MOVED, Archive, is_fresh
from ralph.loops.stories.file import PROGRESS
from ralph.loops.stories.folder import Folder, analytics_of, found_folder
from ralph.loops.stories.past_reviews import ARCHIVES, SUMMARY
from ralph.loops.stories.past_runs import unjudged
from ralph.loops.stories.review_report import summary_text
from ralph.loops.stories.templates import Fresh, is_begun, project_name
from ralph.review.stats import Analytics, analytics
from ralph.runner.arguments import proper, refuse_agents, shown
from ralph.text.redact import redact

ABOUT = """\
Archive prd.md, tasks.json and progress.txt with a summary, and start afresh.

They go to ralph-archive/<date>-<branch>/, ralph/ gets fresh templates, and git a commit of
nothing but that.
"""
EPILOG = """\b
Examples:
  ralph prd archive                    ralph-archive/<date>-<branch>/
  ralph prd archive --label login      ralph-archive/<date>-login/
\b
prompt.md is the project's own and stays. An archive that was cut off is
finished by the next call. Exit codes: 0, or 2 when nothing was archived.
"""
LABEL_HELP = "The archive's name after the date, instead of the branch."
_LONGEST_LABEL = 100
_DATE = re.compile(rb"^Started: (\d{4}-\d{2}-\d{2})", re.MULTILINE)
_AGAIN = "Fix that and run again: ralph prd archive"


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
        self._archive = Archive(folder.project, folder.path)
        self._repository = PathCommit.around(folder.project, environ)
        self._today = time.strftime("%Y-%m-%d")
        self._fresh = Fresh(project_name(folder.project), self._today).files()

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
            fresh = not is_begun(self._listing) and is_fresh(files, self._fresh)
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
            self._archive.reset(name, self._fresh)
            commit, against = self._commit(name, found)
        except BaseException:
            self._archive.take_back(name, self._fresh)
            raise
        if against and not commit:
            self._archive.take_back(name, self._fresh)
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
        summary = summary_text(found, title or "Stories", moment, dates, redact).encode()
        return self._archive.make(f"{self._today}-{label or own}", {**files, SUMMARY: summary})

    def _begun(self, files: Mapping[str, bytes]) -> str:
        """The archive that a call which was killed has made of these files; "" if there is none.
        One that is committed is older than that."""
        pending = self._pending()
        for name in self._archive.names():
            is_new = self._repository is None or name in pending
            if is_new and self._archive.is_of(name, files, self._fresh):
                return name
        return ""

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
        return self._repository(ours, f"Archive {name}: {_stories(found)}")

    def told(self, done: Archived) -> Iterator[str]:
        """The lines about it, for people."""
        here = os.path.relpath(self._folder.path, self._folder.project)
        if done.finished:
            yield f"Finished ralph-archive/{done.name}, which was begun before"
        else:
            yield f"Archived to ralph-archive/{done.name}: {_stories(done.stories)}"
        yield f"{here}/ has fresh templates; prompt.md stays"
        if not done.commit:
            why = "git ignores these files" if self._repository else "this is not a git repository"
            yield f"Nothing is committed: {why}"
            return
        yield f"Committed: {done.commit[:7]}"
        if done.behind:
            yield f"But git's index does not know of it: {done.behind}"
            yield f"Fix that, then type: git add --all -- {shlex.join((here, ARCHIVES))}"


def _stories(found: Analytics) -> str:
    total = len(found.stories)
    return f"{found.done} of {total} {'story' if total == 1 else 'stories'} done"
