"""Whatever becomes of a supervised task, nothing of it stays behind, and nothing holds it up."""

import os
import signal
import sys
from pathlib import Path

import pytest
from run_support import Done, Here, Running, assert_clear, await_gone, is_alive, program

from ralph.loops.supervise.run_info import RunInfo, read_run_info

pytestmark = pytest.mark.slow

RALPH = f'"{sys.executable}" -m ralph'
# A job whose process is known, and the keeper above the agent.
JOB = f"""
echo $PPID > keeper
{RALPH} job -- sh -c 'echo $$ > job.new; mv job.new job; exec sleep 600' > /dev/null 2>&1 &
until [ -e job ]; do sleep 0.02; done
"""


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def agent(workspace: Path, script: str) -> str:
    return program(workspace.parent / "agent", script)


def words(agent: str, *more: str) -> tuple[str, ...]:
    return ("supervise", "--task-dir", "t", "--restart-delay", "0", *more, "--", agent)


def job_of(workspace: Path) -> RunInfo:
    """The run-info of the only child run."""
    infos = [read_run_info(str(run)) for run in (workspace / "t" / "runs").iterdir()]
    [job] = [info for info in infos if info is not None and info.agent == "sh"]
    return job


def number(path: Path) -> int:
    return int(path.read_text())


# ------------------------------------------------------------------ jobs end with their task


@pytest.mark.parametrize(
    ("then", "flags", "code"),
    [
        ("exit 1", ("--max-restarts", "1"), 1),
        ("exit 42", (), 3),
        ('mkdir "$TASK_FOLDER/DONE"', (), 2),
        ('touch "$TASK_FOLDER/DONE"', ("--wait-timeout", "0.1"), 0),
    ],
)
def test_a_job_ends_with_its_task_and_that_is_told(
    workspace: Path, then: str, flags: tuple[str, ...], code: int
) -> None:
    """ "no process left behind", whatever the end is."""
    done = Running(workspace, *words(agent(workspace, JOB + then), *flags)).end()
    assert_clear(done, code, "1 child run ended")
    assert not is_alive(number(workspace / "job"))
    assert job_of(workspace).status == "stopped"
    assert job_of(workspace).end_time is not None


@pytest.mark.parametrize("presses", [1, 2])
def test_a_job_ends_with_an_interrupted_task(workspace: Path, presses: int) -> None:
    running = Running(workspace, *words(agent(workspace, f"{JOB} touch ready; sleep 600")))
    running.await_that((workspace / "ready").exists)
    for _ in range(presses):
        running.send(signal.SIGINT)
        running.await_that(lambda: "Received signal" in running.err())
    if presses == 1:
        os.kill(number(workspace / "job"), 0)
        os.kill(int(_agents_pid(workspace)), signal.SIGTERM)
    assert running.end().code == 130
    assert not is_alive(number(workspace / "job"))


def _agents_pid(workspace: Path) -> str:
    infos = [read_run_info(str(run)) for run in (workspace / "t" / "runs").iterdir()]
    return next(str(i.pid) for i in infos if i is not None and i.agent == "agent")


def test_a_job_outlives_the_attempt_that_started_it(workspace: Path, here: Here) -> None:
    """ "outlives the agent that started it"; a daemon does not."""
    first = f"{JOB} ( setsid sleep 600 & echo $! > daemon ); exit 1"
    second = "kill -0 $(cat job) && ! kill -0 $(cat daemon) && touch second; "
    second += 'kill $(cat job); touch "$TASK_FOLDER/DONE"'
    script = f"if [ ! -e job ]; then {first}; fi; {second}"
    assert here(*words(agent(workspace, script))).code == 0
    assert (workspace / "second").exists()
    assert not is_alive(number(workspace / "daemon"))


def test_a_job_that_only_just_starts_is_not_swept(workspace: Path, here: Here) -> None:
    """The agent ends at once after `ralph job ... &`."""
    job = f'{RALPH} job -- sh -c "sleep 0.2; touch done" > /dev/null 2>&1 &'
    script = f'{job} touch "$TASK_FOLDER/DONE"; exit 0'
    for number in range(5):
        task = f"t{number}"
        done = here("supervise", "--task-dir", task, "--", agent(workspace, script))
        assert done.code == 0
        assert (workspace / "done").exists(), done.err
        (workspace / "done").unlink()


# ------------------------------------------------------------------ the keeper is killed


@pytest.mark.parametrize(
    "kill",
    [
        "kill -9 $PPID; sleep 600",  # in mid-turn
        "kill -STOP $PPID; sleep 600",
        "(setsid sh -c 'sleep 0.3; kill -9 $0' $PPID &) ; exit 1",  # after it
    ],
)
def test_a_keeper_that_is_killed_lets_nobody_go(workspace: Path, kill: str) -> None:
    (workspace / ".ralph").mkdir()
    (workspace / ".ralph" / "settings.json").write_text('{"endGrace": 0.2}')
    script = agent(workspace, f"[ -e job ] && exit 1; echo $$ > agent; {JOB} {kill}")
    flags = ("--max-restarts", "2", "--timeout", "3")
    done = Running(workspace, *words(script, *flags, "--restart-delay", "0.6")).end()
    assert done.code == 1, done.err
    await_gone(number(workspace / "job"), number(workspace / "agent"))


def test_an_agent_whose_keeper_is_killed_is_gone_before_the_next_attempt(workspace: Path) -> None:
    """ "What a turn or guardrail left behind is ended before the next turn"."""
    first = "echo $$ > agent; kill -9 $PPID; sleep 600"
    second = 'kill -0 $(cat agent) || touch alone; touch "$TASK_FOLDER/DONE"'
    script = agent(workspace, f"case $RALPH_RUN in *-001) {first};; *) {second};; esac")
    done = Running(workspace, *words(script)).end()
    assert_clear(done, 0, "Attempt 1: Agent failed", "Completed after 2 attempts")
    assert (workspace / "alone").exists()


# ------------------------------------------------------------------ what the agent puts there


# In the folder of all runs, whose next one will be $next.
HOSTILE = [
    "mkfifo ../WAIT.x; ln -s /dev/zero zero",
    'rm -f "$RALPH_BUS"; mkfifo "$RALPH_BUS"',
    'rm -f "$RALPH_BUS"; ln -s /dev/zero "$RALPH_BUS"',
    'rm -f "$RALPH_BUS"; truncate -s 8T "$RALPH_BUS" || truncate -s 8G "$RALPH_BUS"',
    "mkdir x; mkfifo x/run-info.yaml",
    "mkdir x; ln -s /dev/zero x/run-info.yaml",
    "mkdir x; mkfifo x/run.lock; cp $RALPH_RUN/run-info.yaml x",
    "mkdir $next; cd $next; mkfifo prompt.md agent-stdout.txt agent-stderr.txt run-info.yaml",
    "touch $next",
    "rm $RALPH_RUN/run-info.yaml; mkdir $RALPH_RUN/run-info.yaml",
    "mkfifo $RALPH_RUN/run-info.yaml.$(cat ../../ralph).tmp",
    'rm -r "$TASK_FOLDER/runs"',
    'mkdir "$(printf "a\\nb")"',
]


@pytest.mark.parametrize("deed", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_that_the_agent_puts_into_its_folder_holds_the_run_up(
    workspace: Path, deed: str
) -> None:
    """An agent's files are claims. The second attempt is made, and the task ends."""
    second = 'touch "$TASK_FOLDER/DONE"'
    first = f'cd "$TASK_FOLDER/runs"; next="${{RALPH_RUN%001}}002"; {deed}'
    script = f"case $RALPH_RUN in *-001) {first};; *) {second};; esac"
    running = Running(workspace, *words(agent(workspace, script)))
    (workspace / "ralph").write_text(str(running.process.pid))
    done = running.end()
    assert_clear(done, 0, "Attempt 1: Agent", "Completed after 2 attempts")


@pytest.mark.parametrize(
    "deed",
    [
        "rm TASK.md; ln -s /dev/zero TASK.md",
        "rm TASK.md; mkfifo TASK.md",
        "truncate -s 300G TASK.md || truncate -s 3G TASK.md",
    ],
)
def test_a_task_that_can_no_longer_be_read_ends_the_run(workspace: Path, deed: str) -> None:
    (workspace / "t").mkdir()
    (workspace / "t" / "TASK.md").write_text("Do it")
    done = Running(workspace, *words(agent(workspace, f'cd "$TASK_FOLDER"; {deed}'))).end()
    assert_clear(done, 2, "TASK.md")


def forged(pid: str, name: str = "x") -> str:
    lines = f"pid: {pid}", "start_time: 2099-01-01T00:00:00Z", "status: running"
    file = f'"$TASK_FOLDER/runs/{name}/run-info.yaml"'
    return f'mkdir "$TASK_FOLDER/runs/{name}"; printf "%s\\n" "{{}}" > {file}'.format(
        '" "'.join(lines)
    )


def supervise_done(workspace: Path, script: str) -> Done:
    ended = agent(workspace, f'{script}; touch "$TASK_FOLDER/DONE"')
    return Running(workspace, *words(ended, "--wait-timeout", "0.2")).end()


def test_a_run_info_that_names_the_keeper_is_no_child(workspace: Path) -> None:
    done = supervise_done(workspace, forged("$PPID"))
    assert_clear(done, 0, "Completed")


def test_a_run_info_that_names_a_stranger_does_not_end_it(workspace: Path) -> None:
    """Neither does a lock that the agent wrote."""
    stranger = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "600")
    try:
        start = Path(f"/proc/{stranger}/stat").read_text().rpartition(")")[2].split()[19]
        lock = f'{{"pid": {stranger}, "start": "{start}", "run": "x", "since": 1}}'
        script = f"{forged(str(stranger))}; echo '{lock}' > \"$TASK_FOLDER/runs/x/run.lock\""
        done = supervise_done(workspace, script)
        assert_clear(done, 0, "Completed")
        assert is_alive(stranger)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


def test_a_locked_bus_does_not_hold_the_run_up(workspace: Path) -> None:
    """ "After the second signal ralph is gone within 5 s": nobody waits ten for a bus."""
    lock = f'exec 9>>"$RALPH_BUS"; "{sys.executable}" -c \'import fcntl; fcntl.flock(9, 2)\''
    running = Running(workspace, *words(agent(workspace, f"{lock}; touch ready; sleep 600")))
    running.await_that((workspace / "ready").exists)
    running.interrupt()
    running.send(signal.SIGINT)
    assert running.end().code == 130
