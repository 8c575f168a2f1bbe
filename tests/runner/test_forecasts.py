"""ADR 46: the forecast of a run by its state, its list as it is now, and what earlier work took."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ralph.journal.efforts import FILE
from ralph.journal.forecast import Effort
from ralph.journal.lock import Owner
from ralph.journal.runs import Run
from ralph.kernel.facts import Began, Decided, Ended, Fact, Settled, Started
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import NEW, RunState, replay
from ralph.kernel.tasks.task import Assignment, Status, Task
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Boundary, Continue, Reason, Stop, Wait
from ralph.runner.showing.forecasts import (
    Forecasts,
    LiveForecasts,
    Standing,
    made,
    spent_before_turn,
)

RUN = "20260101-100000-aaaa"
STARTED = Started(1000.0, RUN, "harness", "/w", 1, "1", limits=Limits(10, 3600.0, 20.0))
SAME = [Effort(4, 400.0, 2.0)] * 20
LEFT = Began(1000.0, 1, Assignment("T-1"))


def over(number: int, task: str = "prompt") -> list[Fact]:
    """An iteration of a hundred seconds and half a dollar."""
    began = 900.0 + 100 * number
    return [
        Began(began, number, Assignment(task)),
        Ended(began + 90, Turn(cost_usd=0.5, seconds=90.0)),
        Decided(began + 100, Boundary.CLOSING, Continue()),
        Settled(began + 100, Continue()),
    ]


TWO = [STARTED, *over(1), *over(2)]
THIRD = over(3)


# ------------------------------------------------------------------ from when it counts


@pytest.mark.parametrize("facts", [[], THIRD[:1], THIRD[:2], THIRD[:3]])
def test_the_iteration_under_way_is_left(facts: list[Fact]) -> None:
    state = replay([*TWO, *facts])
    spent = spent_before_turn(state)
    assert (spent.iterations, spent.dollars) == (2, 1.0)
    assert spent.seconds == pytest.approx(200, abs=11)
    found = made(Standing("harness", state), SAME)
    assert found.iterations is not None
    assert found.iterations.median == 2


def test_one_that_is_taken_again_is_left_too() -> None:
    waits = [*THIRD[:2], Decided(1200.0, Boundary.CLOSING, Wait(5000.0, "limit"))]
    state = replay([*TWO, *waits, Settled(1200.0, Wait(5000.0, "limit"))])
    assert spent_before_turn(state).iterations == 2


def test_before_the_first_turn_all_of_it_is_left() -> None:
    found = made(Standing("harness", replace(NEW, limits=STARTED.limits)), SAME)
    assert found.iterations is not None
    assert (found.iterations.median, found.after) == (4, Spent())
    assert found.limit_holds is True


# ------------------------------------------------------------------ backlogs and stories


def listed(*status: Status) -> list[Task]:
    return [Task(f"T-{number}", status=each) for number, each in enumerate(status, 1)]


def test_only_open_tasks_are_left() -> None:
    tasks = [*listed(Status.PENDING, Status.DONE, Status.BLOCKED, Status.IN_PROGRESS)]
    aside = replace(Task("T-9"), aside=True)
    found = made(Standing("tasks", NEW, [*tasks, aside]), SAME)
    assert found.iterations is not None
    assert found.iterations.median == 8


def test_of_the_task_under_work_only_the_rest_is_left() -> None:
    state = replay([replace(STARTED, profile="tasks"), *over(1, "T-1"), *over(2, "T-1")])
    found = made(Standing("tasks", state, listed(Status.IN_PROGRESS, Status.PENDING)), SAME)
    assert found.iterations is not None
    assert found.iterations.median == 6


def test_the_workers_tell_how_far_they_are() -> None:
    one, two = (replay([STARTED, *over(1, task), *over(2, task)]) for task in ("T-1", "T-2"))
    lead = Standing("tasks", NEW, listed(*[Status.IN_PROGRESS] * 2), (one, two), at_once=2)
    found = made(lead, SAME)
    assert found.iterations is not None
    assert found.iterations.median == 4


def test_the_most_tasks_of_a_run_are_a_limit() -> None:
    state = RunState(limits=Limits(tasks=3), done=frozenset({"T-0"}))
    holds = [
        made(Standing("tasks", state, listed(*[Status.PENDING] * count)), SAME).limit_holds
        for count in (2, 3)
    ]
    assert holds == [True, False]


def test_the_day_has_its_money() -> None:
    found = made(Standing("tasks", NEW, listed(Status.PENDING), day=(5.0, 4.5)), SAME)
    assert [bound.words for bound in found.bounds] == ["$5 a day"]
    assert found.limit_holds is False


def test_an_empty_list_leaves_nothing() -> None:
    found = made(Standing("tasks", NEW, listed(Status.DONE)), [])
    assert found.iterations is not None
    assert found.iterations.high == 0


# ------------------------------------------------------------------ what is on disk


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "runs" / RUN).mkdir(parents=True)
    return tmp_path


def kept(place: Path, loop: str, **work: Any) -> Run:  # noqa: ANN401
    plan = {"loop": loop, "settings": {}, "said": {}, "work": work, "branch": None}
    (place / "runs" / RUN / "plan.json").write_text(json.dumps(plan), "utf-8")
    return Run(RUN, str(place))


def write_efforts(place: Path, count: int, **fields: Any) -> None:  # noqa: ANN401
    usual = {"profile": "harness", "task": "", "iterations": 4, "seconds": 400, "cost_usd": 2}
    with (place / FILE).open("a", encoding="utf-8") as file:
        for number in range(count):
            effort = {"run": f"r{number}", **usual, "ended": True, **fields}
            file.write(f"{json.dumps(effort)}\n")


def test_a_run_of_the_prompt_loop(place: Path) -> None:
    run, state = kept(place, "prompt", text="x"), replay(TWO)
    forecasts = Forecasts()
    assert (found := forecasts(run, STARTED, state)) is not None
    assert (found.iterations, found.observations) == (None, 0)
    write_efforts(place, 6)
    assert (found := forecasts(run, STARTED, state)) is not None
    assert found.observations == 6, "the history is read again when it has changed"
    assert found.iterations is not None
    assert found.iterations.median == 2


def test_what_a_run_told_of_itself_before_is_not_another_run(place: Path) -> None:
    write_efforts(place, 6)
    write_efforts(place, 1, run=RUN, ended=False)
    found = Forecasts()(kept(place, "prompt", text="x"), STARTED, replay(TWO))
    assert found is not None
    assert found.observations == 6


def test_a_backlog_is_read_as_it_is_now(place: Path) -> None:
    workspace = place / "project"
    records = workspace / ".ralph"
    records.mkdir(parents=True)
    lesson = {"status": "done", "iterations": 3, "seconds": 60, "cost": 1.0, "taskType": ""}
    lines = [json.dumps({**lesson, "taskId": f"T-{n}", "run": "r"}) for n in range(8)]
    (records / "learning.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    tasks = [{"id": f"U-{n}", "title": "x", "status": "pending"} for n in range(5)]
    path = records / "tasks.jsonl"
    path.write_text("".join(f"{json.dumps(task)}\n" for task in tasks), "utf-8")
    settings = json.dumps({"loop": {"maxCostPerDay": 4}})
    started = replace(STARTED, profile="tasks", workspace=str(workspace), settings=settings)
    run, forecasts = kept(place, "backlog", task=None, tags=[]), Forecasts()
    assert (found := forecasts(run, started, NEW)) is not None
    assert found.iterations is not None
    assert found.iterations.median == 15
    assert [(bound.words, bound.holds) for bound in found.bounds] == [("$4 a day", False)]
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps({**task, 'status': 'done'})}\n" for task in tasks[:4])
    assert (found := forecasts(run, started, NEW)) is not None
    assert found.iterations is not None
    assert found.iterations.median == 3
    assert found.limit_holds is True


def test_a_plan_that_makes_no_sense_has_no_forecast(place: Path) -> None:
    run = kept(place, "backlog", tags=3)
    started = replace(STARTED, profile="tasks", settings="[]")
    assert Forecasts()(run, started, NEW) is None
    os.remove(place / "runs" / RUN / "plan.json")
    assert Forecasts()(run, replace(STARTED, profile="reviewed"), NEW) is not None


DONE = [
    Decided(1300.0, Boundary.OPENING, Stop(Reason.COMPLETED)),
    Settled(1300.0, Stop(Reason.COMPLETED)),
]


@pytest.mark.parametrize(
    ("started", "facts", "lead"),
    [
        (None, TWO, None),
        (replace(STARTED, profile="supervise"), TWO, None),
        (STARTED, [*TWO, *DONE], None),
        (
            STARTED,
            [
                *TWO,
                *THIRD[:2],
                Decided(1.0, Boundary.CLOSING, Accept(("x",))),
                Settled(1.0, Accept(("x",))),
            ],
            None,
        ),
        (STARTED, TWO, Run("lead", "/s")),
    ],
)
def test_who_has_no_forecast(
    place: Path, started: Started | None, facts: list[Fact], lead: Run | None
) -> None:
    """Nothing is read yet; a loop that knows no end; what is complete, or about to be; a worker."""
    write_efforts(place, 6)
    run = replace(kept(place, "prompt", text="x"), lead=lead)
    assert Forecasts()(run, started, replay(facts)) is None


def test_of_all_runs_only_those_that_go_on_are_forecast(place: Path) -> None:
    write_efforts(place, 6)
    gone = kept(place, "prompt", text="x")
    live = replace(gone, owner=Owner(1, "", RUN, 0.0))
    found = [LiveForecasts()(run, STARTED, replay(TWO)) for run in (gone, live)]
    assert [forecast is None for forecast in found] == [True, False]


def test_a_run_that_ended_at_a_limit_tells_what_it_would_take(place: Path) -> None:
    write_efforts(place, 6)
    stop = Stop(Reason.LIMIT, "2 iterations used up")
    started = replace(STARTED, limits=Limits(2))
    facts = [started, *TWO[1:], Decided(1300.0, Boundary.OPENING, stop), Settled(1300.0, stop)]
    found = Forecasts()(kept(place, "prompt", text="x"), started, replay(facts))
    assert found is not None
    assert found.iterations is not None
    assert found.iterations.median == 2
    assert found.limit_holds is False
