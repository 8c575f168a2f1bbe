"""The bench on which tasks are worked and settled: status, records, commit, rollback (B)."""

import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ralph.errors import RalphError
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.commit import commit_records
from ralph.git.checkpoint.restore import give_back
from ralph.git.checkpoint.work import Checkpoint
from ralph.kernel.contracts import CompleteClaim, artifacts_of
from ralph.kernel.ports import Committed
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Status
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Cause, Park, Stop, Verdict
from ralph.loops.backlog.gates.completion import claimed_evidence, kept_evidence, proof_words
from ralph.loops.backlog.kept_work import bring_back, reopen
from ralph.loops.backlog.outcome import outcome
from ralph.loops.backlog.store.records import Records, actions_in
from ralph.loops.backlog.store.task_file import NAME, TaskFile
from ralph.loops.backlog.store.watch import TaskWatch
from ralph.loops.backlog.tracker.reporting import Telling
from ralph.notify.notifier import Notify
from ralph.text.redact import redact
from ralph.text.timestamps import iso
from ralph.text.words import counted, listed

_LONGEST = 2000  # characters of a reason
_BEGUN = ("answers", "spent")  # has a task that somebody has worked on
_OF_A_TRY = ("reason", "question", "evidence", "completedAt")  # void with the next


@value
class TaskSettlement:
    """Settles the tasks of one run."""

    file: TaskFile
    watch: TaskWatch
    work: WorkTree
    records: Records
    notify: Notify
    run_dir: str
    dialect: str  # of the agent's stream
    now: Callable[[], float]
    tell: Callable[[str], None]
    telling: Telling
    retries: int = 0  # how often a task that failed is tried anew
    layered: bool = False  # turns leave nothing in the project before they land

    # ------------------------------------------------------------ a turn

    def take_up(self, state: RunState) -> str:
        """Mark the task as under work, on files as they were before a turn that was cut off."""
        saved = self._clear_up(state) if state.cut_off and not state.step("discard") else ""
        self._change(state, {"status": Status.IN_PROGRESS.value, **self._gone_on(state)}, "")
        self.watch.remember(state.iteration)
        return saved

    def _gone_on(self, state: RunState) -> dict[str, None]:
        """A task that is under way, or has its answer, goes on where it had to be left."""
        record = self.file.record(_task(state)) or {}
        saved = record.get("saved")
        going = record.get("status") == Status.IN_PROGRESS or any(map(record.get, _BEGUN))
        if not going or not saved or state.task_iteration > 1 or state.again or state.cut_off:
            return {}
        if record.get("savedBeside") or not bring_back(self.work, saved):
            self.tell(f"Not brought back, since the project is another by now: {saved}")
            return {}
        self.tell(f"What was done for {_task(state)} before is back: {saved}")
        return {"saved": None}

    def _left(self, state: RunState, saved: str) -> dict[str, Any]:
        """What the next run must know of a task that this one leaves in the middle: a task's limits
        do not begin anew."""
        record = self.file.record(_task(state)) or {}
        known = record.get("spent")
        spent, before = state.spent, state.spent_before_task  # the same whenever it is asked
        own = {
            "iterations": state.task_iteration,
            "seconds": round(spent.seconds - before.seconds, 3),
            "cost": round(spent.dollars - before.dollars, 6),
        }
        runs = known if isinstance(known, dict) else {}
        return {"spent": {**runs, os.path.basename(self.run_dir): own}, **self._kept(saved)}

    def _kept(self, saved: str) -> dict[str, Any]:
        """Where the work of a try is. With a person's uncommitted files it is not to come back."""
        if not saved:
            return {}
        return {"saved": saved, "savedBeside": True if self.work.persons_paths else None}

    def _clear_up(self, state: RunState) -> str:
        """Discard what a turn that was cut off has left, if only that can have come since."""
        to = Checkpoint.of(state.checkpoint)
        if self.layered or to is None:
            return ""
        if self.work.head() != to.head:  # perhaps a person's: commits are not ours to take back
            self.tell("There are commits since the iteration was cut off: nothing is undone.")
            return ""
        return self.restore(state, whole_task=False)

    def undo_edits(self, state: RunState) -> str:
        """Put back what the turn did to the task list and may not, and take what could not land."""
        undone = self._undo_edits(state)
        self.watch.let_stand()
        return undone

    def _undo_edits(self, state: RunState) -> str:
        landed = state.landed
        if landed is not None and any(text.startswith(f"{NAME}: ") for text in landed.spared):
            self.watch.take_in(os.path.join(landed.saved, NAME))
        touched = landed is not None and NAME in landed.ours and not state.cut_off
        if self.layered and not touched:
            return ""  # whoever edited the list, it was not the turn
        return self.watch.undo(_task(state), state.iteration)

    def restore(self, state: RunState, *, whole_task: bool) -> str:
        """Discard this turn's changes, or all of the task's."""
        to = Checkpoint.of(state.task_checkpoint if whole_task else state.checkpoint)
        if to is None:
            return ""
        # A failed turn may be discarded first, and what it did is kept apart from the task's.
        part = ".0" if whole_task and state.turn is not None and state.turn.failed else ""
        saved = self.work.restore(to, f"cut-{state.iteration}{part}")
        if saved:
            self._tell_gone(self.work.undone(to, saved)[1])
        self._tell_notes()
        if whole_task:
            self.work.settled()
        return saved

    def _tell_gone(self, commits: tuple[str, ...]) -> None:
        """Commits leave the branch: whoever made one of them has to know."""
        if commits:
            number = counted(len(commits), "commit")
            self.tell(f"{number} left the branch with it: {listed(commits, 3)}")

    def _tell_notes(self) -> None:
        for note in self.work.notes():
            self.tell(note)

    # ------------------------------------------------------------ records

    def record(self, state: RunState, verdict: Verdict, saved: str = "") -> None:
        """Write status, progress and learning."""
        entry = self._entry(state, verdict, saved)
        self.records.iteration(entry)
        match verdict:
            case Accept():
                self._finish(state, entry)
            case Park():
                self._park(state, verdict, entry)
            case _:  # the next iteration, or the next run, goes on with it
                kept = self._left(state, saved) if isinstance(verdict, Stop) else {}
                going = {"status": Status.IN_PROGRESS.value, **kept}
                self._change(state, going, entry["reason"])
        self.watch.let_stand()

    def _finish(self, state: RunState, entry: dict[str, Any]) -> None:
        done = {
            "status": Status.DONE.value,
            "completedAt": iso(datetime.fromtimestamp(self.now(), UTC)),
            "evidence": entry["evidence"],
            **dict.fromkeys(("saved", "savedBeside", "spent", "tries")),
        }
        self._change(state, done, entry["reason"])
        self._learn(state, Status.DONE, "", entry)

    def _park(self, state: RunState, park: Park, entry: dict[str, Any]) -> None:
        why = redact(park.why)[:_LONGEST]
        tries = self._tries(state)
        saved = self._kept(entry.get("saved", ""))
        if park.cause is Cause.PERSON:
            return  # who settled it knows
        if park.failed and len(tries) <= self.retries:
            again = {"status": Status.PENDING.value, "tries": tries, "reason": why, **saved}
            again["spent"] = None
            self._change(state, again, why)
            return
        asks = park.cause is Cause.QUESTION
        told = {"question": why} if asks else {"reason": why}
        spent = self._left(state, "") if park.cause is Cause.CRASH else {"spent": None}
        blocked = {"status": Status.BLOCKED.value, **spent, **told, **saved}
        self._change(state, blocked, why)
        self._learn(state, Status.BLOCKED, why, entry)
        event = "question" if asks else "blocked"
        self.notify.send(
            {
                "event": event,
                "taskId": _task(state),
                "task": self.file.record(_task(state)),
                "reason": why,
            }
        )

    def _tries(self, state: RunState) -> list[str]:
        """Those of this run that failed, this one too; a step that is taken twice counts once."""
        record = self.file.record(_task(state)) or {}
        run, this = os.path.basename(self.run_dir), self._key(state, "try")
        past = record.get("tries")
        tries = [t for t in past if isinstance(t, str)] if isinstance(past, list) else []
        return [*(t for t in tries if t.startswith(f"{run}/") and t != this), this]

    def _change(self, state: RunState, fields: dict[str, Any], reason: str) -> None:
        """Write the task's fields, if they are not so already; what a try left goes with it."""

        def change(record: dict[str, Any]) -> dict[str, Any] | None:
            if _is_a_persons(record):
                return None
            changed = {**dict.fromkeys(_OF_A_TRY), **fields}
            same = (record.get(k) == held for k, held in changed.items() if k != "completedAt")
            if all(same):
                return None
            # First, for a kill may come between the two: this one is not written twice.
            self._record_status(state, record, fields["status"], reason)
            return changed

        self.file.update(_task(state), change)

    def _record_status(
        self, state: RunState, record: dict[str, Any], status: str, reason: str
    ) -> None:
        before = str(record.get("status") or Status.PENDING.value)
        if before != status:
            key = self._key(state, f"{before}-{status}")
            number = state.task_iteration
            self.records.status(_task(state), number, before, status, reason, key=key)

    def _key(self, state: RunState, what: str) -> str:
        """A task may be tried twice in a run: its own count of iterations says too little."""
        run = os.path.basename(self.run_dir)
        return f"{run}/{_task(state)}/{state.iteration}/{what}"

    def _entry(self, state: RunState, verdict: Verdict, saved: str) -> dict[str, Any]:
        turn = state.turn or Turn()
        came = outcome(turn, verdict, state.findings)
        tree = "" if saved else _tree_of(state) or self.work.tree()
        entry = {
            "key": self._key(state, f"iteration/{came.status}"),
            "taskId": _task(state),
            "iteration": state.task_iteration,
            "status": came.status,
            "reason": redact(came.reason)[:_LONGEST],
            "cost": turn.cost_usd,
            "seconds": turn.seconds,
            "filesystemDelta": self._delta(state, saved or tree),
            "actions": actions_in(turn.stream, self.dialect),
            "findings": [
                {"gate": found.gate, "text": found.text.split("\n", 1)[0]}
                for found in state.findings
            ],
        }
        if came.error:
            entry["error"] = redact(came.error)[:_LONGEST]
        if isinstance(verdict, Accept):
            entry["evidence"] = {**self._evidence(state, turn), **proof_words(state.proof)}
        return {**entry, "saved": saved} if saved else entry

    def _delta(self, state: RunState, now: str) -> list[dict[str, str]]:
        """B §Iteration Lifecycle: what the turn changed, also where that is undone by now."""
        since = Checkpoint.of(state.checkpoint)
        if since is None:
            return []
        delta = self.work.delta(since, to=now)
        return [{"path": path, "change": change} for path, change in sorted(delta.items())]

    def _evidence(self, state: RunState, turn: Turn) -> dict[str, Any]:
        found = kept_evidence(self.run_dir, state.iteration, _task(state))
        if found is not None:
            return found
        claim = CompleteClaim().met_by(turn)
        said = claim.raw if claim else ""
        return claimed_evidence(said, artifacts_of(turn))

    def _learn(self, state: RunState, status: Status, why: str, entry: dict[str, Any]) -> None:
        task, record = _task(state), self.file.record(_task(state)) or {}
        run = os.path.basename(self.run_dir)
        past = [item for item in self.records.progress_of(task, 100) if item.get("run") == run]
        gates = Counter(found["gate"] for item in past for found in item.get("findings") or ())
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
            }
        )

    # ------------------------------------------------------------ the end of a task

    def commit(self, state: RunState) -> Committed:
        """Commit the task's work under its id; the list that it came from says so with it."""
        task, here = _task(state), self.work.workspace
        self.telling.tick_off(task, here)
        lists = self.telling.list_in(here, task)
        done = self.commit_work(state, (lists,) if lists else ())
        if not done.ok or done.altered:
            self.telling.tick_off(task, here, done=False)
        return done

    def commit_work(self, state: RunState, lists: tuple[str, ...] = ()) -> Committed:
        """Commit what was proven under the task's id, with lists that the host has ticked."""
        task = _task(state)
        title = str((self.file.record(task) or {}).get("title") or "")
        since = Checkpoint.of(state.task_checkpoint)
        assert since is not None, "a turn of a task begins with a checkpoint"
        self.file.compact()
        subject = f"{task}: {title}" if title else task
        self.watch.let_stand()
        proven = state.proof.stand if state.proof else None
        made = self.work.commit(subject, task, since, proven, lists)
        self._tell_notes()
        if made.altered or not made.ok:
            return made
        self._tell_left_out(self.work.left_out())
        self._give_back(since, state.iteration)
        self.work.settled()
        return replace(made, said=subject if made.commit != since.head else "")

    def _give_back(self, since: Checkpoint, iteration: int) -> None:
        """What a person had not committed is as it was when the task began."""
        ref, paths = give_back(self.work, since, f"left-{iteration}")
        if ref:
            names = listed(paths)
            self.tell(f"Yours, and as before the task: {names}. What stood there: git show {ref}")

    def _tell_left_out(self, paths: tuple[str, ...]) -> None:
        inner = [path for path in paths if path.endswith("/")]
        if inner:
            self.tell(f"Not committed, since it is a repository of its own: {listed(inner)}")

    def sync(self, state: RunState) -> tuple[bool, str]:
        """Tell the list or the issue that the task came from, if it does not know yet."""
        return self.telling.sync(_task(state))

    def reopen(self, tasks: tuple[str, ...]) -> None:
        """Nothing is wrong with these: the agent was, and they are for the next run."""
        reopen(self.file, *tasks)

    def end(self) -> None:
        """The run is over: what became of its tasks is in git, and nothing of its beginnings is
        left."""
        self.forget()
        where = (self.file.workspace, self.work.repository.environ)
        commit_records(*where, self.run_dir, self.tell)

    def forget(self) -> None:
        """One line for each task, and nothing of the run's beginnings any more."""
        self.close()
        try:
            self.work.end()
        except RalphError as error:  # how the run ended stands
            self.tell(f"{error.message}. {error.remedy}")

    def close(self) -> None:
        """Leave one line for each task."""
        try:
            self.file.compact()
        except RalphError as error:
            self.tell(f"{error.message}. {error.remedy}")


def _task(state: RunState) -> str:
    assert state.assignment is not None, "no turn has begun"
    return state.assignment.task


def _tree_of(state: RunState) -> str:
    return state.proof.stand.tree if state.proof else ""


def _is_a_persons(record: dict[str, Any]) -> bool:
    """Whether someone else gave the task this status, and has the last word about it. What we write
    ourselves has its reasons with it."""
    match record.get("status"):
        case Status.CANCELLED | Status.REVIEW:
            return True
        case Status.DONE:
            return not record.get("evidence")
        case Status.BLOCKED:
            return not (record.get("reason") or record.get("question"))
        case _:
            return False
