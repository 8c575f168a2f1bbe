"""`ralph job`: what it runs, what it keeps of it, and what it says to bad input."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_support import Jobs, await_that, info_of, job, make_task, only_run, runs
from rights_support import AS_ORDINARY_USER, NAMESPACE, needs_mount, needs_ordinary_user
from run_support import RALPH, Done, assert_clear, in_shell, ralph


@pytest.fixture
def task(workspace: Path) -> Path:
    return make_task(workspace)


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    jobs = Jobs()
    yield jobs
    jobs.close()


# ------------------------------------------------------------------ what it keeps


def test_a_command_that_succeeds(task: Path) -> None:
    done = job(task, "sh", "-c", "printf 'o\\0ut'; printf err >&2", env={"RALPH_RUN": "above"})
    assert (done.code, done.out, done.err) == (0, "o\0ut", "err")
    run = only_run(task)
    assert (run / "agent-stdout.txt").read_bytes() == b"o\0ut"
    assert (run / "agent-stderr.txt").read_bytes() == b"err"
    words = shlex.split((run / "prompt.md").read_text())
    assert words == ["sh", "-c", "printf 'o\\0ut'; printf err >&2"]
    info = info_of(run)
    assert (info.run_id, info.parent_run_id, info.previous_run_id) == (run.name, "above", "")
    assert (info.agent, info.status, info.exit_code) == ("sh", "completed", 0)
    assert info.error_summary == ""
    assert info.end_time is not None
    assert info.start_time < info.end_time


@pytest.mark.parametrize(
    ("script", "code", "summary"),
    [
        ("exit 3", 3, "exit code 3"),
        ("echo one >&2; printf '\\033[31mtwo\\033[0m\\n\\n' >&2; exit 1", 1, "two"),
        ("echo key sk-ant-0123456789abcdef01 >&2; exit 1", 1, "key [redacted]"),
        ("yes x | head -c 9999 | tr -d '\\n' >&2; exit 9", 9, "x" * 300),
        ("kill -9 $$", 137, "exit code 137"),
        ("kill -TERM $$", 143, "exit code 143"),
    ],
)
def test_its_exit_code_is_the_commands_own(
    task: Path, script: str, code: int, summary: str
) -> None:
    """ "128+n for a signal"; error_summary is the last line of stderr."""
    assert job(task, "sh", "-c", script).code == code
    info = info_of(only_run(task))
    assert (info.status, info.exit_code, info.error_summary) == ("failed", code, summary)


def test_the_command_knows_its_task_and_its_run(task: Path) -> None:
    names = (
        *("TASK_FOLDER", "RALPH_TASK_DIR", "RALPH_RUN", "RALPH_PARENT_RUN", "RALPH_ROOT_RUN"),
        *("RALPH_BUS", "MINE"),
    )
    script = f"pwd; cat; {'; '.join(f'echo ${name}' for name in names)}"
    env = {"RALPH_RUN": "above", "RALPH_PARENT_RUN": "further-above", "MINE": "kept"}
    env["RALPH_ROOT_RUN"] = "top"
    folder, run = str(task), job(task, "sh", "-c", script, env=env)
    bus = f"{folder}/TASK-MESSAGE-BUS.md"
    expected = [os.getcwd(), folder, folder, only_run(task).name, "above", "top", bus, "kept"]
    assert run.out.splitlines() == expected


def test_started_by_hand_it_is_below_no_run(task: Path) -> None:
    done = job(task, "sh", "-c", 'echo "${RALPH_PARENT_RUN-unset},${RALPH_ROOT_RUN-unset}"')
    assert done.out == ",\n"


def test_what_it_keeps_is_for_its_owner_and_without_known_secrets(task: Path) -> None:
    """ADR 13. Shown it is as the command printed it."""
    secret = "correct-horse-battery"
    script = 'printf correct-; sleep 0.1; echo "${MY_TOKEN#correct-}"; echo "no $MY_TOKEN" >&2'
    done = job(task, "sh", "-c", f"{script}; exit 1", secret, env={"MY_TOKEN": secret})
    assert (done.out, done.err) == (f"{secret}\n", f"no {secret}\n")
    run = only_run(task)
    assert (run / "agent-stdout.txt").read_text() == "[redacted]\n"
    assert (run / "agent-stderr.txt").read_text() == "no [redacted]\n"
    assert (run / "prompt.md").read_text().endswith(" [redacted]\n")
    assert info_of(run).error_summary == "no [redacted]"
    assert not [path for path in run.iterdir() if secret in path.read_text()]
    assert {path.name: path.stat().st_mode & 0o777 for path in run.iterdir()} == dict.fromkeys(
        ("agent-stdout.txt", "agent-stderr.txt", "prompt.md", "run-info.yaml", "run.lock"), 0o600
    )


def test_what_may_have_become_a_secret_is_kept_if_it_did_not(task: Path) -> None:
    env = {"MY_TOKEN": "correct-horse-battery"}
    done = job(task, "sh", "-c", "printf correct-; printf horse >&2; exit 1", env=env)
    run = only_run(task)
    assert (run / "agent-stdout.txt").read_text() == done.out == "correct-"
    assert (run / "agent-stderr.txt").read_text() == info_of(run).error_summary == "horse"


@pytest.mark.parametrize(
    "arguments",
    [
        ("job", "--", "true"),
        ("job", "true"),
        ("job", "--json", "true", "--json"),
        ("-C", "/", "job", "--", "true"),
        ("job", "-C", "/", "--", "true"),
        ("job", "-C/", "true"),
    ],
)
def test_the_task_is_that_of_the_environment(task: Path, arguments: tuple[str, ...]) -> None:
    """ "task dir from --task-dir, else $TASK_FOLDER"."""
    assert_clear(ralph(*arguments, env={"TASK_FOLDER": str(task)}), 0)
    assert info_of(only_run(task)).status == "completed"


@pytest.mark.parametrize(
    "flag", [("--task-dir", "../project/task"), ("--task-dir=../project/task",)]
)
def test_the_flag_wins_over_the_environment(task: Path, flag: tuple[str, ...]) -> None:
    assert_clear(ralph("job", *flag, "--", "true", env={"TASK_FOLDER": "/nowhere"}), 0)
    assert info_of(only_run(task)).status == "completed"


def test_a_directory_to_work_in_holds_for_the_task_too(task: Path) -> None:
    done = ralph("job", "-C", str(task.parent), "--task-dir", "task", "--", "pwd")
    assert (done.code, done.out) == (0, f"{task.parent}\n")
    assert len(runs(task)) == 1


def test_the_commands_own_options_are_not_ours(task: Path) -> None:
    done = job(task, "echo", "--json", "--help", "--", "-C", "x")
    assert (done.code, done.out) == (0, "--json --help -- -C x\n")


def test_json_tells_of_the_run_and_nothing_else(task: Path) -> None:
    done = ralph("job", "--json", "--task-dir", str(task), "--", "sh", "-c", "echo out; exit 4")
    run = only_run(task)
    assert done.code == 4
    started, ended = done.objects
    assert started["command"] == ["sh", "-c", "echo out; exit 4"]
    assert (started["type"], started["task_dir"]) == ("started", str(task))
    assert (ended["type"], ended["status"], ended["exit_code"]) == ("ended", "failed", 4)
    assert {o["run"] for o in done.objects} == {run.name}
    assert {o["directory"] for o in done.objects} == {str(run)}
    assert (run / "agent-stdout.txt").read_text() == "out\n"


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("job",), ("Missing argument", "ralph job --help")),
        (("job", "--"), ("Missing argument",)),
        (("job", "--task-dir"), ("requires an argument",)),
        (("job", "--nonsense", "--", "true"), ("No such option",)),
        (("job", "--task-dir", "", "--", "true"), ("--task-dir is empty", "TASK_FOLDER=DIR")),
        (("job", "-C", "/none", "--task-dir", "{task}", "--", "true"), ("/none", "No such file")),
        (("job", "--task-dir", "{task}", "--jsn", "true"), ("No such option",)),
        (("job", "--task-dir=", "{task}", "true"), ("--task-dir is empty",)),
        (("job", "-C=/", "--task-dir", "{task}", "true"), ("=/", "No such file")),
    ],
)
def test_what_cannot_be_understood_registers_nothing(
    task: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """ "left to click, which then gives the error; then no run is registered"."""
    given = [argument.replace("{task}", str(task)) for argument in arguments]
    assert_clear(ralph(*given), 2, *words)
    assert runs(task) == []


def test_without_any_task_it_says_both_ways_to_name_one(workspace: Path) -> None:
    assert_clear(ralph("job", "--", "true"), 2, "--task-dir DIR", "TASK_FOLDER=DIR")


@pytest.mark.parametrize("place", ["none", "file", "file/below"])
def test_a_task_that_is_missing_or_a_file(workspace: Path, place: str) -> None:
    (workspace / "file").touch()
    done = ralph("job", "--task-dir", place, "--", "touch", "ran")
    assert_clear(done, 2, f"{place} is not the folder of a task", "--task-dir DIR")
    assert os.listdir(workspace) == ["file"]


def test_runs_that_is_a_file(task: Path, workspace: Path) -> None:
    (task / "runs").touch()
    assert_clear(job(task, "touch", "ran"), 2, "is not the folder of a task")
    assert os.listdir(workspace) == []


@needs_ordinary_user
def test_a_task_that_may_not_be_written(task: Path, workspace: Path) -> None:
    task.chmod(0o500)
    done = job(task, "touch", "ran", command=(*AS_ORDINARY_USER, *RALPH))
    assert_clear(done, 2, "cannot write into the task's folder", "Permission denied")
    assert os.listdir(workspace) == []


def on_tiny_disk(task: Path, *arguments: str, before: str = "true") -> Done:
    """Run a job while its task is a file system of 64 KB; what it held is in `task`.copy after."""
    script = (
        f'mount -t tmpfs -o size=64k none "{task}" && {{ {before}; "$@"; code=$?; '
        f'rm -f "{task}/fill"; cp -r "{task}" "{task}.copy"; exit $code; }}'
    )
    words = (*NAMESPACE, "sh", "-c", script, "sh", *RALPH)
    return ralph("job", "--task-dir", str(task), "--", *arguments, command=words)


@needs_mount
def test_a_full_disk_starts_nothing(task: Path, workspace: Path) -> None:
    fill = f'head -c 1000000 /dev/zero > "{task}/fill" 2> /dev/null'
    done = on_tiny_disk(task, "touch", "ran", before=fill)
    assert_clear(done, 2, "cannot write into the task's folder", "No space left on device")
    assert os.listdir(workspace) == []
    left = sorted(path.name for path in Path(f"{task}.copy").rglob("*"))
    assert left in ([], ["runs"])


@needs_mount
def test_output_that_cannot_be_saved_does_not_end_the_command(task: Path) -> None:
    """ "must not end the command (say it once on stderr)"."""
    script = "head -c 500000 /dev/zero; head -c 500000 /dev/zero >&2; exit 7"
    done = on_tiny_disk(task, "sh", "-c", script)
    assert done.code == 7
    assert done.out == "\0" * 500_000
    assert done.err.count("\0") == 500_000
    assert done.err.count("the stream is not saved from here on: No space left on device") == 1


def put_pipes(task: Path, workspace: Path, *names: str) -> dict[str, str]:
    """An environment in which pipes stand in a run's directory as soon as it has registered."""
    code = f"""
import glob, os, sys
for directory in glob.glob({str(task)!r} + "/runs/*"):
    for name in {names!r}:
        os.mkfifo(os.path.join(directory, name.format(os.getpid())))
sys.path[:] = [path for path in sys.path if path not in ("", {str(workspace)!r})]
del sys.modules["click"]
import click
"""
    (workspace / "click.py").write_text(code)
    return {"PYTHONPATH": os.pathsep.join((str(workspace), os.environ.get("PYTHONPATH", "")))}


def test_pipes_in_place_of_its_files_do_not_hold_it_up(task: Path, workspace: Path) -> None:
    """The agent may write into the task's folder whenever it likes."""
    names = ("prompt.md", "agent-stdout.txt", "agent-stderr.txt", "run-info.yaml.{}.tmp")
    env = put_pipes(task, workspace, *names)
    assert_clear(job(task, "echo", "out", env=env), 0)
    run = only_run(task)
    assert (run / "agent-stdout.txt").read_text() == "out\n"
    assert (run / "prompt.md").read_text() == "echo out\n"
    assert info_of(run).status == "completed"


def test_a_pipe_in_place_of_its_lock_is_told(task: Path, workspace: Path) -> None:
    done = job(task, "touch", "ran", env=put_pipes(task, workspace, "run.lock"))
    assert_clear(done, 2, "cannot write the task's folder", "not a regular file", "--task-dir DIR")
    assert "RALPH_STATE_DIR" not in done.err
    assert not (workspace / "ran").exists()
    assert info_of(only_run(task)).status == "failed"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-command", "No such file or directory"),
        ("./none/such", "No such file or directory"),
        ("", "it has no name"),
        ("/", "Permission denied"),
        ("/dev/null", "Permission denied"),
    ],
)
def test_a_command_that_cannot_be_started_is_a_failed_run(
    task: Path, command: str, why: str
) -> None:
    """ "the registered run ends as failed with an error_summary, exit 2"."""
    assert_clear(job(task, command), 2, f"cannot run {command!r}: {why}")
    info = info_of(only_run(task))
    assert (info.status, info.exit_code) == ("failed", 2)
    assert info.end_time is not None
    assert info.error_summary == f"cannot run {command!r}: {why}"


def test_an_error_is_told_in_json_too(task: Path) -> None:
    done = ralph("job", "--json", "--task-dir", str(task), "--", "no-such-command")
    assert done.objects[-1]["type"] == "error"
    assert (done.code, done.objects[-1]["exit"]) == (2, 2)
    assert job(task, "no-such-command", "--json").out == "", "that --json is not ours"


def test_a_closed_stdout_is_no_reason_to_stop(task: Path, jobs: Jobs) -> None:
    process = jobs.start(task, "until [ -e go ]; do sleep 0.02; done; seq 100000; exit 5")
    assert process.stdout is not None
    await_that(lambda: runs(task))
    process.stdout.close()
    process.stdout = None
    Path("go").touch()
    assert process.wait(timeout=30) == 5
    lines = (only_run(task) / "agent-stdout.txt").read_text().splitlines()
    assert (len(lines), lines[-1]) == (100_000, "100000")


def test_without_standard_streams(task: Path) -> None:
    words = f"{shlex.join(RALPH)} job --task-dir {task} -- sh -c 'echo out; echo err >&2'"
    assert subprocess.run(["sh", "-c", f"{words} <&- >&- 2>&-"], check=False).returncode == 0
    run = only_run(task)
    assert (run / "agent-stdout.txt").read_text() == "out\n"
    assert (run / "agent-stderr.txt").read_text() == "err\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_standard_streams_that_were_never_open(task: Path, closed: str) -> None:
    """Daemons close them: what is opened next must not stand in their place."""
    command = f"'echo one; echo two >&2; sleep 0.1; echo three; touch {task}/fin'"
    done = in_shell(f'ralph job --task-dir "{task}" -- sh -c {command} {closed}')
    assert done.code == 0, done.err
    assert (task / "fin").exists()
    assert (only_run(task) / "agent-stdout.txt").read_text() == "one\nthree\n"
