"""Plain text: the assistant's, without the prompt's echo (ADR 3), whatever the bytes."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stream_support import claimed, parse_chunks, said

from kits.thorough import examples
from ralph.agents.streams.text import TextParser
from ralph.kernel.events import AgentEvent, Speaker, Text

PROMPT = "Fix it.\n\nThen say <response>DONE</response>\n"
ECHO = Text(PROMPT.strip(), Speaker.PROMPT)


def fed(chunks: list[bytes], prompt: str = "") -> list[AgentEvent]:
    """Straight into the parser: chunks that are no lines."""
    parser = TextParser(prompt)
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.end()


def merged(events: list[AgentEvent]) -> list[Text]:
    """Neighbours of one speaker as one text: how much comes at once is not a matter of meaning."""
    texts: list[Text] = []
    for event in events:
        assert isinstance(event, Text)
        if texts and texts[-1].speaker is event.speaker is Speaker.ASSISTANT:
            texts[-1] = Text(texts[-1].text + event.text)
        else:
            texts.append(event)
    return texts


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def test_one_text_a_block_in_whole_lines() -> None:
    assert fed([b"one\ntwo\n", b"\nthree"]) == [Text("one\ntwo\n"), Text("\n"), Text("three")]


def test_it_has_no_final_result() -> None:
    assert TextParser.has_result is False


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"nul \0 here", "nul � here"),
        (b"not \xff utf-8", "not � utf-8"),
        (b"windows\r\nlines\r\n", "windows\nlines\n"),
        (b"\x1b[1;32mgreen\x1b[0m", "green"),
        (b"\x1b]8;;http://127.0.0.1\x1b\\link\x1b]8;;\x07", "link"),
        (b"\x1b(Bcharset \x1b=keys \x1bMup", "charset keys up"),
        (b"bare \x1b\nescape", "bare \nescape"),
        (b"colour before the end\r\x1b[0m\n", "colour before the end\n"),
        (b"<resp\x1b[1monse>DONE</response>", "<response>DONE</response>"),
    ],
)
def test_bytes_become_words(raw: bytes, text: str) -> None:
    """Issue, Bad input: invalid UTF-8, NUL bytes."""
    assert "".join(said(fed([raw]))) == text


@pytest.mark.parametrize("data", ["ä€😀\n".encode(), b"a\r\nb\r\n", b"\x1b[31mred\x1b[0m\n"])
def test_nothing_is_broken_by_a_cut(data: bytes) -> None:
    """A multi-byte character, a line end or an escape split between blocks survives."""
    for place in range(len(data)):
        assert merged(fed([data[:place], data[place:]])) == merged(fed([data]))


def test_an_echo_is_the_prompts() -> None:
    """A plain-text agent's verbatim echo of its prompt is removed first."""
    data = f"> {PROMPT}Working.\n".encode()
    assert fed([data], PROMPT) == [Text("> "), ECHO, Text("\nWorking.\n")]
    assert claimed(fed([data], PROMPT)) == []


def test_the_answer_after_an_echo_counts() -> None:
    data = f"{PROMPT}{PROMPT}All right.\n<response>DONE</response>\n".encode()
    assert claimed(fed([data], PROMPT)) == ["<response>DONE</response>"]
    assert said(fed([data], PROMPT), Speaker.PROMPT) == [PROMPT.strip()] * 2


def test_line_ends_do_not_hide_an_echo() -> None:
    for told in (PROMPT, PROMPT.replace("\n", "\r\n")):
        data = PROMPT.replace("\n", "\r\n").encode()
        assert fed([data], told)[0] == ECHO


def test_a_half_echo_is_the_assistants() -> None:
    """At the end what was held back is released."""
    data = b"Fix it.\n\nThen say <response>DONE</response"
    assert merged(fed([data], PROMPT)) == [Text(data.decode())]


def test_only_what_may_become_an_echo_is_held_back() -> None:
    parser = TextParser(PROMPT)
    assert parser.feed(b"Hello.\nFix it.\n") == [Text("Hello.\n")]
    assert parser.feed(b"Or not.\n") == [Text("Fix it.\nOr not.\n")]


def test_a_long_prompt_is_found_line_by_line() -> None:
    prompt = "".join(f"step {i}: {'do ' * 20}\n" for i in range(50)) + "<promise>X</promise>"
    lines = [line + b"\n" for line in f"step 0\n{prompt}\nok".encode().split(b"\n")]
    events = fed(lines, prompt)
    assert merged(events) == [Text("step 0\n"), Text(prompt, Speaker.PROMPT), Text("\nok\n")]


def test_a_false_start_is_given_up_for_the_next() -> None:
    prompt = "again " * 30 + "<promise>X</promise>"
    parser = TextParser(prompt)
    assert parser.feed(b"again " * 40 + b"\n") == [Text("again " * 40 + "\n")]
    assert parser.feed(b"again " * 40 + b"<promise>X</promise>\n")[1] == Text(
        prompt, Speaker.PROMPT
    )


def test_a_prompt_without_a_tag_is_not_looked_for() -> None:
    """An echo is harmless then, and a short prompt must not eat the agent's words."""
    assert fed([b"fix the code: I did fix\n"], "fix") == [Text("fix the code: I did fix\n")]


WORDS = st.sampled_from(["Fix it.", "\n", "\r\n", "Then say ", "<response>DONE</response>", PROMPT])


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(WORDS), st.lists(st.integers(0, 400)))
@example(["Fix it.", "\n", PROMPT], [9])
def test_echoes_are_found_for_any_chunking(words: list[str], places: list[int]) -> None:
    data = "".join(words).encode()
    assert merged(fed(cut(data, places), PROMPT)) == merged(fed([data], PROMPT))


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(), st.lists(st.integers(0, 400)))
def test_any_bytes_give_the_same_text_for_any_chunking(data: bytes, places: list[int]) -> None:
    whole = merged(parse_chunks("text", [data]))
    assert merged(parse_chunks("text", cut(data, places))) == whole
    assert not any("\0" in text.text or "\x1b" in text.text for text in whole)
