"""A task's commit: everything that was proven and the records, without what a person had changed
before the run (ADR 8, ADR 21, ADR 33)."""

import os
from collections.abc import Callable, Iterable, Mapping

from ralph.git.checkpoint.head import AgentCommits
from ralph.git.checkpoint.proven_commit import ProvenCommit, patient
from ralph.git.checkpoint.work import Checkpoint, Work
from ralph.git.repository import call, clean_environ, nul_joined, nul_split
from ralph.git.uncommitted import Corrections
from ralph.kernel.ports import Committed
from ralph.kernel.proof import Stand
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.processes.child import Starter, start
from ralph.text.redact import redact

RECORDS = ("tasks.jsonl", "progress.jsonl", "learning.jsonl")
_LONGEST = 200
_OPTIONS = ("--quiet", "--no-status", "--cleanup=whitespace")


def in_one_line(text: str) -> str:
    """A text as the subject of a commit."""
    plain = "".join(letter if letter.isprintable() else " " for letter in redact(text))
    return " ".join(plain.split())[:_LONGEST].rstrip()


def trailers_of(run: str, task: str) -> str:
    """The trailers of a task's commit, by which it can be found again."""
    return f"Ralph-Run: {run}\nRalph-Task: {in_one_line(task)}"


def commit_records(
    workspace: str, environ: Mapping[str, str], run_dir: str, tell: Callable[[str], None]
) -> None:
    """Commit the records of tasks that no commit is about: those that are blocked, or were left in
    the middle."""
    paths, run = [f".ralph/{name}" for name in RECORDS], os.path.basename(run_dir)
    subject = "Record what became of the tasks"
    problem = Corrections(workspace, environ).commit(paths, subject, run, new=True)
    if problem:
        tell(f"The records are not committed: {problem}")


@value
class TaskCommit:
    """How a task is committed. `watch` is asked every 250 ms with the seconds since the start."""

    work: Work
    start: Starter = start
    watch: Callable[[float], Cut | None] = patient

    def __call__(
        self,
        subject: str,
        task: str,
        since: Checkpoint,
        proven: Stand | None = None,
        lists: Iterable[str] = (),
    ) -> Committed:
        """Commit what was proven, or what there is now; what a killed run committed is found
        again."""
        commit = ProvenCommit(self.work.trees, self.start, self.watch)
        trailers = trailers_of(os.path.basename(self.work.run_dir), task)
        begun, made = commit.begun(trailers, since.head)
        if made and (proven is None or made != self.work.head()):
            return Committed(commit=made)  # somebody has gone on from it, or nobody can compare it
        seen = self.work.where() if made else AgentCommits(self.work, since).settle()
        stand = proven or self.work.trees.look()
        message = ("-m", in_one_line(subject) or in_one_line(task), "-m", trailers)
        records = (*self._records(seen.head), *self._kept(lists, stand))
        where = replace(stand, head=begun if made else seen.head)
        return commit(where, (*_OPTIONS, *message), records)

    def _records(self, head: str) -> list[str]:
        """Those of the records that git keeps, or would."""
        repository = self.work.repository
        names = [f"{repository.place.records}/{name}" for name in RECORDS]
        there = [name for name in names if os.path.lexists(repository.place.path(name))]
        asked = ("check-ignore", "-z", "--stdin")
        ignored = nul_split(self.work.trees.view.run(*asked, stdin=nul_joined(there)).output)
        new = {*there}.difference(ignored)
        return [n for n in names if n in new or (head and repository.resolve(f"{head}:{n}"))]

    def _kept(self, lists: Iterable[str], stand: Stand) -> list[str]:
        """Those of the lists that git keeps and no person is changing, relative to the top."""
        top, persons = self.work.repository.place.top, self.work.persons_paths
        names = [os.path.relpath(path, top) for path in lists]
        known = [name for name in names if self.work.repository.resolve(f"{stand.tree}:{name}")]
        return [name for name in known if name not in persons]

    def left_out(self, since: Checkpoint) -> tuple[str, ...]:
        """A person's files that the agent changed, and repositories that it made: they are in no
        commit of ours."""
        seen = self.work.trees.seen
        made = {*seen.apart} - self.work.apart(since).apart
        persons = self.work.persons_paths
        if persons:
            made |= persons & {*self.work.names(self.work.start_ref, self.work.tree_of(seen))}
        return tuple(sorted(made))


def commit_of(workspace: str, environ: Mapping[str, str], run: str, task: str) -> str:
    """The commit that a task's work is in, by its trailers; "" if git knows none."""
    words = ("log", "-1", "--format=%H", "--fixed-strings", "--all-match")
    lines = trailers_of(run, task).split("\n")[0 if run else 1 :]
    told = (f"--grep={line}" for line in lines)
    return call((*words, *told), workspace, clean_environ(environ)).output.decode().strip()
