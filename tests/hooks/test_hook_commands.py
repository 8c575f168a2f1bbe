"""`ralph hook NAME`: the contract with hosts, whatever comes in and wherever it goes."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hook_support import RALPH, begin, event, listing, run, story

from kits.thorough import dealt
from ralph.cli.main import run_command_line
from ralph.hosts.hosts import quickly
from ralph.hosts.protocol import HOOKS, Malformed, event_of, module_of, parsed

EVENTS = sorted((Path(__file__).parent / "captures" / "events").glob("*.json"))
OF_EVENT = {
    "AfterAgent": "stop",
    "AfterTool": "post-tool",
    "PostToolUse": "post-tool",
    "SessionStart": "session-start",
    "Stop": "stop",
    "StopFailure": "stop-failure",
    "SubagentStop": "stop",
    "UserPromptSubmit": "prompt",
}


def by_ralph(name: str) -> tuple[str, ...]:
    return (*RALPH, name)


def by_run(name: str) -> tuple[str, ...]:
    """As a run gives it to its agent: without the site's packages."""
    return tuple(shlex.split(quickly(name)))


PROGRAMS = pytest.mark.parametrize("program", [by_ralph, by_run])


@PROGRAMS
@pytest.mark.parametrize("path", EVENTS, ids=lambda path: path.stem)
def test_events_of_real_hosts_pass_where_nothing_is_on(
    path: Path, program: Callable[[str], tuple[str, ...]], tmp_path: Path
) -> None:
    """Letting go: no output, exit 0."""
    name = OF_EVENT[json.loads(path.read_text())["hook_event_name"]]
    done = run(program(name), path.read_bytes(), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize(
    "raw", dealt([b"", b"{", b"[]", b"\xff\xfe\0", b"[" * 100_000, b"x" * (17 << 20)], 2)
)
def test_what_is_no_event_is_let_go_with_a_reason(name: str, raw: bytes, tmp_path: Path) -> None:
    """ "Malformed stdin: exit 0, reason on stderr"; never exit 1, never a traceback."""
    done = run((*RALPH, name), raw, tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"[ralph] the hook lets go, because the event ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("name", HOOKS)
def test_closed_streams_are_no_crash(name: str, repo: Path) -> None:
    begin(repo, None, listing(story(passes=True)))
    sent = event(repo, tool_name="Read")
    hook = f'exec "{sys.executable}" -m ralph hook {name}'
    for redirection in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"):
        done = run(("sh", "-c", f"{hook} {redirection}"), sent, repo)
        assert done.returncode == 0, redirection
        assert b"Traceback" not in done.stderr


def test_an_answer_nobody_reads_is_no_crash(repo: Path) -> None:
    begin(repo, None, listing(story(passes=True)))
    (repo / "event.json").write_text(json.dumps(event(repo)))
    command = f'"{sys.executable}" -m ralph hook stop <event.json; echo code $? >&2'
    done = run(("sh", "-c", f"({command}) | true"), b"", repo)
    assert b"code 0" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_closed_stdout_does_not_lead_the_answer_into_a_file(repo: Path) -> None:
    """The next file that is opened would become number 1."""
    begin(repo, None, listing(story(passes=True)))
    run(("sh", "-c", f'exec "{sys.executable}" -m ralph hook stop >&-'), event(repo), repo)
    folder = Path(os.environ["RALPH_STATE_DIR"]) / "sessions"
    assert [path.read_text().strip() for path in folder.glob("*.held")] == ["1"]


@PROGRAMS
def test_the_process_holds_with_one_line_and_exit_0(
    repo: Path, program: Callable[[str], tuple[str, ...]]
) -> None:
    """ "holding = `{"decision":"block","reason":…,"systemMessage":…}`, exit 0"."""
    begin(repo, None, listing(story(passes=True)))
    done = run(program("stop"), event(repo), repo)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 1
    assert set(json.loads(done.stdout)) == {"decision", "reason", "systemMessage"}


def test_a_failure_of_a_hook_lets_go(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from ralph.hooks import prompt
    from ralph.hosts import protocol

    def fail(*_: object) -> str:
        raise MemoryError

    monkeypatch.setattr(protocol, "sent", lambda: b"{}")
    monkeypatch.setattr(prompt, "answer", fail)
    assert prompt.main() == 0
    assert "because it failed itself: MemoryError()" in capfd.readouterr().err


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_a_module(name: str) -> None:
    assert callable(__import__(module_of(name), fromlist=("main",)).main)


def test_a_hook_that_there_is_not_is_named_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["hook", "xyz"]) == 2
    said = capsys.readouterr().err
    assert "no hook 'xyz'" in said
    assert all(name in said for name in HOOKS)
    assert run_command_line(["hook", "stop", "extra"]) == 2
    assert run_command_line(["hook"]) == 2


def test_the_command_line_knows_hooks_too(tmp_path: Path) -> None:
    """`ralph hook stop --help` goes there, and so may the hook itself."""
    look = (
        "from ralph.cli.main import run_command_line as r; raise SystemExit(r(['hook', 'prompt']))"
    )
    done = run((sys.executable, "-c", look), b"{", tmp_path)
    assert done.returncode == 0
    assert b"the hook lets go" in done.stderr


@pytest.mark.parametrize(
    "text",
    ["{}", ' \n{"a": [1, 2.5, true, null, "\\u00e9\\ud83d\\ude00"]}\r\n', '"x"', "0", "[NaN]"],
)
def test_json_is_read_as_the_package_reads_it(text: str) -> None:
    assert str(parsed(text.encode())) == str(json.loads(text))


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{} x", "nul", '{"a": "\n"}', "\ufeff{}"])
def test_what_is_not_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  each has words of its own
        parsed(text.encode())
    with pytest.raises(Malformed):
        event_of(text.encode())
