"""`ralph logs`: a run told from its journal, followed, raw, and for programs."""

import json
import os
import re
import signal
from io import BytesIO
from pathlib import Path

import pytest
from run_support import Here, Running, assert_clear, facts, in_shell, journals, prepare, ralph

from ralph.cli.runs import logs as logs_module
from ralph.cli.runs.logs import Piece, Sink
from ralph.kernel.facts import Started
from ralph.testing.scripted_agent.install import calls

UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {"text": ["Wait", "Bye"], "tools": [{"name": "Bash", "run": UNTIL_TOLD}]}
TWO = ({"text": "First words"}, {"text": "Last words", "response": "DONE"})


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def ended(workspace: Path, here: Here) -> str:
    """A run of two turns that is over; what it said on stderr."""
    prepare(workspace, *TWO, guardrails=[{"command": "true"}])
    done = here("-p", "x", "--no-timestamps")
    assert done.code == 0
    return done.err


def without_times(text: str) -> list[str]:
    return [re.sub(r"^\d\d:\d\d:\d\d ", "[ralph] ", line) for line in text.splitlines()]


def test_the_log_is_what_the_run_said_each_line_with_its_time(here: Here, ended: str) -> None:
    done = here("logs")
    assert done.code == 0
    day, *lines = without_times(done.out)
    assert re.fullmatch(r"\w+ \d{4}-\d\d-\d\d", day)
    said = ended.splitlines()
    before = ["[ralph] Agent: ", "[ralph] Sandbox: "]  # told before the journal begins
    assert [a.startswith(b) for a, b in zip(said, before, strict=False)] == [True, True]
    assert lines == said[2:]


def test_with_events_the_agents_words_stand_at_their_place(here: Here, ended: str) -> None:
    lines = without_times(here("logs", "--events").out)
    order = ["[ralph] Iteration 1/10 starting", "         First words"]
    order += ["[ralph] Running guardrail: true", "[ralph] Iteration 2/10 starting"]
    order += ["         Last words", "         <response>DONE</response>"]
    places = [lines.index(line) for line in order]
    assert places == sorted(places)
    assert "First words" not in here("logs").out


def test_verbose_says_more(here: Here, ended: str) -> None:
    assert "Completion check" in here("logs", "-V").out
    assert "Completion check" not in here("logs").out


def test_the_last_lines(here: Here, ended: str) -> None:
    whole = here("logs").out.splitlines()
    assert here("logs", "-n", "2").out.splitlines() == whole[-2:]
    assert here("logs", "-n", "0").out == ""
    assert here("logs", "-n", "9999").out.splitlines() == whole
    assert here("logs", "--raw", "-n", "1").out.endswith(journals()[0].read_text()[-40:])


def test_raw_is_the_journal_byte_by_byte(here: Here, ended: str) -> None:
    assert here("logs", "--raw").out.encode() == journals()[0].read_bytes()


def test_raw_events_are_the_streams_byte_by_byte(here: Here, ended: str) -> None:
    directory = journals()[0].parent
    streams = b"".join((directory / f"00{n}.stream").read_bytes() for n in (1, 2))
    assert here("logs", "--raw", "--events").out.encode() == streams


def test_json_is_what_run_prints(workspace: Path, here: Here) -> None:
    """ "`--json` what `ralph run --json` would print"."""
    prepare(workspace, *TWO)
    printed = here("-p", "x", "--json").objects
    told = here("logs", "--json").objects
    assert [without(o) for o in told] == [without(o) for o in printed]
    assert told[-1]["type"] == "stop"


def without(line: dict[str, object]) -> dict[str, object]:
    """Events have the time of the fact behind them; how long a turn took is in that."""
    return {key: value for key, value in line.items() if key != "time"}


@pytest.mark.parametrize("flag", ["--color", "--emoji"])
def test_the_look_is_chosen_as_in_run(here: Here, ended: str, flag: str) -> None:
    plain, fancy = here("logs", "--events").out, here("logs", "--events", flag).out
    assert ("\x1b[" in fancy) == (flag == "--color")
    assert ("· Turn ended" in fancy) == (flag == "--emoji")
    assert "\x1b" not in plain
    assert "[-] Turn ended" in plain


# ------------------------------------------------------------------ following


def other(workspace: Path, name: str, *arguments: str) -> Running:
    """A second `ralph` beside a run, with output of its own."""
    directory = workspace.parent / name
    directory.mkdir()
    return Running(directory / "unused", *arguments)


def out(workspace: Path, name: str) -> str:
    return (workspace.parent / name / "stdout").read_text("utf-8")


@pytest.mark.parametrize("flags", [["--events"], ["--json"], ["--raw", "--events"]])
def test_following_shows_the_agents_words_as_they_come(workspace: Path, flags: list[str]) -> None:
    """ "`-f` follows a live run until it ends (then exits 0)", "also the growing stream"."""
    agent = prepare(workspace, PATIENT, {"text": "Done", "response": "DONE"})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    follower = other(workspace, "follower", "logs", "-f", *flags)
    follower.await_that(lambda: UNTIL_TOLD[:20] in out(workspace, "follower"))
    assert "Bye" not in out(workspace, "follower")
    (workspace / "go").touch()
    assert running.end().code == 0
    done = follower.end()
    assert_clear(done, 0)
    assert done.out.index("Wait") < done.out.index("Bye") < done.out.index("Done")
    if "--raw" not in flags:
        last = "Completed after 2 iterations" if "--events" in flags else '"type":"stop"'
        assert any(last in line for line in done.out.splitlines()[-6:])


def test_following_with_n_shows_the_last_lines_and_then_all_new_ones(workspace: Path) -> None:
    agent = prepare(workspace, {}, PATIENT, {"response": "DONE"})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: len(calls(agent)) == 2)
    follower = other(workspace, "follower", "logs", "-f", "-n", "1")
    follower.await_that(lambda: "Iteration 2/10" in out(workspace, "follower"))
    (workspace / "go").touch()
    running.end()
    lines = without_times(follower.end().out)
    assert lines[0] == "[ralph] Iteration 2/10 starting"
    assert lines[1] == "[ralph] Iteration 3/10 starting"


def test_following_a_run_that_is_over_ends_at_once(here: Here, ended: str) -> None:
    assert here("logs", "-f").out == here("logs").out


def test_ctrl_c_ends_following_with_130(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, PATIENT)
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    follower = other(workspace, "follower", "logs", "-f", "--json")
    follower.await_that(lambda: "launching" in out(workspace, "follower"))
    follower.send(signal.SIGINT)
    done = follower.end()
    assert (done.code, done.err) == (130, "")
    assert all(json.loads(line)["type"] != "stop" for line in done.out.splitlines())
    assert running.process.poll() is None, "the run does not care"
    here("stop", "--now")
    running.end()


def test_a_closed_pipe_ends_following_quietly(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, {}, {}, {}, PATIENT)
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: len(calls(agent)) == 4)
    done = in_shell("ralph logs -f --events | head -n 2")
    (workspace / "go").touch()
    assert done.err == ""
    assert len(done.out.splitlines()) == 2
    here("stop", "--now")
    running.end()


# ------------------------------------------------------------------ what is broken


def test_a_changed_line_is_named_after_what_stands_before_it(here: Here, ended: str) -> None:
    journal = journals()[0]
    text = journal.read_bytes()
    place = text.rindex(b'"iteration":2')
    journal.write_bytes(text[:place] + b'"iteration":7' + text[place + 13 :])
    done = here("logs")
    assert_clear(done, 2, "this line was changed after it was written", "ralph logs --raw")
    assert "Iteration 1/10 starting" in done.out
    assert "Iteration 7" not in done.out
    assert here("logs", "--raw").out.encode() == journal.read_bytes()


def test_a_torn_line_and_a_crash_are_told(here: Here, ended: str) -> None:
    journal = journals()[0]
    journal.write_bytes(journal.read_bytes()[:-30])
    done = here("logs")
    assert_clear(done, 0, "Here it breaks off: the run's process is gone.")
    assert "Completed" not in done.out
    assert here("logs", "--raw").out.encode() == journal.read_bytes()


def test_a_run_without_a_journal(here: Here, ended: str) -> None:
    journals()[0].unlink()
    run = os.listdir(next(Path(os.environ["RALPH_STATE_DIR"]).glob("*/runs")))[0]
    assert_clear(here("logs"), 2, f"run {run} left no journal")


def test_a_stream_that_is_gone_is_no_trouble(here: Here, ended: str) -> None:
    (journals()[0].parent / "001.stream").unlink()
    (journals()[0].parent / "001.prompt").unlink()
    done = here("logs", "--events")
    assert done.code == 0
    assert "Last words" in done.out
    assert "First words" not in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("zzzz",), "there is no run 'zzzz'"),
        (("-n", "x"), "'x' is not a whole number"),
        (("-n", "-1"), "-1 is less than nothing"),
        (("--raw", "--json"), "--raw and --json exclude each other"),
    ],
)
def test_bad_input(here: Here, ended: str, arguments: tuple[str, ...], words: str) -> None:
    assert_clear(here("logs", *arguments), 2, words)


def test_no_run_is_exit_2(workspace: Path, here: Here) -> None:
    assert_clear(here("logs"), 2, "no run was started in")


def test_hostile_output_and_a_narrow_alphabet(workspace: Path, here: Here) -> None:
    prepare(workspace, {"text": "\x1b[2J naïve 字", "response": "DONE"})
    here("-p", "x")
    done = ralph("logs", "--events", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert_clear(done, 0)
    assert "na?ve" in done.out
    assert "\x1b" not in done.out


def test_the_journal_says_what_the_log_needs(here: Here, ended: str) -> None:
    started = facts()[0]
    assert isinstance(started, Started)
    assert json.loads(started.settings)["guardrails"] == [{"command": "true"}]


def test_help_ends_with_examples(here: Here) -> None:
    assert "Examples:\n" in here("logs", "--help").out


@pytest.mark.parametrize("flags", ["", "-f", "-n 3", "--raw", "--json"])
def test_a_closed_stdout_is_no_bug(here: Here, ended: str, flags: str) -> None:
    assert_clear(in_shell(f"ralph logs --events {flags} >&-"), 0)


# ------------------------------------------------------------------ the last lines


@pytest.mark.parametrize(
    ("last", "pieces", "shown"),
    [
        (None, [b"a\nb", b"c"], b"a\nbc"),
        (1, [b"a\nb", b"c\n"], b"bc\n"),
        (1, [b"a\nb", b"c"], b"bc"),
        (2, [b"a\n\nb", b"", b"\n"], b"\nb\n"),
        (3, [["x", "ü"], b"y"], b"x\n\xfc\ny"),
        (0, [b"a\nb"], b""),
        (9, [], b""),
    ],
)
def test_lines_are_counted_whatever_the_pieces(
    last: int | None, pieces: list[Piece], shown: bytes
) -> None:
    out = BytesIO()
    sink = Sink(out, "latin-1", last)
    for piece in pieces:
        sink.write(piece)
    sink.flush()
    assert out.getvalue() == shown
    sink.write(b"new\n")
    sink.flush()
    assert out.getvalue() == shown + b"new\n", "what comes later is not held back"


def test_of_a_line_without_an_end_only_so_much_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays flat for a stream of any size that has no newline."""
    monkeypatch.setattr(logs_module, "_LONGEST_HELD", 10)
    out = BytesIO()
    sink = Sink(out, "utf-8", 2)
    for piece in (b"first\n", b"x" * 30, b"y" * 4, b"z\n", b"0123456789", b"abc"):
        sink.write(piece)
        assert len(sink._rest) <= 10
    sink.flush()
    assert out.getvalue() == b"xxxxxyyyyz\n3456789abc"
