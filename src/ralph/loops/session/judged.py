"""The stops of a session judged again by today's rules (ADR 55)."""

from collections.abc import Iterator

from ralph.kernel.case import Case, decided_by
from ralph.kernel.claims import Claim
from ralph.kernel.contracts import PromiseTag
from ralph.kernel.findings import Finding
from ralph.kernel.judging import OLD, Rejudged
from ralph.kernel.limits import Spent
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Accept, Answer, Boundary, Continue, Reason, Stop
from ralph.loops.session.policy import session as session_profile
from ralph.loops.session.state import Decision, SessionLoop


def judged_again(loop: SessionLoop) -> Iterator[Rejudged]:
    """Each decision of a loop. What is said to people and to the agent is not compared."""
    wish = loop.wish
    least = wish.min_tool_calls if wish.on_promise_no_work == "reject" else 0
    contract = PromiseTag(wish.promise)
    policy = session_profile(contract, wish.max_iterations, least, ultrawork=wish.ulw)
    for decision in loop.decisions:
        turn = Turn(claims=tuple(map(Claim, decision.claims)), tools=decision.tools)
        then: Answer = Accept(()) if decision.accepted else Continue()
        if decision.rule == "RunLimit":
            then = Stop(Reason.LIMIT)
        found = Rejudged(
            loop.started,
            decision.iteration,
            "",
            str(Boundary.STOPPING),
            then,
            decision.rule,
            turn=turn,
            findings=decision.objections,
            wordless=True,
        )
        if not decision.rule:
            yield replace(found, unjudged=OLD)
            continue
        answer, rule = decided_by(_case(loop, decision, turn), policy.stopping)
        yield replace(found, now=_without_words(answer), rule_now=rule)


def _case(loop: SessionLoop, decision: Decision, turn: Turn) -> Case:
    state = RunState(
        iteration=decision.iteration,
        spent=Spent(iterations=decision.iteration),
        assignment=Assignment("loop"),
        turn=turn,
    )
    backlog = Backlog((Task("loop", text=loop.wish.task),))
    findings = tuple(Finding(gate, "") for gate in decision.objections)
    return Case(
        Boundary.STOPPING, state, loop.started, backlog=backlog, findings=findings, checked=True
    )


def _without_words(answer: Answer | None) -> Answer | None:
    match answer:
        case Accept():
            return Accept(())
        case Continue():
            return Continue()
        case Stop(reason=reason):
            return Stop(reason)
        case _:
            return answer
