"""The loops as a library: `from ralph import run_prompt, PromptRun` and what all of them share."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from run_support import journals, prepare, program, ralph
from story_support import IN_OVERLAY

from ralph import PromptRun, RalphError, RunResult, StoryRun, TaskRun, run_prompt
from ralph.cli.prd.group import run as prd_run
from ralph.cli.run import run as prompt_run
from ralph.cli.tasks.group import run as tasks_run
from ralph.errors import ConfigError, LockedError
from ralph.loops.library import LoopRun

DONE = {"response": "DONE", "cost": 0.25}
CHECKED = [{"command": "true"}]
OF_A_TERMINAL = {"dry_run", "in_json", "verbose", "detach", "watch", "stream_agent_output"}
OF_A_TERMINAL |= {"emoji", "color", "timestamps", "no_sandbox", "words", "directory"}
NO_FLAGS = {"on_fact", "on_note", "signals", "environ", "hooks"}


def test_a_result_says_how_it_ended(workspace: Path) -> None:
    prepare(workspace, {"text": "so far", "cost": 0.5}, DONE, guardrails=CHECKED)
    result = run_prompt("do it")
    [journal] = journals()
    assert result.completed
    assert (result.reason, result.exit_code, result.iterations) == ("completed", 0, 2)
    assert (result.cost_usd, result.why) == (0.75, "nothing is left to do")
    assert (result.run_id, result.journal) == (journal.parent.name, str(journal))
    assert "claimed: <response>DONE</response>" in result.evidence
    assert "passed: true" in result.evidence
    assert result.outcome.startswith("Completed after 2 iterations")


def test_a_result_holds_no_secret(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `--json`: a program may print it."""
    monkeypatch.setenv("SHOP_API_KEY", "s3cr3t-of-the-shop")
    prepare(workspace, {"text": "<promise>DECIDE: is s3cr3t-of-the-shop right?</promise>"})
    result = run_prompt("do it")
    assert result.reason == "blocked"
    assert "[redacted]" in result.why
    assert "s3cr3t" not in repr(result)


def test_a_list_may_be_any_sequence(workspace: Path) -> None:
    prepare(workspace, DONE)
    shown = [("~/.aws",), ["~/.aws"]]
    assert all(run_prompt("do it", sandbox_show=each, sandbox="direct").completed for each in shown)


def test_a_limit_is_a_result_too(workspace: Path) -> None:
    prepare(workspace, {"text": "so far"})
    result = run_prompt("do it", max_iterations=1)
    assert (result.completed, result.reason, result.exit_code) == (False, "limit", 1)
    assert (result.commit, result.branch, result.tasks) == ("", "", ())


def test_it_works_on_a_branch_of_its_own(repo: Path) -> None:
    prepare(repo, {**DONE, "files": {"new": "x"}}, {"text": "A word"}, scm={"tasks": ["commit"]})
    notes: list[str] = []
    result = run_prompt("do it", branch=True, on_note=notes.append)
    assert result.branch == f"ralph/{result.run_id}"
    words = ("git", "rev-parse", result.branch)
    assert subprocess.check_output(words, cwd=repo, text=True).strip() == result.commit
    assert "Committed: A word" in notes
    assert not [note for note in notes if "stdout" in note]


def test_callbacks_hear_what_json_prints(workspace: Path) -> None:
    """The facts as `ralph run --json` prints them, and the lines that people read."""
    prepare(workspace, {**DONE, "tools": [{"name": "Bash", "run": "true"}]}, guardrails=CHECKED)
    facts: list[dict[str, Any]] = []
    notes: list[str] = []
    assert run_prompt("do it", on_fact=facts.append, on_note=notes.append).completed
    printed = ralph("run", "-p", "do it", "--json").objects
    assert [kind(fact) for fact in facts] == [kind(fact) for fact in printed]
    assert list(facts[-1]) == list(printed[-1])
    assert notes[0].startswith("Agent: ")
    assert any(note.startswith("Completed after 1 iteration") for note in notes)


def kind(fact: dict[str, Any]) -> str:
    return str(fact.get("event") or fact["type"])


def test_what_a_callback_raises_ends_nothing(workspace: Path) -> None:
    prepare(workspace, DONE)
    notes: list[str] = []

    def fail(_: object) -> None:
        raise ValueError("my own fault")

    assert run_prompt("do it", on_fact=fail, on_note=notes.append).completed
    told = [note for note in notes if "on_fact" in note]
    assert told == ["The callback on_fact failed: ValueError: my own fault. The run goes on."]
    assert run_prompt("do it", on_fact=fail, on_note=fail).completed


HOST = """
import atexit, os, signal, subprocess, sys, threading
import ralph
child = subprocess.Popen(("sleep", "600"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
atexit.register(child.kill)
handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
results = []
sandbox, *projects = sys.argv[1:]
def work(project):
    results.append(ralph.run_prompt("do it", project, sandbox=sandbox))
threads = [threading.Thread(target=work, args=(project,)) for project in projects]
descriptors = os.listdir("/proc/self/fd")
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert [result.reason for result in results] == ["completed"] * 3, results
assert os.listdir("/proc/self/fd") == descriptors
assert "click" not in sys.modules, "click"
assert not [name for name in sys.modules if name.startswith("ralph.cli")], "ralph.cli"
assert all(signal.getsignal(n) == h for n, h in handlers.items()), "signal handlers"
assert child.poll() is None, "a child of ours was ended"
children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
assert children == [str(child.pid)], children
assert threading.active_count() == 1, threading.enumerate()
child.kill()
child.wait()
"""


@pytest.mark.parametrize("sandbox", ["direct", pytest.param("overlay", marks=IN_OVERLAY)])
def test_the_host_program_stays_as_it_was(tmp_path: Path, sandbox: str) -> None:
    """No click, no output, no signal handler; its children live, and what an agent left does not.
    In threads, with the projects elsewhere."""
    agent = "setsid sleep 601 & echo $! > left\necho '<response>DONE</response>'"
    projects = [tmp_path / name for name in "abc"]
    for project in projects:
        (project / ".ralph").mkdir(parents=True)
        settings = {"agent": {"command": program(project / "agent.sh", agent)}}
        (project / ".ralph" / "settings.json").write_text(json.dumps(settings))
    done = subprocess.run(
        (sys.executable, "-c", HOST, sandbox, *map(str, projects)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    pids = [int((project / "left").read_text()) for project in projects]
    if sandbox == "direct":  # else these are numbers in there
        assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_several_at_once_in_different_projects(tmp_path: Path) -> None:
    """Each ends by itself, and one can be cancelled, from any thread."""
    projects = [tmp_path / name for name in "abc"]
    for path in projects:
        path.mkdir()
    quick = program(tmp_path / "quick.sh", "echo '<response>DONE</response>'")
    slow = program(tmp_path / "slow.sh", f"touch {tmp_path}/begun; sleep 600")
    runs = [PromptRun("do it", p, agent=slow if p.name == "c" else quick) for p in projects]
    results: dict[int, RunResult] = {}

    def work(number: int) -> None:
        results[number] = runs[number].run()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    await_that((tmp_path / "begun").exists)
    with pytest.raises(RuntimeError, match="this PromptRun is running already"):
        runs[2].run()
    with pytest.raises(LockedError, match="another"):
        run_prompt("do it", projects[2], agent=quick)
    runs[2].cancel()
    runs[2].cancel()
    for thread in threads:
        thread.join(30)
    assert [results[n].reason for n in range(3)] == ["completed", "completed", "interrupted"]
    assert len({result.run_id for result in results.values()}) == 3


def await_that(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def test_one_cancel_lets_the_turn_end_and_counts_once(workspace: Path) -> None:
    """As one Ctrl+C; a later run of the same object has not been cancelled."""
    prepare(workspace, {"text": "so far"}, DONE)

    def hear(fact: dict[str, Any]) -> None:
        if fact["type"] == "began":
            run.cancel()

    run = PromptRun("do it", on_fact=hear)
    first = run.run()
    assert (first.reason, first.iterations) == ("interrupted", 1)
    again = PromptRun("do it")
    again.cancel()
    assert (again.run().reason, again.run().reason) == ("interrupted", "completed")


@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (lambda: run_prompt(" "), "the prompt is empty"),
        (lambda: run_prompt(Path("gone.md")), "cannot read the prompt file"),
        (lambda: run_prompt("x", "gone"), "gone is no directory"),
        (lambda: run_prompt("x", agent="gone"), "agent command 'gone' was not found"),
        (lambda: run_prompt("x", max_iterations=0), "--max-iterations: found 0"),
        (lambda: run_prompt("x", max_time="soon"), '--max-time: found "soon"'),
        (lambda: run_prompt("x", sandbox="paper"), '--sandbox: found "paper"'),
        (lambda: run_prompt("x", until_green=True), "--until-green needs a guardrail"),
        (lambda: StoryRun(review_cap=0).run(), "review_cap is 0"),
        (lambda: StoryRun().run(), "there are no stories here"),
        (lambda: TaskRun().run(), "there are no tasks here"),
    ],
)
def test_what_cannot_work_is_an_error_and_nothing_is_begun(
    workspace: Path, begin: Callable[[], object], words: str
) -> None:
    prepare(workspace, DONE)
    with pytest.raises(RalphError) as caught:
        begin()
    assert words in caught.value.message
    assert caught.value.remedy
    assert not os.listdir(os.environ["RALPH_STATE_DIR"])


def test_an_unknown_name_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"'max_iteration'\. Did you mean 'max_iterations'\?"):
        run_prompt("x", max_iteration=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"StoryRun\(\) got .* 'xyzzy'$"):
        StoryRun(xyzzy=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("kind", "command"), [(PromptRun, prompt_run), (TaskRun, tasks_run), (StoryRun, prd_run)]
)
def test_the_names_are_those_of_the_commands_flags(
    kind: type[LoopRun], command: click.Command
) -> None:
    """But for a terminal's, and a prompt, which is an argument."""
    flags = {str(param.name) for param in command.params} - OF_A_TERMINAL
    assert kind.options - NO_FLAGS == flags - {"prompt", "prompt_file"}


SIGNALLED = """
import os, signal, sys
from ralph import PromptRun
def hear(fact):
    if fact["type"] == "began":
        os.kill(os.getpid(), signal.SIGINT)
before = signal.getsignal(signal.SIGINT)
result = PromptRun("do it", signals=True, on_fact=hear).run()
assert signal.getsignal(signal.SIGINT) is before
print(result.reason)
"""


def test_signals_are_taken_if_asked(workspace: Path) -> None:
    prepare(workspace, {"text": "so far"})
    words = (sys.executable, "-c", SIGNALLED)
    done = subprocess.run(words, cwd=workspace, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    assert "Received signal" in done.stderr


def test_only_the_main_thread_takes_signals(workspace: Path) -> None:
    prepare(workspace, DONE)
    caught: list[BaseException] = []

    def work() -> None:
        try:
            run_prompt("do it", signals=True)
        except ConfigError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert "only the main thread" in str(caught[0])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_prompt_file_is_read_before_each_turn(workspace: Path) -> None:
    prepare(workspace, guardrails=CHECKED)
    path = workspace / "PROMPT.md"
    path.write_text("first")
    agent = program(
        workspace.parent / "agent.sh",
        'for prompt; do :; done\ncase "$prompt" in *second*) echo "<response>DONE</response>";; '
        f"*) echo second > {path}; esac",
    )
    assert run_prompt(path, agent=agent).iterations == 2


def test_a_path_to_an_agent_is_the_projects(tmp_path: Path, workspace: Path) -> None:
    """Whoever works elsewhere means the same agent as the settings file there."""
    project = tmp_path / "shop"
    project.mkdir()
    program(project / "agent.sh", "echo '<response>DONE</response>'")
    assert run_prompt("do it", project, agent="./agent.sh").completed
    (project / ".ralph").mkdir()
    (project / ".ralph" / "settings.json").write_text('{"agent": {"command": "./agent.sh"}}')
    assert run_prompt("do it", project).completed
    assert Path.cwd() == workspace
