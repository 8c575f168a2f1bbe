"""B §Hooks: `LoopHooks`, as callables and as commands; "a failing hook never ends the run"."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kits.loop_fakes import FakeWorkbench
from ralph.journal.journal import FileJournal
from ralph.kernel.claims import find_claims
from ralph.kernel.engine import run
from ralph.kernel.events import Text, ToolStart
from ralph.kernel.facts import Began, Decided, Ended, Fact, Resumed, Settled, Step
from ralph.kernel.findings import Finding
from ralph.kernel.rules import Patience
from ralph.kernel.state import NEW, RunState, replay
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import (
    Accept,
    Boundary,
    Cause,
    Continue,
    Park,
    Reason,
    Stop,
    Verdict,
    Wait,
)
from ralph.loops.backlog.hooks import NAMES, HookReader, Hooks, commands
from ralph.loops.backlog.policy import tasks
from ralph.loops.backlog.store.records import Records
from ralph.settings.schema import HookSettings
from ralph.testing.fakes import FakeAgent, FakeWorld, MemoryJournal, fake_ports

Json = dict[str, Any]
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"


def began(iteration: int, task: str = "T-1") -> Began:
    return Began(float(iteration), iteration, Assignment(task, f"title of {task}"))


def judged(verdict: Verdict, **more: Any) -> Decided:  # noqa: ANN401
    return Decided(5.0, Boundary.CLOSING, verdict, **more)


def turn(iteration: int, verdict: Verdict, task: str = "T-1", **result: Any) -> tuple[Fact, ...]:  # noqa: ANN401
    """All facts of an iteration."""
    ended = Ended(4.0, Turn(**result))
    return (began(iteration, task), ended, judged(verdict), Settled(6.0, verdict))


class Stage:
    """A workspace with a reader of facts, and everything that its hooks heard."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.heard: list[tuple[Any, ...]] = []
        self.told: list[str] = []
        self.records = Records(str(workspace), "run", self.told.append)
        self.hooks = Hooks(**{name: self.hear(name) for name in NAMES})
        self.reader = self.read_by(self.hooks)

    def hear(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.heard.append((NAMES[name], *arguments))

    def read_by(
        self,
        *hooks: Hooks,
        state: RunState = NEW,
        intact: Callable[[], bool] = lambda: True,
        task_of: Callable[[str], Json] = lambda task: {"id": task},
    ) -> HookReader:
        return HookReader(
            hooks, task_of, self.records, self.told.append, state=state, journal_intact=intact
        )

    def play(self, *facts: Fact, reader: HookReader | None = None) -> None:
        for fact in facts:
            (reader or self.reader).on_fact(fact)

    @property
    def names(self) -> list[str]:
        return [name for name, *_ in self.heard]

    @property
    def anomalies(self) -> list[Json]:
        return [arguments[0] for name, *arguments in self.heard if name == "onAnomaly"]


@pytest.fixture
def stage(workspace: Path) -> Stage:
    return Stage(workspace)


def test_hooks_are_called_in_order(stage: Stage) -> None:
    """ "onTaskStart, onIterationStart, onAction, onIterationEnd, onTaskEnd"."""
    first, *rest = turn(1, Continue())
    stage.play(first)
    stage.reader.on_events([Text("hi"), ToolStart("1", "Bash", f"git push {KEY}")])
    stage.reader.on_events([ToolStart("2", "TodoWrite")])
    stage.play(*rest, *turn(2, Accept(("claim",))), *turn(3, Park("a?"), "T-2"))
    one, two = {"id": "T-1"}, {"id": "T-2"}
    action = {"type": "git", "tool": "Bash", "summary": "git push [redacted]"}
    assert stage.heard == [
        ("onTaskStart", one),
        ("onIterationStart", one, 1),
        ("onAction", {**action, "taskId": "T-1", "iteration": 1}),
        ("onIterationEnd", one, 1, {"status": "continue", "reason": "not complete yet"}),
        ("onIterationStart", one, 2),
        ("onIterationEnd", one, 2, {"status": "complete", "artifacts": []}),
        ("onTaskEnd", one, True),
        ("onTaskStart", two),
        ("onIterationStart", two, 1),
        ("onIterationEnd", two, 1, {"status": "blocked", "blocker": "a?"}),
        ("onTaskEnd", two, False),
    ]
    assert stage.told == []


def test_an_iteration_that_waits_is_one_iteration(stage: Stage) -> None:
    stage.play(*turn(1, Wait(9.0, "rate limit"), exit_code=1), *turn(1, Continue()))
    assert stage.names == ["onTaskStart", "onIterationStart", "onIterationEnd"]


def test_a_task_that_is_taken_up_again_starts_again(stage: Stage) -> None:
    stage.play(*turn(1, Park("which?")), *turn(2, Accept(())))
    assert stage.names.count("onTaskStart") == stage.names.count("onTaskEnd") == 2


INTERRUPTED = Stop(Reason.INTERRUPTED, "asked to stop")
RESUMES: list[tuple[tuple[Fact, ...], tuple[Fact, ...], list[str]]] = [
    # cut off in the middle of a turn: that task and iteration have begun
    ((began(1), Resumed(9.0, 7)), turn(1, Continue())[1:], ["onIterationEnd"]),
    # between two iterations
    (turn(1, Continue()), (began(2),), ["onIterationStart"]),
    # between two tasks
    (turn(1, Accept(())), (began(2, "T-2"),), ["onTaskStart", "onIterationStart"]),
    (turn(1, Park("?")), (began(2),), ["onTaskStart", "onIterationStart"]),
    # taken up again after it was parked, then cut off
    ((*turn(1, Park("?")), began(2), Resumed(9.0, 7)), (Ended(4.0, Turn()),), []),
    # asked to stop before the turn was judged
    ((*turn(1, INTERRUPTED), Resumed(9.0, 7)), (judged(Continue()),), ["onIterationEnd"]),
    ((), (), []),
]


@pytest.mark.parametrize(("past", "facts", "names"), RESUMES)
def test_a_resumed_run_calls_only_what_is_new(
    stage: Stage, past: Sequence[Fact], facts: Sequence[Fact], names: list[str]
) -> None:
    reader = stage.read_by(stage.hooks, state=replay(list(past)))
    stage.play(*facts, reader=reader)
    assert stage.names == names


def test_a_turn_that_was_not_judged_has_not_ended(stage: Stage) -> None:
    stage.play(*turn(1, INTERRUPTED))
    assert stage.names == ["onTaskStart", "onIterationStart"]


class Told(MemoryJournal):
    """A journal that is read along, as in a run."""

    reader: HookReader

    def record(self, fact: Fact) -> None:
        super().record(fact)
        self.reader.on_fact(fact)


def test_a_whole_run_of_the_engine(stage: Stage) -> None:
    """Two tasks: one is complete at its second iteration, one stalls and is parked."""
    world = FakeWorld(Backlog((Task("T-1"), Task("T-2"))))
    done = Turn(claims=find_claims("<promise>COMPLETE</promise>"))
    near = Turn(text="COMPLETE")
    journal = Told()
    journal.reader = stage.read_by(stage.hooks)
    policy = tasks(FakeWorkbench(world), patience=Patience(stall_after=3))
    run(policy, fake_ports(FakeAgent((near, done, Turn())), world, journal))
    assert stage.names == [
        *("onTaskStart", "onIterationStart", "onAnomaly", "onIterationEnd"),
        *("onIterationStart", "onIterationEnd", "onTaskEnd"),
        *("onTaskStart", "onIterationStart", "onIterationEnd"),
        *("onIterationStart", "onIterationEnd"),
        *("onIterationStart", "onAnomaly", "onIterationEnd", "onTaskEnd"),
    ]
    assert [(a["kind"], a["taskId"], a["iteration"]) for a in stage.anomalies] == [
        ("near_miss", "T-1", 1),
        ("stalled", "T-2", 3),
    ]


# ------------------------------------------------------------------ anomalies

NEAR = "<promise>complete</promise>"
SAID = Turn(text=NEAR, claims=find_claims(NEAR))
ODD: list[tuple[str, tuple[Fact, ...]]] = [
    ("stalled", (judged(Park("3 iterations without any progress", Cause.STALLED)),)),
    ("stalled", (judged(Stop(Reason.STALLED, "3 iterations without any progress")),)),
    ("protected", (judged(Continue(), findings=(Finding("protect", ".git/hooks: put back"),)),)),
    (
        "near_miss",
        (judged(Continue(), notes=(f"{NEAR} is not exactly <promise>COMPLETE</promise>.",)),),
    ),
    ("task_file", (Step(5.0, "tasks.jsonl", detail="T-1 was set to done"),)),
]


@pytest.mark.parametrize(("kind", "facts"), ODD)
def test_anomalies_are_called_and_recorded(
    stage: Stage, kind: str, facts: tuple[Fact, ...]
) -> None:
    """ "onAnomaly (stalled, protected path changed, …, near-miss claim)"."""
    stage.play(began(1), Ended(4.0, SAID), *facts)
    (anomaly,) = stage.anomalies
    assert (anomaly["kind"], anomaly["taskId"], anomaly["iteration"]) == (kind, "T-1", 1)
    assert stage.told == []  # the facts themselves say so
    (entry,) = stage.records.progress_of("T-1")
    assert (entry["type"], entry["kind"], entry["reason"]) == ("anomaly", kind, anomaly["detail"])


def test_a_cost_over_twice_the_mean(stage: Stage) -> None:
    """Of this task's earlier iterations, also in earlier runs."""
    costs = [0.0, 0.1, None, 0.3, 0.5]  # 0.3 is over twice 0.1, 0.5 is over twice 0.2
    for number, cost in enumerate(costs, start=1):
        stage.play(*turn(number, Continue(), cost_usd=cost))
    stage.play(*turn(6, Continue(), "T-2", cost_usd=9.0))
    assert [(a["taskId"], a["iteration"]) for a in stage.anomalies] == [("T-1", 4), ("T-1", 5)]
    for recorded in ({"cost": 0.1, "key": "1"}, {"cost": "odd", "key": "2"}):
        stage.records.iteration({"taskId": "T-3", **recorded})
    stage.play(*turn(7, Continue(), "T-3", cost_usd=0.21))
    assert stage.anomalies[-1]["taskId"] == "T-3"


def test_an_edited_journal_is_told_once(stage: Stage, tmp_path: Path) -> None:
    journal = FileJournal(str(tmp_path / "journal.jsonl"))
    reader = stage.read_by(stage.hooks, intact=journal.intact)
    for number in (1, 2, 3):
        for fact in turn(number, Continue()):
            journal.record(fact)
            reader.on_fact(fact)
        if number == 1:
            assert not stage.anomalies
            (tmp_path / "journal.jsonl").write_text("{}\n")
    journal.close()
    assert [(a["kind"], a["iteration"]) for a in stage.anomalies] == [("journal", 2)]


def taken(stage: Stage, *numbers: int, **more: object) -> None:
    """Earlier tasks took so many iterations, of ten seconds and a tenth of a dollar each."""
    for number, count in enumerate(numbers):
        lesson = {"taskId": f"E-{number}", "status": "done", "key": str(number)}
        took = {"iterations": count, "seconds": 10.0 * count, "cost": 0.1 * count}
        stage.records.lesson({**lesson, **took, **more})


def test_a_task_that_leaves_its_interval_is_told_once(stage: Stage) -> None:
    """ADR 46: more iterations, time or money than were forecast for one task."""
    taken(stage, *[2, 3] * 5)
    for number in range(1, 8):
        stage.play(*turn(number, Continue()))
    (odd,) = stage.anomalies
    assert (odd["kind"], odd["taskId"], odd["iteration"]) == ("forecast", "T-1", 4)
    assert odd["detail"] == (
        "the task has taken 4 iterations, more than the 3 iterations of its forecast "
        "(by 10 earlier tasks)"
    )
    assert stage.told == [f"Anomaly (forecast) in T-1, iteration 4: {odd['detail']}"]
    stage.play(*turn(8, Accept(()), "T-2"))
    assert len(stage.anomalies) == 1


def test_a_dear_task_leaves_its_interval_too(stage: Stage) -> None:
    taken(stage, *[2, 3] * 5)
    stage.play(*turn(1, Continue(), cost_usd=3.0))
    assert [(a["kind"], a["iteration"]) for a in stage.anomalies] == [("forecast", 1)]
    assert stage.anomalies[0]["detail"].startswith("the task has taken $3.00, more than the $0.")


def test_what_was_told_before_a_crash_is_not_told_again(stage: Stage) -> None:
    taken(stage, *[2, 3] * 5)
    facts = [fact for number in range(1, 6) for fact in turn(number, Continue())]
    stage.play(*facts)
    again = stage.read_by(stage.hooks, state=replay(facts))
    stage.play(*turn(6, Continue()), reader=again)
    assert [a["kind"] for a in stage.anomalies] == ["forecast"]


def test_too_few_tasks_forecast_nothing(stage: Stage) -> None:
    taken(stage, 1, 1, 1)
    for number in range(1, 9):
        stage.play(*turn(number, Continue(), cost_usd=0.1))
    assert stage.anomalies == []


def test_a_large_task_may_take_long(stage: Stage) -> None:
    """By its estimate, where those of earlier tasks were right."""
    for count in (1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4):
        number = len(stage.records.lessons())
        took = {"iterations": count, "seconds": 10.0 * count, "cost": None, "estimate": count}
        about = {"taskId": f"E-{number}", "status": "done", "key": str(number)}
        stage.records.lesson({**about, **took})
    small = stage.read_by(stage.hooks, task_of=lambda task: {"id": task, "estimate": 1})
    large = stage.read_by(stage.hooks, task_of=lambda task: {"id": task, "estimate": 8})
    for number in range(1, 7):
        stage.play(*turn(number, Continue(), "T-8"), reader=large)
    assert stage.anomalies == []
    for number in range(1, 7):
        stage.play(*turn(number, Continue()), reader=small)
    assert [a["kind"] for a in stage.anomalies] == ["forecast"]


# ------------------------------------------------------------------ hooks that fail


def test_a_hook_that_raises_is_told_once_and_the_others_are_called(stage: Stage) -> None:
    """ "a failing hook never ends the run"."""

    def fail(*_: object) -> None:
        raise ValueError(f"no {KEY}\nwhatever")

    failing = Hooks(**dict.fromkeys(NAMES, fail))
    reader = stage.read_by(failing, stage.hooks, failing)
    for number in range(1, 6):
        stage.play(
            *turn(number, Park("3 iterations without any progress", Cause.STALLED)), reader=reader
        )
    told = [line for line in stage.told if line.startswith("The hook")]
    why = "failed: ValueError: no [redacted] whatever. The run goes on."
    called = ["onTaskStart", "onIterationStart", "onAnomaly", "onIterationEnd", "onTaskEnd"]
    assert sorted(told) == sorted(f"The hook {name} {why}" for name in called * 2)
    assert len(stage.heard) == 25


def test_a_task_file_that_is_gone_does_not_matter(stage: Stage) -> None:
    def gone(_: str) -> Json:
        raise FileNotFoundError

    stage.play(began(1), reader=stage.read_by(stage.hooks, task_of=gone))
    assert stage.heard[0] == ("onTaskStart", {"id": "T-1"})


# ------------------------------------------------------------------ commands


def settings(**chosen: str) -> dict[str, str | None]:
    return dict.fromkeys(NAMES.values()) | chosen


def test_the_names_are_those_of_the_settings() -> None:
    assert tuple(NAMES) == HookSettings.__struct_fields__
    assert tuple(NAMES.values()) == HookSettings.__struct_encode_fields__
    assert commands(settings(), ".", {}, print) == Hooks()


def test_commands_get_json_on_standard_input(stage: Stage) -> None:
    """ "stdin `{hook, task, iteration?, result?, success?}`"."""
    every = settings(**dict.fromkeys(NAMES.values(), "cat >> said.jsonl"))
    reader = stage.read_by(commands(every, str(stage.workspace), os.environ, stage.told.append))
    stage.play(began(1), reader=reader)
    reader.on_events([ToolStart("1", "Read", "a.py")])
    stall = Park("3 iterations without any progress", Cause.STALLED)
    stage.play(*turn(1, stall)[1:], reader=reader)
    said = [json.loads(line) for line in (stage.workspace / "said.jsonl").read_text().splitlines()]
    about = {"task": {"id": "T-1"}, "iteration": 1}
    where = {"taskId": "T-1", "iteration": 1}
    read = {"type": "read", "tool": "Read", "summary": "a.py"}
    odd = {"kind": "stalled", "detail": stall.why}
    assert said == [
        {"hook": "onTaskStart", "task": {"id": "T-1"}},
        {"hook": "onIterationStart", **about},
        {"hook": "onAction", **about, "action": {**read, **where}},
        {"hook": "onAnomaly", **about, "anomaly": {**odd, **where}},
        {"hook": "onIterationEnd", **about, "result": {"status": "blocked", "blocker": stall.why}},
        {"hook": "onTaskEnd", **about, "success": False},
    ]


def test_a_failing_command_is_told_once_with_what_it_said(stage: Stage) -> None:
    chosen = settings(onIterationStart="echo oops >&2; exit 7", onTaskStart="echo fine")
    reader = stage.read_by(commands(chosen, str(stage.workspace), os.environ, stage.told.append))
    for number in (1, 2, 3):
        stage.play(*turn(number, Continue()), reader=reader)
    assert stage.told == ["The hook onIterationStart failed: exit code 7: oops. The run goes on."]


def test_a_command_that_hangs_is_ended(stage: Stage) -> None:
    """The agent's stream waits for onAction: it is not called again."""
    chosen = settings(onAction="echo x >> calls; sleep 99", onTaskStart="sleep 99")
    hooks = commands(chosen, str(stage.workspace), os.environ, stage.told.append, patience=0.2)
    reader = stage.read_by(hooks)
    stage.play(began(1), reader=reader)
    reader.on_events([ToolStart("1", "Read", "a.py")] * 3)
    assert stage.told == [
        "The hook onTaskStart failed: it took longer than 0.2s. The run goes on.",
        "The hook onAction failed: it took longer than 0.2s. It is not called again.",
    ]
    assert (stage.workspace / "calls").read_text() == "x\n"
