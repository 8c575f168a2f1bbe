"""The first minutes of somebody new: an empty HOME, a project, and `ralph init`, as it is typed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest
from run_support import assert_clear, program, ralph

from ralph import __version__
from ralph.testing.scripted_agent.install import install_agent

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

Files = dict[str, str]
PYTHON: Files = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    ".gitignore": "__pycache__/\n",
}
FIXED = {"calc.py": "def add(a, b):\n    return a + b\n"}
NODE: Files = {"package.json": '{"scripts": {"test": "node --test", "lint": "eslint ."}}'}
MAKE: Files = {"Makefile": "test:\n\tgrep 42 answer\nlint:\n\ttrue\n", "answer": "42\n"}
WORKS = {"text": "I fixed it.", "files": FIXED, "response": "DONE"}
QUESTIONS = [r"Sandbox \[auto\]: ", r"[\])]: ", pexpect.EOF]


@pytest.fixture
def agent(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An agent that is called claude, first on PATH."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-a-key-of-nobody")
    bin_dir = workspace.parent / "bin"
    monkeypatch.setenv("PATH", f"{bin_dir}{os.pathsep}{os.environ['PATH']}")
    return install_agent(str(bin_dir), [WORKS, {"text": "Fix add"}], name="claude")


def lay(workspace: Path, files: Files) -> None:
    for name, text in files.items():
        (workspace / name).write_text(text)
    git = ["git", "-C", str(workspace)]
    if (workspace / ".git").exists():
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", "Lay"], check=True)


def settings(workspace: Path) -> Any:  # noqa: ANN401  JSON
    return json.loads((workspace / ".ralph" / "settings.json").read_text())


def talk(*typed: str, arguments: tuple[str, ...] = ("init",)) -> tuple[int, str]:
    """Type these, and then Enter at every question; no sandbox, since not every machine has one.
    The exit code, and the screen without what was said of the sandbox."""
    environ = {**os.environ, "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "ralph", *arguments]
    child = pexpect.spawn(command[0], command[1:], env=environ, timeout=30, dimensions=(40, 200))
    child.delaybeforesend = None
    answers, seen = iter(typed), ""
    while (asked := child.expect(QUESTIONS)) < len(QUESTIONS) - 1:
        seen += child.before.decode() + (child.after.decode() if asked else "")
        child.sendline(next(answers, "") if asked else "-")
        if not asked:
            child.expect_exact("-\r\n")
    child.close()
    lines = f"{seen}{child.before.decode()}".replace("\r\n", "\n").splitlines()
    shown = "\n".join(line.rstrip() for line in lines if not line.startswith("  sandbox"))
    return child.exitstatus, shown


def log(workspace: Path) -> list[str]:
    words = ("git", "-C", str(workspace), "log", "--format=%s")
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_python_project_with_enter_and_one_command_more(repo: Path, agent: str) -> None:
    """Issue 22: "Enter accepts each; it ends with the one command to type next"."""
    lay(repo, PYTHON)
    code, screen = talk()
    flags = "--permission-mode=acceptEdits,--allowedTools=Bash"
    assert (code, screen.splitlines()[-10:]) == (
        0,
        [
            "Agent command [claude]:",
            f"Agent flags [{flags}]:",
            "Maximum iterations [10]:",
            "Completion response [DONE]:",
            "Guardrail, test [python3 -m pytest]:",
            "Add guardrail command (leave blank to finish):",
            "Configure SCM? (y/n) [git commit]:",
            "",
            "Settings written to .ralph/settings.json",
            'Next: ralph run -p "What to do"',
        ],
    )
    assert screen.splitlines()[1].split()[:5] == ["agent", "claude", "2.1.197,", "paid", "by"]
    assert settings(repo) == {
        "maximumIterations": 10,
        "completionResponse": "DONE",
        "outputTruncateChars": 5000,
        "streamAgentOutput": True,
        "agent": {"command": "claude", "flags": flags.split(",")},
        "guardrails": [{"command": "python3 -m pytest", "failAction": "APPEND"}],
        "scm": {"command": "git", "tasks": ["commit"]},
    }
    done = ralph("run", "-p", "Fix add. Say <response>DONE</response>")
    assert_clear(done, 0, "Running guardrail: python3 -m pytest", "Completed after 1")
    assert log(repo)[0] == "Fix add"
    assert (repo / "calc.py").read_text() == FIXED["calc.py"]


def test_each_proposal_can_be_changed_or_left_out(repo: Path, agent: str) -> None:
    """H's questions stay: what is typed counts, and - is for nothing."""
    lay(repo, MAKE)
    typed = ("cluade", "claude", "-", "7", "FINISHED", "make test V=1", "-", "make all", "append")
    code, screen = talk(*typed, "Read it.", "", "y", "git", "commit,push")
    assert code == 0
    assert "  There is no cluade here. Did you mean claude?" in screen
    assert settings(repo) == {
        "maximumIterations": 7,
        "completionResponse": "FINISHED",
        "outputTruncateChars": 5000,
        "streamAgentOutput": True,
        "agent": {"command": "claude", "flags": []},
        "guardrails": [
            {"command": "make test V=1", "failAction": "APPEND"},
            {"command": "make all", "failAction": "APPEND", "hint": "Read it."},
        ],
        "scm": {"command": "git", "tasks": ["commit", "push"]},
    }


CHECKS = [
    pytest.param(PYTHON, ["python3 -m pytest"], id="Python"),
    pytest.param(NODE, ["npm test"], id="Node"),
    pytest.param(MAKE, ["make test", "make lint"], id="Makefile"),
]


@pytest.mark.parametrize(("files", "checks"), CHECKS)
def test_yes_accepts_everything_without_a_terminal(
    repo: Path, agent: str, files: Files, checks: list[str]
) -> None:
    for name in ("npm", "node"):
        program(repo.parent / "bin" / name, "exit 0")
    lay(repo, files)
    os.chdir(repo.parent)
    done = ralph("init", "--yes", "-C", str(repo))
    assert_clear(done, 0)
    assert [rail["command"] for rail in settings(repo)["guardrails"]] == checks
    assert settings(repo)["scm"] == {"command": "git", "tasks": ["commit"]}
    assert done.out.endswith(f'Next: ralph run -C {repo} -p "What to do"\n')
    assert ("not proposed: eslint is not installed" in done.out) == (files is NODE)


def test_a_directory_with_nothing_in_it(workspace: Path, agent: str) -> None:
    """An agent is something to propose; that there are no checks and no repository is said."""
    done = ralph("init", "-y")
    assert_clear(done, 0)
    assert "only the agent's word will count" in done.out
    assert "to have one: git init" in done.out
    assert "guardrails" not in settings(workspace)
    assert "scm" not in settings(workspace)


def test_what_git_lacks_is_said(workspace: Path, agent: str) -> None:
    """Without a name git refuses to commit; and what is uncommitted is left out of the commits."""
    subprocess.run(["git", "init", "--quiet"], check=True)
    (told,) = ralph("init", "--yes", "--json").objects
    words = [each.partition(":")[0] for each in told["todo"]]
    assert words == ["Tell git who commits", "Commit what is there"]


def test_without_an_agent_the_settings_are_written(repo: Path) -> None:
    """Issue 22: "without any agent the settings are still written, with how to install one (0)"."""
    lay(repo, MAKE)
    done = ralph("init", "--yes")
    assert_clear(done, 0)
    assert "  claude    npm install -g @anthropic-ai/claude-code\n" in done.out
    assert done.out.endswith('Then: ralph run -p "What to do"\n')
    assert "agent" not in settings(repo)
    asked = talk("", arguments=("init", "--agent", "codex"))[1]  # keeps what is there
    assert "Overwrite? (y/N):" in asked


def test_with_neither_an_agent_nor_a_project(workspace: Path) -> None:
    done = ralph("init", "--yes")
    assert_clear(done, 2, "nothing to propose", "npm install -g @anthropic-ai/claude-code")
    assert os.listdir(workspace) == []


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("cluade", ("Did you mean claude?",)),
        ("Codex", ("Did you mean codex?", "npm install -g @openai/codex")),
    ],
)
def test_a_misspelt_agent_is_told_the_nearest(
    workspace: Path, agent: str, named: str, words: tuple[str, ...]
) -> None:
    for command in (("init", "--yes"), ("run", "-p", "x")):
        assert_clear(ralph(*command, "--agent", named), 2, f"{named!r} was not found", *words)
    assert not (workspace / ".ralph" / "settings.json").exists()


def test_with_nothing_but_a_key_our_own_agent_is_proposed(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(repo, MAKE)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    done = ralph("init", "--yes")
    assert_clear(done, 0)
    assert f"agent    ralph-agent  {__version__}, paid by OPENAI_API_KEY" in done.out
    assert 'Next: ralph run -p "What to do"' in done.out
    assert settings(repo)["agent"] == {"command": "ralph-agent"}


def test_our_own_agent_can_be_asked_for_and_says_what_it_lacks(repo: Path) -> None:
    lay(repo, MAKE)
    done = ralph("init", "--yes", "--agent", "builtin:google:gemini-x")
    assert_clear(done, 0)
    assert f"{__version__}, no key is set" in done.out
    assert "Set it: export GEMINI_API_KEY=..." in done.out
    assert settings(repo)["agent"] == {"command": "builtin:google:gemini-x"}
    assert_clear(ralph("init", "--yes", "--agent", "builtin:x"), 2, "'x' names no model")


def test_yes_keeps_what_the_settings_say(repo: Path, agent: str) -> None:
    """What is there stays as it is, and is told; what it does not say is added."""
    lay(repo, MAKE)
    (repo / ".ralph").mkdir()
    own = {"agent": {"command": "codex"}, "guardrails": [{"command": "true"}], "failAfter": 2}
    (repo / ".ralph" / "settings.json").write_text(json.dumps(own))
    done = ralph("init", "--yes", "--json")
    (told,) = done.objects
    assert (done.code, told["written"], told["kept"]) == (
        0,
        True,
        ["agent.command", "agent.flags", "guardrails"],
    )
    scm = {"command": "git", "tasks": ["commit"]}
    assert {k: v for k, v in settings(repo).items() if k != "sandbox"} == {**own, "scm": scm}
    again = ralph("init", "--yes")
    assert ".ralph/settings.json stays as it is.\n" in again.out


def test_a_dry_run_for_programs(repo: Path, agent: str) -> None:
    lay(repo, NODE)
    (told,) = ralph("init", "--dry-run", "--json").objects
    assert told["agent"]["version"] == "2.1.197"
    assert [check["lacks"] for check in told["checks"] if check["role"] == "lint"] == ["eslint"]
    assert (told["git"], told["written"]) == (True, False)
    assert not (repo / ".ralph").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--json",), "add --yes, or --dry-run"),
        (("--from", "x.yml", "--agent", "claude"), "leave out --agent"),
        ((), "ralph init --yes"),
    ],
)
def test_wrong_usage(workspace: Path, arguments: tuple[str, ...], words: str) -> None:
    assert_clear(ralph("init", *arguments), 2, words)
    assert os.listdir(workspace) == []
