"""Settles the tasks of a backlog: status, records, commit, rollback (B)."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from ralph.errors import RalphError
from ralph.files.state_dir import ensure_ralph_dir
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.commit import RECORDS, commit_records, train_trailers
from ralph.git.checkpoint.restore import give_back
from ralph.git.checkpoint.work import Checkpoint
from ralph.git.repository import with_records
from ralph.kernel.contracts import CompleteClaim, artifacts_of
from ralph.kernel.ports import Committed
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Status
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Cause, Park, Stop, Verdict
from ralph.loops.backlog.gates.completion import claimed_evidence, kept_evidence, proof_words
from ralph.loops.backlog.outcome import outcome
from ralph.loops.backlog.store.records import Records, actions_in
from ralph.loops.backlog.store.task_file import NAME, TaskFile
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.loops.backlog.tracker.sync import Telling, repository_of
from ralph.notify import message
from ralph.notify.notifier import Notify
from ralph.text.redact import redact
from ralph.text.timestamps import iso
from ralph.text.words import counted, listed

_LONGEST = 2000  # characters of a reason
_BEGUN = ("answers", "spent")  # has a task that somebody has worked on
_OF_A_TRY = ("reason", "question", "evidence", "completedAt")  # void with the next
_GIVEN_WITH: dict[object, tuple[str, ...]] = {  # by us: alone, a status is a person's own word
    Status.DONE: ("evidence",),
    Status.BLOCKED: ("reason", "question"),
    Status.CANCELLED: (),
    Status.REVIEW: (),
}


@value
class TaskSettlement:
    """Settles the tasks of one run."""

    file: TaskFile
    watch: TaskWatch
    work: WorkTree
    records: Records
    notify: Notify
    about: message.About
    run_dir: str
    dialects: tuple[str, ...]  # of the agents' streams, by their places
    now: Callable[[], float]
    tell: Callable[[str], None]
    telling: Telling
    retries: int = 0  # how often a task that failed is tried anew
    layered: bool = False  # turns leave nothing in the project before they land
    alone: bool = False  # nothing of the user's runs between two tasks
    by_pull: str = ""  # the forge whose pull requests carry the tasks, if any do

    @property
    def _run(self) -> str:
        return os.path.basename(self.run_dir)

    def _task(self, state: RunState) -> dict[str, Any]:
        return self.file.record(state.task) or {}

    def take_up(self, state: RunState) -> str:
        saved = self._clear_up(state) if state.cut_off and not state.step("discard") else ""
        self._change(state, {"status": Status.IN_PROGRESS.value, **self._brought_back(state)}, "")
        self.watch.remember(state.iteration)
        return saved

    def _brought_back(self, state: RunState) -> dict[str, None]:
        """Bring back the saved work of a task in progress, or of one that has its answer."""
        record = self._task(state)
        saved = record.get("saved")
        going = record.get("status") == Status.IN_PROGRESS or any(map(record.get, _BEGUN))
        if not going or not saved or state.task_iteration > 1 or state.again or state.cut_off:
            return {}
        if record.get("savedBeside") or not _bring_back(self.work, saved):
            self.tell(f"Not brought back, since the project is another by now: {saved}")
            return {}
        self.tell(f"What was done for {state.task} before is back: {saved}")
        return {"saved": None}

    def _left(self, state: RunState, saved: str) -> dict[str, Any]:
        """The fields of a task that this run leaves in the middle: its limits do not start over."""
        known = self._task(state).get("spent")
        spent, before = state.spent, state.spent_before_task  # the same whenever it is asked
        # A run that goes on after its end may leave the same task again.
        key = f"{self._run}/{before.iterations}" if before.iterations else self._run
        own = {
            "iterations": state.task_iteration,
            "seconds": round(spent.seconds - before.seconds, 3),
            "cost": round(spent.dollars - before.dollars, 6),
        }
        runs = known if isinstance(known, dict) else {}
        return {"spent": {**runs, key: own}, **self._kept(saved)}

    def _kept(self, saved: str) -> dict[str, Any]:
        """Fields for saved work. With a person's uncommitted files in it, it does not come back."""
        if not saved:
            return {}
        return {"saved": saved, "savedBeside": True if self.work.persons_paths else None}

    def _clear_up(self, state: RunState) -> str:
        """Discard what a turn that was cut off has left, unless someone committed since."""
        to = Checkpoint.of(state.checkpoint)
        if self.layered or to is None:
            return ""
        if self.work.head() != to.head:  # perhaps a person's: commits are not ours to take back
            self.tell("There are commits since the iteration was cut off: nothing is undone.")
            return ""
        return self.restore(state, whole_task=False)

    def undo_edits(self, state: RunState) -> str:
        landed, undone = state.landed, ""
        if landed is not None and any(text.startswith(f"{NAME}: ") for text in landed.spared):
            began = self.watch.begun_with(state.iteration)
            self.watch.take_in(os.path.join(landed.saved, NAME), began)
        touched = landed is not None and NAME in landed.ours and not state.cut_off
        if touched or not self.layered:  # else someone else edited the list
            undone = self.watch.undo(state.task, state.iteration)
        self.watch.let_stand()
        return undone

    def restore(self, state: RunState, *, whole_task: bool) -> str:
        to = Checkpoint.of(state.task_checkpoint if whole_task else state.checkpoint)
        if to is None:
            return ""
        # A failed turn may be discarded first, and its work is kept apart from the task's.
        part = ".0" if whole_task and state.turn is not None and state.turn.failed else ""
        saved = self.work.restore(to, f"cut-{state.iteration}{part}")
        commits = self.work.undone(to, saved) if saved else ()
        if commits:  # whoever made one of them has to know
            number = counted(len(commits), "commit")
            self.tell(f"{number} left the branch with it: {listed(commits, 3)}")
        for note in self.work.notes():
            self.tell(note)
        if whole_task:
            self.work.settled()
        return saved

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        entry = self._entry(state, verdict, saved)
        self.records.iteration(entry)
        match verdict:
            case Accept():
                done = {
                    "status": Status.DONE.value,
                    "completedAt": iso(datetime.fromtimestamp(self.now(), UTC)),
                    "evidence": entry["evidence"],
                    **dict.fromkeys(("saved", "savedBeside", "spent", "tries")),
                }
                self._change(state, done, entry["reason"])
                self._learn(state, Status.DONE, "", entry)
            case Park():
                self._park(state, verdict, entry)
            case _:  # the next iteration, or the next run, goes on with it
                kept = self._left(state, saved) if isinstance(verdict, Stop) else {}
                going = {"status": Status.IN_PROGRESS.value, **kept}
                self._change(state, going, entry["reason"])
        self.watch.let_stand()

    def _park(self, state: RunState, park: Park, entry: dict[str, Any]) -> None:
        if park.cause is Cause.PERSON:
            return  # who settled it knows
        why = redact(park.why)[:_LONGEST]
        tries = self._tries(state)
        saved = self._kept(entry.get("saved", ""))
        if park.failed and len(tries) <= self.retries:
            again = {"status": Status.PENDING.value, "tries": tries, "reason": why, **saved}
            self._change(state, {**again, "spent": None}, why)
            return
        asks = park.cause is Cause.QUESTION
        told = {"question": why} if asks else {"reason": why}
        spent = self._left(state, "") if park.cause is Cause.CRASH else {"spent": None}
        blocked = {"status": Status.BLOCKED.value, **spent, **told, **saved}
        self._change(state, blocked, why)
        self._learn(state, Status.BLOCKED, why, entry, cause=park.cause.value)
        event, record = message.QUESTION if asks else message.BLOCKED, self.file.record(state.task)
        self.notify.send(self.about.of_task(event, state.task, record, why))

    def _tries(self, state: RunState) -> list[str]:
        """This run's failed tries of the task, with this one; a repeated step counts once."""
        past, this = self._task(state).get("tries"), self._key(state, "try")
        tries = [t for t in past if isinstance(t, str)] if isinstance(past, list) else []
        return [*(t for t in tries if t.startswith(f"{self._run}/") and t != this), this]

    def _change(self, state: RunState, fields: dict[str, Any], reason: str) -> None:
        """Write the task's fields, if they differ; the fields of an earlier try go."""

        def change(record: dict[str, Any]) -> dict[str, Any] | None:
            signs = _GIVEN_WITH.get(record.get("status"))
            if signs is not None and not any(map(record.get, signs)):
                return None  # a person has the last word
            changed = {**dict.fromkeys(_OF_A_TRY), **fields}
            same = (record.get(k) == held for k, held in changed.items() if k != "completedAt")
            if all(same):
                return None
            before, after = str(record.get("status") or Status.PENDING.value), fields["status"]
            if before != after:
                # Recorded first, since a kill may come in between: it is not recorded twice.
                entry = {"taskId": state.task, "iteration": state.task_iteration}
                entry["key"] = self._key(state, f"{before}-{after}")
                self.records.status(entry, before, after, reason)
            return changed

        self.file.update(state.task, change)

    def _key(self, state: RunState, what: str) -> str:
        """By the run's count of iterations: a task may be tried twice in a run."""
        return f"{self._run}/{state.task}/{state.iteration}/{what}"

    def _entry(self, state: RunState, verdict: Verdict, saved: str) -> dict[str, Any]:
        turn = state.turn or Turn()
        came = outcome(turn, verdict, state.findings)
        proven = state.proof.stand.tree if state.proof else ""
        # B §Iteration Lifecycle: what the turn changed, also where that is undone by now.
        since, delta = Checkpoint.of(state.checkpoint), {}
        if since is not None:
            kept = self.work.repository.resolve(f"{saved}^{{tree}}") if saved else proven
            delta = self.work.delta(since, to=kept)
        entry = {
            "key": self._key(state, f"iteration/{came.status}"),
            "taskId": state.task,
            "iteration": state.task_iteration,
            "status": came.status,
            "reason": came.reason,
            "cost": turn.cost_usd,
            "seconds": turn.seconds,
            "filesystemDelta": [{"path": p, "change": how} for p, how in sorted(delta.items())],
            "actions": actions_in(turn.stream, self.dialects[turn.place]),
            "findings": [{"gate": found.gate, "text": found.text} for found in state.findings],
        }
        if came.error:
            entry["error"] = redact(came.error)[:_LONGEST]
        if isinstance(verdict, Accept):
            evidence = kept_evidence(self.run_dir, state.iteration, state.task)
            if evidence is None:
                claim = CompleteClaim().met_by(turn)
                evidence = claimed_evidence(claim.raw if claim else "", artifacts_of(turn))
            entry["evidence"] = {**evidence, **proof_words(state.proof)}
        return {**entry, "saved": saved} if saved else entry

    def _learn(
        self, state: RunState, status: Status, why: str, entry: dict[str, Any], **more: str
    ) -> None:
        task = state.task
        record, past = self._task(state), self.records.progress_of(task, 100)
        findings = (item.get("findings") or () for item in past if item.get("run") == self._run)
        gates = Counter(found["gate"] for some in findings for found in some)
        spent, before = state.spent_at(self.now()), state.spent_before_task
        cost = round(spent.dollars - before.dollars, 6)
        told = cost or spent.uncounted == before.uncounted
        self.records.lesson(
            {
                "key": self._key(state, f"task/{status}"),
                "taskId": task,
                "title": record.get("title", ""),
                "taskType": record.get("type") or "",
                "tags": record.get("tags") or [],
                "status": status.value,
                "iteration": state.task_iteration,
                "iterations": state.task_iteration,
                "seconds": round(spent.seconds - before.seconds, 3),
                "cost": cost if told else None,
                "estimate": record.get("estimate"),
                "reason": why or entry["reason"],
                "blockers": [why] if why else [],
                "gates": dict(gates),
                **more,
            }
        )

    def changed(self, state: RunState, to: str) -> list[str]:
        """The paths that differ in a tree since the task began, relative to the workspace."""
        place, delta = self.work.repository.place, self.work.delta(base_of(state), to)
        paths = (place.path(path) for path in delta if not place.is_ours(path))
        return [os.path.relpath(path, self.work.workspace) for path in paths]

    def commit(self, state: RunState, *, ticks: bool = True) -> Committed:
        """Commit what was proven under the task's id, and with `ticks` the list it came from."""
        task, here = state.task, self.work.workspace
        if ticks:
            self.telling.tick_off(task, here)
        title = str(self._task(state).get("title") or "")
        since = base_of(state)
        self.file.compact()
        if self.work.shared and not self.by_pull:  # the project's records, as they stand there now
            records = ensure_ralph_dir(here)
            for name in RECORDS:
                with suppress(FileNotFoundError):
                    source = os.path.join(self.file.workspace, ".ralph", name)
                    shutil.copyfile(source, os.path.join(records, name))
        path = self.telling.list_in(here, task) if ticks else ""
        subject = f"{task}: {title}" if title else task
        self.watch.let_stand()
        proven = state.proof.stand if state.proof else None
        train = state.proof.train if state.proof else ()
        more = train_trailers(state.proof.tree, train) if state.proof and train[1:] else ()
        lists = (path,) if path else ()
        made = self.work.commit(subject, task, since, proven, lists, more=more)
        for note in self.work.notes():
            self.tell(note)
        if made.altered or not made.ok:
            if ticks:
                self.telling.tick_off(task, here, done=False)
            return made
        inner = [path for path in self.work.left_out if path.endswith("/")]
        if inner:
            self.tell(f"Not committed, since it is a repository of its own: {listed(inner)}")
        # What a person had not committed is as it was when the task began.
        ref, paths = give_back(self.work, since, f"left-{state.iteration}")
        if ref:
            names = listed(paths)
            self.tell(f"Yours, and as before the task: {names}. What stood there: git show {ref}")
        elif self.alone and not self._task(state).get("source"):
            self.work.trees.hold()  # a list that is ticked would be another change
        self.work.settled()
        return replace(made, said=subject if made.commit != since.head else "")

    def sync(self, state: RunState) -> tuple[bool, str]:
        if self.by_pull == "GitHub" and repository_of(self._task(state)):
            return True, ""  # a merge closes the issue
        return self.telling.sync(state.task)

    def reopen(self, tasks: tuple[str, ...]) -> None:
        self.file.reopen(tasks)

    def end(self) -> None:
        self.close()
        try:
            self.work.end()
        except RalphError as error:  # how the run ended stands
            self.tell(error.words)
        if not self.work.shared:
            where = (self.file.workspace, self.work.repository.environ)
            commit_records(*where, self.run_dir, self.tell)

    def close(self) -> None:
        """Compact the list: one line for each task."""
        try:
            self.file.compact()
        except RalphError as error:
            self.tell(error.words)


def base_of(state: RunState) -> Checkpoint:
    """The checkpoint that the current task began with."""
    base = Checkpoint.of(state.task_checkpoint)
    assert base is not None, "a turn of a task begins with a checkpoint"
    return base


def _bring_back(work: WorkTree, ref: str) -> bool:
    """Put what a ref keeps into the work tree, if the project is as it was when the task began;
    otherwise the agent chooses what is still of use."""
    repository, head = work.repository, work.head()
    begun, ours = repository.resolve(f"{ref}^1"), repository.place.is_ours
    if not begun or work.dirty():
        return False
    if begun != head and not (
        repository.follows(begun) and all(map(ours, repository.differing(begun, head)))
    ):
        return False
    tree = with_records(repository, f"{ref}^{{tree}}", head)
    if repository.run("read-tree", "-m", "-u", "HEAD", tree).code != 0:
        return False
    return repository.run("read-tree", "HEAD").code == 0  # changed, and not staged
