"""`ralph job` is registered at once, outlives its agent, and leaves no process behind."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_support import Jobs, await_that, info_of, job, make_task, only_run, runs, said
from run_support import RALPH, is_alive

from ralph.journal.lock import read_owner
from ralph.loops.supervise.child_runs import active_children, end_children
from ralph.loops.supervise.folder import TaskFolder, folder_at

FOREVER = "while :; do sleep 0.02; done"


@pytest.fixture
def task(workspace: Path) -> Path:
    return make_task(workspace)


@pytest.fixture
def folder(task: Path) -> TaskFolder:
    return folder_at(str(task))


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    jobs = Jobs()
    yield jobs
    jobs.close()


# ------------------------------------------------------------------ registered at once


def test_it_registers_before_anything_slow_is_imported(task: Path) -> None:
    """ "before click is imported": the order of imports, as Python itself tells it."""
    words = (sys.executable, "-X", "importtime", "-m", "ralph")
    done = job(task, "true", command=words)
    assert done.code == 0
    order = [line.rpartition("|")[2].strip() for line in done.err.splitlines() if "|" in line]
    before = order[: order.index("ralph.loops.supervise.register_job")]
    slow = {"click", "enum", "json", "re", "dataclasses", "typing", "signal", "ralph.kernel.value"}
    # `-m` itself needs some of the standard library, the installed command does not.
    bare = (sys.executable, "-X", "importtime", "-m", "this")
    runpy = subprocess.run(bare, capture_output=True, text=True, check=True).stderr
    theirs = {line.rpartition("|")[2].strip() for line in runpy.splitlines() if "|" in line}
    assert not (slow - theirs).intersection(before)
    assert order.index("click") > order.index("ralph.loops.supervise.register_job")


def test_the_run_is_there_when_click_is_imported(task: Path, workspace: Path) -> None:
    """A click that looks around, in place of the real one."""
    look = f"glob.glob({str(task)!r} + '/runs/*/run-info.yaml')"
    code = f"import glob, os; print({look}, flush=True); os._exit(9)"
    (workspace / "click.py").write_text(code)
    path = os.pathsep.join((str(workspace), os.environ.get("PYTHONPATH", "")))
    done = job(task, "true", env={"PYTHONPATH": path})
    assert done.code == 9
    run = only_run(task)
    assert done.out == f"{[str(run / 'run-info.yaml')]}\n"
    info = info_of(run)
    assert (info.status, info.end_time, info.agent) == ("running", None, "true")


@pytest.mark.slow
def test_many_jobs_at_once_are_distinct_runs(task: Path, jobs: Jobs) -> None:
    """20 jobs at once: 20 distinct runs."""
    started = [jobs.start(task, f"echo {number}") for number in range(20)]
    assert [process.wait(timeout=60) for process in started] == [0] * 20
    assert len(runs(task)) == 20
    output = {int((run / "agent-stdout.txt").read_text()) for run in runs(task)}
    assert output == set(range(20))
    assert {info_of(run).pid for run in runs(task)} == {process.pid for process in started}


# ------------------------------------------------------------------ it lives on, and ends


def test_while_it_runs_it_is_an_active_child(task: Path, folder: TaskFolder, jobs: Jobs) -> None:
    process = jobs.start(task, f"echo begun; {FOREVER}")
    await_that(lambda: runs(task) and said(only_run(task) / "agent-stdout.txt"))
    run = only_run(task)
    (child,) = active_children(folder)
    assert (child.pid, child.directory) == (process.pid, str(run))
    owner = read_owner(str(run / "run.lock"))
    assert owner is not None
    assert (owner.pid, owner.run, owner.is_alive()) == (process.pid, run.name, True)
    end_children([child], grace=20)
    assert process.wait(timeout=30) == 130
    assert active_children(folder) == []
    assert info_of(run).status == "stopped"
    assert read_owner(str(run / "run.lock")) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_survives_what_ends_the_group_of_its_shell(
    task: Path, jobs: Jobs, number: signal.Signals
) -> None:
    """ "outlives the agent that started it"; a shell that is no terminal's has one group."""
    script = f"{FOREVER.replace('do', 'do [ ! -e go ] || exit 0;', 1)}"
    inner = shlex.join([*RALPH, "job", "--task-dir", str(task), "--", "sh", "-c", script])
    shell = jobs.popen(["sh", "-c", f"{inner} & wait"], start_new_session=True)
    await_that(lambda: runs(task) and (only_run(task) / "run-info.yaml").exists())
    os.killpg(shell.pid, number)
    assert shell.wait(timeout=30) == -number
    run = only_run(task)
    pid = info_of(run).pid
    assert pid is not None
    assert is_alive(pid)
    Path("go").touch()
    await_that(lambda: info_of(run).end_time)
    assert info_of(run).status == "completed"


@pytest.mark.parametrize(
    ("number", "trap"),
    [
        (signal.SIGINT, "trap 'echo int; exit 5' INT"),
        (signal.SIGTERM, "trap 'echo int; exit 5' INT"),
        (signal.SIGHUP, "trap 'echo int; exit 5' INT"),
    ],
)
def test_a_signal_ends_the_command_by_its_route(
    task: Path, jobs: Jobs, number: signal.Signals, trap: str
) -> None:
    """ "the first ends the command by its route (INT, then TERM, KILL)"; 130, stopped."""
    process = jobs.start(task, f"{trap}; echo begun; {FOREVER}")
    await_that(lambda: runs(task) and said(only_run(task) / "agent-stdout.txt"))
    process.send_signal(number)
    assert process.wait(timeout=30) == 130
    info = info_of(only_run(task))
    assert (info.status, info.exit_code) == ("stopped", 5)
    assert info.end_time is not None
    assert said(only_run(task) / "agent-stdout.txt") == "begun\nint\n"


def test_the_second_signal_ends_it_at_once(task: Path, jobs: Jobs) -> None:
    process = jobs.start(task, f"trap 'echo heard' INT; trap '' TERM; echo $$; {FOREVER}")
    await_that(lambda: runs(task) and said(only_run(task) / "agent-stdout.txt"))
    run = only_run(task)
    process.send_signal(signal.SIGTERM)
    await_that(lambda: "heard" in said(run / "agent-stdout.txt"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130
    assert info_of(run).status == "stopped"
    assert not is_alive(int(said(run / "agent-stdout.txt").split()[0]))


@pytest.mark.slow
def test_a_signal_is_heard_while_nobody_reads_what_it_prints(task: Path, jobs: Jobs) -> None:
    """A reader that does not read would hold us up for ever."""
    process = jobs.start(task, "exec yes")
    # More than our own pipe takes.
    await_that(lambda: runs(task) and len(said(only_run(task) / "agent-stdout.txt")) > 65536)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130
    assert info_of(only_run(task)).status == "stopped"


def test_a_signal_that_comes_while_it_starts_is_not_lost(task: Path, jobs: Jobs) -> None:
    """Sent right after it has registered: it ends, and nothing is left."""
    process = jobs.start(task, f"echo $$ > pid; {FOREVER}")
    await_that(lambda: runs(task) and (only_run(task) / "run-info.yaml").exists())
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130
    assert info_of(only_run(task)).status == "stopped"
    assert not said(Path("pid")) or not is_alive(int(said(Path("pid"))))


def test_when_it_is_killed_its_command_is_gone(task: Path, folder: TaskFolder, jobs: Jobs) -> None:
    """kill -9 of `ralph job`: the keeper ends its command, and it is no active child any more."""
    script = f"trap '' INT TERM; setsid sh -c 'echo $$; {FOREVER}' & echo $$; {FOREVER}"
    process = jobs.start(task, script)
    await_that(lambda: runs(task) and said(only_run(task) / "agent-stdout.txt").count("\n") == 2)
    pids = [int(word) for word in said(only_run(task) / "agent-stdout.txt").split()]
    assert len(active_children(folder)) == 1
    process.kill()
    process.wait()
    assert active_children(folder) == []
    await_that(lambda: not any(map(is_alive, pids)))
    assert info_of(only_run(task)).status == "running", "nobody was left to tell its end"


def test_what_the_command_leaves_behind_ends_with_it(task: Path) -> None:
    script = f"setsid sh -c '{FOREVER}' & echo $!; exit 0"
    done = job(task, "sh", "-c", script)
    assert done.code == 0
    assert not is_alive(int(done.out))


def test_a_job_of_a_job_outlives_the_command_that_started_it(task: Path, jobs: Jobs) -> None:
    """It is below the outer job's keeper, so the outer one stays for it."""
    inner = shlex.join([*RALPH, "job", "--", "sh", "-c", "until [ -e go ]; do sleep 0.02; done"])
    process = jobs.start(task, f"{inner} > /dev/null 2>&1 & exit 6")
    await_that(lambda: len(list(task.glob("runs/*/run-info.yaml"))) == 2)
    outer, nested = (info_of(run) for run in runs(task))
    assert nested.parent_run_id == outer.run_id
    Path("go").touch()
    assert process.wait(timeout=30) == 6
    assert [info_of(run).status for run in runs(task)] == ["failed", "completed"]


def test_whoever_stops_a_job_stops_the_jobs_below_it(task: Path, jobs: Jobs) -> None:
    inner = shlex.join([*RALPH, "job", "--", "sh", "-c", f"echo $$ > pid; {FOREVER}"])
    process = jobs.start(task, f"{inner} & exit 0")
    await_that(lambda: said(Path("pid")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130
    assert [info_of(run).status for run in runs(task)] == ["stopped", "stopped"]
    assert not is_alive(int(said(Path("pid"))))


def test_a_job_does_not_wait_for_its_own_keeper(task: Path) -> None:
    """The command may say that whoever started it is a child run."""
    claim = 'mkdir "$TASK_FOLDER/runs/x"; cd "$TASK_FOLDER/runs/x"; '
    claim += "{ echo run_id: x; echo pid: $PPID; } > run-info.yaml"
    done = job(task, "sh", "-c", claim)
    assert (done.code, done.err) == (0, "")
    assert info_of(task / "runs" / "x").end_time is None


def test_json_names_the_process_that_is_the_run(task: Path, jobs: Jobs) -> None:
    words = [*RALPH, "job", "--json", "--task-dir", str(task), "--", "true"]
    process = jobs.popen(words)
    out, _ = process.communicate(timeout=30)
    assert json.loads(out.splitlines()[0])["pid"] == process.pid == info_of(only_run(task)).pid
