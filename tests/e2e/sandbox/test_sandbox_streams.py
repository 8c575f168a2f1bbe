"""`ralph sandbox run` and what it inherits: no descriptor leads out of a sandbox, and whatever
becomes of our own streams, changes are kept."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from run_support import RALPH, assert_clear, in_shell, program, ralph

from kits.sandbox.stage import overlay_is_usable
from kits.thorough import dealt

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
    pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces"),
]
SIZE = 3_000_000  # more than any pipe holds


@pytest.fixture
def outside(workspace: Path) -> Path:
    """A directory of the host, with a file that nobody may change."""
    directory = workspace.parent / "outside"
    directory.mkdir()
    (directory / "file").write_text("before\n")
    return directory


def prepare_shell(repo: Path, script: str, **settings: object) -> str:
    """An agent that is a shell script, and runs in an overlay; its path."""
    command = program(repo.parent / "agent", f"{script}\necho '<response>DONE</response>'")
    given = {"agent": {"command": command}, "sandbox": "overlay", **settings}
    (repo / ".ralph").mkdir()
    (repo / ".ralph" / "settings.json").write_text(json.dumps(given))
    return command


# ------------------------------------------------------------------ descriptors


@pytest.mark.parametrize("how", ["9< '{0}'", "9>> '{0}/file'", "8< '{0}'", "9<> '{0}/file'"])
def test_a_command_finds_no_descriptor_but_three(outside: Path, how: str) -> None:
    """Backends: "host read-only": a descriptor leads to its file, past every mount."""
    script = "for n in 8 9; do touch /proc/self/fd/$n/x; echo x > /proc/self/fd/$n; done"
    script += "; cd /proc/self/fd; echo *"  # the last is of the directory that is listed
    line = f'ralph sandbox run --discard -- sh -c "{script}" {how.format(outside)}'
    done = in_shell(line.replace("$n", "\\$n"))
    assert done.out.split() in (["0", "1", "2"], ["0", "1", "2", "3"]), done
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_text() == "before\n"


def test_an_agent_finds_no_descriptor_of_its_run(repo: Path) -> None:
    """In the loop: journal, lock and state are Ralph's."""
    found = 'cd /proc/$$/fd; for n in *; do readlink $n; done > "$OLDPWD/found"'
    command = prepare_shell(repo, found)
    state = os.environ["RALPH_STATE_DIR"]
    done = in_shell(f"ralph run -p 'Look around.' -m 1 9< '{state}' 8>> '{repo.parent}/log'")
    assert done.code == 0, done.err
    paths = [p for p in (repo / "found").read_text().splitlines() if p.startswith("/")]
    ours = {command, os.devnull, str(repo / "found"), "/memfd:prompt (deleted)"}
    assert [path for path in paths if path not in ours] == []


# ------------------------------------------------------------------ files as streams


@pytest.mark.parametrize(
    ("redirection", "script"),
    [
        ("< '{0}'", "cat; echo OVER > /proc/self/fd/0"),
        ("< '{0}'", ": > /proc/self/fd/0"),
        ("< '{0}'", "chmod 777 /proc/self/fd/0"),
        (">> '{0}'", ": > /proc/self/fd/1"),
        (">> '{0}'", "chmod 777 /proc/self/fd/1"),
        ("2>> '{0}'", ": > /proc/self/fd/2"),
        (">> '{0}' 2>&1", ": > /proc/self/fd/2; : > /proc/self/fd/1"),
        ("<> '{0}'", "echo OVER >&0"),
    ],
)
def test_a_file_that_is_a_stream_is_safe(outside: Path, redirection: str, script: str) -> None:
    """Settled: "`--discard` writes nothing"; least of all outside of the project."""
    file = outside / "file"
    mode = file.stat().st_mode
    in_shell(f"ralph sandbox run --discard -- sh -c '{script}' {redirection.format(file)}")
    assert file.read_text().startswith("before\n")
    assert "OVER" not in file.read_text()
    assert file.stat().st_mode == mode


def test_files_are_passed_on_whole_and_in_order(outside: Path) -> None:
    """Also more than a pipe holds, and while nobody reads."""
    data = os.urandom(SIZE)
    (outside / "in").write_bytes(data)
    script = "echo first; echo second >&2; head -c 2000000 /dev/zero; sleep 0.2; cat; echo last >&2"
    words = [*RALPH, "sandbox", "run", "--discard", "--", "sh", "-c", script]
    with (outside / "in").open("rb") as source, (outside / "out").open("wb") as out:
        done = subprocess.run(words, stdin=source, stdout=out, stderr=out, check=False)
    assert done.returncode == 0
    whole = (outside / "out").read_bytes()
    _, _, said = whole.partition(b"\n")
    assert said.startswith(b"first\nsecond\n" + bytes(2_000_000) + data + b"last\n")


@pytest.mark.parametrize("script", ["head -c 3", "exec 0<&-; echo abc", "printf abc; exit"])
def test_input_that_nobody_reads_to_its_end(outside: Path, script: str) -> None:
    (outside / "in").write_bytes(b"abc" * SIZE)
    done = in_shell(f"ralph sandbox run --discard -- sh -c '{script}' < '{outside}/in'")
    assert (done.code, done.out.strip()) == (0, "abc")


def test_a_pipe_of_a_name_is_passed_on(outside: Path) -> None:
    os.mkfifo(outside / "pipe")
    line = f"(sleep 0.2; echo late) > '{outside}/pipe' & ralph sandbox run --discard -- cat < "
    assert in_shell(f"{line} '{outside}/pipe'").out == "late\n"


def test_a_guardrails_log_cannot_be_emptied(repo: Path) -> None:
    """In the loop: what a guardrail printed is evidence, and it runs what the agent wrote."""
    command = "echo evidence; echo more >&2; : > /proc/self/fd/1; echo last; exit 1"
    prepare_shell(repo, "true", guardrails=[{"command": command}])
    ralph("run", "-p", "Work.", "-m", "1")
    (log,) = (repo / ".ralph").rglob("guardrail_001_*.log")
    assert log.read_text() == "evidence\nmore\nlast\n"


def test_output_that_cannot_be_written_is_told(workspace: Path) -> None:
    """A log on a full disk: the command finds it closed, and we say why."""
    script = "ulimit -f 200; trap '' XFSZ; ralph sandbox run --discard -- head -c 9000000 /dev/zero"
    done = in_shell(f"{script} > '{workspace.parent}/log'")
    assert done.code == 141
    assert "[ralph] stdout cannot be written: File too large" in done.err


# ------------------------------------------------------------------ our own streams


@pytest.mark.parametrize(
    "streams",
    dealt(["2>&1 | head -1", "2>&1 | true", "2> /dev/full", "2>&-", "> /dev/full 2>&1"], 2),
)
@pytest.mark.parametrize("flags", ["--keep", "--keep --json"])
def test_what_cannot_be_told_is_kept(workspace: Path, streams: str, flags: str) -> None:
    """Settled: `--keep` keeps."""
    in_shell(f"ralph sandbox run {flags} -- sh -c 'sleep 0.3; echo x > one' {streams}")
    assert (workspace / "one").read_text() == "x\n"


def test_the_exit_code_passes_through_a_stderr_that_is_full(workspace: Path) -> None:
    done = in_shell("ralph sandbox run --keep -- sh -c 'echo x > one; exit 7' 2> /dev/full")
    assert done.code == 7
    assert (workspace / "one").exists()


def test_json_has_what_was_kept_although_stderr_is_full(workspace: Path) -> None:
    done = in_shell("ralph sandbox run --keep --json -- sh -c 'echo x > one' 2> /dev/full")
    assert json.loads(done.out)["applied"] == ["one"]


def test_an_empty_command_is_not_found(workspace: Path) -> None:
    """Settled: "command not found 127"."""
    assert_clear(ralph("sandbox", "run", "--keep", "--", ""), 127, "'': not found")
