"""`ralph hook post-tool` and `session-start`: how full the context window is (R §5a)."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hook_support import RALPH, run

from ralph.files import state_dir
from ralph.hooks import session_start
from ralph.hooks.post_tool import answer, used, window
from ralph.hosts.protocol import Malformed
from ralph.loops.session.memory import folder_of

WINDOW = {"CLAUDE_CONTEXT_WINDOW": "1000"}  # so that 40 bytes are a percent


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return tmp_path / "transcript.jsonl"


def call(transcript: Path, percent: int, session: str = "s-1", **more: object) -> str:
    """What the model reads after a call, at so many percent; empty for nothing."""
    transcript.write_bytes(b"x" * 40 * percent)
    event = {"session_id": session, "transcript_path": str(transcript), **more}
    said = answer(event, {**os.environ, **WINDOW}, "/")
    if not said:
        return ""
    told = json.loads(said)
    assert list(told) == ["hookSpecificOutput"]
    inner = told["hookSpecificOutput"]
    assert inner["hookEventName"] == "PostToolUse"
    return str(inner["additionalContext"])


def start(session: str, source: str = "startup") -> None:
    assert not session_start.answer(
        {"session_id": session, "source": source}, dict(os.environ), "/"
    )


def test_each_threshold_is_told_once(transcript: Path) -> None:
    """R §5a: "each threshold triggers only once per session"."""
    told = [call(transcript, percent) for percent in range(101)]
    found = {percent: words.split(":")[0] for percent, words in enumerate(told) if words}
    assert found == {50: "NOTICE", 60: "NOTICE", 70: "WARNING", 80: "WARNING", 90: "CRITICAL"}
    assert "50%" in told[50]


@pytest.mark.parametrize("found", ["ralph/tasks.json", ".ralph-active", None])
def test_the_words_are_about_stories_only_where_there_are_some(
    tmp_path: Path, transcript: Path, found: str | None
) -> None:
    """The issue: "the context monitor's messages are R's meaning when a `ralph/` exists and neutral
    elsewhere"; R §5a says what they are there."""
    below = tmp_path / "project" / "src"
    below.mkdir(parents=True)
    (tmp_path / "project" / "ralph").mkdir()  # somebody's package is no list of stories
    if found is not None:
        (tmp_path / "project" / found).touch()
    told = [call(transcript, percent, cwd=str(below)) for percent in (50, 70, 90)]
    for words in ("tasks.json", "progress.txt", "commit", "next iteration"):
        assert (words in told[1] and words in told[2]) is (found is not None)
    assert ("tasks.json" in told[0]) is (found is not None)
    assert "do NOT start new work" in told[2]


@pytest.mark.parametrize(
    ("percents", "names"),
    [
        ([85, 85, 60, 89], ["WARNING", "", "", ""]),
        ([95, 100, 5000], ["CRITICAL", "", ""]),
        ([49, 50, 69, 70], ["", "NOTICE", "NOTICE", "WARNING"]),
        ([300], ["CRITICAL"]),
    ],
)
def test_a_jump_tells_the_highest_and_silences_the_lower_ones(
    transcript: Path, percents: list[int], names: list[str]
) -> None:
    assert [call(transcript, percent).partition(":")[0] for percent in percents] == names


def test_sessions_do_not_touch_each_other(transcript: Path) -> None:
    """ "per-session state that never touches another session's"."""
    assert call(transcript, 55, "a")
    assert call(transcript, 55, "b")
    start("b")
    assert call(transcript, 55, "a") == ""
    assert call(transcript, 55, "b")


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_every_start_of_a_session_arms_it_anew(transcript: Path, source: str) -> None:
    """R §5a: SessionStart "removes the state file … so thresholds re-arm"."""
    assert call(transcript, 95)
    start("s-1", source)
    assert call(transcript, 95)
    start("s-1", source)
    start("s-1", source)
    assert call(transcript, 50)


@pytest.mark.parametrize(("extra", "swept"), [(0, False), (1, True)])
def test_sessions_of_long_ago_are_forgotten_where_there_are_many(
    transcript: Path, extra: int, *, swept: bool
) -> None:
    """And none that may live, nor what is none of ours."""
    folder = Path(os.environ["RALPH_STATE_DIR"]) / "sessions"
    assert call(transcript, 55, "lives")
    names = [f"{number:032}.held" for number in range(198 + extra)]
    for name in (*names, f"{'a' * 32}.alerted", "notes.held", "other"):
        (folder / name).touch()
    old = time.time() - 31 * 86_400
    for name in (*names[:2], "notes.held", "other"):
        os.utime(folder / name, (old, old))
    before = {path.name for path in folder.iterdir()}
    start("another")
    gone = before - {path.name for path in folder.iterdir()}
    assert gone == (set(names[:2]) if swept else set())
    assert call(transcript, 55, "lives") == ""


@pytest.mark.parametrize("session", ["../../x", "/etc/passwd", "a\0b", "x" * 5000, "\ud800", ".."])
def test_an_id_is_never_a_path(transcript: Path, session: str) -> None:
    assert call(transcript, 55, session)
    assert call(transcript, 55, session) == ""
    folder = Path(os.environ["RALPH_STATE_DIR"]) / "sessions"
    assert len([path for path in folder.iterdir() if path.name != ".gitignore"]) == 1


@pytest.mark.parametrize(
    ("given", "tokens"),
    [
        ("", 200_000),
        ("0", 200_000),
        ("-5", 200_000),
        ("many", 200_000),
        ("200k", 200_000),
        ("9" * 5000, 200_000),
        ("1000000", 1_000_000),
        (" 7 ", 7),
    ],
)
def test_the_window_is_a_number_or_the_default(given: str, tokens: int) -> None:
    assert window({}, {"CLAUDE_CONTEXT_WINDOW": given}) == tokens
    assert window({}, {}) == 200_000


def test_the_window_is_the_one_that_the_model_states(transcript: Path) -> None:
    """The issue: "its window follows the model's stated one"; what a person says comes first."""
    large = {"model": "claude-opus-4-8[1m]"}
    assert window(large, {}) == 1_000_000
    assert window({}, {"ANTHROPIC_MODEL": "opus[1M]"}) == 1_000_000
    assert window(large, {"CLAUDE_CONTEXT_WINDOW": "7"}) == 7
    codex = {"model": "gpt-5.5", "transcript_path": str(transcript)}
    assert window(codex, {}) == 200_000
    stated = b'{"payload":{"type":"token_count","info":{"model_context_window":%s}}}\n'
    transcript.write_bytes(b"x" * 100_000 + stated % b"1" + stated % b"258400" + b"y" * 100)
    assert window(codex, {}) == 258_400
    for odd in (b"null", b"-1", b"258400 of them"):
        transcript.write_bytes(stated % odd)
        assert window(codex, {}) == 200_000
    transcript.write_bytes(rb'{"output":"{\"model_context_window\":5}"}')
    assert window(codex, {}) == 200_000


def test_four_characters_are_a_token(transcript: Path) -> None:
    transcript.write_bytes(b"x" * 399_999)
    assert used({"transcript_path": str(transcript)}, {}) == 49
    transcript.write_bytes(b"x" * 400_000)
    assert used({"transcript_path": str(transcript)}, {}) == 50


@pytest.mark.parametrize("transcript_path", [None, 5, "", "/nowhere/x", "a\0b", "\ud800", "/dev"])
def test_without_a_transcript_nothing_is_told(transcript_path: object) -> None:
    event = {"session_id": "s", "transcript_path": transcript_path}
    assert answer(event, {**os.environ}, "/") == ""


@pytest.mark.parametrize("session", [None, 5, "", []])
def test_without_a_session_nothing_is_told_nor_forgotten(transcript: Path, session: object) -> None:
    with pytest.raises(Malformed, match="no session_id"):
        answer({"session_id": session}, {}, "/")
    with pytest.raises(Malformed, match="no session_id"):
        session_start.answer({"session_id": session}, {}, "/")


def test_a_helper_has_a_window_of_its_own(transcript: Path) -> None:
    """Its calls name the session's transcript, which says nothing about it (docs/facts.md §6)."""
    assert call(transcript, 95, agent_id="a1") == ""
    assert call(transcript, 95)


# ------------------------------------------------------------------ where it is remembered


def test_the_state_is_where_all_state_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for changes in (
        {"RALPH_STATE_DIR": "/a/b"},
        {"RALPH_STATE_DIR": "relative"},
        {"XDG_STATE_HOME": "/c"},
        {"XDG_STATE_HOME": "relative", "HOME": "/h"},
        {"HOME": "/h"},
        {},
    ):
        assert folder_of(changes) == os.path.join(state_dir.state_root(changes), "sessions")
    with pytest.raises(OSError, match="no state directory"):
        folder_of({"HOME": "relative"})


def test_where_the_state_cannot_be_written_the_temporary_directory_serves(
    transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RALPH_STATE_DIR", str(tmp_path / "file" / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert call(transcript, 55)
    assert call(transcript, 55) == ""
    folder = tmp_path / f"ralph-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    start("s-1")
    assert call(transcript, 55)


def as_link(folder: Path, elsewhere: Path) -> None:
    folder.symlink_to(elsewhere)


def as_shared(folder: Path, _: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def as_file(folder: Path, _: Path) -> None:
    folder.touch()


@pytest.mark.parametrize("make", [as_link, as_shared, as_file])
def test_a_temporary_folder_that_is_not_ours_alone_is_not_used(
    transcript: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    make: "object",
) -> None:
    """Where nothing can be remembered, the same would be told after every call."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    assert callable(make)
    make(tmp_path / f"ralph-{os.getuid()}", elsewhere)
    (tmp_path / "file").touch()
    monkeypatch.setenv("RALPH_STATE_DIR", str(tmp_path / "file" / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert call(transcript, 55) == ""
    assert "none could be remembered" in capfd.readouterr().err
    assert list(elsewhere.iterdir()) == []


def test_a_link_in_the_place_of_a_number_is_not_followed(transcript: Path, tmp_path: Path) -> None:
    assert call(transcript, 55)
    folder = Path(os.environ["RALPH_STATE_DIR"]) / "sessions"
    (number,) = [path for path in folder.iterdir() if path.name != ".gitignore"]
    number.unlink()
    (tmp_path / "precious").write_text("precious")
    number.symlink_to(tmp_path / "precious")
    call(transcript, 65)
    assert (tmp_path / "precious").read_text() == "precious"


def test_nonsense_in_the_place_of_a_number_is_nothing(transcript: Path) -> None:
    assert call(transcript, 55)
    folder = Path(os.environ["RALPH_STATE_DIR"]) / "sessions"
    (number,) = [path for path in folder.iterdir() if path.name != ".gitignore"]
    number.write_bytes(b"\xff\xfe nonsense")
    assert call(transcript, 55)


def test_what_is_remembered_is_hidden_from_git(
    repo: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state directory may lie in a workspace; else a stop would be held for it."""
    monkeypatch.setenv("RALPH_STATE_DIR", str(repo / "state"))
    assert call(transcript, 55)
    command = ["git", "status", "--porcelain"]
    assert subprocess.run(command, cwd=repo, capture_output=True, check=True).stdout == b""


# ------------------------------------------------------------------ real processes


def test_hooks_at_once_tell_a_threshold_once(transcript: Path, tmp_path: Path) -> None:
    transcript.write_bytes(b"x" * 40 * 55)
    event = json.dumps({"session_id": "s", "transcript_path": str(transcript)})
    hook = f'"{sys.executable}" -m ralph hook post-tool'
    command = f"for n in 1 2 3 4 5 6 7 8; do {hook} <<'E' &\n"
    script = f"{command}{event}\nE\ndone; wait"
    done = run(("sh", "-c", script), b"", tmp_path, **WINDOW)
    assert done.stdout.count(b"NOTICE") == 1


def test_it_imports_next_to_nothing(transcript: Path, tmp_path: Path) -> None:
    """It runs after every tool call; `json` alone takes as long as Python's start."""
    transcript.write_bytes(b"x" * 40 * 55)
    event = {"session_id": "s", "transcript_path": str(transcript)}
    look = "import sys; from ralph.hooks.post_tool import main; main(); print(*sys.modules)"
    src = Path(state_dir.__file__).parents[2]
    argv = (
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(src)!r}); {look}",
    )
    done = run(argv, event, tmp_path, **WINDOW)
    answered, modules = done.stdout.decode().splitlines()
    assert "NOTICE" in answered
    slow = {"json", "re", "subprocess", "pathlib", "hashlib", "typing", "dataclasses", "enum"}
    assert not slow & set(modules.split())


def test_the_program_answers(transcript: Path, tmp_path: Path) -> None:
    transcript.write_bytes(b"x" * 40 * 95)
    event = {"session_id": "s", "transcript_path": str(transcript)}
    done = run((*RALPH, "post-tool"), event, tmp_path, **WINDOW)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"].startswith("CRITICAL")
    again = run((*RALPH, "post-tool"), event, tmp_path, **WINDOW)
    assert (again.returncode, again.stdout, again.stderr) == (0, b"", b"")
    armed = run((*RALPH, "session-start"), event, tmp_path)
    assert (armed.returncode, armed.stdout, armed.stderr) == (0, b"", b"")
    assert run((*RALPH, "post-tool"), event, tmp_path, **WINDOW).stdout
