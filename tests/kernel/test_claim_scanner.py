"""The scanner: the same claims however the text is cut, and flat memory."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralph.kernel.claims import Claim, ClaimScanner, find_claims

LONGEST = 64 * 1024
DONE = "<response>DONE</response>"
TAGS = [f"<{slash}{tag}>" for tag in ("response", "Promise", "RESULT") for slash in ("", "/")]
# Mostly tags and pieces of tags: claims, mentions, nesting and torn ends are common, not rare.
TEXTS = st.lists(
    st.sampled_from([*TAGS, "<", "</", "resp", "onse>", "promise>", ">", "DONE", "\n", "é"])
    | st.text(max_size=3)
).map("".join)


def scan(pieces: list[str], most: int = 32) -> tuple[Claim, ...]:
    scanner = ClaimScanner(most)
    found = [scanner.feed(piece) for piece in pieces]
    assert any(found) is bool(scanner.claims())
    return scanner.claims()


@st.composite
def cut_texts(draw: st.DrawFn) -> list[str]:
    text = draw(TEXTS)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(cut_texts())
@example(["<response>a<promise>b", "</response>"])
@example(["<", "response", ">", "D", "ONE<", "/respons", "e>"])
@example(["<response>x</response></promise>", "<promise></promise>"])
def test_any_chunking_gives_the_same_claims(pieces: list[str]) -> None:
    """Issue 2: property (d); an agent's text comes in blocks of any size."""
    text = "".join(pieces)
    assert scan(pieces) == scan([text]) == find_claims(text)


def test_a_claim_is_found_wherever_its_tags_are_cut() -> None:
    """At every character, and at any two: blocks of a stream end anywhere."""
    text = f"<response>{DONE} so"
    ends = range(len(text) + 1)
    for first, second in itertools.combinations_with_replacement(ends, 2):
        pieces = [text[:first], text[first:second], text[second:]]
        assert scan(pieces) == (Claim(DONE),), pieces
    assert scan([*text]) == (Claim(DONE),)


@given(st.lists(st.text()))
def test_nothing_an_agent_writes_raises(pieces: list[str]) -> None:
    scan(pieces)


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        (f"a {DONE} b", [DONE]),
        ("<promise>a\nb\n</promise>", ["<promise>a\nb\n</promise>"]),
        (f"write <response> at the end\n\n{DONE}", [DONE]),
        ("<response><promise>x</promise></response>", ["<promise>x</promise>"]),
        ("<response>a <promise> b</response>", ["<response>a <promise> b</response>"]),
        ("<response>a</promise>b</response>", ["<response>a</promise>b</response>"]),
        (f"<promise>1</promise>{DONE}", ["<promise>1</promise>", DONE]),
        ("no tag at all", []),
        ("</response>", []),
        (f"{DONE}</response>", [DONE]),
    ],
)
def test_what_is_found(text: str, claims: list[str]) -> None:
    """ADR 3: "`<response>` may span lines"; a mention without an end swallows nothing."""
    assert [claim.raw for claim in find_claims(text)] == claims


def test_the_first_response_is_kept_for_ever_and_of_the_others_the_latest() -> None:
    """H §Completion Detection: "If multiple tags, the first match wins"."""
    later = [f"<promise>{n}</promise>" for n in range(100)]
    found = scan(["<response>first</response>", *later, "<response>last</response>"], most=3)
    assert [claim.content for claim in found] == ["first", "98", "99", "last"]


@pytest.mark.parametrize("size", [1, 1000, 10 * LONGEST])
@pytest.mark.parametrize(("length", "found"), [(LONGEST, 1), (LONGEST + 1, 0)])
def test_a_claim_has_a_longest_length_whatever_the_pieces(
    size: int, length: int, found: int
) -> None:
    claim = f"<result>{'x' * (length - len('<result></result>'))}</result>"
    pieces = [claim[at : at + size] for at in range(0, len(claim), size)]
    assert len(scan(["<promise>", *pieces])) == found


def test_an_opening_tag_that_is_never_closed_does_not_fill_the_memory() -> None:
    scanner = ClaimScanner()
    scanner.feed("<response>")
    for _ in range(200):
        scanner.feed("y" * 1000)
    assert len(scanner._text) < LONGEST
    scanner.feed(DONE)
    assert scanner.claims() == (Claim(DONE),)
