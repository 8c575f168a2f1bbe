"""Which words count (ADR 3), and which come close but do not."""

import pytest

from ralph.kernel.claims import Claim, find_claims
from ralph.kernel.contracts import (
    CompleteClaim,
    Contract,
    PromiseTag,
    ResponseTag,
    asked,
    said_failed,
    says_done,
)
from ralph.kernel.turn import Turn

H, P, B = ResponseTag(), PromiseTag(), CompleteClaim()
PROMISED = "<promise>COMPLETE</promise>"


def said(text: str, overheard: str = "", question: str | None = None) -> Turn:
    """A turn in which the assistant said this, and something else was to be read."""
    return Turn(
        text=text, claims=find_claims(text), overheard=find_claims(overheard), question=question
    )


def result(status: str, more: str = "") -> str:
    return f'<result>{{"status":"{status}"{more}}}</result>'


@pytest.mark.parametrize(
    ("contract", "text"),
    [
        (H, "<response>DONE</response>"),
        (H, "<response>done</response>"),
        (H, "<RESPONSE>Done</Response>"),
        (H, "<response>\n  DONE \n</response>"),
        (H, "All is well.\n```\n<response>DONE</response>\n```\nBye."),
        (H, "Say <response> when you can. <response>DONE</response>"),
        (H, "<promise>later</promise> <response>DONE</response>"),
        (ResponseTag("All tests pass"), "<response>all tests PASS</response>"),
        (ResponseTag(" ship it "), "<response>ship it</response>"),
        (P, "<promise>DONE</promise>"),
        (P, "```\n<promise>DONE</promise>\n```"),
        (P, "<promise>done</promise> oh, exactly: <promise>DONE</promise>"),
        (P, "<response><promise>DONE</promise></response>"),
        (PromiseTag("TASK COMPLETE"), "<promise>TASK COMPLETE</promise>"),
        (B, PROMISED),
        (B, f"<promise>BLOCKED: no key</promise> found it {PROMISED}"),
        (B, result("complete", ',"artifacts":["a.ts"]')),
        (B, f"{result('continue')}\n{result('complete')}"),
        (B, f"{PROMISED} <promise>whatever</promise>"),
    ],
)
def test_these_words_complete(contract: Contract, text: str) -> None:
    """ADR 3: H trimmed and in any case, P to the letter, B and R the last one."""
    turn = said(text)
    assert contract.met_by(turn) is not None
    assert contract.near_misses(turn) == ()


@pytest.mark.parametrize(
    ("contract", "text", "why"),
    [
        (H, "<promise>DONE</promise>", "<promise>DONE</promise> is not <response>DONE</response>."),
        (H, "<response>I am DONE now</response>", "I am DONE now</response> is not <response>DONE"),
        (H, "It is finished.\nDONE", "The bare word DONE does not count"),
        (H, "So:\n**Done!**\n", "The bare word Done does not count"),
        (H, "All tests pass.\nCOMPLETE", "the tag <response>DONE</response> does."),
        (H, "<response>Done.</response>", "<response>Done.</response> is not <response>DONE"),
        (H, "<response>complete</response>", "complete</response> is not <response>DONE"),
        (H, PROMISED, f"{PROMISED} is not <response>DONE</response>."),
        (H, result("complete"), "</result> is not <response>DONE</response>."),
        (ResponseTag("SHIPPED"), "<response>DONE</response>", "is not <response>SHIPPED"),
        (
            H,
            "<response>started</response> work <response>DONE</response>",
            "it was <response>started</response>: write no other than <response>DONE</response>.",
        ),
        (P, "<promise>done</promise>", "<promise>done</promise> is not exactly <promise>DONE"),
        (P, "<promise> DONE </promise>", "<promise> DONE </promise> is not exactly"),
        (P, "<promise>\nDONE\n</promise>", "is not exactly <promise>DONE</promise>"),
        (P, "<Promise>DONE</Promise>", "<Promise>DONE</Promise> is not exactly"),
        (P, "<response>DONE</response>", "<response>DONE</response> is not exactly"),
        (P, "I am finished.\n\n`DONE`.", "The bare word DONE does not count; the tag <promise>"),
        (B, "<promise>Complete</promise>", "<promise>Complete</promise> is not exactly"),
        (P, "<promise>COMPLETE</promise>", "is not exactly <promise>DONE</promise>"),
        (B, "<response>DONE</response>", "<response>DONE</response> is not exactly <promise>COMP"),
        (B, "<response>COMPLETE</response>", "<response>COMPLETE</response> is not exactly"),
        (B, "COMPLETE", "The bare word COMPLETE does not count"),
    ],
)
def test_near_misses_never_complete_and_are_named(contract: Contract, text: str, why: str) -> None:
    """ADR 3: "wrong case, blanks inside, bare token ... named in the feedback"."""
    turn = said(text)
    assert contract.met_by(turn) is None
    assert why in " ".join(contract.near_misses(turn))


@pytest.mark.parametrize("contract", [H, P, B])
def test_a_tag_only_in_tool_output_is_named(contract: Contract) -> None:
    """ADR 3: never tool output, thinking, hook feedback or a sub-agent's text."""
    turn = said("The log is clean.", overheard=f"$ cat x\n{contract.marker}")
    assert contract.met_by(turn) is None
    [why] = contract.near_misses(turn)
    assert why.startswith(f"{contract.marker} stood only in tool output or in text that is not")


@pytest.mark.parametrize("contract", [H, P, B])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Still at work.",
        "It is not DONE, nor COMPLETE.",
        "<response>not yet</response>",
        "<promise>DONE",
        "DONE</promise> COMPLETE</promise> DONE</response>",
        "< promise>DONE</ promise>",
    ],
)
def test_ordinary_words_are_no_near_miss(contract: Contract, text: str) -> None:
    turn = said(text, overheard="<response>something else</response>")
    assert contract.met_by(turn) is None
    assert contract.near_misses(turn) == ()


def test_a_promise_taken_back_is_no_misspelling() -> None:
    """A later word counts (B); the exact tag before it must not be called inexact."""
    turn = said(f"{PROMISED} no, wait: {result('continue')}")
    assert B.met_by(turn) is None
    assert B.near_misses(turn) == ()


def test_a_long_near_miss_is_shortened() -> None:
    [why] = H.near_misses(said(f"<response>{'x' * 500} DONE</response>"))
    assert why == f"<response>{'x' * 67}... is not <response>DONE</response>."


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("<promise>BLOCKED: no network</promise>", "no network"),
        ("<promise>DECIDE:  tabs or spaces? </promise>", "tabs or spaces?"),
        (result("blocked", ',"blocker":"no key"'), "no key"),
        (result("blocked", ',"reason":7'), "7"),
        (result("blocked", ""), "it gives no reason"),
        ("<promise>BLOCKED: </promise>", "it gives no reason"),
        (f"{PROMISED} <promise>BLOCKED: a review</promise>", "a review"),
        (f"<promise>BLOCKED: a review</promise> {PROMISED}", None),
        ("<promise>BLOCKED</promise>", None),
        ("<promise>blocked: in lower case</promise>", None),
        ("<promise>HELP: me</promise>", None),
        ("BLOCKED: not in a tag", None),
        ("<response>BLOCKED: not a promise</response>", None),
    ],
)
def test_what_the_agent_needs_from_a_person(text: str, need: str | None) -> None:
    """ADR 3: BLOCKED and DECIDE are understood in every profile; the last word counts."""
    assert asked(said(text)) == need


def test_an_unanswered_question_needs_a_person() -> None:
    assert asked(said("Which port?", question="Which port?")) == "Which port?"


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (result("failed", ',"error":"tests hang"'), True),
        (f"{result('failed')} {result('complete')}", False),
        (result("continue"), False),
        ("", False),
    ],
)
def test_an_agent_may_call_its_own_iteration_failed(text: str, failed: bool) -> None:
    """B §Iteration Result: `{ status: "failed"; error: string }`."""
    assert said_failed(said(text)) is failed


@pytest.mark.parametrize(
    "content",
    [
        "",
        "COMPLETE",
        "{",
        "[]",
        '"complete"',
        "null",
        '{"status":"finished"}',
        '{"status":["complete"]}',
        '{"state":"complete"}',
        "[" * 60_000,
        "9" * 5_000,
    ],
)
def test_a_result_that_is_none_says_nothing(content: str) -> None:
    """B's object is JSON of an agent: whatever stands there is never an exception."""
    turn = said(f"<result>{content}</result>")
    assert turn.claims == (Claim(f"<result>{content}</result>"),)
    assert (B.met_by(turn), asked(turn), said_failed(turn)) == (None, None, False)


def test_a_claim_knows_its_tag_and_content() -> None:
    claim = Claim("<Response> a < b </RESPONSE>")
    assert (claim.tag, claim.content) == ("response", " a < b ")


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("<promise>BLOCKED: x</promise> <response>done</response>", None),
        ("<response>DONE</response> <promise>DECIDE: a or b?</promise>", "a or b?"),
        ("<promise>BLOCKED: x</promise> <response>not yet</response>", "x"),
        ("<promise>BLOCKED: x</promise>", "x"),
    ],
)
def test_the_last_of_a_question_and_a_claim_counts(text: str, need: str | None) -> None:
    """ADR 3: "where a question and a claim stand in one answer, the last one counts"."""
    assert asked(said(text), ResponseTag()) == need
    assert asked(said("x", question="Which?"), ResponseTag()) == "Which?"


@pytest.mark.parametrize(
    ("claim", "done"),
    [
        ("<response>DONE</response>", True),
        ("<response>ALL-GREEN</response>", True),  # the word of another contract
        ("<response>not yet</response>", False),
        ("<response>Continue</response>", False),
        (PROMISED, True),
        ("<promise>DECIDE: sqlite or postgres?</promise>", False),
        ("<promise>BLOCKED: no network</promise>", False),
        (result("complete"), True),
        (result("continue"), False),
        ("<result>all is well</result>", False),
    ],
)
def test_a_claim_may_say_something_else_than_that_all_is_done(claim: str, done: bool) -> None:
    """Or a question that was answered by a person would be shown as a claim nobody believed."""
    assert says_done(Claim(claim)) is done
