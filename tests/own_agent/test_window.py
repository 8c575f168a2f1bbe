"""A talk is kept within the model's window."""

import pytest

from kits.talks import answered, heard
from ralph.kernel.value import replace
from ralph.own_agent import words
from ralph.own_agent.talk import Answer, Answers, Entry, Words
from ralph.own_agent.window import Window, length, summed_up, to_sum_up, without_old_outputs


def talk_of(*sizes: int) -> tuple[Entry, ...]:
    """A prompt, and as many reads with an output of such a size."""
    entries: list[Entry] = [Words("Do it.")]
    for size in sizes:
        reply = heard("chat", {"tools": [{"name": "read", "input": {"path": "f"}}]})
        entries += [reply, answered(reply, "x" * size)]
    return tuple(entries)


def outputs(entries: tuple[Entry, ...]) -> list[int]:
    return [len(a.output) for e in entries if isinstance(e, Answers) for a in e.each]


def test_tokens_are_guessed_until_they_are_counted() -> None:
    talk = talk_of(3000)
    guess = Window(10_000)
    assert 1000 < guess.estimate(talk) < 1050
    counted = guess.counted(talk, 7000)
    assert counted.estimate(talk) == 7000
    assert not counted.is_full(talk)
    longer = (*talk, Words("y" * 6000))
    assert 9000 <= counted.estimate(longer) < 9010
    assert counted.is_full(longer)


def test_the_oldest_outputs_go_first_and_the_latest_stay() -> None:
    talk = talk_of(4000, 100, 4000, 4000, 4000)
    window = Window(6000, tokens=5500, characters=length(talk))
    assert window.is_full(talk)
    shorter = without_old_outputs(window, talk)
    first, small, second, *recent = outputs(shorter)
    assert first < 100
    assert small == 100
    assert second < 100
    assert recent == [4000, 4000]
    assert outputs(without_old_outputs(replace(window, size=10**6), talk)) == outputs(talk)


def test_a_talk_begins_anew_with_what_was_asked_and_a_summary() -> None:
    talk = talk_of(10)
    (anew,) = summed_up(talk, "Half is done.")
    assert isinstance(anew, Words)
    assert "Do it." in anew.text
    assert "Half is done." in anew.text
    (odd,) = summed_up((Answers(()),), "s")
    assert isinstance(odd, Words)


def test_what_is_summed_up_is_read_whole_or_without_its_middle() -> None:
    talk = talk_of(10, 100_000, 10)
    told = to_sum_up(Window(10**6), talk)
    assert told.count("[outcome]") == 3
    cut = to_sum_up(Window(1000), talk)
    assert len(cut) < 1700
    assert cut.startswith("[to you]\nDo it.")


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        ("Tabs or spaces?", True),
        ("I have written it.\n\n**Shall I go on?**\n", True),
        ("Why? Because.", False),
        ("", False),
    ],
)
def test_a_question_is_known_by_its_end(text: str, is_question: bool) -> None:
    assert words.asks(text) is is_question


def test_the_question_is_the_last_paragraph() -> None:
    assert words.question("I read it.\n\nTabs or spaces?\n") == "Tabs or spaces?"
    assert len(words.question("x" * 999 + "?")) == 300


def test_the_project_has_its_say() -> None:
    told = words.system("/w", ("AGENTS.md", "Use tabs."), has_tools=True)
    assert "AGENTS.md" in told
    assert "Use tabs." in told
    assert "/w" in words.system("/w", None, has_tools=True)
    assert "bash" not in words.system("/w", ("AGENTS.md", "Use tabs."), has_tools=False)


def test_an_answer_is_cut_only_if_that_is_worth_it() -> None:
    reply = heard("chat", {"tools": [{"name": "read"}]})
    small = Answers((Answer(reply.calls[0], "y" * 200),))
    talk = (Words("p" * 9000), reply, small, *talk_of(1, 1, 1))
    window = Window(100)
    assert outputs(without_old_outputs(window, talk))[0] == 200
