"""The bench on which tasks are worked and settled: a real repository, real records, no engine (B).

Time goes on with every look at the clock: what is written twice must not depend on it.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from settlement_support import (
    ACCEPT,
    COMPLETE,
    FAILED,
    GO_ON,
    KEY,
    LIMIT,
    QUESTION,
    STOP,
    Json,
    Place,
    place,
)

from kits.work_tree import git
from ralph.errors import ConfigError
from ralph.formats.prd import PRD
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Spent
from ralph.kernel.state import RunState
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Continue, Feedback, Park, Verdict, Wait
from ralph.loops.backlog.gates.completion import evidence_file
from ralph.loops.backlog.settlement import TaskSettlement
from ralph.loops.backlog.tracker.importing import Merge, Origin

__all__ = ["place"]

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


def cut_off(place: Place) -> tuple[TaskSettlement, RunState]:
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

USED = {"iterations": 1, "seconds": 20.0, "cost": 1.0}
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
    ("stop", Turn(), STOP, {"status": "in_progress", "spent": {"run-1": USED}}, "continue", []),
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
    assert (entry["filesystemDelta"], entry["cost"]) == (place.new_file, turn.cost_usd)
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
    stand = bench.work.trees.look()
    proof = bench.work.trees.proved(1.0, stand, ())
    bench.record(replace(place.begun(bench), proof=proof), ACCEPT)
    task = place.task()
    assert task["evidence"]["kind"] == "explicit"
    assert task["evidence"]["tree"] == bench.work.repository.resolve("HEAD^{tree}")
    assert task["evidence"]["outside"] == "ignored files"
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
    assert (entry["filesystemDelta"], entry["saved"]) == (place.new_file, saved)
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
    assert place.told == ["What was done for T-1 before is back: refs/ralph/run-1/cut-1"]
    assert "saved" not in place.task()


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
    assert bench.commit(state).said == "T-1: Sort"
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
    assert place.bench().commit(state).said == "T-1: Sort", "a killed run takes the step again"
    assert git(place.workspace, "rev-parse", "HEAD") == head


def test_a_task_whose_commit_is_refused_is_open_again(place: Place) -> None:
    """ADR 21: the user's own git hook has the last word."""
    let_go = refusing(place)
    bench = place.bench()
    state = place.begun(bench)
    place.write("new")
    bench.record(state, ACCEPT)
    done = bench.commit(state)
    said = done.said
    assert (done.ok, said.strip()) == (False, "the linter objects")
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
    assert bench.commit(second).said == "T-1: Sort"
    assert place.changes() == [*there, "in_progress -> done"]
    assert git(place.workspace, "show", "HEAD:new") == "work"


STORY = '{"userStories": [{"id": "US-1", "title": "Sort", "passes": %s}]}'


def test_the_list_that_a_task_came_from_is_ticked_in_its_commit_or_not_at_all(place: Place) -> None:
    """A list that says "done" beside a commit that was refused would be believed."""
    path = place.workspace / "prd.json"
    path.write_text(STORY % "false")
    git(place.workspace, "add", "prd.json")
    git(place.workspace, "commit", "--quiet", "--message", "List")
    origin = Origin("prd", {"path": "prd.json"}, "prd.json")
    merge = Merge(PRD.read(path.read_text(), "prd.json"), origin, "2026-01-31", by_agent=False)
    place.put(source=merge([], frozenset())[0]["source"])
    let_go = refusing(place)
    bench = place.bench()
    state = place.begun(bench)
    bench.record(state, ACCEPT)
    assert not bench.commit(state).ok
    assert path.read_text() == STORY % "false"
    let_go()
    bench.record(state, ACCEPT)
    assert bench.commit(state).ok
    assert git(place.workspace, "show", "HEAD:prd.json") == STORY % "true"
    assert git(place.workspace, "status", "--porcelain") == ""


def test_a_task_without_a_title_is_committed_by_its_id(place: Place) -> None:
    place.put(title="")
    bench = place.bench()
    state = place.begun(bench)
    bench.record(state, ACCEPT)
    assert bench.commit(state).said == "T-1"


def test_what_is_left_out_of_a_commit_is_told(place: Place) -> None:
    """A person's uncommitted files are no part of a task's commit (`--allow-dirty`)."""
    place.write("mine", "a person's\n")
    bench = place.bench()
    state = place.begun(bench)
    place.write("mine", "and the agent's\n")
    place.write("new")
    bench.record(state, ACCEPT)
    assert bench.commit(state).ok
    ref = "refs/ralph/run-1/left-1"
    assert place.told == [f"Yours, and as before the task: mine. What stood there: git show {ref}"]
    assert "mine" in git(place.workspace, "status", "--porcelain")
    assert (place.workspace / "mine").read_text() == "a person's\n"


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
