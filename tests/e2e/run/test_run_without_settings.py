"""`ralph run` in a project without settings: its own checks are assumed, and tried once first."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from run_support import Running, assert_clear, await_gone, journals, prompts, ralph, turns

from ralph.testing.scripted_agent.install import install_agent

MAKE = "test:\n\ttest ! -e broken\nlint:\n\t@echo no lint here; exit 3\n"
DONE = {"text": "I did it.", "files": {"new.txt": "x"}, "response": "DONE"}
MESSAGE = {"text": "Add new.txt"}
PROMPT = ("run", "-p", "Do it. Say <response>DONE</response>")
ASSUMED = (
    "No settings here. Assumed: checks make test, make lint (tried now); git commit when they pass."
)
NOT_USED = "Fails already, so not used: make lint (exit code 2)."


@pytest.fixture
def bin_dir(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is first on PATH, beside a repository."""
    directory = repo.parent / "bin"
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return directory


def lay(repo: Path, makefile: str = MAKE) -> None:
    (repo / "Makefile").write_text(makefile)
    for words in (("add", "--all"), ("commit", "--quiet", "-m", "Lay")):
        subprocess.run(("git", "-C", str(repo), *words), check=True)


def test_checks_that_pass_are_used_and_others_named(repo: Path, bin_dir: Path) -> None:
    """Issue 22: "guessed checks run once first, and those that fail already are named and not
    used"; what was used is in the journal."""
    breaks = {"files": {"broken": ""}, "response": "DONE"}
    mends = {"tools": [{"name": "Bash", "run": "rm broken"}], "response": "DONE"}
    agent = install_agent(str(bin_dir), [breaks, mends, MESSAGE], name="claude")
    lay(repo)
    (repo / "new.txt").write_text("mine")
    done = ralph(*PROMPT)
    assert_clear(done, 0, ASSUMED, NOT_USED, "Running guardrail: make test")
    assert len(turns()) == 2
    assert "make test" in prompts(agent)[1]
    assert not [prompt for prompt in prompts(agent) if "lint" in prompt]
    started = json.loads(journals()[0].read_text().splitlines()[0])
    assert "make lint" not in str(started)
    assert not (repo / ".ralph" / "settings.json").exists()


def test_the_work_is_committed(repo: Path, bin_dir: Path) -> None:
    install_agent(str(bin_dir), [DONE, MESSAGE], name="claude")
    lay(repo, "test:\n\ttrue\n")
    done = ralph(*PROMPT)
    assert_clear(
        done,
        0,
        "Assumed: checks make test (tried now); git commit",
        "To choose yourself: ralph init",
    )
    assert "Fails already" not in done.err
    words = ("git", "-C", str(repo), "log", "-1", "--format=%s", "--stat")
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said.startswith("Add new.txt\n\n new.txt ")


def test_python_leaves_nothing_behind_in_the_trial(repo: Path, bin_dir: Path) -> None:
    """Else it would look like the user's own uncommitted work."""
    install_agent(str(bin_dir), [DONE, MESSAGE], name="claude")
    (repo / "calc.py").write_text("N = 1\n")
    lay(repo, "test:\n\tpython3 -c 'import calc'\n")
    done = ralph(*PROMPT)
    assert_clear(done, 0, "Running guardrail: make test")
    assert "left out of this run's commits" not in done.err


@pytest.mark.parametrize("file", ["settings.json", "settings.local.json"])
def test_with_settings_nothing_is_assumed(repo: Path, bin_dir: Path, file: str) -> None:
    install_agent(str(bin_dir), [DONE], name="claude")
    lay(repo)
    (repo / ".ralph").mkdir()
    (repo / ".ralph" / file).write_text("{}")
    done = ralph(*PROMPT)
    assert_clear(done, 0, "No guardrail is configured", "To add one: ralph init")
    assert "Assumed" not in done.err


def test_where_nothing_is_found_nothing_is_assumed(workspace: Path) -> None:
    agent = install_agent(str(workspace.parent / "bin"), [DONE], name="claude")
    done = ralph(*PROMPT, "--agent", agent)
    assert_clear(done, 0, "No guardrail is configured", "To add one: ralph init")
    assert "Assumed" not in done.err


def test_ctrl_c_ends_a_trial_at_once_and_resume_tries_again(repo: Path, bin_dir: Path) -> None:
    """The trial is no turn: nothing was spent, and what was cut off is not taken for a failure."""
    install_agent(str(bin_dir), [DONE, MESSAGE], name="claude")
    lay(repo, "test:\n\techo $$$$ > ../pid; [ -e ../go ] || exec sleep 300\n")
    run = Running(repo, *PROMPT)
    run.await_that((repo.parent / "pid").exists)
    run.interrupt()
    assert_clear(run.end(), 130, "Assumed: checks make test")
    await_gone(int((repo.parent / "pid").read_text()))
    assert not turns()
    (repo.parent / "go").touch()
    assert_clear(ralph("resume"), 0, "Assumed: checks make test", "Running guardrail: make test")


def test_a_resumed_run_keeps_the_checks_that_passed(repo: Path, bin_dir: Path) -> None:
    """What fails after the agent has worked may be its doing: it is not tried again."""
    breaks = {"files": {"broken": ""}, "hang": "before"}
    mends = {"tools": [{"name": "Bash", "run": "rm broken"}], "response": "DONE"}
    install_agent(str(bin_dir), [breaks, DONE, mends, MESSAGE], name="claude")
    lay(repo)
    run = Running(repo, *PROMPT)
    run.await_that((repo / "broken").exists)
    run.process.kill()
    run.process.wait()
    done = ralph("resume")
    assert_clear(done, 0, "Guardrail exited with code 2", "Running guardrail: make test")
    assert "Fails already" not in done.err


def test_until_green_works_for_those_that_fail(repo: Path, bin_dir: Path) -> None:
    """Issue 22: "... except with `--until-green`"."""
    mends = {"tools": [{"name": "Bash", "run": "rm broken"}]}
    install_agent(str(bin_dir), [mends, MESSAGE], name="claude")
    lay(repo, "test:\n\ttest ! -e broken\n")
    (repo / "broken").touch()
    done = ralph("run", "-p", "Make the tests pass", "--until-green")
    assert_clear(done, 0, "Assumed: checks make test")
    assert "Fails already" not in done.err
    assert len(turns()) == 1
