"""H §SCM Tasks: when Ralph commits, with which words, and what happens if it cannot."""

from dataclasses import replace

import pytest

from kits.histories import CRASH, CUT, DONE, WORK, Played, erred, limited, play, said
from kits.loop_fakes import FakeScm
from ralph.kernel.case import Case
from ralph.kernel.facts import Began, Decided, Ended, Fact, Resumed, Step, scm_task
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Ending, Order, Role, Turn
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop, Verdict
from ralph.kernel.world import Signals
from ralph.loops.prompt.policy import MESSAGE_PROMPT, commit_message, harness
from ralph.testing.fakes import FakeAgent, FakeGate, FakeTrees, FakeWorld

ONE, TWO = Limits(iterations=1), Limits(iterations=2)


def committed(
    scm: FakeScm, *turns: Turn, message: Turn = Turn(text="Fix it"), gate: FakeGate = FakeGate()
) -> Played:
    """A run in which every turn of work leaves the tree dirty."""
    agent = FakeAgent(turns, message)

    def make_changes(order: Order) -> None:
        scm.dirty = scm.dirty or order.role is Role.WORK

    agent.during = make_changes
    limits = Limits(iterations=len(turns))
    return play(harness(limits, gates=(gate,), scm=scm), agent)


def roles(result: Played) -> list[Role]:
    return [order.role for order in result.agent.orders]


def test_every_iteration_whose_gates_pass_is_committed() -> None:
    """ADR 8: "H commits after each iteration whose gates pass"."""
    scm = FakeScm(("commit", "push"))
    result = committed(scm, WORK, DONE)
    assert scm.ran == [("commit", "Fix it"), ("push", "")] * 2
    assert result.exit_code == 0
    assert roles(result) == [Role.WORK, Role.MESSAGE] * 2
    message = result.agent.orders[1]
    assert (message.prompt, message.iteration) == (MESSAGE_PROMPT, 1)


@pytest.mark.parametrize("turn", [CUT, erred(500), limited(), Turn(Ending.UNSTARTABLE, None)])
def test_a_turn_that_did_not_end_by_itself_is_not_committed(turn: Turn) -> None:
    """Issue 2, §4: "SCM only if the turn ended by itself and every gate ran and passed"."""
    scm = FakeScm()
    agent = FakeAgent([(turn, erred(401))])
    result = play(harness(ONE, scm=scm), agent)
    assert (scm.ran, result.steps) == ([], [])


def test_an_exit_code_does_not_stand_against_a_commit_but_a_gate_does() -> None:
    scm = FakeScm()
    gate = FakeGate(fails_in=frozenset({2}))
    committed(scm, CRASH, WORK, gate=gate)
    assert scm.ran == [("commit", "Fix it")]


def test_a_clean_tree_is_committed_without_a_message_turn() -> None:
    """ADR 8: "A clean tree skips SCM without a message turn"."""
    result = play(harness(ONE, scm=FakeScm(dirty=False)), [DONE])
    assert (roles(result), result.steps, result.exit_code) == ([Role.WORK], [], 0)


def test_a_tree_that_cannot_be_looked_at_is_reported() -> None:
    scm = FakeScm(dirty=False, problem="not a git repository")
    result = play(harness(ONE, scm=scm), [DONE])
    assert result.steps == [("scm:changes", False, "not a git repository")]
    assert (roles(result), result.exit_code) == ([Role.WORK], 0)


def test_a_failing_task_is_reported_and_the_run_goes_on() -> None:
    """Issue 2, §4: "Failure is reported, the run goes on"."""
    scm = FakeScm(("commit", "push", "tag"), fails=frozenset({"push"}))
    result = committed(scm, WORK, DONE)
    assert result.steps[:3] == [
        ("scm:message", True, "Fix it"),
        ("scm:commit", True, "Fix it"),
        ("scm:push", False, "push failed"),
    ]
    assert ("tag", "Fix it") not in scm.ran
    assert (result.names, result.exit_code) == ("Continue Accept", 0)


def test_without_a_message_there_is_no_commit() -> None:
    """H §SCM Tasks 2: "If no valid message is extracted, abort SCM tasks with an error"."""
    scm = FakeScm()
    result = committed(scm, DONE, message=Turn(text='{"type":"result"}'))
    why = "the agent gave no commit message"
    assert (scm.ran, result.steps) == ([], [("scm:message", False, why)])
    assert result.exit_code == 0


def test_the_message_turn_costs_money() -> None:
    message = Turn(text="Fix it", cost_usd=0.5)
    result = committed(FakeScm(), said("working", cost=1.0), message=message)
    assert result.state.spent.dollars == 1.5
    assert result.state.spent.iterations == 1


def test_what_the_message_turn_writes_is_put_back_before_the_commit() -> None:
    """ADR 33: what is committed is what the gates have seen."""
    trees, there = FakeTrees({"code": "proven"}), list[str]()
    scm = FakeScm(during=lambda _: there.append(trees.files["code"]))

    def write(order: Order) -> None:
        if order.role is Role.MESSAGE:
            trees.files = {"code": "never checked", "new": "x"}

    policy = harness(ONE, gates=(FakeGate(),), scm=scm)
    result = play(policy, FakeAgent([DONE], during=write), trees=trees)
    assert (there, trees.files) == (["proven"], {"code": "proven"})
    words = "The commit-message turn changed code, new: put back; what it wrote is kept in"
    assert result.steps[0] == ("scm:undone", True, f"{words} .ralph/reverted/1")
    assert result.exit_code == 0


def test_the_law_is_asked_after_each_task_too() -> None:
    """ADR 12: hooks of a commit and a push run code that the agent wrote."""
    done: list[str] = []
    law = FakeGate("protect", always=True, during=lambda _: done.append("law"))
    scm = FakeScm(("commit", "push", "tag"), during=done.append)
    policy = harness(
        ONE, gates=(FakeGate(during=lambda _: done.append("gate")),), scm=scm, law=(law,)
    )
    assert play(policy, [DONE]).exit_code == 0
    after = done[done.index("commit") :]
    assert after == ["commit", "law", "push", "law", "tag", "law"]


def test_a_law_that_the_message_turn_breaks_keeps_it_from_being_committed() -> None:
    broken: list[Order] = []
    agent = FakeAgent([WORK], during=broken.append)

    class Objecting(FakeGate):
        def check(self, case: Case) -> tuple[Finding, ...]:
            asked = any(order.role is Role.MESSAGE for order in broken)
            return (Finding("protect", "one.txt was changed"),) if asked else ()

    scm = FakeScm()
    result = play(harness(ONE, scm=scm, law=(Objecting("protect", always=True),)), agent)
    assert (scm.ran, result.steps[0]) == ([], ("scm:message", False, "one.txt was changed"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Fix the parser", "Fix the parser"),
        ("\n\n  Fix the parser  \nand more", "Fix the parser"),
        ("```\nFix the parser\n```", "Fix the parser"),
        ("```text\n\nFix the parser\n```", "Fix the parser"),
        ("[core] Fix the parser", "[core] Fix the parser"),
        ("Parse <promise>x</promise>", "Parse <promise>x</promise>"),
        ("Here: <response>Fix the parser</response>", "Fix the parser"),
        ("<response>Fix it</response> <response>Break it</response>", "Fix it"),
        ("<response>\nFix it\n\nIt was broken.\n</response>", "Fix it\n\nIt was broken."),
        ("<response>```\nFix it\n```</response>", "Fix it"),
        ("<response>  </response>\nFix it", None),
        ('<response>{"message":"Fix it"}</response>', None),
        ('{"type":"assistant","message":"Fix it"}', None),
        ('[{"type":"text"}]', None),
        ('["Fix it"]', None),
        ("<response>Fix it", None),
        ("", None),
        ("\n ```\n``` \n", None),
    ],
)
def test_how_a_message_is_found(text: str, message: str | None) -> None:
    """H §SCM Tasks 2, issue 2 §4: the tag's content, else the first line; never JSON."""
    assert commit_message(said(text)) == message


@pytest.mark.parametrize("turn", [CRASH, CUT, erred(500)])
def test_a_message_turn_that_failed_gives_none(turn: Turn) -> None:
    assert commit_message(replace(turn, text="Fix it")) is None


def interrupted_after(*steps: Step, verdict: Verdict = Continue()) -> list[Fact]:
    """A journal that ends in the middle of settling iteration 1."""
    return [
        Began(900.0, 1, Assignment("prompt")),
        Ended(910.0, WORK),
        Decided(910.0, Boundary.CLOSING, verdict, checked=True),
        *steps,
        Resumed(950.0, 8),
    ]


MESSAGE, COMMIT = Step(911.0, "scm:message", detail="Fix it"), Step(912.0, "scm:commit")


@pytest.mark.parametrize(
    ("steps", "orders", "ran"),
    [
        ([], [Role.MESSAGE], ["commit", "push"]),
        ([MESSAGE], [], ["commit", "push"]),
        ([MESSAGE, COMMIT], [], ["push"]),
        ([MESSAGE, COMMIT, Step(913.0, "scm:push")], [], []),
        ([MESSAGE, replace(COMMIT, ok=False)], [], []),
        ([replace(MESSAGE, ok=False)], [], []),
    ],
    ids=["nothing yet", "message", "commit", "push", "refused commit", "no message"],
)
def test_settling_goes_on_where_it_was_cut_off(
    steps: list[Step], orders: list[Role], ran: list[str]
) -> None:
    """ADR 1: "Settle steps are facts with a key": the message is not asked for twice."""
    scm, agent = FakeScm(("commit", "push")), FakeAgent([WORK])
    state = replay(interrupted_after(*steps))
    result = play(harness(ONE, scm=scm), agent, state=state)
    assert (roles(result), [task for task, _ in scm.ran]) == (orders, ran)
    assert result.exit_code == 1


def test_an_interrupted_iteration_is_judged_and_committed_by_the_resumed_run() -> None:
    """Its gates never ran: they do now, and what passes is committed."""
    scm = FakeScm()
    state = replay(interrupted_after(verdict=Stop(Reason.INTERRUPTED, "asked to stop")))
    result = play(harness(ONE, scm=scm), [WORK], state=state)
    assert (result.exit_code, [task for task, _ in scm.ran]) == (1, ["commit"])
    assert roles(result) == [Role.MESSAGE]


def test_what_a_hook_changed_is_checked_and_committed_again() -> None:
    """ADR 33: "the commit is taken back and the gates run on what the hook made"."""
    scm, checks = FakeScm(hooks=["a.py"]), list[str]()
    gate = FakeGate(during=lambda _: checks.append("ran"))
    result = committed(scm, DONE, gate=gate)
    assert scm.ran == [("commit", "Fix it")]
    assert len(checks) == 2
    words = "changed a.py; the gates run again on the result"
    assert ("commit hook", True, words) in result.steps


def test_a_hook_that_changes_each_time_is_reported() -> None:
    """ADR 33: "in `ralph run` the failure is reported"."""
    scm = FakeScm(hooks=["a.py", "a.py"])
    result = committed(scm, DONE)
    assert (scm.ran, result.exit_code) == ([], 0)
    words = "a commit hook changed a.py, each time: what was checked is not what would be committed"
    assert result.steps[-1] == ("scm:commit", False, words)


@pytest.mark.parametrize(
    ("at", "ran", "message"),
    [
        ("message", [], Turn(text="Fix it")),
        ("message", [], replace(CUT, cost_usd=0.5)),
        ("gate", [], Turn(text="Fix it")),
        ("commit", ["commit"], Turn(text="Fix it")),
        ("push", ["commit"], Turn(text="Fix it")),
    ],
    ids=["message", "message cut off", "gates after a hook", "commit", "push that fails"],
)
def test_whoever_is_asked_to_stop_while_it_commits_goes_on_with_that(
    at: str, ran: list[str], message: Turn
) -> None:
    """ "SIGINT during the commit-message turn, then `ralph resume`": the commit and the push are
    not forgotten, and every turn is paid once."""
    world, scm = FakeWorld(), FakeScm(("commit", "push"), hooks=["a.py"] if at == "gate" else [])
    failing, checks = set[int](), list[str]()

    def asked(moment: str) -> None:
        """Somebody asks to stop, and what is under way then may fail for that reason."""
        if moment == at:
            world.asked = Signals(1)
            scm.fails = frozenset({"push"} if at == "push" else ())
            failing.update({1} if at == "gate" else ())

    def checking(_: Case) -> None:
        checks.append("once more")
        asked("gate" if len(checks) == 2 else "")

    scm.during = asked
    agent = FakeAgent([DONE], message, during=lambda order: asked(order.role.value))
    policy = harness(ONE, gates=(FakeGate(fails_in=failing, during=checking),), scm=scm)
    first = play(policy, agent, world)
    assert (first.exit_code, [task for task, _ in scm.ran]) == (130, ran)
    assert "asked to stop before" in first.stop.why
    world.asked, scm.fails, scm.during = Signals(), frozenset(), lambda _: None
    failing.clear()
    again = FakeAgent([], Turn(text="Fix it", cost_usd=0.25))
    last = play(policy, again, world, state=replay([*first.facts, Resumed(950.0, 8)]))
    assert (last.exit_code, [task for task, _ in scm.ran]) == (0, ["commit", "push"])
    asked_again = message.ending is Ending.CUT
    assert roles(last) == [Role.MESSAGE] * asked_again
    whole = replay([*first.facts, Resumed(950.0, 8), *last.facts])
    assert whole.spent.dollars == (0.75 if asked_again else 0.0)
    assert not whole.owed


def test_what_failed_is_owed_until_it_succeeds() -> None:
    """ "A failed SCM task is in the last lines and in `status`"."""
    steps = (
        Step(1.0, "scm:message", ok=False, detail="no words"),
        Step(2.0, "scm:push origin", ok=False, detail="no route"),
        Step(3.0, "scm:message", detail="Fix it"),
        Step(4.0, "scm:commit --signoff", detail="Fix it"),
    )
    states = [replay(list(steps[:n])) for n in range(1, 5)]
    owed = [[scm_task(step) for step in state.owed] for state in states]
    both = ["commit", "push origin"]
    assert owed == [["commit"], both, both, ["push origin"]]
