"""A watched run: facts and events in, a view out."""

from collections.abc import Sequence

import pytest

from ralph.journal.runs import Run
from ralph.kernel.events import AgentEvent, ToolEnd, ToolStart, Used
from ralph.kernel.facts import (
    Asked,
    Assigned,
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Launching,
    Returned,
    Settled,
    Started,
)
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Boundary, Cause, Continue, Park, Reason, Stop, Wait
from ralph.kernel.world import NOTE, Origin, Request, Signals
from ralph.ui.style import Style
from ralph.watch.model import GateView, Model, Seen, View

DAY = 86_400.0
RUN = Run("20260101-100000-aaaa", "/state")
SETTINGS = '{"guardrails":[{"command":"make test"}]}'
STARTED = Started(
    DAY, RUN.id, "harness", "/w", 7, "0.2", SETTINGS, Limits(5, dollars=2.0), "claude", "opus"
)
BEGAN = Began(DAY + 1, 1, Assignment("prompt", title="Fix it"))
WORKS = Launching(DAY + 2, Role.WORK, "claude", "/s/001.stream")
ENDED = Ended(DAY + 60, Turn(text="x", cost_usd=0.5))
CALLS = ToolStart("1", "Bash", "make test")
OBJECTS = Checked(DAY + 65, "make test", 4.0, (Finding("make test", "3 failed", code=1),))
AGAIN = Decided(DAY + 66, Boundary.CLOSING, Continue(()))
SETTLED = Settled(DAY + 67, Continue(()))
SEEN = Seen(DAY + 100, pid=7)
NOTED = Request("1-a", NOTE, Origin.WATCH, DAY, "Mind the API")


def model(*told: Fact | AgentEvent, now: float = DAY + 90) -> Model:
    """A run that was told these; all events at one time."""
    made = Model(RUN, Style())
    tell(made, told, now=now)
    return made


def tell(made: Model, told: Sequence[Fact | AgentEvent], task: str = "", now: float = 0.0) -> None:
    run = Run(f"{RUN.id}-{task}", RUN.directory, lead=RUN) if task else RUN
    track = made.track(run, task)
    for each in told:
        if isinstance(each, Fact):
            track.fact(each)
        else:
            track.event(each, now)


def doing(view: View) -> list[str]:
    return [f"{found.which}: {found.what}{found.how_long}" for found in view.moments]


@pytest.mark.parametrize(
    ("told", "seen", "state", "moments"),
    [
        ((), SEEN, "running", []),
        ((STARTED,), SEEN, "running", [": starting 1m40s"]),
        ((STARTED, BEGAN, WORKS), SEEN, "running", ["1/5: silent for 1m38s"]),
        ((STARTED, BEGAN, WORKS, CALLS), SEEN, "running", ["1/5: Bash(make test) 10s"]),
        (
            (STARTED, BEGAN, WORKS, CALLS, ToolEnd("1", "ok")),
            SEEN,
            "running",
            ["1/5: thinking 10s"],
        ),
        (
            (STARTED, BEGAN, WORKS, ENDED, Checking(DAY + 61, "make test")),
            SEEN,
            "running",
            ["1/5: guardrail: make test 39s"],
        ),
        ((STARTED, BEGAN, WORKS), Seen(DAY + 100), "crashed", []),
        (
            (STARTED, Settled(DAY + 9, Stop(Reason.LIMIT, "used up"))),
            Seen(DAY + 100),
            "limit",
            [],
        ),
        (
            (STARTED, Decided(DAY + 1, Boundary.OPENING, Wait(DAY + 200, "rate limit"))),
            SEEN,
            "waiting",
            [": rate limit: 1m40s left, until 00:03:20"],
        ),
    ],
)
def test_the_state_and_what_goes_on(
    told: tuple[Fact | AgentEvent, ...],
    seen: Seen,
    state: str,
    moments: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    view = model(*told).view(seen)
    assert (view.state, doing(view)) == (state, moments)


def test_money_includes_what_the_turn_has_told() -> None:
    view = model(STARTED, BEGAN, WORKS, ENDED, AGAIN, SETTLED).view(SEEN)
    assert view.spent.dollars == 0.5
    begun = (STARTED, BEGAN, WORKS, ENDED, AGAIN, SETTLED, replace(BEGAN, iteration=2))
    view = model(*begun, replace(WORKS, time=DAY + 70), Used(cost_usd=0.25)).view(SEEN)
    assert view.spent.dollars == 0.75


def test_gates_keep_their_last_word_until_they_run_again() -> None:
    runs = (STARTED, BEGAN, WORKS, ENDED, Checking(DAY + 61, "make test"))
    assert model(*runs).view(SEEN).gates == (GateView("make test", since=DAY + 61),)
    red = GateView("make test", seconds=4.0, ok=False)
    ran = (*runs, OBJECTS, Checked(DAY + 65, "protect", 0.1))
    assert model(*ran).view(SEEN).gates == (red,)
    again = (*ran, AGAIN, SETTLED, replace(BEGAN, iteration=2))
    assert model(*again).view(SEEN).gates == (red,), "the agent works on that"
    other = Began(DAY + 70, 3, Assignment("T-2"))
    assert model(*again, other).view(SEEN).gates == ()


def test_a_question_is_there_until_its_task_is_taken_up() -> None:
    started = replace(STARTED, profile="tasks")
    begun = Began(DAY + 1, 1, Assignment("T-1"))
    asks = Settled(DAY + 9, Park("Which database?", Cause.QUESTION))
    followed = model(started, begun, WORKS, ENDED, asks)
    view = followed.view(SEEN)
    assert [(q.task, q.text) for q in view.asks] == [("T-1", "Which database?")]
    assert view.state == "asking"
    followed.answered("T-1")
    assert followed.view(SEEN).asks == ()
    answered = Asked(DAY + 10, Request("2-a", "answer", Origin.CLI, DAY, "SQLite", "T-1"))
    again = replace(begun, time=DAY + 10, iteration=2)
    for told in (answered, again):
        assert model(started, begun, WORKS, ENDED, asks, told).view(SEEN).asks == ()


def test_notes_wait_until_a_prompt_holds_them() -> None:
    left = replace(SEEN, asked=Signals(requests=(NOTED,)))
    assert model(STARTED).view(left).notes == 1
    heard = model(STARTED, Asked(DAY + 1, NOTED))
    assert heard.view(left).notes == 1, "it is not counted twice"
    assert heard.view(SEEN).notes == 1
    told = model(STARTED, Asked(DAY + 1, NOTED), BEGAN, WORKS)
    assert told.view(left).notes == told.view(SEEN).notes == 0
    judged = model(STARTED, Asked(DAY + 1, NOTED), BEGAN, WORKS, ENDED, AGAIN)
    assert judged.view(SEEN).notes == 0


def test_a_crew_has_a_line_for_each_worker_and_pauses_by_them() -> None:
    started = replace(STARTED, profile="tasks", workers=2)
    sent = [Assigned(DAY + 1, Assignment(task), f"{RUN.id}-{task}") for task in ("T-1", "T-2")]
    lead = model(started, *sent)
    for task, more in (("T-1", (CALLS,)), ("T-2", ())):
        begun = Began(DAY + 2, 1, Assignment(task, before=0, most=10))
        tell(lead, (replace(started, workers=1), begun, WORKS, *more), task, now=DAY + 95)
    view = lead.view(SEEN)
    assert doing(view) == ["T-1 1/10: Bash(make test) 5s", "T-2 1/10: silent for 1m38s"]
    assert view.spent.iterations == 2
    back = Returned(DAY + 50, "T-1", sent[0].worker, Accept(()), Spent(1, dollars=0.5))
    lead.track(RUN, "").fact(back)
    lead.track(RUN, "").fact(replace(back, task="T-2", worker=sent[1].worker))
    view = lead.view(replace(SEEN, asked=Signals(paused=True)))
    assert (view.state, view.spent.dollars, doing(view)) == ("paused", 1.0, [])
