"""`ralph watch` and `ralph run --watch` in a real terminal."""

import json
import os
import re
import signal
from pathlib import Path

import pexpect
import pytest
from run_support import RALPH, Running, assert_clear, await_gone, journals, prepare, ralph

from kits.screen_model import Screen
from kits.thorough import dealt
from ralph.testing.scripted_agent.install import calls

PATIENT = {
    "text": ["I look at it.", "It works now."],
    "tools": [
        {
            "name": "Bash",
            "input": {"command": "make test"},
            "run": "until [ -e go ]; do sleep 0.02; done",
        }
    ],
    "response": "DONE",
}
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])|\x1b[()].")


class Terminal:
    """`ralph` in a terminal of 80 columns and 24 rows."""

    def __init__(self, *arguments: str, **env: str) -> None:
        environ = {**os.environ, "TERM": "xterm-256color", **env}
        self.child = pexpect.spawn(
            RALPH[0],
            [*RALPH[1:], *arguments],
            timeout=30,
            encoding="utf-8",
            dimensions=(24, 80),
            env=environ,
        )

    def sees(self, words: str) -> None:
        self.child.expect_exact(words)

    def keys(self, keys: str) -> None:
        self.child.send(keys)

    def end(self) -> tuple[int | None, str]:
        """The exit code, and what was written last, without escape sequences."""
        rest = self.child.read()
        self.child.close()
        return self.child.exitstatus, _ESCAPES.sub("", rest)


@pytest.fixture
def without_textual(tmp_path: Path) -> str:
    """Where Python finds a Textual that cannot be imported."""
    package = tmp_path / "missing" / "textual"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('not installed')\n")
    return os.pathsep.join(filter(None, (str(package.parent), os.environ.get("PYTHONPATH"))))


def state() -> str:
    return str(json.loads(ralph("status", "--json").out)["state"])


def test_a_run_begins_and_is_watched_on_the_whole_screen(workspace: Path) -> None:
    agent = prepare(workspace, PATIENT)
    terminal = Terminal("run", "-p", "x", "--watch")
    terminal.sees("Bash(make test)")
    terminal.sees("leave")
    terminal.keys("q")
    code, said = terminal.end()
    run = journals()[0].parent.name
    assert code == 0, said
    assert f"Run {run} is running: the agent has worked for" in said
    assert f"Watch it: ralph watch {run}" in said
    assert state() == "running"
    again = Terminal("watch")
    again.sees("Bash(make test)")
    pid = calls(agent)[0]["pid"]
    (workspace / "go").touch()
    again.sees("Completed after 1 iteration")
    again.keys("q")
    code, said = again.end()
    assert code == 0
    assert "Completed after 1 iteration" in said, "it is on the normal screen too"
    await_gone(pid)


def test_ctrl_c_leaves_a_watched_run_alone(workspace: Path) -> None:
    prepare(workspace, PATIENT)
    terminal = Terminal("run", "-p", "x", "--watch")
    terminal.sees("Bash(make test)")
    terminal.keys("\x03")
    code, said = terminal.end()
    assert (code, state()) == (130, "running"), said
    (workspace / "go").touch()


@pytest.mark.parametrize(
    ("turn", "code"), dealt([({"response": "DONE"}, 0), ({"text": "Not yet."}, 1)], 1)
)
def test_without_textual_it_ends_with_the_run_and_its_exit_code(
    workspace: Path, without_textual: str, turn: dict[str, str], code: int
) -> None:
    prepare(workspace, turn)
    terminal = Terminal("run", "-p", "x", "-m", "1", "--watch", PYTHONPATH=without_textual)
    terminal.sees("pip install 'ralph-engine[watch]'")
    found, said = terminal.end()
    assert found == code, said
    assert "iteration" in said


@pytest.mark.slow
def test_the_plain_redraw_steers_too(workspace: Path) -> None:
    agent = prepare(workspace, PATIENT)
    running = Running(workspace, "-p", "x", "--max-cost", "5")
    running.await_that(lambda: calls(agent))
    before = journals()[0].read_bytes()
    terminal = Terminal("watch", "--plain")
    terminal.sees("Iteration 1/10")
    terminal.sees("Bash(make test)")
    terminal.sees("leave")
    terminal.keys("s")
    terminal.sees("Stop this run?")
    terminal.keys("c")
    terminal.sees("leave")
    terminal.keys("q")
    code, said = terminal.end()
    assert (code, state()) == (0, "running"), said
    assert journals()[0].read_bytes() == before
    assert not list((journals()[0].parent / "signals").iterdir())
    screen = Screen(80)
    screen.feed(_without_modes(said))
    assert screen.lines()[-1].startswith("End it:")
    terminal = Terminal("watch", "--plain", journals()[0].parent.name[-4:])
    terminal.sees("leave")
    terminal.keys("p")
    terminal.sees("pauses before its next turn")
    terminal.keys("sn")
    terminal.sees("ends at once")
    code, said = terminal.end()
    assert "interrupted" in said
    assert (code, running.end().code) == (0, 130)


def _without_modes(text: str) -> str:
    return re.sub(r"\x1b\[\?\d+[hl]", "", text)


def test_the_plain_redraw_notices_a_killed_run(workspace: Path) -> None:
    agent = prepare(workspace, PATIENT)
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    terminal = Terminal("watch", "--plain")
    terminal.sees("leave")
    running.send(signal.SIGKILL)
    running.process.wait()
    code, said = terminal.end()
    assert code == 0
    assert "crashed: its process is gone without a last word" in said
    assert "Go on: ralph resume" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("watch",), "ralph logs -f"),
        (("watch", "3f2a"), "ralph logs -f 3f2a"),
        (("run", "-p", "x", "--watch"), "--detach"),
        (("run", "-p", "x", "--watch", "--json"), "--watch and --json exclude each other"),
    ],
)
def test_nothing_is_watched_or_begun_without_a_terminal(
    workspace: Path, words: tuple[str, ...], why: str
) -> None:
    prepare(workspace, PATIENT)
    assert_clear(ralph(*words), 2, why)
    assert journals() == []


def test_a_terminal_that_only_knows_lines_and_no_runs_at_all(workspace: Path) -> None:
    code, said = Terminal("watch", TERM="dumb").end()
    assert code == 2
    assert "no terminal that can be redrawn" in said
    code, said = Terminal("watch").end()
    assert code == 0
    assert "There are no runs yet. Start one: ralph run --watch" in said
    code, said = Terminal("watch", "nonsense").end()
    assert code == 2
    assert "there is no run 'nonsense'" in said
