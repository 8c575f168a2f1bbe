"""A task's commit: everything that changed and the records, without what a person had changed
before the run. The user's own hooks run, and may refuse it (ADR 8, ADR 21)."""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ralph.adapters import git_look
from ralph.adapters.checkpoint_files import content, when_unlocked
from ralph.adapters.checkpoint_head import AgentCommits
from ralph.adapters.files import unwritable_state, write_atomically
from ralph.adapters.git_look import Seen
from ralph.adapters.git_work import Done
from ralph.adapters.process import Command, Exit, Starter, start
from ralph.core.value import value
from ralph.core.verdict import Cut
from ralph.errors import AbortedError, StateError

if TYPE_CHECKING:
    from ralph.adapters.checkpoint import Checkpoint, WorkTree

RECORDS = ("tasks.jsonl", "progress.jsonl", "learning.jsonl")
_LONGEST = 200
_MOST_SAID = 64 << 10  # bytes of a refusal
# Git tidies up after some commits; in the background it would be ended with the commit.
_OPTIONS = ("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false")
_LONGEST_COMMIT = 3600.0  # seconds
_TOO_LONG = "the commit's hooks took too long"
_GO_ON = "Mend that, then go on: ralph resume"
_COMMIT = (*_OPTIONS, "commit", "--quiet", "--no-status", "--cleanup=whitespace")


def in_one_line(text: str) -> str:
    """A text as the subject of a commit."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(plain.split())[:_LONGEST].rstrip()


def patient(seconds: float, longest: float | None = None) -> Cut | None:
    """Hooks of users may run all their tests; one that waits for somebody waits in vain."""
    most = _LONGEST_COMMIT if longest is None else min(longest, _LONGEST_COMMIT)
    return Cut(_TOO_LONG, grace=1.0) if seconds >= most else None


@value
class TaskCommit:
    """How a task is committed. `watch` is asked every 250 ms with the seconds since the start."""

    work: "WorkTree"
    start: Starter = start
    watch: Callable[[float], Cut | None] = patient

    def __call__(self, subject: str, task: str, since: "Checkpoint") -> tuple[str, str]:
        """The commit and "", or "" and what was said against it; what a killed run committed is
        found again."""
        trailers = self._trailers(task)
        made = self._made(trailers, since)
        if made:
            return made, ""
        seen = AgentCommits(self.work, since).settle()
        taken = self._taken(seen)
        self._stage(seen, taken)
        staged = self._staged(seen)
        if not staged & taken:
            return seen.head, ""  # nothing is left to commit
        message = ("-m", in_one_line(subject) or in_one_line(task), "-m", trailers)
        only = staged & taken if staged - taken else frozenset()
        self._mark(seen.head)
        done = when_unlocked(self.work.repository, lambda: self._commit(message, only))
        if done.code != 0:
            self._mark(None)
        return ("", done.said) if done.code else (self.work.repository.resolve("HEAD"), "")

    def _trailers(self, task: str) -> str:
        run = os.path.basename(self.work.run_dir)
        return f"Ralph-Run: {run}\nRalph-Task: {in_one_line(task)}"

    def _mark(self, head: str | None) -> None:
        """Remember on top of what we commit, or that we do not."""
        path = self._marker
        try:
            if head is not None:
                write_atomically(path, head, 0o600)
            elif os.path.exists(path):
                os.unlink(path)
        except OSError as error:
            raise unwritable_state(self.work.run_dir, error) from error

    @property
    def _marker(self) -> str:
        return os.path.join(self.work.run_dir, "committing")

    def _made(self, trailers: str, since: "Checkpoint") -> str:
        """The commit that this task has already; "" if none. Anybody can write our trailers, but
        an agent not on top of what we were about to commit on."""
        below = content(self._marker)
        head = self.work.head() if below is not None else ""
        if below is None or head in ("", since.head):
            return ""
        words = ("-z", "--no-show-signature", "--format=%H %P%n%(trailers:only,unfold)")
        range_ = f"{since.head}..{head}" if since.head else head
        said = self.work.repository.ask("log", *words, range_).decode("utf-8", "replace")
        for entry in said.split("\0"):
            (commit, *parents), *lines = (line.split(" ") for line in entry.split("\n"))
            told = {" ".join(words) for words in lines}
            if parents[:1] == below.decode().split() and {*trailers.split("\n")} <= told:
                return commit
        return ""

    def _taken(self, seen: Seen) -> frozenset[str]:
        """What goes into the commit."""
        above = self.work.repository.place.records
        records = {f"{above}/{name}" for name in RECORDS} & {*seen.records}
        work = {*seen.there, *seen.gone, *seen.staged} - self.work.persons_paths
        return frozenset(work | records)

    def _stage(self, seen: Seen, taken: frozenset[str]) -> None:
        """What goes wrong here is the host's trouble: an agent could not mend it."""
        repository = self.work.repository
        here = [path for path in seen.records if os.path.lexists(repository.place.path(path))]
        there = taken & {*seen.there, *here}
        gone = taken & {*seen.gone, *seen.records} - there
        stage = partial(repository.stage, repository.index, sorted(gone), sorted(there))
        done = when_unlocked(repository, stage)
        if done.code != 0:
            raise StateError(f"the task cannot be committed: {done.said}", _GO_ON)

    def _staged(self, seen: Seen) -> frozenset[str]:
        """What would be committed now, whoever staged it."""
        words = ("diff-index", "--cached", "--name-only", "--no-renames", "-z")
        base = seen.head or self.work.empty_tree()
        said = os.fsdecode(self.work.repository.ask(*words, base))
        return frozenset(said.split("\0")[:-1])

    def _commit(self, message: tuple[str, ...], only: frozenset[str]) -> Done:
        """Let git commit. With `only`, what else is staged stays so."""
        repository = self.work.repository
        words = ("--only", "--pathspec-from-file=-", "--pathspec-file-nul") if only else ()
        paths = b"".join(b":(top,literal)" + os.fsencode(path) + b"\0" for path in sorted(only))
        hooks = ("-c", f"core.hooksPath={repository.place.hooks}")
        argv = ("git", *hooks, *_COMMIT, *message, *words)
        command = Command(argv, repository.place.top, repository.environ, paths or None)
        try:
            with tempfile.TemporaryFile() as output:
                child = self.start(command, log=output)
                ended = child.wait(lambda: self.watch(child.seconds()))
                output.seek(max(0, output.seek(0, os.SEEK_END) - _MOST_SAID))
                said = output.read().decode("utf-8", "replace").strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", error)
            raise StateError(f"the task cannot be committed: git: {why}", _GO_ON) from error
        return _answer(ended, said)

    def left_out(self, since: "Checkpoint") -> tuple[str, ...]:
        """A person's files that the agent changed, and repositories that it made: they are in no
        commit of ours."""
        seen = git_look.look(self.work.repository)
        made = {*seen.apart} - self.work.apart(since).apart
        persons = self.work.persons_paths
        if persons:
            tree = git_look.tree_of(self.work.repository, seen, self.work.run_dir)
            made |= persons & {*self.work.names(self.work.start_ref, tree)}
        return tuple(sorted(made))


def _answer(ended: Exit, said: str) -> Done:
    """What git or a hook said. Who was in a hurry said nothing against the work: the run goes on
    with the commit."""
    if ended.code != 0 and ended.cut and ended.cut.why != _TOO_LONG:
        raise AbortedError("interrupted in the middle of a commit", "Go on with it: ralph resume")
    cut = f"{ended.cut.why}\n" if ended.cut else ""
    return Done(ended.code, b"", cut + (said or f"git commit exited with code {ended.code}"))
