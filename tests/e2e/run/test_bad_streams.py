"""Bad input: stdout, stderr or stdin closed, a pipe whose reader leaves, a full device."""

import sys
from pathlib import Path

import pytest
from run_support import Done, assert_clear, facts, in_shell, journals, prepare, program, turns

from kits.thorough import dealt
from ralph.kernel.facts import Settled
from ralph.testing.scripted_agent.install import calls

BUSY = {"text": "one\ntwo\nthree", "files": {"work": "x"}}
DONE = {"response": "DONE"}


def assert_whole_run(agent: str, iterations: int) -> None:
    """The run went to its end, and the journal is whole."""
    assert len(calls(agent)) == iterations
    assert len(turns()) == iterations
    assert isinstance(facts()[-1], Settled)


@pytest.mark.parametrize("flags", dealt(["", "--json"], 1))
def test_stdout_closed(workspace: Path, flags: str) -> None:
    """Bad input: "stdout closed": said once, and the run goes on."""
    agent = prepare(workspace, BUSY, DONE)
    done = in_shell(f"ralph -p x {flags} >&-")
    assert_clear(done, 0, "stdout is closed; the run goes on without it.", "2 iterations")
    assert done.err.count("stdout is closed") == 1
    assert_whole_run(agent, 2)


@pytest.mark.parametrize("flags", dealt(["", "--json"], 1))
def test_a_pipe_whose_reader_leaves(workspace: Path, flags: str) -> None:
    """`ralph … | head -1`."""
    agent = prepare(workspace, BUSY, BUSY, DONE)
    done = in_shell(f"{{ ralph -p x {flags}; echo code $? >&2; }} | head -1")
    assert_clear(done, 0, "stdout is closed; the run goes on without it.", "code 0")
    assert len(done.out.splitlines()) == 1
    assert_whole_run(agent, 3)


@pytest.mark.parametrize("flags", dealt(["", "--json"], 1))
def test_stdout_on_a_full_device(workspace: Path, flags: str) -> None:
    agent = prepare(workspace, BUSY, DONE)
    done = in_shell(f"ralph -p x {flags} > /dev/full")
    assert_clear(done, 0, "stdout cannot be written (No space left on device); the run goes on")
    assert_whole_run(agent, 2)


def test_stderr_closed(workspace: Path) -> None:
    agent = prepare(workspace, BUSY, DONE)
    done = in_shell("ralph -p x 2>&-")
    assert (done.code, done.err) == (0, "")
    assert "[ralph]" not in done.out, "what is meant for stderr does not land on stdout"
    assert_whole_run(agent, 2)


def test_an_error_with_stderr_closed_is_told_by_the_exit_code(workspace: Path) -> None:
    done = in_shell("ralph -p x --agent nosuch 2>&-")
    assert done == Done(2, "", "")


def test_everything_closed(workspace: Path) -> None:
    agent = prepare(workspace, BUSY, DONE)
    assert in_shell("ralph -p x <&- >&- 2>&-").code == 0
    assert_whole_run(agent, 2)


@pytest.mark.parametrize("closed", dealt(["2>&-", "<&- >&- 2>&-", ">&- 2>&-"], 1))
def test_a_notice_for_a_closed_stderr_does_not_land_in_a_file(workspace: Path, closed: str) -> None:
    """A closed descriptor 2 would be given to the lock or the journal, and written to."""
    path = program(workspace / "agent", 'kill -INT "$(cat pid)"; sleep 0.3')
    with_pid = "sh -c 'echo $$ > pid; exec \"$@\"' sh"
    command = f'"{sys.executable}" -m ralph -p x --agent "{path}"'
    assert in_shell(f"{with_pid} {command} {closed}").code == 130
    assert len(turns()) == 1
    lock = journals()[0].parents[2] / "run.lock"
    assert lock.read_text() == ""


@pytest.mark.parametrize(
    "command", dealt(["run -p x --dry-run", "explain", "explain --schema", "--help"], 1)
)
@pytest.mark.parametrize(("stdout", "code"), [("| head -1", 0), (">&-", 0), ("> /dev/full", 2)])
def test_commands_that_only_print(workspace: Path, command: str, stdout: str, code: int) -> None:
    prepare(workspace, DONE)
    done = in_shell(f"{{ ralph {command}; echo code $? >&2; }} {stdout}")
    assert_clear(done, 0, f"code {code}")
    if code:
        assert "stdout cannot be written: No space left on device" in done.err


def test_the_last_json_line_of_an_error_on_a_full_device(workspace: Path) -> None:
    done = in_shell("ralph -p x --agent nosuch --json > /dev/full")
    assert_clear(done, 2, "was not found")


def test_standard_input_is_not_the_agents(workspace: Path) -> None:
    """Codex appends what is piped in to its prompt: it gets nothing (docs/facts.md §1)."""
    path = program(workspace / "agent", "cat > heard; echo '<response>DONE</response>'")
    assert in_shell(f"echo secret | ralph -p x --agent {path}").code == 0
    assert (workspace / "heard").read_text() == ""


@pytest.mark.parametrize(
    "encoding",
    [
        "PYTHONIOENCODING=ascii",
        pytest.param(
            "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0",
            marks=pytest.mark.skipif(
                not sys.prefix.isascii(), reason="Python does not start by such a path there"
            ),
        ),
    ],
)
def test_an_output_encoding_that_cannot_show_everything(workspace: Path, encoding: str) -> None:
    prepare(workspace, {"text": "Grüße 😀", **DONE})
    done = in_shell(f"{encoding} ralph -p x")
    assert_clear(done, 0)
    assert "Gr??e ?" in done.out
