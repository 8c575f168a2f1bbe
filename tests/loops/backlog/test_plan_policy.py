"""`ralph tasks plan` as histories: an answer is used, asked for once more, or the end."""

import itertools
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from kits.histories import (
    BLOCKED,
    CRASH,
    MISSING,
    QUESTION,
    WORK,
    Played,
    erred,
    limited,
    play,
    said,
)
from ralph.kernel.case import Case
from ralph.kernel.engine import run
from ralph.kernel.facts import Began, Decided, Fact, Resumed, Step
from ralph.kernel.limits import Limits
from ralph.kernel.rules import Patience
from ralph.kernel.state import RunState, replay
from ralph.kernel.tasks.task import Backlog, Status, Task
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.world import Signals
from ralph.loops.backlog.planning.answer import read
from ralph.loops.backlog.planning.policy import planner
from ralph.loops.backlog.planning.prompt import Wish, plan_prompt
from ralph.loops.backlog.planning.proposal import GOAL, Proposal
from ralph.loops.backlog.rules import DayLimit
from ralph.testing.fakes import (
    FakeAgent,
    FakeClock,
    FakeWorld,
    KilledError,
    MemoryJournal,
    fake_ports,
)

PLAN = said('<tasks>\n{"title": "a", "completion": "test:make"}\n{"title": "b"}\n</tasks>', cost=1)
EMPTY = said("<tasks>\n\n</tasks>")
BAD = said('<tasks>\n{"title": "a", "status": "done"}\n</tasks>')
FAILED_PLAN = replace(PLAN, exit_code=1)


@dataclass
class Desk:
    """A settlement that remembers what was asked of it."""

    changed: tuple[str, ...] = ()  # what each turn changes, in words
    asked: list[str] = field(default_factory=list)

    def begin(self, state: RunState) -> None:
        self.asked.append(f"begin {state.iteration}")

    def keep(self, state: RunState) -> str:
        assert state.turn is not None
        self.asked.append("keep")
        return read(state.turn.text, Backlog()).words

    def restore(self, state: RunState) -> tuple[str, ...]:
        self.asked.append(f"restore {state.iteration}")
        return self.changed

    def end(self) -> None:
        self.asked.append("end")


def propose(case: Case) -> Proposal:
    return read(case.turn.text, Backlog())


def world() -> FakeWorld:
    there = Task("T-001", "there", aside=True)
    return FakeWorld(tasks=Backlog((Task(GOAL, "goal", "Plan it."), there)))


def history(*turns: Turn | tuple[Turn, ...], desk: Desk | None = None, **more: Any) -> Played:  # noqa: ANN401
    policy = planner(desk or Desk(), propose, **more)
    return play(policy, FakeAgent(turns), world())


@pytest.mark.parametrize(
    ("turns", "names", "code", "why"),
    [
        ((PLAN,), "Accept", 0, "nothing is left"),
        ((WORK, PLAN), "Continue Accept", 0, "nothing is left"),
        ((EMPTY, PLAN), "Continue Accept", 0, "nothing is left"),
        ((BAD, PLAN), "Continue Accept", 0, "nothing is left"),
        ((CRASH, PLAN), "Continue Accept", 0, "nothing is left"),
        (((limited(), PLAN),), "Wait Accept", 0, "nothing is left"),
        ((WORK, WORK), "Continue Stop", 1, "the answer has no <tasks>"),
        ((WORK, EMPTY), "Continue Stop", 1, "<tasks> is empty"),
        ((WORK, BAD), "Continue Stop", 1, 'its status is "done"'),
        ((CRASH, WORK), "Continue Stop", 1, "no task can be used of what the agent said"),
        ((FAILED_PLAN, FAILED_PLAN), "Continue Stop", 5, "the agent failed, asked 2 times"),
        ((CRASH, CRASH), "Continue Stop", 5, "exit code 1: boom"),
        ((BLOCKED,), "Stop", 3, "no network"),
        ((QUESTION,), "Stop", 3, "Which port?"),
        ((replace(PLAN, question="Sure?"),), "Accept", 0, "nothing is left"),
        ((replace(PLAN, denied=("Bash",)),), "Accept", 0, "nothing is left"),
        ((MISSING,), "Stop", 2, "no such command"),
        ((erred(401),), "Stop", 2, "the agent's credential was refused"),
    ],
)
def test_an_answer_is_used_asked_for_once_more_or_the_end(
    turns: tuple[Turn | tuple[Turn, ...], ...], names: str, code: int, why: str
) -> None:
    played = history(*turns)
    assert (played.names, played.exit_code) == (names, code)
    assert why in played.stop.why


def test_the_agent_is_told_what_was_wrong() -> None:
    played = history(BAD, PLAN)
    decided = [f for f in played.facts if isinstance(f, Decided) and f.boundary == "closing"]
    assert [len(each.notes) for each in decided] == [1, 0]
    assert decided[0].notes[0].startswith("Nothing of the answer can be used: line 1 (a): ")
    first, second = (order.prompt for order in played.agent.orders)
    assert first == "Plan it."
    assert second.startswith("Plan it.\n\nNothing of your last answer could be used: line 1 (a): ")
    assert "The previous iteration failed: exit code 1: boom" in (
        history(CRASH, PLAN).agent.orders[1].prompt
    )


def test_what_was_proposed_is_kept_once_and_the_project_is_put_back_first() -> None:
    desk = Desk(("put back",))
    played = history(WORK, PLAN, desk=desk)
    assert desk.asked == ["begin 1", "restore 1", "begin 2", "restore 2", "keep", "end"]
    undone, kept = ("undone", True, "put back"), ("plan", True, "2 tasks, 1 of them with a check")
    assert played.steps == [undone, undone, kept]
    assert played.stop.evidence == ("proposed: 2 tasks, 1 of them with a check",)


def test_a_stop_that_somebody_asks_for_can_be_taken_back() -> None:
    desk = Desk()
    asked = world()
    agent = FakeAgent((PLAN,), during=lambda _: setattr(asked, "asked", Signals(cancels=1)))
    played = play(planner(desk, propose), agent, asked)
    assert played.exit_code == 130
    assert desk.asked == ["begin 1", "restore 1"]
    asked.asked = Signals()
    resumed = replay([Resumed(1.0, 7)], played.state)
    again = play(planner(desk, propose), FakeAgent((PLAN,)), asked, state=resumed)
    assert again.exit_code == 0
    assert again.turns == 0, "it is paid already"
    assert desk.asked[2:] == ["restore 1", "keep", "end"]


def test_what_a_cut_off_turn_has_left_goes_first() -> None:
    desk = Desk()
    begun: list[Fact] = list(
        itertools.takewhile(lambda fact: not isinstance(fact, Began), history(PLAN).facts)
    )
    begun += [fact for fact in history(PLAN).facts if isinstance(fact, Began)]
    state = replay([*begun, Resumed(2000.0, 7)])
    assert state.cut_off
    agent = FakeAgent((PLAN,))
    played = play(planner(desk, propose), agent, world(), state=state)
    assert played.exit_code == 0
    assert desk.asked == ["restore 1", "begin 1", "restore 1", "keep", "end"]
    assert "was cut off before it ended" in agent.orders[0].prompt


@pytest.mark.parametrize("killed", range(1, 16))
def test_whenever_it_is_killed_it_comes_to_the_same_end(killed: int) -> None:
    whole, desk, journal = (
        history(WORK, PLAN),
        Desk(("put back",)),
        MemoryJournal(killed_after=killed),
    )
    agent, clock, here = FakeAgent((WORK, PLAN)), FakeClock(), world()
    with suppress(KilledError):
        run(planner(desk, propose), fake_ports(agent, here, journal, clock))
    facts = [*journal.facts]
    if replay(facts).stop is None:
        resumed = Resumed(clock.now(), 7)
        state = replay([*facts, resumed])
        played = play(planner(desk, propose), agent, here, clock, state)
        facts += [resumed, *played.facts]
    end = replay(facts)
    assert end.stop == whole.stop
    assert desk.asked.count("end") >= 1
    assert [f.detail for f in facts if isinstance(f, Step) and f.key == "plan"] == [
        "2 tasks, 1 of them with a check"
    ]
    assert len(agent.orders) <= 3, "at most the turn that was cut off is paid again"
    restored = [n for n, asked in enumerate(desk.asked) if asked == "restore 2"]
    assert restored[0] < desk.asked.index("keep")


@pytest.mark.parametrize(
    ("more", "turns", "why"),
    [
        ({"limits": Limits(dollars=1.0)}, (said("no", cost=2.0), PLAN), "$1"),
        ({"day": DayLimit(5.0, before=4.0)}, (said("no", cost=2.0), PLAN), "the day's $5"),
        ({"day": DayLimit(5.0, before=5.0)}, (PLAN,), "the day's $5"),
        ({"limits": Limits(seconds=0.0)}, (PLAN,), "0"),
    ],
)
def test_limits_end_it_before_the_agent_is_paid_again(
    more: dict[str, Any], turns: tuple[Turn, ...], why: str
) -> None:
    played = history(*turns, **more)
    assert played.exit_code == 1
    assert why in played.stop.why
    assert played.turns == len(turns) - 1


def test_what_was_paid_for_is_used_though_a_limit_is_over() -> None:
    assert history(PLAN, limits=Limits(dollars=0.5)).exit_code == 0


def test_a_limit_that_nobody_can_keep_to_ends_it() -> None:
    used = replace(WORK, usage=replace(WORK.usage, input=9))
    assert history(used, PLAN, money=1.0).exit_code == 2
    assert history(used, PLAN).exit_code == 0


def test_failures_are_spaced() -> None:
    played = history(CRASH, PLAN, patience=Patience(fail_delay=3.0))
    (rest,) = played.clock.rests
    decided = next(f for f in played.facts if isinstance(f, Decided) and f.boundary == "closing")
    assert rest == decided.time + 3.0


def test_the_prompt_has_the_goal_the_text_and_the_tasks_there_are() -> None:
    tasks = [Task(f"T-{n:03}", f"title {n}", status=Status.DONE) for n in range(1, 250)]
    tasks[0] = Task("T-001", "a\nlong " + "x" * 200)
    wish = Wish("Do {this}\n", "It says {that}.\n", "SPEC.md")
    told = plan_prompt(wish, tasks, ("T-250", "T-251"), "npm test")
    for words in (
        "<goal>\nDo {this}\n</goal>",
        '<file path="SPEC.md">\nIt says {that}.\n</file>',
        '{"id": "T-250", ',
        '"blockedBy": ["T-250"]',
        '"command": "npm test"',
        "T-001 (pending): a long xxx",
        "T-249 (done): title 249",
        "and 49 older tasks",
        "Do not repeat them",
    ):
        assert words in told
    assert "x" * 130 not in told
    assert told.index("T-001 (pending)") < told.index("T-249 (done)") < told.index("T-248 (done)")
    alone = plan_prompt(Wish("Do"), [], ("T-001", "T-002"), "")
    assert "There are no tasks yet." in alone
    assert '"command": "make test"' in alone
    assert "<file" not in alone
    example = alone.partition("\n<tasks>\n")[2].partition("\n</tasks>")[0]
    shown = read(f"<tasks>\n{example}\n</tasks>", Backlog())
    assert [record["id"] for record in shown.tasks] == ["T-001", "T-002"]
    assert (shown.refused, shown.notes) == ((), ())
