"""A CLI that nobody has logged in to (ADR 5)."""

from dataclasses import replace

import pytest

from ralph.agents.login import login_words
from ralph.kernel.events import Failure, Usage
from ralph.kernel.turn import Ending, Turn

NO_RESULT = Failure("the stream ended without a final result")
CLAUDE = "Invalid API key · Please run /login"
GEMINI = "Please set an Auth method in your settings.json or specify one of these: GEMINI_API_KEY"


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (Turn(exit_code=1, failure=NO_RESULT, stray=f"{CLAUDE}\n"), CLAUDE),
        (Turn(exit_code=1, text="Not logged in · Please run /login"), "Not logged in · Please run"),
        (Turn(exit_code=41, failure=NO_RESULT, stderr=f"warning\n  {GEMINI}\n"), GEMINI),
        (Turn(exit_code=1, failure=Failure(CLAUDE)), CLAUDE),
        (Turn(exit_code=1, stderr="Error: run `foo login` first"), "Error: run `foo login` first"),
        (Turn(exit_code=1, stderr=f"not authenticated {'x' * 999}"), "not authenticated xxx"),
    ],
)
def test_words_that_ask_for_a_login(turn: Turn, words: str) -> None:
    """ADR 5: "A CLI that fails without a word of its model and asks for a login"."""
    assert login_words(turn).startswith(words)
    assert len(login_words(turn)) <= 300


LOST = Turn(exit_code=1, failure=NO_RESULT, stderr=CLAUDE)


@pytest.mark.parametrize(
    "turn",
    [
        Turn(text=CLAUDE),  # it succeeded
        replace(LOST, tools=1),
        replace(LOST, usage=Usage(input=1)),
        replace(LOST, text="I looked.\nThe tests say:\nnot logged in"),
        replace(LOST, failure=Failure("API Error", 529)),
        replace(LOST, ending=Ending.CUT, why="timed out"),
        Turn(exit_code=1, failure=NO_RESULT, stderr="Segmentation fault"),
    ],
)
def test_words_of_an_agent_that_has_worked_are_not_read_that_way(turn: Turn) -> None:
    """ADR 5: "Words of an agent that has worked are not read that way"."""
    assert login_words(turn) == ""
