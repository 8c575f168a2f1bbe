"""The bench on which tasks are worked and settled: a real repository, real records, no engine (B).

Time goes on with every look at the clock: what is written twice must not depend on it.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from checkpoint_support import git, new_repository, work_of

from ralph.adapters import append_log, task_file
from ralph.adapters.append import append_line
from ralph.adapters.checkpoint import WorkTree
from ralph.adapters.completion_gate import evidence_file
from ralph.adapters.notify import Notify
from ralph.adapters.task_file import TaskFile
from ralph.adapters.task_records import Records
from ralph.adapters.task_watch import TaskWatch
from ralph.adapters.workbench import Bench
from ralph.core.claims import Claim
from ralph.core.gates import Finding
from ralph.core.limits import Spent
from ralph.core.state import RunState
from ralph.core.task import Assignment
from ralph.core.turn import Ending, Turn
from ralph.core.value import replace
from ralph.core.verdict import Accept, Continue, Feedback, Park, Reason, Stop, Verdict, Wait
from ralph.errors import ConfigError

Json = dict[str, Any]
COMPLETE = Turn(claims=(Claim("<promise>COMPLETE</promise>"),), cost_usd=0.5, seconds=2.0)
FAILED = Turn(ending=Ending.CUT, exit_code=1, why="timed out")
ACCEPT = Accept(("the agent says so",))
LIMIT = Park("task limit: 10 iterations used up")
QUESTION = Park("DECIDE: Which one?", asks=True)
GO_ON = Continue((Feedback("Mend the tests."),))
STOP = Stop(Reason.LIMIT, "the run's money is used up")
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"


class Clock:
    """Every look at it is a second later."""

    def __init__(self) -> None:
        self.time = 1_769_860_800.0  # 2026-01-31T12:00:00Z

    def __call__(self) -> float:
        self.time += 1.0
        return self.time


class Place:
    """A project with one task, and what is written in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.workspace = new_repository(tmp_path / "project")
        self.told: list[str] = []
        self.clock = Clock()
        self.runs: dict[str, WorkTree] = {}
        self.put(estimate=2, type="bug", tags=["parser"])

    def put(self, **fields: object) -> None:
        """Someone writes the task's line; the list has no other."""
        task = {"id": "T-1", "title": "Sort", "createdAt": "2026-01-01T00:00:00.000Z", **fields}
        path = self.workspace / ".ralph" / "tasks.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(task) + "\n")

    def bench(self, run: str = "run-1", **more: Any) -> Bench:  # noqa: ANN401
        """The bench of a run, as a process that begins now makes it."""
        work = self.runs.get(run) or work_of(self.workspace, run)
        self.runs[run] = work
        file = TaskFile(str(self.workspace), self.clock)
        command = "cat >> ../notified"
        where = str(self.workspace)
        project = str(self.workspace.parent)
        return Bench(
            file,
            TaskWatch(file, work.run_dir, project),
            work,
            Records(where, run, self.told.append, self.clock),
            Notify(command, (), where, os.environ, self.told.append),
            work.run_dir,
            "text",
            self.clock,
            self.told.append,
            **more,
        )

    def begun(self, bench: Bench, iteration: int = 1, turn: Turn = COMPLETE) -> RunState:
        """A turn of the task has begun, and ended so."""
        here = bench.work.checkpoint().text()
        state = RunState(
            iteration=iteration,
            task_iteration=iteration,
            assignment=Assignment("T-1", "Sort"),
            checkpoint=here,
            task_checkpoint=here,
            spent=Spent(iteration, 30.0, 1.25),
            spent_before_task=Spent(0, 10.0, 0.25),
        )
        bench.take_up(state)
        return replace(state, turn=turn)

    def task(self) -> Json:
        """The task as the file says now, without the times."""
        record = TaskFile(str(self.workspace)).record("T-1") or {}
        times = ("createdAt", "updatedAt", "completedAt")
        return {name: held for name, held in record.items() if name not in times}

    def lines(self, name: str) -> list[Json]:
        """The objects of a file of records."""
        path = self.workspace / ".ralph" / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def changes(self) -> list[str]:
        """The changes of status that were recorded."""
        progress = self.lines("progress")
        return [f"{e['from']} -> {e['to']}" for e in progress if e["type"] == "status"]

    def iterations(self) -> list[Json]:
        return [entry for entry in self.lines("progress") if entry["type"] == "iteration"]

    def notified(self) -> list[str]:
        path = self.workspace.parent / "notified"
        lines = path.read_text().splitlines() if path.exists() else ()
        return [json.loads(line)["event"] for line in lines]

    def files(self) -> dict[str, bytes]:
        """All that is recorded, to the byte."""
        return {path.name: path.read_bytes() for path in (self.workspace / ".ralph").iterdir()}

    def write(self, name: str, text: str = "work\n") -> None:
        (self.workspace / name).write_text(text)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# ------------------------------------------------------------------ taking up


def test_a_task_is_taken_up_once(place: Place) -> None:
    bench = place.bench()
    state = place.begun(bench)
    assert place.task()["status"] == "in_progress"
    assert place.changes() == ["pending -> in_progress"]
    before = place.files()
    assert bench.take_up(state) == ""
    assert place.files() == before


def test_what_an_earlier_try_left_goes_with_the_next(place: Place) -> None:
    place.put(reason="no key", question="Which?", evidence={"kind": "x"}, mine=7, answers=["this"])
    place.begun(place.bench())
    kept = {"id": "T-1", "title": "Sort", "mine": 7, "answers": ["this"], "status": "in_progress"}
    assert place.task() == kept


def test_a_task_that_was_taken_away_is_an_error(place: Place) -> None:
    """It is not made anew: nobody knows what would prove it."""
    bench = place.bench()
    state = place.begun(bench)
    (place.workspace / ".ralph" / "tasks.jsonl").write_text("")
    with pytest.raises(ConfigError, match="there is no task T-1"):
        bench.record(state, ACCEPT)


def cut_off(place: Place) -> tuple[Bench, RunState]:
    """A turn that wrote a file, and was cut off by a crash."""
    bench = place.bench()
    state = replace(place.begun(bench), turn=None, cut_off=True)
    place.write("half")
    return bench, state


def test_what_a_turn_that_was_cut_off_has_left_is_undone_and_kept(place: Place) -> None:
    """ADR 21: "before any restore, what stood there is saved"."""
    bench, state = cut_off(place)
    assert bench.take_up(state) == "refs/ralph/run-1/cut-1"
    assert not (place.workspace / "half").exists()
    assert git(place.workspace, "show", "refs/ralph/run-1/cut-1:half") == "work"
    assert place.bench().take_up(state) == "refs/ralph/run-1/cut-1", "also after a kill"


def test_commits_since_a_turn_was_cut_off_are_perhaps_a_persons(place: Place) -> None:
    bench, state = cut_off(place)
    git(place.workspace, "commit", "--quiet", "--allow-empty", "--message", "Mine")
    assert bench.take_up(state) == ""
    assert (place.workspace / "half").exists()
    assert place.told == ["There are commits since the iteration was cut off: nothing is undone."]


def test_a_layered_sandbox_leaves_nothing_to_undo(place: Place) -> None:
    bench, state = cut_off(place)
    assert replace(bench, layered=True).take_up(state) == ""
    assert (place.workspace / "half").exists()


# ------------------------------------------------------------------ recording

RECORDED: list[tuple[str, Turn, Verdict, Json, str, list[str]]] = [
    ("accept", COMPLETE, ACCEPT, {"status": "done"}, "complete", []),
    (
        "limit",
        Turn(),
        LIMIT,
        {"status": "blocked", "reason": "task limit: 10 iterations used up"},
        "blocked",
        ["blocked"],
    ),
    (
        "question",
        Turn(),
        QUESTION,
        {"status": "blocked", "question": "Which one?"},
        "blocked",
        ["question"],
    ),
    ("continue", Turn(), GO_ON, {"status": "in_progress"}, "continue", []),
    ("failed", FAILED, GO_ON, {"status": "in_progress"}, "failed", []),
    ("stop", Turn(), STOP, {"status": "in_progress"}, "continue", []),
    ("wait", Turn(), Wait(0.0, "an empty answer"), {"status": "in_progress"}, "waiting", []),
]


@pytest.mark.parametrize(
    ("turn", "verdict", "fields", "status", "events"),
    [row[1:] for row in RECORDED],
    ids=[row[0] for row in RECORDED],
)
def test_every_verdict_is_recorded_once(
    place: Place, turn: Turn, verdict: Verdict, fields: Json, status: str, events: list[str]
) -> None:
    """B §On Limit Reached: log, mark as blocked with the reason, notify; twice is as once."""
    bench = place.bench()
    state = place.begun(bench, turn=turn)
    place.write("new")
    bench.record(state, verdict)
    kept = {"id": "T-1", "title": "Sort", "estimate": 2, "type": "bug", "tags": ["parser"]}
    assert {**place.task(), "evidence": 0} == {**kept, **fields, "evidence": 0}
    (entry,) = place.iterations()
    assert (entry["taskId"], entry["iteration"], entry["status"]) == ("T-1", 1, status)
    assert (entry["files"], entry["cost"]) == (["new"], turn.cost_usd)
    assert place.notified() == events
    assert len(place.lines("learning")) == (fields["status"] in ("done", "blocked"))
    before = place.files()
    bench.record(state, verdict)
    place.bench().record(state, verdict)  # another process, after a kill
    assert place.files() == before
    assert set(place.notified()) == set(events), "whoever is killed may tell it twice"


def test_a_task_that_is_done_has_its_evidence_and_its_time(place: Place) -> None:
    """ "Evidence … is stored on the task"; what the agent's word alone proves says so."""
    bench = place.bench()
    state = place.begun(bench)
    bench.record(state, ACCEPT)
    task = place.task()
    assert task["evidence"]["kind"] == "explicit"
    assert task["evidence"]["tree"] == bench.work.tree()
    record = bench.file.record("T-1") or {}
    assert record["completedAt"].startswith("2026-01-31T12:")
    assert place.iterations()[0]["evidence"] == task["evidence"]
    assert place.changes() == ["pending -> in_progress", "in_progress -> done"]


@pytest.mark.parametrize(("task", "kind"), [("T-1", "file_exists"), ("T-2", "explicit")])
def test_what_the_check_found_is_the_evidence(place: Place, task: str, kind: str) -> None:
    """Of this task: the iteration may have been another's before."""
    bench = place.bench()
    state = place.begun(bench)
    found = {"task": task, "evidence": {"kind": "file_exists", "exitCode": 0}}
    Path(evidence_file(bench.run_dir, 1)).write_text(json.dumps(found))
    bench.record(state, ACCEPT)
    assert place.task()["evidence"]["kind"] == kind


@pytest.mark.parametrize(
    ("verdict", "status", "reason"),
    [(ACCEPT, "done", "the agent says so"), (LIMIT, "blocked", LIMIT.why)],
)
def test_a_lesson_says_what_a_task_took(
    place: Place, verdict: Verdict, status: str, reason: str
) -> None:
    """ "learning (iterations and time against estimate, blockers, by task type)"."""
    bench = place.bench()
    findings = (Finding("make test", "1 failed\nand more"),)
    first = replace(place.begun(bench), turn=Turn(), findings=findings)
    bench.record(first, GO_ON)
    bench.record(replace(place.begun(bench, 2), findings=()), verdict)
    (lesson,) = place.lines("learning")
    wanted = {
        "type": "task",
        "run": "run-1",
        "taskId": "T-1",
        "title": "Sort",
        "taskType": "bug",
        "tags": ["parser"],
        "status": status,
        "iterations": 2,
        "iteration": 2,
        "estimate": 2,
        "ratio": 1.0,
        "seconds": 20.0,
        "cost": 1.0,
        "reason": reason,
        "blockers": [reason] if status == "blocked" else [],
        "gates": {"make test": 1},
    }
    assert {name: lesson[name] for name in wanted} == wanted
    assert place.iterations()[0]["findings"] == [{"gate": "make test", "text": "1 failed"}]


def test_a_cost_that_nobody_told_is_not_nothing(place: Place) -> None:
    bench = place.bench()
    unknown = Spent(1, 10.0, 0.25, uncounted=1)
    state = replace(place.begun(bench), spent=unknown)
    bench.record(state, LIMIT)
    assert place.lines("learning")[0]["cost"] is None


def test_a_reason_is_short_and_holds_no_secret(place: Place) -> None:
    """ADR 13: key-shaped values are redacted from records."""
    bench = place.bench()
    bench.record(place.begun(bench), Park(f"it said {KEY} " + "x" * 9000))
    everything = b"".join(place.files().values())
    assert KEY.encode() not in everything
    assert place.task()["reason"].startswith("it said [redacted] xxx")
    assert len(place.task()["reason"]) == 2000


@pytest.mark.parametrize(
    ("verdict", "kept"), [(LIMIT, True), (STOP, True), (GO_ON, False)], ids=["park", "stop", "go"]
)
def test_where_undone_work_is_kept_is_told(place: Place, verdict: Verdict, *, kept: bool) -> None:
    """The next try finds it; what a single turn had done it is not told to go on with."""
    bench = place.bench()
    state = place.begun(bench)
    place.write("new")
    saved = bench.restore(state, whole_task=kept)
    assert saved == "refs/ralph/run-1/cut-1"
    bench.record(state, verdict, saved)
    assert place.task().get("saved") == (saved if kept else None)
    (entry,) = place.iterations()
    assert (entry["files"], entry["saved"]) == (["new"], saved)
    assert not (place.workspace / "new").exists()


def test_the_next_run_goes_on_with_what_was_saved(place: Place) -> None:
    bench = place.bench()
    state = place.begun(bench)
    place.write("new")
    bench.record(state, STOP, bench.restore(state, whole_task=True))
    bench.end()
    second = place.bench("run-2")
    place.begun(second)
    assert (place.workspace / "new").read_text() == "work\n"
    assert place.told == ["What the run before had done is back: refs/ralph/run-1/cut-1"]
    assert "saved" not in place.task()


# ------------------------------------------------------------------ killed in it


class Killed(BaseException):
    """The process is gone: nothing is tidied up."""


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int, *, written: bool) -> list[bytes]:
    """Be killed at that line, before or after it is written; all lines that came to it."""
    seen: list[bytes] = []
    really = append_line

    def append(file: int, line: bytes, *, alone: bool) -> None:
        seen.append(line)
        if len(seen) == number and not written:
            raise Killed
        really(file, line, alone=alone)
        if len(seen) == number:
            raise Killed

    for module in (task_file, append_log):
        monkeypatch.setattr(module, "append_line", append)
    return seen


def result(place: Place) -> object:
    """All that was written, without times."""
    lessons = [{**lesson, "time": "", "seconds": 0} for lesson in place.lines("learning")]
    progress = [{**entry, "time": ""} for entry in place.lines("progress")]
    return place.task(), progress, lessons


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("verdict", "retries", "lines"),
    [(ACCEPT, 0, 4), (LIMIT, 0, 4), (QUESTION, 0, 4), (LIMIT, 1, 3), (GO_ON, 0, 1)],
    ids=["accept", "park", "question", "retry", "continue"],
)
def test_who_is_killed_at_any_line_takes_the_step_again(
    tmp_path: Path, verdict: Verdict, retries: int, lines: int, *, written: bool
) -> None:
    """ "Every method is idempotent for one iteration": nothing is missing, nothing is twice."""
    results = []
    for number in range(lines + 1):  # the last time nobody is killed
        place = Place(tmp_path / str(number))
        bench = place.bench(retries=retries)
        state = place.begun(bench)
        with pytest.MonkeyPatch.context() as patched, suppress(Killed):
            seen = kill_at(patched, number + 1, written=written)
            bench.record(state, verdict)
        assert len(seen) == min(number + 1, lines)
        place.bench(retries=retries).record(state, verdict)
        results.append(result(place))
    assert results == [results[-1]] * len(results)


# ------------------------------------------------------------------ trying again


def failed_try(place: Place, bench: Bench, iteration: int) -> Json:
    """What is said of the task after one more try; the step is taken twice."""
    state = replace(place.begun(bench, iteration), task_iteration=1, turn=Turn())
    bench.record(state, LIMIT)
    told = place.task()
    before = place.files()
    bench.record(state, LIMIT)
    assert place.files() == before
    return {name: held for name, held in told.items() if name in ("status", "reason", "tries")}


def test_a_task_that_failed_is_tried_again_in_the_same_run(place: Place) -> None:
    """`onFailure: retry`."""
    bench = place.bench(retries=1)
    first = failed_try(place, bench, 1)
    assert first == {"status": "pending", "reason": LIMIT.why, "tries": ["run-1/T-1/1/try"]}
    assert (place.notified(), place.lines("learning")) == ([], []), "nobody is needed yet"
    assert failed_try(place, bench, 2)["status"] == "blocked"
    assert set(place.notified()) == {"blocked"}
    assert len(place.lines("learning")) == 1
    there = ["pending -> in_progress", "in_progress -> pending"]
    assert place.changes() == [*there, "pending -> in_progress", "in_progress -> blocked"]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_it_is_tried_as_often_as_was_asked_for(place: Place, retries: int) -> None:
    bench = place.bench(retries=retries)
    statuses = [failed_try(place, bench, n)["status"] for n in range(1, retries + 2)]
    assert statuses == ["pending"] * retries + ["blocked"]


def test_every_run_has_its_own_tries(place: Place) -> None:
    bench = place.bench(retries=1)
    assert [failed_try(place, bench, n)["status"] for n in (1, 2)] == ["pending", "blocked"]
    TaskFile(str(place.workspace)).update("T-1", lambda _: {"status": "pending"})
    second = failed_try(place, place.bench("run-2", retries=1), 1)
    assert second == {"status": "pending", "reason": LIMIT.why, "tries": ["run-2/T-1/1/try"]}


def test_a_question_is_not_tried_again(place: Place) -> None:
    """Only an answer helps."""
    bench = place.bench(retries=5)
    bench.record(place.begun(bench, turn=Turn()), QUESTION)
    assert (place.task()["status"], place.task()["question"]) == ("blocked", "Which one?")


@pytest.mark.parametrize("tries", [7, "run-1/", [1, None], {"a": 1}, None])
def test_odd_tries_in_the_file_are_none(place: Place, tries: object) -> None:
    place.put(tries=tries)
    assert failed_try(place, place.bench(retries=1), 1)["tries"] == ["run-1/T-1/1/try"]


def test_a_task_that_is_done_remembers_no_tries(place: Place) -> None:
    bench = place.bench(retries=1)
    failed_try(place, bench, 1)
    bench.record(place.begun(bench, 2), ACCEPT)
    assert {"tries", "reason", "saved"}.isdisjoint(place.task())


# ------------------------------------------------------------------ a person's word

BY_A_PERSON: list[Json] = [
    {"status": "cancelled"},
    {"status": "review"},
    {"status": "done"},
    {"status": "blocked"},
]


@pytest.mark.parametrize("fields", BY_A_PERSON, ids=[row["status"] for row in BY_A_PERSON])
@pytest.mark.parametrize("verdict", [ACCEPT, LIMIT, GO_ON, STOP], ids=lambda v: type(v).__name__)
def test_a_persons_status_is_not_overwritten(place: Place, fields: Json, verdict: Verdict) -> None:
    """Whoever settled the task while its turn went on has the last word."""
    bench = place.bench()
    state = place.begun(bench)
    place.put(**fields)
    line = place.files()["tasks.jsonl"]
    bench.record(state, verdict)
    bench.take_up(state)
    assert place.files()["tasks.jsonl"] == line
    assert place.changes() == ["pending -> in_progress"]
    assert len(place.iterations()) == 1, "what the turn did is recorded all the same"


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "done", "evidence": {"kind": "explicit"}},
        {"status": "blocked", "reason": "task limit"},
        {"status": "blocked", "question": "Which?"},
        {"status": "pending"},
        {},
    ],
)
def test_what_a_run_wrote_it_writes_anew(place: Place, fields: Json) -> None:
    place.put(**fields)
    place.begun(place.bench())
    assert place.task() == {"id": "T-1", "title": "Sort", "status": "in_progress"}


# ------------------------------------------------------------------ the commit


def refusing(place: Place) -> Callable[[], None]:
    """The user's own hook refuses every commit, until it is taken away."""
    hook = place.workspace / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'the linter objects' >&2\nexit 1\n")
    hook.chmod(0o755)
    return hook.unlink


def test_a_task_is_committed_with_its_records_under_its_id(place: Place) -> None:
    """B: "commit with its id"; status, progress and learning are part of it."""
    bench = place.bench()
    state = place.begun(bench)
    place.write("new")
    bench.record(state, ACCEPT)
    assert bench.commit(state) == (True, "T-1: Sort")
    assert git(place.workspace, "log", "-1", "--format=%s") == "T-1: Sort"
    names = git(place.workspace, "show", "--format=", "--name-only", "HEAD").splitlines()
    assert set(names) == {
        "new",
        ".ralph/tasks.jsonl",
        ".ralph/progress.jsonl",
        ".ralph/learning.jsonl",
    }
    task = json.loads(git(place.workspace, "show", "HEAD:.ralph/tasks.jsonl"))
    assert task["status"] == "done", "one line, and the last word"
    head = git(place.workspace, "rev-parse", "HEAD")
    assert place.bench().commit(state) == (True, "T-1: Sort"), "a killed run takes the step again"
    assert git(place.workspace, "rev-parse", "HEAD") == head


def test_a_task_whose_commit_is_refused_is_open_again(place: Place) -> None:
    """ADR 21: the user's own git hook has the last word."""
    let_go = refusing(place)
    bench = place.bench()
    state = place.begun(bench)
    place.write("new")
    bench.record(state, ACCEPT)
    ok, said = bench.commit(state)
    assert (ok, said.strip()) == (False, "the linter objects")
    told = Continue((Feedback(f"The commit was refused:\n{said}"),))
    bench.record(state, told)
    before = place.files()
    place.bench().record(state, told)
    assert place.files() == before
    assert place.task()["status"] == "in_progress"
    assert {"evidence", "completedAt"}.isdisjoint(bench.file.record("T-1") or {})
    assert [entry["status"] for entry in place.iterations()] == ["complete", "continue"]
    there = ["pending -> in_progress", "in_progress -> done", "done -> in_progress"]
    assert place.changes() == there
    let_go()
    second = replace(place.begun(bench, 2), task_checkpoint=state.task_checkpoint)
    bench.record(second, ACCEPT)
    assert bench.commit(second) == (True, "T-1: Sort")
    assert place.changes() == [*there, "in_progress -> done"]
    assert git(place.workspace, "show", "HEAD:new") == "work"


def test_a_task_without_a_title_is_committed_by_its_id(place: Place) -> None:
    place.put(title="")
    bench = place.bench()
    state = place.begun(bench)
    bench.record(state, ACCEPT)
    assert bench.commit(state) == (True, "T-1")


def test_what_is_left_out_of_a_commit_is_told(place: Place) -> None:
    """A person's uncommitted files are no part of a task's commit (`--allow-dirty`)."""
    place.write("mine", "a person's\n")
    bench = place.bench()
    state = place.begun(bench)
    place.write("mine", "and the agent's\n")
    place.write("new")
    bench.record(state, ACCEPT)
    assert bench.commit(state)[0]
    assert place.told == ["Not committed: mine (yours, or a repository of its own)"]
    assert "mine" in git(place.workspace, "status", "--porcelain")


# ------------------------------------------------------------------ undoing, and the end


def test_a_task_goes_back_to_where_it_began_and_a_turn_only_to_its_own_beginning(
    place: Place,
) -> None:
    bench = place.bench()
    state = place.begun(bench)
    place.write("first")
    second = replace(place.begun(bench, 2, FAILED), task_checkpoint=state.task_checkpoint)
    place.write("second")
    assert bench.restore(second, whole_task=False) == "refs/ralph/run-1/cut-2"
    assert [(place.workspace / n).exists() for n in ("first", "second")] == [True, False]
    assert bench.restore(second, whole_task=True) == "refs/ralph/run-1/cut-2.0"
    assert not (place.workspace / "first").exists()
    assert place.task()["status"] == "in_progress", "records are never rolled back"
    assert len(place.lines("progress")) == 1


def test_what_the_turn_did_to_its_own_line_is_undone(place: Place) -> None:
    bench = place.bench()
    state = place.begun(bench)
    place.put(status="done", evidence={"kind": "explicit"}, completion=None)
    assert "put back: T-1 was changed" in bench.undo_edits(state)
    assert place.task()["status"] == "in_progress"
    assert bench.undo_edits(state) == ""


def test_the_end_leaves_one_line_for_each_task_and_only_what_was_saved(place: Place) -> None:
    bench = place.bench()
    state = place.begun(bench)
    place.write("new")
    saved = bench.restore(state, whole_task=True)
    bench.record(state, LIMIT, saved)
    bench.end()
    assert len(place.lines("tasks")) == 1
    refs = git(place.workspace, "for-each-ref", "--format=%(refname)", "refs/ralph")
    assert refs.splitlines() == [saved]
    bench.end()
    assert place.told == []


def test_what_goes_wrong_at_the_end_is_told_and_changes_nothing(place: Place) -> None:
    """How the run ended stands."""
    bench = place.bench()
    place.begun(bench)
    path = place.workspace / ".ralph" / "tasks.jsonl"
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")
    bench.end()
    assert len(place.told) == 1
    assert "it is a link" in place.told[0]
