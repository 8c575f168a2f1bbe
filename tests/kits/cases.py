"""Cases for the tests of rules: everything has a default, a test says what matters."""

from dataclasses import replace

from ralph.kernel.case import Case
from ralph.kernel.claims import find_claims
from ralph.kernel.events import Failure
from ralph.kernel.findings import Finding
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Ending, Pulse, Turn
from ralph.kernel.verdict import Boundary
from ralph.kernel.world import Signals

NOW = 5000.0
ONE = Task("prompt", "the title", "do it")
FINDING = Finding("make test", "the tests fail", code=1)
UNDER_WORK = RunState(time=NOW, iteration=1, assignment=Assignment("prompt"))


def opening(*tasks: Task, state: RunState = RunState(), signals: Signals = Signals()) -> Case:
    return Case(Boundary.OPENING, state, NOW, signals=signals, backlog=Backlog(tasks))


def watching(pulse: Pulse, signals: Signals = Signals(), state: RunState = UNDER_WORK) -> Case:
    return Case(
        Boundary.WATCHING, state, NOW, signals=signals, backlog=Backlog((ONE,)), pulse=pulse
    )


def closing(
    turn: Turn = Turn(),
    *,
    tasks: tuple[Task, ...] = (ONE,),
    state: RunState = UNDER_WORK,
    signals: Signals = Signals(),
    findings: tuple[Finding, ...] = (),
    passed: tuple[str, ...] = (),
    checked: bool = True,
    boundary: Boundary = Boundary.CLOSING,
) -> Case:
    return Case(
        boundary,
        replace(state, turn=turn),
        NOW,
        signals=signals,
        backlog=Backlog(tasks),
        findings=findings,
        passed=passed,
        checked=checked,
    )


def said(text: str, tools: int = 0) -> Turn:
    return Turn(text=text, claims=find_claims(text), tools=tools)


def failed(
    message: str = "API error",
    status: int | None = None,
    resets_at: float | None = None,
    retry_after: float | None = None,
) -> Turn:
    return Turn(exit_code=1, failure=Failure(message, status, retry_after, resets_at))


CRASHED = Turn(exit_code=1, stderr="warning\nsegmentation fault\n")
CUT = Turn(Ending.CUT, exit_code=None, why="timed out after 1m")
MISSING = Turn(Ending.UNSTARTABLE, exit_code=None, why="'claud': no such command")
