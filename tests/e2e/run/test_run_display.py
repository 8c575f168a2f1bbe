"""What people see of a run (the issue, §4 "Display"; H §Formatter, §Verbose Output)."""

import io
import json
import os
import re
import shlex
from pathlib import Path

import pexpect
import pytest
from run_support import FINISH, RALPH, Here, assert_clear, in_shell, prepare, program, turns

from kits.screen_model import Screen
from ralph.testing.scripted_agent.install import calls

DONE = {"response": "DONE"}
TERMINAL = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "CI": ""}
TOOL = {"tools": [{"name": "Bash", "run": "echo hello"}], "text": "I look.", **DONE}

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def on_terminal(*arguments: str, **environ: str) -> str:
    """What `ralph` shows on a real terminal."""
    env = {**os.environ, **TERMINAL, **environ}
    shown, code = pexpect.run(
        shlex.join((*RALPH, *arguments)), env=env, timeout=30, withexitstatus=True
    )
    assert code == 0
    return str(shown.decode())


def test_without_a_terminal_the_display_is_plain(here: Here, workspace: Path) -> None:
    """ "plain without a terminal"."""
    prepare(workspace, TOOL)
    done = here("-p", "x")
    assert "\x1b" not in done.out + done.err
    assert "[*] Bash(echo hello)\n[OK] Result <- Bash (1 line, 5 chars)" in done.out
    assert done.out.isascii()


def test_on_a_terminal_there_are_colours_and_emoji(workspace: Path) -> None:
    prepare(workspace, TOOL)
    shown = on_terminal("-p", "x")
    assert "\x1b[36m⏺ Bash(echo hello)\x1b[0m" in shown
    assert "✅ Result ← Bash (1 line, 5 chars)" in shown


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_is_plain_on_a_terminal_too(workspace: Path, environ: dict[str, str]) -> None:
    """ "plain … with `NO_COLOR`"."""
    prepare(workspace, TOOL)
    shown = on_terminal("-p", "x", **environ)
    assert "\x1b" not in shown
    assert "[OK] Result <- Bash" in shown


@pytest.mark.parametrize(
    ("flag", "pattern", "there"),
    [
        ("--emoji", "✅ Result ← Bash", True),
        ("--no-emoji", "✅", False),
        ("--color", "\x1b\\[36m", True),
        ("--no-color", "\x1b", False),
        ("--timestamps", r"(?m)^\[\d\d:\d\d:\d\d\] \[\*\] Bash", True),
        ("--no-timestamps", r"(?m)^\[\d\d:\d\d:\d\d\]", False),
    ],
)
def test_the_flags_of_the_display(
    here: Here, workspace: Path, flag: str, pattern: str, there: bool
) -> None:
    """ "flags `--[no-]emoji --color --timestamps`", over the settings."""
    opposite = not flag.startswith("--no-")
    display = dict.fromkeys(("emoji", "color", "timestamps"), not opposite)
    prepare(workspace, TOOL, display=display)
    assert bool(re.search(pattern, here("-p", "x", flag).out)) is there


def test_the_settings_of_the_display(here: Here, workspace: Path) -> None:
    """ "settings `display {…, maxOutputLines: 3, maxOutputChars: 120}`"."""
    tools = [{"name": "Bash", "run": "seq 5; echo; echo " + "x" * 50}]
    display = {"maxOutputLines": 2, "maxOutputChars": 20}
    prepare(workspace, {"tools": tools, **DONE}, display=display)
    shown = here("-p", "x").out
    assert "|  1\n  |  2\n  |  ... 5 more lines" in shown
    assert "3" not in re.findall(r"\|  (\S+)", shown)


def test_without_streaming_nothing_of_the_agent_is_shown(here: Here, workspace: Path) -> None:
    """H: "`--no-stream-agent-output`"; it is captured for completion detection all the same."""
    prepare(workspace, {"text": "I look.", **DONE})
    done = here("-p", "x", "--no-stream-agent-output")
    assert (done.code, done.out) == (0, "")


@pytest.mark.parametrize("flags", ["", "--json"])
def test_a_stdout_that_nobody_reads_changes_nothing_else(workspace: Path, flags: str) -> None:
    """`> /dev/null`: everything is parsed, judged, saved and recorded all the same."""
    prepare(workspace, {"text": "Not yet."}, TOOL)
    done = in_shell(f"ralph -p x {flags} >/dev/null")
    assert (done.code, done.out) == (0, "")
    first, last = (ended.turn for ended in turns())
    assert (first.tools, last.tools) == (0, 1)
    assert [claim.content for claim in last.claims] == ["DONE"]
    assert "Not yet." in Path(first.stream).read_text("utf-8")
    assert "echo hello" in Path(last.stream).read_text("utf-8")


def test_the_verbose_lines_of_the_specification(here: Here, workspace: Path) -> None:
    """H §Verbose Output, line by line, verbatim in shape."""
    agent = prepare(
        workspace, DONE, agent={"flags": ["--model opus"]}, guardrails=[{"command": "true"}]
    )
    (workspace / ".ralph" / "settings.local.json").write_text("{}")
    said = here("-p", "do it", "-V").err
    lines = [
        r"Loading settings from \.ralph/settings\.json",
        r"Loading settings from \.ralph/settings\.local\.json",
        rf"Agent command: {re.escape(agent)} -p --model opus .*",
        rf"Prompt: do it {FINISH}",
        r"Running guardrail: true",
        r"Guardrail exited with code 0 \(\d+\.\ds\)",
        r"Completion check: the agent said <response>DONE</response>: believed",
    ]
    for line in (*lines, r"Iteration 1/10 starting"):
        assert re.search(rf"(?m)^\[ralph\] {line}$", said), line


def test_the_prompt_is_cut_to_200_characters_in_verbose_output(here: Here, workspace: Path) -> None:
    """H: "Prompt being sent (truncated to first 200 chars)"."""
    prepare(workspace, DONE)
    said = here("-p", "x" * 300, "--verbose").err
    assert f"[ralph] Prompt: {'x' * 200}...\n" in said


def test_settings_in_verbose_output_are_merged_and_redacted(here: Here, workspace: Path) -> None:
    """H: "Merged configuration (redacted if sensitive)"."""
    prepare(workspace, DONE, agent={"env": {"set": {"MY_KEY": "very-secret"}}})
    said = here("-p", "x", "-V", "-m", "4").err
    (line,) = re.findall(r"\[ralph\] Settings: (.*)", said)
    assert json.loads(line)["maximumIterations"] == 4
    assert "very-secret" not in said


def test_without_verbose_these_lines_are_not_there(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE)
    said = here("-p", "x").err
    assert not re.search("Loading settings|Agent command|Prompt:|Completion check", said)


def test_guardrails_are_told_with_exit_status_and_fail_action(here: Here, workspace: Path) -> None:
    """H §Guardrails: "Print guardrail start/end, exit status, and fail action used"."""
    prepare(workspace, DONE, guardrails=[{"command": "exit 3", "failAction": "PREPEND"}])
    said = here("-p", "x", "-m", "1").err
    start, end = "Running guardrail: exit 3", "Guardrail exited with code 3"
    assert re.search(rf"{start}\n\[ralph\] {end} \(.*\): fail action PREPEND", said)
    assert ".ralph/guardrail_001_exit_3.log" in said


def test_what_was_removed_and_who_pays_is_printed(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 13: "what was removed and which credential will pay is printed"."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-one")
    monkeypatch.setenv("OPENAI_API_KEY", "secret-two")
    prepare(workspace, DONE)
    said = here("-p", "x").err
    assert "paid by ANTHROPIC_API_KEY; not passed on: OPENAI_API_KEY" in said
    assert "secret" not in said


def test_denied_permissions_name_the_flag_to_add(here: Here, workspace: Path) -> None:
    """ADR 15: "when a stream reports denied permissions the flag to add is named"."""
    agent = prepare(workspace, {"tools": [{"name": "Write", "denied": True}], **DONE})
    words = 'Permission denied: Write. Add "--dangerously-skip-permissions"'
    assert_clear(here("-p", "x"), 0, words)  # its claim is believed
    agent = prepare(workspace, {"tools": [{"name": "Write", "denied": True}]})
    words = (
        'permission denied: Write, and nothing was changed. Add "--dangerously-skip-permissions"'
    )
    assert_clear(here("-p", "x"), 2, words)
    assert len(calls(agent)) == 1


def test_the_last_words_of_an_agent_reach_people(here: Here, workspace: Path) -> None:
    """ADR 5: "lines on its standard output that are no stream, and its standard error. Both are
    shown"; and "a CLI that … asks for a login" ends the run at once."""
    prepare(workspace, failAfter=1)
    agent = program(workspace.parent / "claude", "echo 'no such module'; echo bye >&2; exit 1")
    reason = "the stream ended without a final result: no such module: bye"
    done = here("-p", "x", "--agent", agent)
    assert_clear(done, 5, "  stdout: no such module", "  stderr: bye", reason)
    program(workspace.parent / "claude", "echo 'Invalid API key · Please run /login'; exit 1")
    done = here("-p", "x", "--agent", agent)
    assert_clear(done, 2, "Invalid API key · Please run /login. Log in: start claude", "/login")
    program(workspace.parent / "claude", "echo fine; echo aside >&2")
    said = here("-p", "x", "--agent", agent, "--no-stream-agent-output", "-m", "1", "-V").err
    assert "  stderr: aside" in said


def test_an_agent_that_was_not_told_how_to_finish_never_says_it(
    here: Here, workspace: Path
) -> None:
    agent = prepare(workspace, {"text": "busy"})
    done = here("-p", "x", "-m", "2", "--no-tell-completion")
    assert_clear(done, 1, "Nothing said <response>DONE</response>; --no-tell-completion")
    assert [call["prompt"] for call in calls(agent)] == ["x", "x"]


def test_that_hint_is_absent_where_it_would_not_help(here: Here, workspace: Path) -> None:
    prepare(workspace, {"response": "NOT YET"})
    done = here("-p", "x", "-m", "2", "--no-tell-completion")
    assert_clear(done, 1, "2 iterations used up", "Next       ralph resume -m +10")
    assert "Nothing said" not in done.err


def test_the_display_survives_what_an_agent_says(here: Here, workspace: Path) -> None:
    """Escape codes of an agent must not reach the terminal."""
    prepare(workspace, {"text": "\x1b]0;title\x07 red \x1b[31m \r over \x08 \x00", **DONE})
    shown = here("-p", "x").out
    assert not set(shown) & set("\x1b\x07\x08\x00\r")


UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {"text": "I look.", "tools": [{"name": "Bash", "run": UNTIL_TOLD}], **DONE}


class OnScreen:
    """A run on a real terminal, and the screen of that terminal."""

    def __init__(self, line: str) -> None:
        self.said = io.StringIO()
        self.child = pexpect.spawn(
            "sh",
            ["-c", line.replace("ralph", shlex.join(RALPH))],
            env={**os.environ, **TERMINAL},
            encoding="utf-8",
            timeout=30,
            dimensions=(40, 80),
        )
        self.child.logfile_read = self.said

    def wait_for(self, pattern: str) -> None:
        self.child.expect(pattern)

    def lines(self) -> list[str]:
        """What is seen when all is over."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        screen = Screen(80)
        screen.feed(self.said.getvalue())
        return screen.lines()


def is_live(line: str) -> bool:
    """Whether it begins with a mark that turns."""
    return "\u2800" <= line[:1] <= "\u28ff"


def test_a_line_at_the_bottom_tells_what_goes_on_and_goes(workspace: Path) -> None:
    prepare(workspace, PATIENT, guardrails=[{"command": "sleep 0.6"}])
    run = OnScreen("ralph -p x")
    run.wait_for(r"1/10 · Bash\(until \[ -e go \]; do sleep 0.02; done\) 1s")
    (workspace / "go").touch()
    run.wait_for("1/10 · guardrail: sleep 0.6 0s")
    lines = run.lines()
    assert not any(map(is_live, lines))
    assert any(line.startswith("[ralph] Completed after 1 iteration") for line in lines)
    assert lines.count("I look.") == 1


def test_a_signal_leaves_the_screen_tidy(workspace: Path) -> None:
    """H §Signal Handling; on a line of its own."""
    prepare(workspace, PATIENT)
    run = OnScreen("ralph -p x")
    run.wait_for(r"1/10 · Bash\(until")
    run.child.sendintr()
    run.wait_for(r"stopping after this turn \(Ctrl\+C again: at once\)")
    run.child.sendintr()
    lines = run.lines()
    assert sum(line.startswith("^C[ralph] Received signal, shutting down") for line in lines) == 1
    assert not any(map(is_live, lines))
    assert lines[-1] == "[ralph] Next       ralph resume  # what was finished is kept"


def test_a_suspension_that_nobody_could_end_is_none(workspace: Path) -> None:
    """Ctrl+Z where no shell controls the job: the system ignores it, and so do we."""
    prepare(workspace, PATIENT)
    run = OnScreen("ralph -p x")
    run.wait_for(r"1/10 · Bash\(until")
    run.child.sendcontrol("z")
    run.wait_for(r"\^Z.*1/10 · Bash\(until")
    (workspace / "go").touch()
    lines = run.lines()
    assert not any(map(is_live, lines))
    assert any(line.startswith("[ralph] Completed after 1 iteration") for line in lines)


def test_with_stdout_in_a_file_the_live_line_is_still_there(workspace: Path) -> None:
    prepare(workspace, PATIENT)
    run = OnScreen("ralph -p x > out")
    run.wait_for(r"1/10 · Bash\(until")
    (workspace / "go").touch()
    assert not any(map(is_live, run.lines()))
    assert "\x1b" not in (workspace / "out").read_text("utf-8")


@pytest.mark.parametrize("line", ["ralph -p x | cat", "CI=true ralph -p x", "ralph -p x --json"])
def test_where_it_would_be_in_the_way_there_is_no_live_line(workspace: Path, line: str) -> None:
    """What reads a pipe may write to the same terminal; a build server keeps all as a log."""
    prepare(workspace, TOOL)
    run = OnScreen(line)
    run.lines()
    assert "\x1b[J" not in run.said.getvalue()


def test_settings_are_followed_by_who_looks_at_runs_too(here: Here, workspace: Path) -> None:
    """ "`display.emoji/color: true` force"; settings that cannot be read wish nothing."""
    prepare(workspace, TOOL, display={"color": True, "emoji": True})
    assert here("-p", "x").code == 0
    for look in (("status",), ("status", "--all"), ("logs", "--events")):
        assert "\x1b[" in here(*look).out
    assert "✅ Result ← Bash" in here("logs", "--events").out
    assert "\x1b[" not in here("logs", "--no-color", "--no-emoji").out
    (workspace / ".ralph" / "settings.json").write_text("{")
    told = here("status")
    assert (told.code, "\x1b" in told.out) == (0, False)
