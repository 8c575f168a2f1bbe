"""Verdicts by histories: what agents say against what the check says."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kits.histories import (
    BLOCKED,
    COMPLETE,
    CRASH,
    CUT,
    DONE,
    MISSING,
    WORK,
    erred,
    limited,
    play,
    said,
)
from ralph.evaluation.verdict import ERROR, FAILED, PASSED, Verdict, verdict_of
from ralph.kernel.facts import Checked, Ended, Fact, Started
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits
from ralph.kernel.rules import Patience
from ralph.kernel.turn import Turn
from ralph.loops.prompt.policy import harness
from ralph.testing.fakes import FakeGate

CHECK = "make test"
BAD = Finding(
    CHECK, 'Guardrail "make test" failed with exit code 2.\nOutput (truncated):\none\ntwo', code=2
)


def told(turns: Sequence[Turn], fails_in: set[int], finding: Finding = BAD) -> list[Fact]:
    """The facts of a run with so many turns at most."""
    gate = FakeGate(CHECK, fails_in=fails_in, finding=finding)
    limits, patience = Limits(len(turns)), Patience(max_wait=0, fail_delay=0)
    return play(harness(limits, patience, gates=(gate,)), turns).facts


def verdict(turns: Sequence[Turn], fails_in: set[int], finding: Finding = BAD) -> Verdict:
    return verdict_of(told(turns, fails_in, finding), CHECK)


@pytest.mark.parametrize(
    ("turns", "fails_in", "outcome", "claimed", "false"),
    [
        ([DONE], set(), PASSED, True, False),
        ([DONE], {1}, FAILED, True, True),
        ([WORK], set(), PASSED, False, False),  # the check alone is the truth
        ([WORK], {1}, FAILED, False, False),
        ([DONE, DONE], {1}, PASSED, True, True),  # the first claim decides
        ([WORK, DONE], {1}, PASSED, True, False),
        ([DONE, WORK], {1, 2}, FAILED, True, True),
        ([CRASH], set(), FAILED, False, False),
        ([replace(DONE, exit_code=3)], set(), FAILED, True, False),  # true, but it crashed
        ([replace(CUT, claims=DONE.claims)], set(), FAILED, False, False),  # nobody could check
        ([BLOCKED], set(), PASSED, False, False),
        ([erred(400)], set(), FAILED, False, False),
        ([COMPLETE], {1}, FAILED, False, False),  # the words of another loop
    ],
)
def test_verdicts(
    turns: list[Turn], fails_in: set[int], outcome: str, claimed: bool, false: bool
) -> None:
    found = verdict(turns, fails_in)
    assert (found.outcome, found.claimed, found.false_claim) == (outcome, claimed, false)
    assert found.iterations == len(turns)


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (MISSING, "no such command"),
        (limited(), "rate limit"),
        (erred(401), "credential was refused"),
        (erred(503), "API error"),
    ],
)
def test_what_is_no_agents_doing_is_an_error(turn: Turn, why: str) -> None:
    found = verdict([turn], set())
    assert found.outcome == ERROR
    assert why in found.why
    assert not found.claimed


def test_a_check_that_the_host_cannot_run_is_an_error() -> None:
    bad = Finding(CHECK, "Guardrail failed.\nIt could not be run: no space left", code=126)
    found = verdict([DONE], {1}, bad)
    assert (found.outcome, found.claimed) == (ERROR, False)
    assert "no space left" in found.why


def test_a_run_that_was_cut_off_or_never_began_is_an_error() -> None:
    whole = told([DONE], set())
    assert verdict_of(whole[:-1], CHECK).why == "its run was cut off"
    assert verdict_of([], CHECK).outcome == ERROR


def test_an_agent_that_another_machine_lacks_is_an_error() -> None:
    """There the run does not end with its turn: the task is left to a person."""
    facts = [replace(f, turn=MISSING) if isinstance(f, Ended) else f for f in told([WORK], {1})]
    found = verdict_of(facts, CHECK)
    assert (found.outcome, found.why) == (ERROR, MISSING.why)


def test_why_it_failed() -> None:
    found = verdict([said("I am sure.")], {1})
    assert found.why == "check: exit code 2: two"
    assert (found.said, found.output) == ("I am sure.", "one\ntwo")
    assert verdict([CRASH], set()).why == "agent: exit code 1: boom"
    assert verdict([CUT], set()).why == "agent: timed out after 1m"
    mute = replace(BAD, text="Guardrail failed.\nOutput (truncated):\n")
    assert verdict([WORK], {1}, mute).why == "check: exit code 2"
    proof = Finding("proof", "loop.setup failed in a clean worktree", code=None)
    assert verdict([WORK], {1}, proof).why == "check: loop.setup failed in a clean worktree"
    # As where a signal came before the checks: no verdict without a check.
    facts = [fact for fact in told([WORK], set()) if not isinstance(fact, Checked)]
    assert verdict_of(facts, CHECK).why == "the check did not run"


def test_money_is_known_or_it_is_not() -> None:
    assert verdict([said("x", cost=0.25), said("x", cost=0.5)], {1, 2}).cost_usd == 0.75
    assert verdict([said("x", cost=0.25), WORK], {1, 2}).cost_usd is None


def test_what_was_put_back_is_named() -> None:
    facts = told([DONE], set())
    tampered = Finding("protect", "Protected path test.py was changed. The change was undone.")
    found = verdict_of([*facts[:-1], Checked(1.0, "protect", 0.0, (tampered,)), facts[-1]], CHECK)
    assert found.tampered == (tampered.text,)
    assert found.outcome == PASSED


@pytest.mark.parametrize(
    ("profile", "settings", "turn", "claimed"),
    [
        ("tasks", "{}", COMPLETE, True),
        ("tasks", "{}", DONE, False),
        ("harness", "{}", DONE, True),
        ("harness", '{"completionResponse": "READY"}', DONE, False),
        ("harness", '{"completionResponse": "READY"}', said("<response>ready</response>"), True),
    ],
)
def test_the_words_of_the_loop_count(
    profile: str, settings: str, turn: Turn, claimed: bool
) -> None:
    started = Started(0.0, "r", profile, "/w", 1, "0", settings)
    assert verdict_of([started, *told([turn], {1})], CHECK).claimed is claimed


def test_long_words_lose_their_beginning() -> None:
    found = verdict([said("x" * 5000 + "end")], {1})
    assert found.said.startswith("…")
    assert found.said.endswith("xend")
    assert len(found.said) < 700
