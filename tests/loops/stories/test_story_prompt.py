"""The prompt of a story's turn says what the host has chosen (R §6)."""

import pytest

from ralph.kernel.tasks.task import Assignment, Mode
from ralph.loops.stories.prompt import StoryTerms, filled, headed

REVIEW = Assignment("US-002", "Log in", Mode.REVIEW)
VALUES = StoryTerms(15).values(3, REVIEW)


def test_what_a_prompt_may_name() -> None:
    assert VALUES == {
        "ITERATION": "3",
        "MAX_ITERATIONS": "15",
        "MODE": "review",
        "STORY": "US-002",
        "REVIEW_CAP": "5",
        "SKIP_REVIEW": "false",
        "DIR": "ralph",
    }
    other = StoryTerms(1, review_cap=2, skip_review=True).values(1, Assignment("a"))
    assert [other[name] for name in ("MODE", "REVIEW_CAP", "SKIP_REVIEW")] == [
        "implement",
        "2",
        "true",
    ]


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("$RALPH_ITERATION of $RALPH_MAX_ITERATIONS.", "3 of 15."),
        ("${RALPH_MODE}${RALPH_STORY}", "reviewUS-002"),
        ("{{RALPH_REVIEW_CAP}}, {{RALPH_SKIP_REVIEW}}", "5, false"),
        ("$$RALPH_MODE {${RALPH_MODE}}", "$review {review}"),
        ("$RALPH_OTHER ${RALPH_} {{RALPH_X}}", "$RALPH_OTHER ${RALPH_} {{RALPH_X}}"),
        ("$RALPH_MODES $RALPH_MODE_X $RALPH_MODE2", "$RALPH_MODES $RALPH_MODE_X $RALPH_MODE2"),
        ("${RALPH_MODE {{RALPH_MODE} RALPH_MODE", "${RALPH_MODE {{RALPH_MODE} RALPH_MODE"),
        ("$HOME `date` \\1 & 100 %", "$HOME `date` \\1 & 100 %"),
        ("", ""),
    ],
)
def test_names_become_values(text: str, then: str) -> None:
    """`$RALPH_X`, `${RALPH_X}` and `{{RALPH_X}}` alike; what nobody knows stays."""
    assert filled(text, VALUES) == then


@pytest.mark.parametrize(
    "given", ["&", "a/b", "$RALPH_MODE", "\\1\\g<0>", "$(x)", "{{RALPH_STORY}}"]
)
def test_values_go_in_as_they_are(given: str) -> None:
    """ "a `&`, `/` or `$` in a value changes nothing"."""
    values = {**VALUES, "STORY": given}
    assert filled("<$RALPH_STORY|${RALPH_STORY}|{{RALPH_STORY}}>", values) == (
        f"<{given}|{given}|{given}>"
    )


def test_the_hosts_choice_stands_first() -> None:
    """The prompt names it (`Mode: implement`, `Story: US-002`)."""
    assert headed("Do it.\n", REVIEW) == "Mode: review\nStory: US-002\n\nDo it.\n"
