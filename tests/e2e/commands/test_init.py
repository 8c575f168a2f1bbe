"""`ralph init` on a real terminal (H §Init Command)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

DRIVER = """
import sys
from ralph.cli.init.command import init
from ralph.kernel.verdict import Reason
from ralph.errors import RalphError
try:
    init.main(args=[], standalone_mode=False)
except RalphError as error:
    print(error.message)
    print(error.remedy)
    sys.exit(Reason(error.reason).exit_code)
"""

COMMAND = "Agent command (e.g., claude, codex, amp, or other LLM CLI): "
FLAGS = "Agent flags (comma-separated, optional): "
ITERATIONS = "Maximum iterations [10]: "
RESPONSE = "Completion response [DONE]: "
GUARDRAIL = "Add guardrail command (leave blank to finish): "
ACTION = "  Fail action (APPEND|PREPEND|REPLACE): "
HINT = "  Hint (optional, guidance for agent on failure): "
SCM = "Configure SCM? (y/N): "
SCM_COMMAND = "  SCM command (e.g., git): "
SCM_TASKS = "  SCM tasks (comma-separated, e.g., commit,push): "
OVERWRITE = "Overwrite? (y/N): "

Talk = list[tuple[str, str]]

# H's example flow: each question with the answer that is typed.
EXAMPLE: Talk = [
    (COMMAND, "claude"),
    (FLAGS, "--model,opus"),
    (ITERATIONS, ""),
    (RESPONSE, ""),
    (GUARDRAIL, "make lint"),
    (ACTION, "APPEND"),
    (HINT, "Fix lint errors only. Do not change behavior."),
    (GUARDRAIL, "make test"),
    (ACTION, "APPEND"),
    (HINT, ""),
    (GUARDRAIL, ""),
    (SCM, "y"),
    (SCM_COMMAND, "git"),
    (SCM_TASKS, "commit"),
]
SHORTEST: Talk = [
    (COMMAND, "codex"),
    (FLAGS, ""),
    (ITERATIONS, ""),
    (RESPONSE, ""),
    (GUARDRAIL, ""),
    (SCM, ""),
]


class Terminal:
    """A person at a terminal who runs `ralph init`."""

    def __init__(self) -> None:
        environ = {**os.environ, "TERM": "dumb", "LC_ALL": "C.UTF-8"}
        self.child = pexpect.spawn(
            sys.executable, ["-c", DRIVER], env=environ, timeout=30, dimensions=(40, 200)
        )
        self.child.delaybeforesend = None
        self.seen = b""

    def await_question(self, question: str) -> None:
        self.child.expect_exact(question.encode())
        self.seen += self.child.before + self.child.after

    def answer(self, talk: Talk) -> None:
        for question, answer in talk:
            self.await_question(question)
            self.child.sendline(answer)

    def end(self) -> tuple[int, str]:
        """The exit code, and everything that was on the screen."""
        self.child.expect(pexpect.EOF)
        self.seen += self.child.before
        self.child.close()
        return self.child.exitstatus, self.seen.decode(errors="replace").replace("\r\n", "\n")


def converse(talk: Talk) -> tuple[int, str]:
    terminal = Terminal()
    terminal.answer(talk)
    return terminal.end()


def written(workspace: Path) -> object:
    return json.loads((workspace / ".ralph" / "settings.json").read_text())


def lay(workspace: Path, **files: object) -> None:
    """Existing settings: `base` is settings.json, `local` is settings.local.json."""
    (workspace / ".ralph").mkdir()
    names = {"base": "settings.json", "local": "settings.local.json"}
    for file, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (workspace / ".ralph" / names[file]).write_text(text)


def test_the_example_flow_of_h(workspace: Path) -> None:
    """H §Init Command, "Example Flow": the whole transcript, and the file."""
    code, transcript = converse(EXAMPLE)
    asked = "".join(f"{question}{answer}\n" for question, answer in EXAMPLE)
    assert transcript == (
        f"\n{asked}\nSettings written to .ralph/settings.json\n"
        "Next, since claude is not installed: npm install -g @anthropic-ai/claude-code\n"
        'Then: ralph run -p "What to do"\n'
    )
    assert code == 0
    assert written(workspace) == {
        "maximumIterations": 10,
        "completionResponse": "DONE",
        "outputTruncateChars": 5000,
        "streamAgentOutput": True,
        "agent": {"command": "claude", "flags": ["--model", "opus"]},
        "guardrails": [
            {
                "command": "make lint",
                "failAction": "APPEND",
                "hint": "Fix lint errors only. Do not change behavior.",
            },
            {"command": "make test", "failAction": "APPEND"},
        ],
        "scm": {"command": "git", "tasks": ["commit"]},
    }


def test_what_git_shall_not_keep_is_hidden(workspace: Path) -> None:
    """ADR 9: the first write into .ralph/ also writes its .gitignore."""
    converse(SHORTEST)
    assert sorted(os.listdir(workspace / ".ralph")) == [".gitignore", "settings.json"]


def test_defaults_when_blank(workspace: Path) -> None:
    """H: maximumIterations 10 and completionResponse DONE when blank; SCM is optional."""
    assert converse(SHORTEST)[0] == 0
    assert written(workspace) == {
        "maximumIterations": 10,
        "completionResponse": "DONE",
        "outputTruncateChars": 5000,
        "streamAgentOutput": True,
        "agent": {"command": "codex", "flags": []},
        "guardrails": [],
    }


def test_invalid_answers_are_asked_again(workspace: Path) -> None:
    """H: command re-prompted if blank, a positive integer, failAction normalized, trimmed."""
    code, transcript = converse(
        [
            (COMMAND, "  "),
            (COMMAND, " claude "),
            (FLAGS, " --verbose , , --model opus "),
            (ITERATIONS, "0"),
            (ITERATIONS, "-3"),
            (ITERATIONS, "2.5"),
            (ITERATIONS, "many"),
            (ITERATIONS, "9" * 5000),
            (ITERATIONS, "007"),
            (RESPONSE, " FINISHED "),
            (GUARDRAIL, "make test"),
            (ACTION, ""),
            (ACTION, "SKIP"),
            (ACTION, "prepend"),
            (HINT, ""),
            (GUARDRAIL, ""),
            (SCM, "maybe"),
            (SCM, "YES"),
            (SCM_COMMAND, ""),
            (SCM_COMMAND, "git"),
            (SCM_TASKS, " , "),
            (SCM_TASKS, "commit, push"),
        ]
    )
    assert code == 0
    assert transcript.count("  This cannot be blank.\n") == 2
    assert transcript.count("  This must be a whole number, from 1 to 999999999.\n") == 5
    assert transcript.count("  This must be APPEND, PREPEND or REPLACE.\n") == 2
    assert transcript.count("  Answer y or n.\n") == 1
    assert transcript.count("  Name at least one.\n") == 1
    assert written(workspace) == {
        "maximumIterations": 7,
        "completionResponse": "FINISHED",
        "outputTruncateChars": 5000,
        "streamAgentOutput": True,
        "agent": {"command": "claude", "flags": ["--verbose", "--model opus"]},
        "guardrails": [{"command": "make test", "failAction": "PREPEND"}],
        "scm": {"command": "git", "tasks": ["commit", "push"]},
    }


def test_bytes_that_are_no_text_are_asked_again(workspace: Path) -> None:
    """A terminal may send anything; the file must be readable."""
    terminal = Terminal()
    terminal.await_question(COMMAND)
    terminal.child.sendline(b"cl\xff\xfe")
    terminal.await_question("  That is not readable text.")
    terminal.answer(SHORTEST)
    assert terminal.end()[0] == 0


@pytest.mark.parametrize("key", ["c", "d"], ids=["Ctrl+C", "end of input"])
@pytest.mark.parametrize("answered", [0, 1, 7, len(EXAMPLE) - 1])
def test_giving_up_leaves_no_file(workspace: Path, key: str, answered: int) -> None:
    """H: "Ctrl+C aborts gracefully without writing partial file (exit code 130)", EOF too."""
    terminal = Terminal()
    terminal.answer(EXAMPLE[:answered])
    question = EXAMPLE[answered][0]
    terminal.await_question(question)
    terminal.child.sendcontrol(key)
    code, transcript = terminal.end()
    assert code == 130
    assert transcript.endswith("\nAborted: no settings were written.\n\n")
    assert "Traceback" not in transcript
    assert os.listdir(workspace) == []


def test_giving_up_leaves_existing_settings(workspace: Path) -> None:
    """The old file stands as it was."""
    lay(workspace, base='{"failAfter": 1}')
    terminal = Terminal()
    terminal.answer([(OVERWRITE, "y"), *EXAMPLE[:3]])
    terminal.await_question(RESPONSE)
    terminal.child.sendcontrol("c")
    assert terminal.end()[0] == 130
    assert written(workspace) == {"failAfter": 1}


@pytest.mark.parametrize("answer", ["", "n", "No"])
def test_declining_changes_nothing(workspace: Path, answer: str) -> None:
    """H: pretty-printed, "Loaded from", `Overwrite? (y/N): ` (default No), exit code 0."""
    lay(workspace, base={"agent": {"command": "claude"}})
    code, transcript = converse([(OVERWRITE, answer)])
    assert code == 0
    assert transcript == (
        '{\n  "agent": {\n    "command": "claude"\n  }\n}\n'
        f"Loaded from .ralph/settings.json\n{OVERWRITE}{answer}\n"
    )
    assert written(workspace) == {"agent": {"command": "claude"}}
    assert os.listdir(workspace / ".ralph") == ["settings.json"]


def test_the_local_overlay_is_shown_merged(workspace: Path) -> None:
    """H: "Loaded from .ralph/settings.json (with local overlay from settings.local.json)"."""
    lay(workspace, base={"failAfter": 1, "stallAfter": 1}, local={"failAfter": 2})
    _, transcript = converse([(OVERWRITE, "")])
    assert transcript == (
        '{\n  "failAfter": 2,\n  "stallAfter": 1\n}\n'
        "Loaded from .ralph/settings.json (with local overlay from settings.local.json)\n"
        f"{OVERWRITE}\n"
    )


def test_secrets_are_not_shown(workspace: Path) -> None:
    """What stands in agent.env.set is nobody's business on a screen."""
    lay(workspace, base={"agent": {"env": {"set": {"TOKEN": "hunter22"}}}})
    _, transcript = converse([(OVERWRITE, "")])
    assert '"TOKEN": "[redacted]"' in transcript
    assert "hunter22" not in transcript


def test_overwriting_keeps_what_nobody_asked_about(workspace: Path) -> None:
    """Other keys of settings.json stay; the local file is neither copied nor changed."""
    base = {
        "display": {"emoji": False},
        "outputTruncateChars": 99,
        "agent": {"command": "claude", "env": {"set": {"A": "1"}}},
        "scm": {"tasks": ["commit"]},
        "guardrails": [{"command": "old"}],
    }
    lay(workspace, base=base, local={"failAfter": 2})
    converse([(OVERWRITE, "y"), *SHORTEST])
    assert written(workspace) == {
        "maximumIterations": 10,
        "completionResponse": "DONE",
        "outputTruncateChars": 99,
        "streamAgentOutput": True,
        "agent": {"command": "codex", "env": {"set": {"A": "1"}}, "flags": []},
        "guardrails": [],
        "display": {"emoji": False},
    }
    assert (workspace / ".ralph" / "settings.local.json").read_text() == '{"failAfter": 2}'


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("{", ".ralph/settings.json:1:2: found the end of the file"),
        ('{"failAfter": "x"}', '.ralph/settings.json: failAfter: found "x"'),
    ],
)
def test_broken_settings_are_told_and_may_be_overwritten(
    workspace: Path, broken: str, error: str
) -> None:
    """The error is shown; a yes writes sound settings."""
    lay(workspace, base=broken)
    code, transcript = converse([(OVERWRITE, "y"), *SHORTEST])
    assert transcript.startswith(error)
    assert code == 0
    assert isinstance(written(workspace), dict)
    assert "failAfter" not in str(written(workspace))


def test_a_broken_local_file_costs_nothing_of_the_other(workspace: Path) -> None:
    """settings.json is sound by itself: its other keys are kept."""
    lay(workspace, base={"failAfter": 1}, local="{")
    converse([(OVERWRITE, "y"), *SHORTEST])
    settings = written(workspace)
    assert isinstance(settings, dict)
    assert settings["failAfter"] == 1


def test_a_settings_directory_is_told_before_any_question(workspace: Path) -> None:
    """H exit code 2: what cannot be written is not asked for."""
    (workspace / ".ralph" / "settings.json").mkdir(parents=True)
    code, transcript = converse([])
    assert code == 2
    assert transcript.startswith(".ralph/settings.json: is a directory.\n")


def test_ralph_as_a_file_is_told_before_any_question(workspace: Path) -> None:
    """Nothing can be written below a file."""
    (workspace / ".ralph").write_text("")
    code, transcript = converse([])
    assert (code, transcript.splitlines()[0]) == (2, ".ralph: is not a directory.")


def test_stdin_that_is_no_terminal_is_refused(workspace: Path) -> None:
    """H: "Interactive-only (requires TTY); exits with error if stdin is not a terminal"."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input="claude\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "ralph init needs a terminal: it asks questions.",
        "To accept its proposals without one: ralph init --yes. To see them: --dry-run",
    ]
    assert os.listdir(workspace) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_told_before_any_question(workspace: Path) -> None:
    """H exit code 2: write failure."""
    workspace.chmod(0o500)
    code, transcript = converse([])
    assert code == 2
    assert transcript.startswith(f"{workspace}: cannot be written.\n")
