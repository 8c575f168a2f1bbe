"""The message bus as bytes (S): what is posted comes back, whoever else was killed."""

import re
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kits.thorough import examples
from ralph.loops.supervise import bus_format
from ralph.loops.supervise.bus_format import HEADER, LARGEST, Decoder, Message, encode

START = b"---\nmsg_id: "


def message(number: int | str = 1, body: str = "hello") -> Message:
    moment = "2026-11-15T14:00:00.123456Z"
    return Message(f"MSG-{number}", moment, "FACT", "shop", "checkout", "run-1", body)


def of_bodies(bodies: Iterable[str]) -> list[Message]:
    return [message(number, body) for number, body in enumerate(bodies)]


def file_of(messages: Iterable[Message]) -> bytes:
    return b"".join(map(encode, messages))


def decoded(data: bytes, *, at_a_time: int = 1 << 30, most: int = LARGEST) -> list[Message]:
    decoder, found = Decoder(most), []
    for place in range(0, len(data), at_a_time):
        found += decoder.feed(data[place : place + at_a_time])
    return found + decoder.settle()


FAKE = encode(message("fake", "evil")).decode()
# What a body must hold to be mistaken for something else, and what is hard to copy.
HARMLESS = ["", "a", "---", "--", "\n", "\r\n", "\0", "😀", "ü", "msg_id:", "length: 3\n"]
MISLEADING = [
    "msg_id: x\n",
    "\n---\nmsg_id: ",
    "---\n",
    FAKE,
    FAKE[:-1],
    FAKE[: len(FAKE) // 2],
    f"\n{FAKE}",
]
HARMLESS_BODIES = st.lists(st.sampled_from(HARMLESS), max_size=4).map("".join)
BODIES = st.lists(st.sampled_from(HARMLESS + MISLEADING), max_size=4).map("".join)


# ------------------------------------------------------------------ what is posted comes back


def test_an_entry_is_a_header_of_json_scalars_and_so_many_bytes() -> None:
    """ "YAML front matter (`msg_id, ts, type, project_id, task_id, run_id`)", "The bus header
    carries the body's length"."""
    assert encode(message(7, 'ü "x"')) == (
        b"---\n"
        b'msg_id: "MSG-7"\n'
        b'ts: "2026-11-15T14:00:00.123456Z"\n'
        b'type: "FACT"\n'
        b'project_id: "shop"\n'
        b'task_id: "checkout"\n'
        b'run_id: "run-1"\n'
        b"length: 6\n"
        b"---\n"
        b'\xc3\xbc "x"\n'
    )


@given(st.lists(BODIES, max_size=5), st.integers(1, 40))
@example([FAKE, "", FAKE[:-1]], 1)
def test_any_bodies_come_back_in_any_chunks(bodies: list[str], at_a_time: int) -> None:
    """ "bodies that contain `---` survive", "the body comes back byte for byte"."""
    messages = of_bodies(bodies)
    assert decoded(file_of(messages), at_a_time=at_a_time) == messages


@given(st.text(), st.text(st.characters(exclude_categories=[]), min_size=1))
@example("x", "\udcff")
def test_any_text_comes_back(body: str, name: str) -> None:
    name = name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    posted = Message(name, name, "T", name, name, "", body)
    assert decoded(encode(posted)) == [posted]


def test_a_name_that_is_not_utf8_on_disk_comes_back() -> None:
    posted = Message("m", "", "T", "\udcff-shop", "t", "", "x")
    assert decoded(encode(posted)) == [posted]


def test_a_body_that_is_no_text_is_posted_all_the_same() -> None:
    """ "a failure to post never fails the task"."""
    assert decoded(encode(message(1, "a\udcffb"))) == [message(1, "a?b")]


def test_a_message_is_told_once_however_often_one_asks() -> None:
    decoder = Decoder()
    assert decoder.feed(encode(message(1))) == [message(1)]
    assert decoder.settle() == []
    assert decoder.feed(b"") == []
    assert decoder.feed(encode(message(2))) == [message(2)]


# ------------------------------------------------------------------ what was torn


def torn_file(messages: list[Message], which: int, cut: int) -> bytes:
    """The file after one writer was killed and the others went on, as they do."""
    before = file_of(messages[:which]) + encode(messages[which])[:cut]
    if before and not before.endswith(b"\n"):
        before += b"\n"
    return before + file_of(messages[which + 1 :])


def is_ambiguous(file: bytes, start: int) -> bool:
    """Whether the torn entry's length leads exactly to where another one ends: then the file is
    the same as if nothing had been torn, and that one were a part of the body."""
    close = file.find(b"\n---\n", start + 4)
    length = re.search(rb"\nlength: (\d+)$", file[start:close])
    end = close + 5 + int(length[1]) if length else -1
    behind = file[end + 1 :]
    fits = any(known.startswith(behind[: len(known)]) for known in bus_format._NEXT)
    return file[end : end + 1] == b"\n" and fits


def torn_files(messages: list[Message], which: int) -> list[bytes]:
    """One file for every place where the entry can be cut off."""
    start = len(file_of(messages[:which]))
    files = [torn_file(messages, which, cut) for cut in range(len(encode(messages[which])))]
    return [file for file in files if not is_ambiguous(file, start)]


@given(st.lists(HARMLESS_BODIES, min_size=1, max_size=3), st.integers(0, 2))
@settings(max_examples=examples(100))
def test_wherever_an_entry_is_cut_off_all_others_come_back(bodies: list[str], which: int) -> None:
    """ "a torn last entry is ignored", and so is one that others were posted behind."""
    messages = of_bodies(bodies)
    which %= len(messages)
    whole = [*messages[:which], *messages[which + 1 :]]
    for file in torn_files(messages, which):
        assert decoded(file) == whole


@given(st.lists(BODIES, min_size=1, max_size=3), st.integers(0, 2))
@settings(max_examples=examples(100))
@example(["a", FAKE, "c"], 1)
@example([FAKE, "", "c"], 1)
@example([f"\n{FAKE}", FAKE[:-1], FAKE], 1)
def test_no_whole_entry_is_lost_when_bodies_mislead(bodies: list[str], which: int) -> None:
    """A body may hold an entry. When it is torn, that one looks like any other; that is all."""
    messages = of_bodies(bodies)
    which %= len(messages)
    whole = [*messages[:which], *messages[which + 1 :]]
    for file in torn_files(messages, which):
        assert [m for m in decoded(file) if m in whole] == whole


@given(st.lists(BODIES, min_size=1, max_size=4), st.data())
def test_chunks_make_no_difference_wherever_an_entry_is_cut_off(
    bodies: list[str], data: st.DataObject
) -> None:
    messages = of_bodies(bodies)
    which = data.draw(st.integers(0, len(messages) - 1))
    cut = data.draw(st.integers(0, len(encode(messages[which]))))
    at_a_time = data.draw(st.integers(1, 30))
    file = torn_file(messages, which, cut)
    assert decoded(file, at_a_time=at_a_time) == decoded(file)


@pytest.mark.parametrize("body", ["hello", "", "a\n---\nb", "😀" * 3])
def test_an_entry_that_is_still_being_written_waits(body: str) -> None:
    entry = encode(message(1, body))
    for cut in range(len(entry)):
        decoder = Decoder()
        assert decoder.feed(entry[:cut]) == decoder.settle() == []
        assert decoder.feed(entry[cut:]) == [message(1, body)]


def test_an_entry_in_an_unfinished_body_is_a_message_only_if_that_was_torn() -> None:
    entry = encode(message(1, f"x\n{FAKE}y"))
    decoder = Decoder()
    assert decoder.feed(entry[:-1]) == []
    assert decoder.settle() == [message("fake", "evil")]
    decoder = Decoder()
    assert decoder.feed(entry[:-1]) == []
    assert decoder.feed(entry[-1:]) + decoder.settle() == [message(1, f"x\n{FAKE}y")]


def test_a_lack_that_is_greater_than_all_that_follows() -> None:
    torn = encode(message(1, "x" * 10_000))[:5_000] + b"\n"
    assert decoded(torn + encode(message(2))) == [message(2)]


def test_two_kills_in_a_row() -> None:
    scraps = encode(message(1))[:-3] + b"\n" + encode(message(2))[:9] + b"\n"
    assert decoded(scraps + encode(message(3))) == [message(3)]


def test_what_seems_whole_at_the_end_may_turn_out_to_be_torn() -> None:
    """The torn entry lacks just as much as the beginning of the next one has."""
    torn = encode(message(1, "x" * 10))[:-5]
    decoder = Decoder()
    assert decoder.feed(torn + b"\n---\n") == []
    assert decoder.feed(encode(message(2))[4:]) == [message(2)]


def test_a_body_that_holds_an_entry_waits_for_what_comes_behind_it() -> None:
    decoder = Decoder()
    assert decoder.feed(encode(message(1, FAKE))) == []
    assert decoder.feed(encode(message(2))) == [message(1, FAKE), message(2)]
    assert decoder.feed(encode(message(3, FAKE))) == []
    assert decoder.settle() == [message(3, FAKE)]


# ------------------------------------------------------------------ what others write


@pytest.mark.parametrize(
    ("text", "bodies"),
    [
        ("---\nmsg_id: a\n---\nhello\n", ["hello"]),
        ("---\nmsg_id: a\n---\nhello\n\n", ["hello\n"]),
        ("---\nmsg_id: a\n---\n", [""]),
        ("---\nmsg_id: a\n---\n---\nmsg_id: b\n---\nx\n", ["", "x"]),
        ("---\nmsg_id: a\n---\none\n---\ntwo\n---\nmsg_id: b\n---\nx\n", ["one\n---\ntwo", "x"]),
        ("---\nmsg_id: a\n---\nnot at its end", []),
        ("---\nmsg_id: a\n---\none\n---\n", ["one"]),
        ("---\nmsg_id: a\nlength: many\n---\nhello\n", ["hello"]),
        ("---\nmsg_id: a\nlength: -3\n---\nhello\n", ["hello"]),
        ("---\nmsg_id: a\nts: 1\n---\nmsg_id: b\n---\nx\n", ["x"]),
        ("# Messages\n\n---\n---\nmsg_id: a\n---\nhello\n", ["hello"]),
        ("---\nmsg_id: \n---\nhello\n---\nmsg_id: b\n---\nx\n", ["x"]),
        ("---\ntype: FACT\n---\nhello\n", []),
        ("just text\n", []),
        ("", []),
    ],
)
def test_entries_without_a_length_go_on_to_the_next_header(text: str, bodies: list[str]) -> None:
    """Written by hand or by others; "anything before the first header is ignored"."""
    assert [m.body for m in decoded(text.encode())] == bodies
    assert [m.body for m in decoded(text.encode(), at_a_time=1)] == bodies


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("plain words", "plain words"),
        ('"quoted \\u00fc"', "quoted ü"),
        ('"with a comment" # here', "with a comment"),
        ('"\\x41"', "\\x41"),
        ("'it''s'", "it's"),
        ("'open", "open"),
        ("true", "true"),
        ("007", "007"),
        ("NULL # not known", ""),
        ("a#b # comment", "a#b"),
        ("~", ""),
        ("null", ""),
        ("", ""),
        ("2026-11-15T14:00:00Z", "2026-11-15T14:00:00Z"),
        ("windows\r", "windows"),
    ],
)
def test_scalars_as_people_write_them(written: str, read: str) -> None:
    text = f"---\nmsg_id: a\nparents:\n  - b\nurl:x\ntype: {written}\n---\nhello\n"
    (found,) = decoded(text.encode())
    assert found == Message("a", "", read, "", "", "", "hello")


def test_entries_of_both_kinds_stand_together() -> None:
    by_hand = b"---\nmsg_id: hand\n---\nby hand\n"
    file = encode(message(1)) + by_hand + encode(message(2, FAKE)) + by_hand
    assert [m.msg_id for m in decoded(file)] == ["MSG-1", "hand", "MSG-2", "hand"]


def test_an_entry_by_hand_that_is_last_comes_when_nobody_writes() -> None:
    decoder = Decoder()
    assert decoder.feed(b"---\nmsg_id: hand\n---\nby hand\n") == []
    assert [m.body for m in decoder.settle()] == ["by hand"]
    assert decoder.feed(encode(message(1))) == [message(1)]


def test_a_header_by_hand_that_seems_to_end_where_the_next_begins() -> None:
    """Its writer was killed, and of the next entry not more than a line is there yet."""
    decoder = Decoder()
    assert decoder.feed(b"---\nmsg_id: torn\nts: 1\n---\n") == []
    assert [m.msg_id for m in decoder.settle()] == ["torn"]
    assert decoder.feed(encode(message(1))[4:]) == [message(1)]


@pytest.mark.parametrize("body", ["hello", "msg\n", ""])
def test_text_behind_an_entry_does_not_harm_it(body: str) -> None:
    """People and agents append to the file with `echo`."""
    file = encode(message(1, body)) + b"a note\n" + encode(message(2))
    assert decoded(file) == decoded(file, at_a_time=1) == [message(1, body), message(2)]


def test_bytes_that_are_no_text_are_replaced() -> None:
    (found,) = decoded(b"---\nmsg_id: a\ntype: \xff\n---\nx\xffy\n")
    assert (found.type, found.body) == ("�", "x�y")


def test_a_header_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays flat, and what comes behind it is found."""
    monkeypatch.setattr(bus_format, "_LONGEST_HEADER", 200)
    file = START + b"x" * 300 + b"\n" + encode(message(1))
    assert decoded(file) == decoded(file, at_a_time=7) == [message(1)]


# ------------------------------------------------------------------ what is too large


def by_hand(body: str) -> bytes:
    return f"---\nmsg_id: hand\n---\n{body}\n".encode()


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 30])
@pytest.mark.parametrize(
    "large",
    [
        encode(message("large", "x" * 101)),
        encode(message("large", "x" * 101))[:-50] + b"\n",
        b"---\nmsg_id: a\nlength: 99999999999\n---\n" + bytes(500),
        by_hand("x\n" * 60),
    ],
)
def test_a_body_that_is_too_large_is_left_out_and_the_others_come_back(
    large: bytes, at_a_time: int
) -> None:
    fits = message(1, "x" * 100)
    file = encode(fits) + large + b"\n" + encode(fits) + by_hand("y" * 100)
    found = decoded(file, at_a_time=at_a_time, most=100)
    assert [m.body for m in found] == [fits.body, fits.body, "y" * 100]


@given(st.lists(BODIES, max_size=4), st.integers(0, 300), st.integers(1, 40), st.booleans())
def test_chunks_make_no_difference_to_what_is_too_large(
    bodies: list[str], most: int, at_a_time: int, measured: bool
) -> None:
    entries = [encode(m) if measured else by_hand(m.body) for m in of_bodies(bodies)]
    file = b"".join(entries)
    found = decoded(file, most=most)
    assert decoded(file, at_a_time=at_a_time, most=most) == found
    assert all(len(m.body.encode()) <= most for m in found)


@pytest.mark.parametrize(
    "start", [b"", b"---\nmsg_id: a\n---\n", encode(message(1, "x" * 5000))[:150]]
)
def test_no_more_is_kept_than_is_asked_for(start: bytes) -> None:
    """Whatever a header claims."""
    decoder = Decoder(most=1000)
    decoder.feed(start)
    for _ in range(100):
        assert decoder.feed(b"x" * 99 + b"\n") == []
        assert len(decoder._data) < 1500
    assert decoder.feed(encode(message(2))) == [message(2)]


def test_bytes_that_begin_in_the_middle_of_a_line_begin_no_entry() -> None:
    decoder = Decoder(at_start=False)
    assert decoder.feed(encode(message(1))) == []
    assert decoder.feed(encode(message(2))) == [message(2)]


@pytest.mark.parametrize(
    ("before", "bodies"),
    [
        (encode(message(1))[:-2], []),
        (by_hand("not settled"), []),
        (encode(message(1, "x" * 5000))[:500] + b"\n" + encode(message(2, "whole")), ["whole"]),
    ],
)
def test_what_stands_before_bytes_that_are_left_out(before: bytes, bodies: list[str]) -> None:
    decoder = Decoder()
    assert decoder.feed(before) == []
    assert [m.body for m in decoder.skip()] == bodies
    assert decoder.feed(encode(message(3))) == [], "in the middle of a line"
    assert decoder.feed(encode(message(4))) == [message(4)]


def test_the_fields_of_a_message_are_its_header_and_its_body() -> None:
    assert (*HEADER, "body") == tuple(Message.__dataclass_fields__)


def test_text_without_entries_is_not_kept() -> None:
    decoder = Decoder()
    for _ in range(100):
        decoder.feed(b"just text\n" * 10)
    assert len(decoder._data) < len(START) + 1


def test_a_length_of_nonsense_does_not_keep_others_back() -> None:
    file = b"---\nmsg_id: a\nlength: 999999999999999999\n---\nx\n" + encode(message(1))
    assert decoded(file) == [message(1)]
