"""The last lines of a run, for each reason there is."""

from dataclasses import replace

import pytest

from ralph.kernel.claims import Claim
from ralph.kernel.events import Failure
from ralph.kernel.facts import Began, Decided, Ended, Fact, Settled, Started, Step
from ralph.kernel.prompt import completion_sentence
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop, Wait
from ralph.ui.closing import closing_lines
from ralph.ui.lines import Briefing

MARKER = "<response>DONE</response>"
BRIEFING = Briefing(
    iterations=2,
    journal="/state/journal.jsonl",
    marker=MARKER,
    completion_sentence=completion_sentence(MARKER),
)
QUIET = Turn(cost_usd=0.06, stream="/state/002.stream")
LIMITED = Turn(exit_code=1, failure=Failure("too many requests", 429))
CLAIMED = replace(QUIET, claims=(Claim("<response>NOT YET</response>"),))
HINT = (
    "Nothing said <response>DONE</response>. Add to the prompt: "
    '"When everything is done, and only then, end your answer with <response>DONE</response>."; '
    "--tell-completion adds it for you."
)


def history(first: Turn, second: Turn) -> list[Fact]:
    """Two iterations of six seconds."""
    return [
        Started(100.0, "r1", "harness", "/w", 7, "1.0"),
        Began(100.0, 1, Assignment("prompt")),
        Ended(106.0, first),
        Decided(106.0, Boundary.CLOSING, Continue()),
        Settled(106.0, Continue()),
        Began(106.0, 2, Assignment("prompt")),
        Ended(112.0, second),
    ]


def closing(
    stop: Stop, *, turns: tuple[Turn, Turn] = (CLAIMED, QUIET), briefing: Briefing = BRIEFING
) -> list[str]:
    state = replay([*history(*turns), Settled(112.0, stop)])
    return [line.text for line in closing_lines(stop, state, briefing)]


def test_a_completed_run_ends_with_the_one_line_that_matters() -> None:
    evidence = (f"claimed: {MARKER}", "passed: make test")
    assert closing(Stop(Reason.COMPLETED, "nothing is left to do", evidence)) == [
        f"Evidence: claimed: {MARKER}",
        "Evidence: passed: make test",
        "Evidence: no tree: not a git repository",
        "Journal: /state/journal.jsonl",
        "Completed after 2 iterations in 12s, $0.12.",
    ]


def test_what_could_not_be_pushed_is_said() -> None:
    """ "A failed SCM task is in the last lines and in `status`: "not pushed: …"."""
    said = "To ../remote\n ! [rejected]  main -> main (fetch first)\nerror: failed to push"
    steps = (
        Step(112.0, "scm:commit", ok=False, detail="tabs"),
        Step(112.0, "scm:push", ok=False, detail=said),
        Step(112.0, "scm:tag x", ok=False),
    )
    stop = Stop(Reason.COMPLETED, "nothing is left to do")
    state = replay([*history(CLAIMED, QUIET), *steps, Settled(112.0, stop)])
    assert [line.text for line in closing_lines(stop, state, BRIEFING)][:-2] == [
        "Not committed: tabs",
        "Not pushed: ! [rejected]  main -> main (fetch first)",
        "SCM task tag x failed: no reason given",
    ]


@pytest.mark.parametrize(
    ("stop", "lines"),
    [
        (
            Stop(Reason.LIMIT, "2 iterations used up"),
            ["Stopped: 2 iterations used up (limit). 2 iterations in 12s, $0.12."],
        ),
        (
            Stop(Reason.CONFIG, "prompt.md: no such file"),
            [
                "Stopped: prompt.md: no such file (config). 2 iterations in 12s, $0.12.",
                "Fix that and run it again.",
            ],
        ),
        (
            Stop(Reason.INTERRUPTED, "interrupted"),
            [
                "Stopped: interrupted. 2 iterations in 12s, $0.12.",
                "What was finished is kept. Go on: ralph resume",
            ],
        ),
        (
            Stop(Reason.BUG),
            [
                "Stopped: bug. 2 iterations in 12s, $0.12.",
                "This is a fault of Ralph, not of your work.",
            ],
        ),
    ],
)
def test_a_run_that_stopped_says_why_and_what_to_do(stop: Stop, lines: list[str]) -> None:
    assert closing(stop) == ["Journal: /state/journal.jsonl", *lines]


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        (Reason.BLOCKED, "It needs you: answer in the prompt or in the files, then run it again."),
        (
            Reason.STALLED,
            "Nothing changed: read what the agent said, then make the prompt clearer.",
        ),
        (Reason.FAILING, "Fix what the agent complains about, then run it again."),
    ],
)
def test_where_the_agents_words_help_they_are_named(reason: Reason, remedy: str) -> None:
    assert closing(Stop(reason, "so it is.")) == [
        "Agent's output: /state/002.stream",
        "Journal: /state/journal.jsonl",
        f"Stopped: so it is ({reason.value}). 2 iterations in 12s, $0.12.",
        remedy,
    ]


def test_a_run_that_was_never_told_how_to_end_learns_it_in_the_very_last_line() -> None:
    """Issue 2, §4: "the last line says which sentence to add to the prompt"."""
    used_up = Stop(Reason.LIMIT, "2 iterations used up")
    assert closing(used_up, turns=(QUIET, QUIET))[-1] == HINT


def test_the_hint_is_for_every_limit() -> None:
    """The issue: "When a run ends at its limit and no `<response>` was ever seen"."""
    out_of_time = Stop(Reason.LIMIT, "1m of time used up")
    briefing = replace(BRIEFING, iterations=9)
    assert closing(out_of_time, turns=(QUIET, QUIET), briefing=briefing)[-1] == HINT


@pytest.mark.parametrize(
    ("stop", "turns", "briefing"),
    [
        (Stop(Reason.LIMIT, "x"), (CLAIMED, QUIET), BRIEFING),
        (Stop(Reason.STALLED, "x"), (QUIET, QUIET), BRIEFING),
        (Stop(Reason.LIMIT, "waiting"), (QUIET, LIMITED), BRIEFING),
        (Stop(Reason.LIMIT, "x"), (QUIET, QUIET), replace(BRIEFING, completion_sentence="")),
    ],
    ids=["a tag was written", "stalled", "rate limited", "the prompt has it"],
)
def test_nobody_else_is_lectured(stop: Stop, turns: tuple[Turn, Turn], briefing: Briefing) -> None:
    assert not any(
        "Add to the prompt" in line for line in closing(stop, turns=turns, briefing=briefing)
    )


def test_waiting_is_not_spent_and_an_unknown_cost_is_not_shown() -> None:
    """ADR 1: `Wait` never counts an iteration or time asleep."""
    facts: list[Fact] = [
        Started(100.0, "r1", "harness", "/w", 7, "1.0"),
        Began(100.0, 1, Assignment("prompt")),
        Ended(103.4, Turn()),
        Decided(103.4, Boundary.CLOSING, Wait(403.4, "limit")),
        Began(403.4, 1, Assignment("prompt")),
    ]
    stop = Stop(Reason.COMPLETED)
    [line] = closing_lines(stop, replay(facts), Briefing())
    assert line.text == "Completed after 1 iteration in 3.4s and 5m of waiting."


def test_what_is_not_known_about_the_cost_is_said_beside_what_is() -> None:
    """ADR 22: never less than it costs."""
    facts: list[Fact] = [
        Began(100.0, 1, Assignment("prompt")),
        Ended(101.0, Turn(cost_usd=5.0)),
        Ended(102.0, Turn()),
    ]
    [line] = closing_lines(Stop(Reason.COMPLETED), replay(facts), Briefing())
    assert line.text.endswith(", $5.00 and 1 turn of unknown cost.")
