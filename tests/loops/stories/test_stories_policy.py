"""R, reviewed stories: the list is the law, the promise only a hint."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from kits.histories import (
    BLOCKED,
    COMPLETE,
    CRASH,
    CUT,
    MISSING,
    WORK,
    Played,
    erred,
    limited,
    play,
    said,
)
from ralph.kernel.case import Case
from ralph.kernel.engine import stop_hook
from ralph.kernel.facts import Began, Fact, Resumed, Step
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.rules import Patience
from ralph.kernel.state import RunState, replay
from ralph.kernel.tasks.task import Assignment, Backlog, Mode, ReviewStatus, Task
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.verdict import Boundary, Continue, Feedback, Release
from ralph.loops.stories.policy import Desk, reviewed
from ralph.loops.stories.prompt import StoryTerms
from ralph.testing.fakes import FakeAgent, FakeGate, FakeWorld, fake_ports

NEEDS, CHANGES, APPROVED = ReviewStatus
ONE = Task("US-1", "one", "make one", priority=1)
TWO = Task("US-2", "two", "make two", priority=2)
GOOD = replace(ONE, review=APPROVED, passes=True)
SILENT = Turn()
# What each turn does to the list: id, and the fields it changes.
Change = tuple[str, Mapping[str, object]]
SUBMIT, REJECT = {"review": NEEDS}, {"review": CHANGES}
APPROVE = {"review": APPROVED, "passes": True}


@dataclass(frozen=True)
class History:
    """One row: list, turns and what they change in; modes, verdicts and exit code out."""

    name: str
    stories: tuple[Task, ...]
    turns: tuple[Turn | tuple[Turn, ...], ...]
    modes: str
    verdicts: str
    exit_code: int
    changes: dict[int, Change] = field(default_factory=dict)  # by iteration
    limits: Limits = Limits(iterations=15)
    skip_review: bool = False


CYCLE: dict[int, Change] = {
    1: ("US-1", SUBMIT),
    2: ("US-1", REJECT),
    3: ("US-1", SUBMIT),
    4: ("US-1", APPROVE),
}
HISTORIES = [
    History("all approved at the start", (GOOD,), (), "", "", 0),
    History("an empty list is not complete", (), (), "", "", 3),
    History("implement, review, fix, review", (ONE,), (WORK,),
            "implement review review-fix review", "Continue Continue Continue Stop", 0,
            changes=CYCLE),
    History("a fix before a review before new work",
            (ONE, replace(TWO, review=NEEDS), Task("US-3", review=CHANGES)), (WORK,),
            "review-fix review review implement", "Continue Continue Continue Stop", 1,
            changes={1: ("US-3", SUBMIT), 2: ("US-2", APPROVE), 3: ("US-3", APPROVE)},
            limits=Limits(iterations=4)),
    History("a fix goes on though what it waits for was reopened",
            (ONE, replace(TWO, review=CHANGES, blocked_by=("US-1",))), (WORK,),
            "review-fix review implement", "Continue Continue Stop", 1,
            changes={1: ("US-2", SUBMIT), 2: ("US-2", APPROVE)}, limits=Limits(iterations=3)),
    History("new work waits for what was reopened",
            (replace(ONE, review=CHANGES), replace(TWO, blocked_by=("US-1",))), (WORK,),
            "review-fix review implement", "Continue Continue Stop", 1,
            changes={1: ("US-1", SUBMIT), 2: ("US-1", APPROVE)}, limits=Limits(iterations=3)),
    History("a false claim", (ONE,), (COMPLETE, WORK, WORK), "implement implement review",
            "Continue Continue Stop", 0, changes={2: ("US-1", SUBMIT), 3: ("US-1", APPROVE)}),
    History("complete without a word", (replace(ONE, review=NEEDS),), (WORK,), "review", "Stop", 0,
            changes={1: ("US-1", APPROVE)}),
    History("approved by a turn that crashed", (replace(ONE, review=NEEDS),), (CRASH,), "review",
            "Stop", 0, changes={1: ("US-1", APPROVE)}),
    History("approved at the limit", (replace(ONE, review=NEEDS),), (WORK,), "review", "Stop", 0,
            changes={1: ("US-1", APPROVE)}, limits=Limits(iterations=1)),
    History("the limit", (ONE,), (WORK,), "implement implement", "Continue Stop", 1,
            limits=Limits(iterations=2)),
    History("no story can be started", (replace(ONE, blocked_by=("US-2",)),
            replace(TWO, blocked_by=("US-1",))), (), "", "", 3),
    History("a list that contradicts itself", (Task("US-9", passes=True),), (), "", "", 3),
    History("silence is taken again three times", (ONE,), (SILENT,),
            "implement implement implement implement", "Wait Wait Wait Stop", 1,
            limits=Limits(iterations=1)),
    History("silence, then work", (ONE,), ((SILENT, WORK),), "implement implement", "Wait Stop", 1,
            limits=Limits(iterations=1)),
    History("three failures", (ONE,), (CRASH,), "implement implement implement",
            "Continue Continue Stop", 5),
    History("stalled", (ONE,), (WORK,), "implement implement implement", "Continue Continue Stop",
            4),
    History("BLOCKED", (ONE,), (BLOCKED,), "implement", "Stop", 3),
    History("unstartable", (ONE,), (MISSING,), "implement", "Stop", 2),
    History("401", (ONE,), (erred(401),), "implement", "Stop", 2),
    History("429", (ONE,), ((limited(), BLOCKED),), "implement implement", "Wait Stop", 3),
    History("without reviews", (ONE, TWO), (WORK,), "implement implement", "Continue Stop", 0,
            changes={1: ("US-1", {"passes": True}), 2: ("US-2", {"passes": True})},
            skip_review=True),
    History("without reviews, after some", (replace(ONE, review=NEEDS),), (WORK,), "implement",
            "Stop", 0, changes={1: ("US-1", {"passes": True})}, skip_review=True),
]  # fmt: skip


def editing(world: FakeWorld, changes: dict[int, Change]) -> Callable[[Order], None]:
    """The agent's hand in the list."""

    def edit(order: Order) -> None:
        if order.iteration in changes:
            story, fields = changes[order.iteration]
            world.update(story, **fields)

    return edit


def played(history: History) -> Played:
    world = FakeWorld(Backlog(history.stories))
    tree = iter(range(99))
    if history.name != "stalled" and "silence" not in history.name:
        world.tree = lambda: str(next(tree))
    agent = FakeAgent(history.turns, during=editing(world, history.changes))
    terms = StoryTerms(15, skip_review=history.skip_review)
    return play(reviewed(limits=history.limits, terms=terms), agent, world)


def modes(result: Played) -> str:
    return " ".join(f.assignment.mode for f in result.facts if isinstance(f, Began))


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.name)
def test_history(history: History) -> None:
    result = played(history)
    assert (modes(result), result.names) == (history.modes, history.verdicts)
    assert result.exit_code == history.exit_code


def test_a_false_claim_is_told_which_stories_are_left() -> None:
    result = played(next(h for h in HISTORIES if h.name == "a false claim"))
    why = "You said <promise>COMPLETE</promise>, but these are not approved: US-1."
    assert result.agent.prompts()[1].endswith(why)


def test_a_review_is_another_role() -> None:
    """ADR 1: "role WORK | REVIEW | MESSAGE (wiring maps a role to agent, model ...)"."""
    result = played(HISTORIES[2])
    roles = [order.role for order in result.agent.orders]
    assert roles == [Role.WORK, Role.REVIEW, Role.WORK, Role.REVIEW]


def test_the_prompt_names_mode_and_story() -> None:
    result = played(HISTORIES[2])
    assert result.agent.prompts()[:2] == [
        "Mode: implement\nStory: US-1\n\nmake one",
        "Mode: review\nStory: US-1\n\nmake one",
    ]


def test_a_turn_cut_off_by_a_crash_is_told_so() -> None:
    """ADR 21: R works in place; "on resume the agent is told"."""
    began = Began(900.0, 2, Assignment("US-1", mode=Mode.REVIEW_FIX))
    facts: list[Fact] = [began, Resumed(950.0, 8)]
    result = play(reviewed(), [BLOCKED], FakeWorld(Backlog((ONE,))), state=replay(facts))
    [prompt] = result.agent.prompts()
    assert prompt.startswith("Iteration 2 was cut off")
    assert prompt.endswith("Mode: review-fix\nStory: US-1\n\nmake one")


TAMPERED = Finding("transitions", "Implement iterations cannot set passes=true.")
LAW = FakeGate("transitions", always=True, fails_in=frozenset({1}), finding=TAMPERED)


class CorrectingDesk(Desk):
    """Puts the one story back, and remembers when it did."""

    def __init__(self, world: FakeWorld) -> None:
        self.world = world
        self.corrected: list[int] = []

    def correct(self, state: RunState) -> str:
        if not state.findings:
            return ""
        self.corrected.append(state.iteration)
        self.world.tasks = Backlog((ONE,))
        return "US-1: passes true → false"


def tampering(turn: Turn) -> tuple[Played, list[int]]:
    """The first turn approves its own story; the law puts the list back."""
    world = FakeWorld(Backlog((ONE,)))
    desk = CorrectingDesk(world)
    agent = FakeAgent([(turn, BLOCKED), BLOCKED], during=editing(world, {1: ("US-1", APPROVE)}))
    policy = reviewed(desk, patience=Patience(fail_after=2), gates=(LAW,))
    return play(policy, agent, world), desk.corrected


@pytest.mark.parametrize(
    "turn", [WORK, COMPLETE, CRASH, CUT, erred(500), limited(), SILENT, BLOCKED]
)
def test_what_the_agent_may_not_touch_is_put_back_under_every_verdict(turn: Turn) -> None:
    """ADR 20: "reverted ..., the correction is committed ... and fed back"."""
    result, corrected = tampering(turn)
    assert corrected[0] == 1
    assert result.steps[0] == ("correct", True, "US-1: passes true → false")
    assert result.exit_code == 3, "nobody approves his own work"
    assert all(TAMPERED.text in prompt for prompt in result.agent.prompts()[1:])


def test_the_correction_is_made_once() -> None:
    result, corrected = tampering(WORK)
    assert (corrected, result.names) == ([1], "Continue Stop")


def test_a_correction_of_before_a_kill_is_not_made_again() -> None:
    """A person may have changed the list since; what follows the correction is done."""
    first, _ = tampering(WORK)
    done = next(n for n, fact in enumerate(first.facts) if isinstance(fact, Step))
    state = replay([*first.facts[: done + 1], Resumed(950.0, 8)])
    desk = CorrectingDesk(first.world)
    result = play(reviewed(desk, gates=(LAW,)), [BLOCKED], first.world, state=state)
    assert (desk.corrected, result.steps[0][0]) == ([], "review")


def hold(state: RunState, *findings: Finding) -> tuple[object, RunState]:
    gates = tuple(FakeGate(f.gate, fails_in=frozenset(range(9)), finding=f) for f in findings)
    policy = reviewed(gates=gates)
    ports = fake_ports(FakeAgent([]), FakeWorld(Backlog((ONE,))))
    return stop_hook(policy, ports, state, said("I stop here"))


def test_the_stop_hook_holds_a_session_back_five_times() -> None:
    """R §5b: "All must pass or the stop is blocked"; ADR 1: hold_limit."""
    state = replay([Began(900.0, 1, Assignment("US-1"))])
    dirty = Finding("clean tree", "Commit ALL changes.")
    for _ in range(5):
        verdict, state = hold(state, dirty)
        assert verdict == Continue((Feedback("Commit ALL changes."),))
    assert hold(state, dirty)[0] == Release("held back 5 times")


def test_the_stop_hook_lets_go_when_nothing_is_wrong() -> None:
    state = replay([Began(900.0, 1, Assignment("US-1"))])
    verdict, after = hold(state)
    assert verdict == Release()
    assert (after.iteration, after.holds) == (1, 0)


def test_the_same_gates_hold_a_session_and_judge_a_turn() -> None:
    """R §5b is the courtesy of the hook; ADR 20: the same is the law of the host."""
    policy = reviewed(gates=(LAW,))
    assert policy.gates[Boundary.STOPPING] == policy.gates[Boundary.CLOSING] == (LAW,)


def changing(gate: FakeGate, history: tuple[Turn, ...], stall_after: int = 3) -> Played:
    """A run whose every turn commits something, judged by a gate."""
    world = FakeWorld(Backlog((ONE,)))
    tree = iter(range(99))
    world.tree = lambda: str(next(tree))
    patience = Patience(stall_after=stall_after)
    return play(reviewed(gates=(gate,), patience=patience), FakeAgent(list(history)), world)


class Other(FakeGate):
    """Finds something else every time."""

    def check(self, case: Case) -> Iterable[Finding]:
        return (Finding("make test", f"test {case.state.iteration} fails", code=1),)


CLAIM = said("<promise>COMPLETE</promise>")
ALWAYS = frozenset(range(99))


@pytest.mark.parametrize("turns", [(WORK,), (CLAIM,), (WORK, CLAIM, CUT, WORK)])
def test_the_same_objection_three_times_in_a_row_is_no_progress(turns: tuple[Turn, ...]) -> None:
    """The issue: "the same objection (same gate, same digest of its output) three times in a row is
    "no progress", whatever the agent appends or commits meanwhile"; nor do claims help. A turn
    that was cut is not judged by it, and does not break the row."""
    result = changing(FakeGate(fails_in=ALWAYS), turns)
    assert (len(result.agent.prompts()), result.exit_code) == (3 + turns.count(CUT), 4)
    assert result.stop.why == ("no progress: make test objects to the same thing 3 times in a row")


def test_another_objection_or_none_between_them_is_progress() -> None:
    """Also with `stallAfter` 0 nobody counts."""
    in_turns = FakeGate(fails_in=frozenset({1, 2, 4, 5, 7, 8, 10, 11, 13, 14}))
    assert changing(in_turns, (WORK,)).exit_code == 1
    assert changing(FakeGate(fails_in=ALWAYS), (WORK,), stall_after=0).exit_code == 1
    assert changing(Other(), (WORK,)).exit_code == 1


def test_approved_stories_wait_for_what_a_gate_still_objects_to() -> None:
    """R §5b Check 3: nothing may be left uncommitted; the last story is taken once more."""
    dirty = Finding("clean tree", "Commit ALL changes.")
    gate = FakeGate("clean tree", always=True, fails_in=frozenset({1}), finding=dirty)
    world = FakeWorld(Backlog((replace(ONE, review=NEEDS),)))
    tree = iter(range(9))
    world.tree = lambda: str(next(tree))
    agent = FakeAgent([WORK, WORK], during=editing(world, {1: ("US-1", APPROVE)}))
    result = play(reviewed(gates=(gate,)), agent, world)
    assert (modes(result), result.exit_code) == ("review implement", 0)
    prompt = result.agent.prompts()[1]
    assert "Every story is approved, and nothing is left to implement" in prompt
    assert prompt.endswith("\n\nCommit ALL changes.")


def test_the_project_prompt_is_filled_in() -> None:
    """R §3: iteration, mode and story go into the prompt, as they are."""
    text = (
        "$RALPH_ITERATION/{{RALPH_MAX_ITERATIONS}} ${RALPH_MODE} $RALPH_STORY cap $RALPH_REVIEW_CAP"
    )
    world = FakeWorld(Backlog((replace(ONE, id="US&/$1", text=text),)))
    result = play(reviewed(terms=StoryTerms(7, review_cap=2)), [BLOCKED], world)
    assert result.agent.prompts() == [
        "Mode: implement\nStory: US&/$1\n\n1/7 implement US&/$1 cap 2"
    ]


def test_the_prompt_names_the_folder_of_the_stories() -> None:
    """The issue: "the prompt names the folder given by `--ralph-dir`"; one that does not ask for it
    is told above."""
    world = FakeWorld(Backlog((replace(ONE, text="Read $RALPH_DIR/prd.md"),)))
    for folder, head in (
        ("ralph", ""),
        ("plans/x", "\nFolder of prd.md, tasks.json and progress.txt: plans/x"),
    ):
        result = play(reviewed(terms=StoryTerms(7, folder=folder)), [BLOCKED], world)
        assert result.agent.prompts() == [
            f"Mode: implement\nStory: US-1{head}\n\nRead {folder}/prd.md"
        ]


def test_a_turn_that_may_write_nothing_ends_the_run() -> None:
    """ADR 15: "ends the run (2) with that hint"; in R the list is what is believed, and it did not
    change."""
    world = FakeWorld(Backlog((Task("US-1"),)))
    result = play(reviewed(), [replace(COMPLETE, denied=("Write",))], world)
    assert (result.names, result.turns, result.exit_code) == ("Stop", 1, 2)
