"""Requests of other terminals, by files in a run's `signals/` (ADR 7)."""

import os
from pathlib import Path

import pytest

from ralph.kernel.world import ANSWER, NOTE, RESUME, Origin, Signals
from ralph.processes.signals import LONGEST_NOTE, MOST_WAITING, SignalFiles


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "signals").mkdir()
    return tmp_path


def test_nobody_asks_for_anything(run_dir: Path) -> None:
    assert SignalFiles(str(run_dir)).signals() == Signals()


def test_a_directory_that_is_gone_asks_for_nothing(tmp_path: Path) -> None:
    assert SignalFiles(str(tmp_path / "none")).signals() == Signals()


@pytest.mark.parametrize(
    ("names", "cancels", "paused"),
    [
        (["stop"], 1, False),
        (["stop-now"], 2, False),
        (["stop", "stop-now"], 2, False),
        (["pause"], 0, True),
        (["pause", "stop"], 1, True),
        (["something-else"], 0, False),
    ],
)
def test_what_the_files_mean(run_dir: Path, names: list[str], cancels: int, paused: bool) -> None:
    """`stop` is a first signal, `stop-now` a second."""
    files = SignalFiles(str(run_dir))
    for name in names:
        files.ask(name)
    asked = files.signals()
    assert (asked.cancels, asked.paused) == (cancels, paused)
    assert (asked.cancelled_at is not None) == bool(cancels)


def test_the_first_request_tells_the_time(run_dir: Path) -> None:
    """`--stop-grace` counts from the first, also when it is asked for again."""
    files = SignalFiles(str(run_dir))
    files.ask(SignalFiles.STOP)
    os.utime(run_dir / "signals" / "stop", (1000, 1000))
    files.ask(SignalFiles.STOP)
    files.ask(SignalFiles.NOW)
    assert files.signals().cancelled_at == 1000


def test_a_request_can_be_taken_back_once(run_dir: Path) -> None:
    files = SignalFiles(str(run_dir))
    files.ask(SignalFiles.PAUSE)
    assert files.take_back(SignalFiles.PAUSE)
    assert not files.signals().paused
    assert not files.take_back(SignalFiles.PAUSE)


def test_a_request_to_a_run_without_a_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SignalFiles(str(tmp_path / "none")).ask(SignalFiles.STOP)


# ------------------------------------------------------------------ requests with words


def test_a_request_carries_its_origin_and_words(run_dir: Path) -> None:
    """ADR 38; and nobody but its owner reads it."""
    files = SignalFiles(str(run_dir))
    files.ask(SignalFiles.PAUSE, Origin.WEB)
    files.ask(NOTE, Origin.WATCH, text="Use tabs.\n\u00e9\u202e", task="T-1")
    files.ask(RESUME)
    pause, note, resume = files.signals().requests
    assert (pause.request, pause.origin, pause.text) == ("pause", Origin.WEB, "")
    assert (note.text, note.task, note.origin) == ("Use tabs.\n\u00e9\u202e", "T-1", Origin.WATCH)
    assert (resume.request, resume.origin) == ("resume", Origin.CLI)
    assert len({pause.id, note.id, resume.id}) == 3
    kept = list((run_dir / "signals").iterdir())
    assert len(kept) == 3, "no half of one is left"
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}


def test_a_file_left_by_hand_is_a_request_too(run_dir: Path) -> None:
    """`touch signals/pause`; each time it is another."""
    path = run_dir / "signals" / "pause"
    path.touch()
    files = SignalFiles(str(run_dir))
    (first,) = files.signals().requests
    assert (first.request, first.origin) == ("pause", Origin.CLI)
    assert files.signals().requests == (first,)
    path.unlink()
    assert files.signals() == Signals()
    path.touch()
    os.utime(path, (2000, 2000))
    assert files.signals().requests[0].id != first.id


def test_a_file_is_read_once(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for four times a second."""
    files, opened = SignalFiles(str(run_dir)), list[str]()
    files.ask(NOTE, text="Use tabs.")
    real = os.open

    def counted(path: str, flags: int, *more: int) -> int:
        opened.append(path)
        return real(path, flags, *more)

    monkeypatch.setattr(os, "open", counted)
    before = files.signals()
    assert files.signals() == before
    assert len(opened) == 1
    files.ask(NOTE, text="Use blanks.")
    assert [each.text for each in files.signals().requests] == ["Use tabs.", "Use blanks."]


BAD = {
    "empty": b"",
    "half": b'{"id": "1", "origin": "cli", "time": 1, "text": "x',
    "binary": bytes(range(256)),
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "a number": b'{"origin": "cli", "time": 1, "text": 7}',
    "no text": b'{"origin": "cli", "time": 1}',
    "blank": b'{"origin": "cli", "time": 1, "text": "  "}',
    "no time": b'{"origin": "cli", "text": "x"}',
    "no end of time": b'{"origin": "cli", "time": 1e999, "text": "x"}',
    "a large time": b'{"origin": "cli", "time": 1' + b"0" * 400 + b', "text": "x"}',
    "half a character": b'{"origin": "cli", "time": 1, "text": "\\ud800"}',
    "NUL": b'{"origin": "cli", "time": 1, "text": "a\\u0000b"}',
    "a stranger": b'{"origin": "me", "time": 1, "text": "x"}',
    "too long": b'{"origin": "cli", "time": 1, "text": "' + b"x" * (LONGEST_NOTE + 1001) + b'"}',
    "huge": b'{"origin": "cli", "time": 1, "text": "' + b"x" * (2 << 20) + b'"}',
}


@pytest.mark.parametrize("what", BAD)
def test_what_nobody_has_left_by_ask_is_no_request(run_dir: Path, what: str) -> None:
    """An agent without a sandbox may write there; it must not end a run."""
    for name in ("note.abc-1", "resume.abc-2", "answer.abc-3"):
        (run_dir / "signals" / name).write_bytes(BAD[what])
    (run_dir / "signals" / "pause").write_bytes(BAD[what])
    asked = SignalFiles(str(run_dir)).signals()
    assert asked.paused, "whatever it says, it is there"
    assert [each.request for each in asked.requests if each.request == NOTE] == []
    assert "pause" in [each.request for each in asked.requests]


def test_no_kind_of_request_keeps_another_from_being_heard(run_dir: Path) -> None:
    """A paused run may have as many notes as wait at most, and is resumed all the same. What an
    agent writes beside them is not counted."""
    files, place = SignalFiles(str(run_dir)), run_dir / "signals"
    for number in range(MOST_WAITING + 1):
        (place / f"answer.{number:03x}").touch()
        (place / f"note.000-{number:03x}").touch()
        files.ask(NOTE, text=f"Note {number}.")
    files.ask(RESUME)
    heard = [each.request for each in files.signals().requests]
    assert (heard.count(NOTE), heard.count(RESUME)) == (MOST_WAITING, 1)


def test_only_files_are_read(run_dir: Path) -> None:
    secret, place = run_dir / "secret", run_dir / "signals"
    secret.write_text('{"origin": "cli", "time": 1, "text": "secret"}')
    (place / "note.abc-1").symlink_to(secret)
    (place / "note.abc-2").mkdir()
    os.mkfifo(place / "note.abc-3")
    (place / "note.Not An Id").write_text(secret.read_text())
    (place / "pause").mkdir()
    files = SignalFiles(str(run_dir))
    assert files.signals() == Signals()
    files.forget()
    with pytest.raises(IsADirectoryError):
        files.ask(SignalFiles.PAUSE)


def test_a_note_is_moved_to_whoever_tells_it(run_dir: Path) -> None:
    """One of two workers is faster; it has the note, also when it asks again after a crash."""
    lead, ours, theirs = (SignalFiles(str(run_dir / name)) for name in ("", "one", "two"))
    for name in ("one", "two"):
        (run_dir / name / "signals").mkdir(parents=True)
    lead.ask(NOTE, text="Use tabs.")
    (note,) = lead.signals().requests
    assert (lead.take(note, ours), lead.take(note, theirs)) == (True, False)
    assert lead.take(note, ours)
    assert (lead.signals(), ours.signals().requests) == (Signals(), (note,))
    ours.drop(note)
    assert ours.signals() == Signals()


def test_a_run_that_goes_on_keeps_what_no_turn_has_heard(run_dir: Path) -> None:
    files = SignalFiles(str(run_dir))
    for request in (SignalFiles.STOP, SignalFiles.NOW, SignalFiles.PAUSE, RESUME):
        files.ask(request)
    for text in ("told", "untold"):
        files.ask(NOTE, text=text)
    files.ask(ANSWER, text="Use SQLite.", task="T-1")
    told = next(each.id for each in files.signals().requests if each.text == "told")
    files.forget({told})
    assert [each.text for each in files.signals().requests] == ["untold", "Use SQLite."]
