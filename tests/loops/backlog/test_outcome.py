"""B §Iteration Result: continue with a reason, complete with artifacts, blocked, failed."""

from typing import Any

import pytest

from kits.cases import CRASHED, CUT, FINDING, failed, said
from ralph.kernel.contracts import artifacts_of
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Continue, Feedback, Park, Reason, Stop, Verdict, Wait
from ralph.loops.backlog.outcome import Outcome, outcome

COMPLETE = said('<result>{"status": "complete", "artifacts": ["a.ts", 7, "b.ts"]}</result>')
SAID_FAILED = said('<result>{"status": "failed", "error": "no disk\\nleft"}</result>')
SAID_SO = said('<result>{"status": "failed"}</result>')
CARRIED_ON = said('<result>{"status": "continue", "reason": "half done"}</result>')

OUTCOMES: list[tuple[Turn, Verdict, Outcome]] = [
    (
        COMPLETE,
        Accept(("passed: x", "claim")),
        Outcome("complete", "passed: x; claim", ("a.ts", "b.ts")),
    ),
    (Turn(), Stop(Reason.COMPLETED, "done"), Outcome("complete", "done")),
    (Turn(), Park("which?"), Outcome("blocked", "which?")),
    (Turn(), Stop(Reason.BLOCKED, "key"), Outcome("blocked", "key")),
    (CRASHED, Park("limit"), Outcome("blocked", "limit", error="exit code 1: segmentation fault")),
    (failed("API error"), Wait(9.0, "rate limit"), Outcome("waiting", "rate limit")),
    (CRASHED, Continue(), Outcome("failed", "exit code 1: segmentation fault")),
    (CUT, Stop(Reason.FAILING, "3 failures"), Outcome("failed", "timed out after 1m")),
    (SAID_FAILED, Continue(), Outcome("failed", "no disk")),
    (SAID_SO, Continue(), Outcome("failed", "the agent says that it failed")),
    (Turn(), Stop(Reason.LIMIT, "$5 used up"), Outcome("continue", "$5 used up")),
    (Turn(), Stop(Reason.LIMIT), Outcome("continue", "not complete yet")),
    (Turn(), Continue((Feedback("\nSay it.\nSo."),)), Outcome("continue", "Say it.")),
    (CARRIED_ON, Continue(), Outcome("continue", "half done")),
    (Turn(), Continue(), Outcome("continue", "not complete yet")),
]


@pytest.mark.parametrize(("turn", "verdict", "came"), OUTCOMES)
def test_every_verdict_has_a_result(turn: Turn, verdict: Verdict, came: Outcome) -> None:
    assert outcome(turn, verdict) == came


def test_a_finding_is_the_best_reason_to_go_on() -> None:
    assert outcome(CARRIED_ON, Continue((Feedback("x"),)), (FINDING,)) == Outcome(
        "continue", "make test: the tests fail"
    )


@pytest.mark.parametrize(
    ("came", "told"),
    [
        (Outcome("complete", "x", ("a.ts",)), {"status": "complete", "artifacts": ["a.ts"]}),
        (Outcome("continue", "x"), {"status": "continue", "reason": "x"}),
        (Outcome("blocked", "x"), {"status": "blocked", "blocker": "x"}),
        (Outcome("failed", "x"), {"status": "failed", "error": "x"}),
    ],
)
def test_the_object_of_b(came: Outcome, told: dict[str, Any]) -> None:
    """`{ status: "continue"; reason: string } | { status: "complete"; artifacts: string[] } | …`"""
    assert came.result() == told


@pytest.mark.parametrize(
    "text",
    ["", "<result>no JSON</result>", "<result>[1]</result>", '<result>{"artifacts": "a"}</result>'],
)
def test_an_odd_result_names_no_artifacts(text: str) -> None:
    assert artifacts_of(said(text)) == ()
