"""The bench again: killed in the middle, a task tried anew, a person who was there too (B)."""

from contextlib import suppress
from pathlib import Path

import pytest
from settlement_support import ACCEPT, GO_ON, LIMIT, QUESTION, STOP, Json, Place, place

from kits.thorough import dealt
from ralph.files import jsonl
from ralph.files.append import append_line
from ralph.kernel.facts import Landed
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Verdict
from ralph.loops.backlog.settlement import TaskSettlement
from ralph.loops.backlog.store import task_file
from ralph.loops.backlog.store.task_file import NAME, TaskFile

__all__ = ["place"]

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

    for module in (task_file, jsonl):
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
    dealt([(ACCEPT, 0, 4), (LIMIT, 0, 4), (QUESTION, 0, 4), (LIMIT, 1, 3), (GO_ON, 0, 1)], 2),
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


# ------------------------------------------------------------------ cut off


def test_what_a_turn_that_was_cut_off_did_to_the_list_is_undone(place: Place) -> None:
    """ "An agent's edits of its own line in `tasks.jsonl` are undone", also by the next process."""
    state = place.begun(place.bench())
    place.put(status="done", evidence={"kind": "explicit"})
    again = place.bench()
    cut_off = replace(state, turn=None, cut_off=True)
    assert "put back: T-1 was changed" in again.undo_edits(cut_off)
    assert place.task()["status"] == "in_progress"
    assert (again.undo_edits(cut_off), again.take_up(cut_off)) == ("", "")


@pytest.mark.parametrize(
    ("ours", "cut_off", "status"),
    [((NAME,), False, "in_progress"), ((NAME,), True, "blocked"), ((), False, "blocked")],
    ids=["its turn landed", "its turn was cut off", "its turn left the list alone"],
)
def test_in_a_sandbox_only_what_landed_is_the_turns(
    place: Place, ours: tuple[str, ...], status: str, *, cut_off: bool
) -> None:
    """Otherwise a person has changed the list: what the turn before landed says nothing of it."""
    bench = place.bench(layered=True)
    state = replace(place.begun(bench), landed=Landed(1.0, True, ours=ours), cut_off=cut_off)
    place.put(status="blocked", question="By whom?")
    assert bool(bench.undo_edits(state)) is (status == "in_progress")
    assert place.task()["status"] == status


def test_tasks_that_a_sandbox_could_not_land_are_added(place: Place, tmp_path: Path) -> None:
    held = tmp_path / "held" / ".ralph" / "tasks.jsonl"
    held.parent.mkdir(parents=True)
    held.write_text('{"id": "T-1", "title": "Less"}\n{"id": "N-1", "title": "found"}\n')
    bench = place.bench(layered=True)
    spared = Landed(
        1.0, True, spared=(f"{NAME}: changed here meanwhile",), saved=str(held.parents[1])
    )
    state = replace(place.begun(bench), landed=spared)
    assert bench.undo_edits(state) == ""
    assert [task.id for task in bench.file.load().backlog.tasks] == ["T-1", "N-1"]
    assert place.task()["title"] == "Sort"


@pytest.mark.parametrize("how", ["landed", "cut off"])
def test_the_list_stands_from_the_end_of_a_turn_on(place: Place, how: str) -> None:
    """ADR 33: what a check makes of it after that is undone."""
    bench = place.bench()
    state = place.begun(bench)
    bench.undo_edits(replace(state, cut_off=how == "cut off"))
    place.put(status="done")
    assert bench.watch.put_back()
    assert place.task()["status"] == "in_progress"


# ------------------------------------------------------------------ trying again


def failed_try(place: Place, bench: TaskSettlement, iteration: int) -> Json:
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
