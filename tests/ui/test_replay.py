"""A run told once more: facts with their times, streams at their places."""

import json
from dataclasses import replace

import pytest

from ralph.agents.streams.dialects import parser_for
from ralph.kernel.facts import Began, Ended, Fact, Launching, Settled, Started, Step
from ralph.kernel.limits import Limits
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import Reason, Stop
from ralph.ui.lines import clock_time
from ralph.ui.replay import (
    JsonTeller,
    PeopleTeller,
    Player,
    Stream,
    Teller,
    briefing_of,
    last_actions,
)
from ralph.ui.style import Style

RUN = "20260101-100000-aaaa"
DAY = 86_400.0
KEY = "sk-" + "a" * 40  # shaped like one
STARTED = Started(DAY, RUN, "harness", "/w", 7, "0.1", limits=Limits(5))
BEGAN = Began(DAY + 1, 1, Assignment("prompt"))
WORKS = Launching(DAY + 2, Role.WORK, "claude", "/s/001.stream")
ENDED = Ended(DAY + 63, Turn(text="x"))
STOP = Settled(DAY + 64, Stop(Reason.LIMIT, "5 iterations used up"))


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def said(text: str) -> bytes:
    content = [{"type": "text", "text": text}]
    return line(type="assistant", message={"content": content})


def used(name: str, command: str) -> bytes:
    call = {"type": "tool_use", "id": "t", "name": name, "input": {"command": command}}
    return line(type="assistant", message={"content": [call]})


RESULT = line(type="result", subtype="success", is_error=False, result="", total_cost_usd=0.5)


class Saved:
    """A stream that grows between two looks."""

    def __init__(self, *blocks: bytes) -> None:
        self._blocks = list(blocks)

    def add(self, block: bytes) -> None:
        self._blocks.append(block)

    def __call__(self) -> list[bytes]:
        blocks, self._blocks = self._blocks, []
        return blocks


def play(
    teller: Teller[str], saved: Saved | None, *facts: Fact, now: float = DAY + 99
) -> list[str]:
    """All the lines of a finished history."""

    def open_stream(launch: Launching) -> Stream:
        assert saved is not None
        return Stream(parser_for(launch.dialect, ""), saved, lambda: now)

    player = Player(teller, open_stream if saved else None)
    lines = [text for fact in facts for piece in player.fact(fact) for text in piece]
    return lines + [text for piece in player.end() for text in piece]


def at(moment: float) -> str:
    return clock_time(DAY + moment)


def test_each_line_has_the_time_of_its_fact_and_each_day_a_line() -> None:
    """ "ui/narration lines with a timestamp each (date when the day changes)"."""
    teller = PeopleTeller(Style(), "/s/journal.jsonl")
    tomorrow = replace(BEGAN, time=2 * DAY + 1, iteration=2)
    lines = play(teller, None, STARTED, BEGAN, WORKS, ENDED, tomorrow)
    assert lines[1] == f"{at(1)} Iteration 1/5 starting"
    assert lines[3] == f"{clock_time(2 * DAY + 1)} Iteration 2/5 starting"
    assert [text[-10:-2] for text in (lines[0], lines[2])] == ["1970-01-", "1970-01-"]
    assert lines[0] != lines[2]


def test_a_stream_stands_between_its_launch_and_the_end_of_its_turn() -> None:
    saved = Saved(said("Hello\nyou"), used("Bash", "ls") + RESULT)
    teller = PeopleTeller(Style(), "/s/journal.jsonl")
    assert play(teller, saved, BEGAN, WORKS, ENDED, STOP)[1:] == [
        f"{at(1)} Iteration 1 starting",
        "         Hello",
        "         you",
        "",
        "         [*] Bash(ls)",
        "",
        "         [-] Turn ended (cost: $0.50, tools: 1, errors: 0, time: 1m2s)",
        f"{at(64)} Stopped: 5 iterations used up (limit). 1 iteration in 1m3s.",
        f"{at(64)} Journal    /s/journal.jsonl",
        f"{at(64)} Next       ralph resume  # goes on; what was spent stays counted",
    ]


def test_a_commit_message_has_no_place_in_it() -> None:
    """As during the run: a message turn is not for the display."""
    message = replace(WORKS, role=Role.MESSAGE)
    teller = PeopleTeller(Style(), "")
    lines = play(teller, Saved(said("Add x")), message, Step(DAY + 3, "scm:push"))
    assert lines[1:] == [f"{at(3)} SCM task push done"]


def test_a_stream_that_grows_is_told_as_it_comes() -> None:
    saved = Saved(said("one"))
    player = Player(
        PeopleTeller(Style(), ""),
        lambda x: Stream(parser_for(x.dialect, ""), saved, lambda: DAY + 9),
    )
    list(player.fact(BEGAN))
    list(player.fact(WORKS))
    assert list(player.idle()) == [["         one"]]
    assert list(player.idle()) == []
    saved.add(said("two")[:9])
    assert list(player.idle()) == []
    saved.add(said("two")[9:])
    assert list(player.idle()) == [["         two"]]
    assert list(player.fact(ENDED)) == [[]]


def test_a_stream_that_was_cut_off_is_told_to_its_end() -> None:
    text = replace(WORKS, dialect="text")
    lines = play(PeopleTeller(Style(), ""), Saved(b"half a li"), BEGAN, text)
    assert lines[-1] == "         half a li"


def test_verbose_says_more() -> None:
    lines = play(PeopleTeller(Style(), "", verbose=True), None, STARTED)
    assert lines[-1] == f"{at(0)} Run {RUN} (harness) in /w"


def test_a_hostile_journal_is_harmless() -> None:
    step = Step(DAY, "scm:commit", detail=f"\x1b[2J{KEY}")
    lines = play(PeopleTeller(Style(), ""), None, step)
    assert lines[-1] == f"{at(0)} Committed: [redacted]"


def test_wide_lines_leave_room_for_the_margin() -> None:
    call = used("Bash", "x" * 300)
    lines = play(PeopleTeller(Style(width=40), ""), Saved(call), BEGAN, WORKS, ENDED)
    assert max(map(len, lines)) == 40


# ------------------------------------------------------------------ for programs


def test_programs_read_what_run_prints() -> None:
    """ "`--json` what `ralph run --json` would print"."""
    saved = Saved(said("Hello") + RESULT)
    lines = play(JsonTeller(RUN, "/s/j"), saved, STARTED, BEGAN, WORKS, ENDED, STOP)
    objects = [json.loads(text) for text in lines]
    kinds = [o.get("event", o["type"]) for o in objects]
    facts = ["started", "began", "launching", "text", "result", "ended", "settled", "stop"]
    assert kinds == facts
    assert all(o["run"] == RUN for o in objects)
    assert [o["time"] - DAY for o in objects] == [0, 1, 2, 63, 63, 63, 64, 64]
    assert objects[-1]["exit"] == 1
    assert objects[-1]["log"] == "/s/j"


# ------------------------------------------------------------------ what the readers need


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ('{"guardrails": [{"command": "make test"}]}', {"make test"}),
        ('{"guardrails": null}', set()),
        ("{}", set()),
        ("[]", set()),
        ("torn", set()),
        ('{"guardrails": [1]}', set()),
    ],
)
def test_guardrails_are_known_from_the_settings(settings: str, names: set[str]) -> None:
    briefing = briefing_of(replace(STARTED, settings=settings), "/j")
    assert briefing.guardrails == names
    assert (briefing.iterations, briefing.journal) == (5, "/j")


# ------------------------------------------------------------------ the last actions


@pytest.mark.parametrize(
    ("dialect", "tail", "actions"),
    [
        ("claude", b"", ()),
        (
            "claude",
            b"\xff\0 torn\n" + said("I read.") + used("Bash", "ls"),
            ("I read.", "Bash(ls)"),
        ),
        ("claude", said("") + RESULT, ()),
        ("claude", b"".join(said(str(n)) for n in range(9)), ("4", "5", "6", "7", "8")),
        ("claude", said("x" * 500), ("x" * 117 + "...",)),
        ("claude", said(f"\x1b[31mred\x1b[0m\t{KEY}"), ("red [redacted]",)),
        (
            "claude",
            line(type="result", is_error=True, api_error_status=429, result="limit"),
            ("Failed: limit",),
        ),
        ("text", b"one\ntwo\nunfinish", ("one", "two", "unfinish")),
        ("text", b"[ralph] Completed\n", ("[agent] [ralph] Completed",)),
        ("klingon", b"nuqneH\n", ("nuqneH",)),
    ],
)
def test_the_last_actions(dialect: str, tail: bytes, actions: tuple[str, ...]) -> None:
    assert last_actions(dialect, "", tail) == actions


def test_an_echo_of_the_prompt_is_no_action() -> None:
    prompt = "Say <response>DONE</response> when everything is done, please."
    assert last_actions("text", prompt, f"{prompt}\nI begin.\n".encode()) == ("I begin.",)
