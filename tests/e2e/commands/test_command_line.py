"""The command line itself: default command, help, version, and words that are wrong."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from run_support import RALPH, Here, assert_clear, in_shell, prepare, prompts, ralph

from ralph import __version__
from ralph.testing.scripted_agent.install import calls

DONE = {"response": "DONE"}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_the_version(flag: str) -> None:
    """H: "`ralph --version` / `ralph -v` - Print version and exit"."""
    done = ralph(flag)
    assert (done.code, done.out, done.err) == (0, f"ralph {__version__}\n", "")


def test_the_version_wins_over_a_command(here: Here) -> None:
    done = here("-v", "run", "-p", "x")
    assert (done.code, done.out) == (0, f"ralph {__version__}\n")


@pytest.mark.parametrize("arguments", [("-h",), ("--help",), ("run", "-h"), ("run", "--help")])
def test_help_is_not_an_error(here: Here, arguments: tuple[str, ...]) -> None:
    done = here(*arguments)
    assert (done.code, done.err) == (0, "")
    assert "Usage: ralph" in done.out


def test_without_a_word_there_is_help_and_an_error(here: Here) -> None:
    """H §Validation: without a prompt nothing can run."""
    done = here()
    assert done.code == 2
    assert "Commands:" in done.out


def test_help_names_every_flag_of_the_specification_and_the_exit_codes(here: Here) -> None:
    """H §Run Command Flags."""
    said = here("run", "--help").out
    flags = "-p --prompt -f --prompt-file -m --maximum-iterations -c --completion-response "
    flags += "--stream-agent-output --no-stream-agent-output -V --verbose"
    assert all(re.search(rf"(?<!\S){flag}\b", said) for flag in flags.split())
    assert "0 completed, 1 limit" in said


def test_run_is_the_default_command(here: Here, workspace: Path) -> None:
    """README §Commands: `ralph -p x` is `ralph run -p x`."""
    prepare(workspace, DONE)
    assert [here("-p", "x").code, here("run", "-p", "x").code] == [0, 0]


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [("rnu", "run"), ("ini", "init"), ("explian", "explain"), ("demos", "demo")],
)
def test_an_unknown_command_is_refused_with_a_suggestion(
    here: Here, word: str, suggestion: str
) -> None:
    assert_clear(
        here(word), 2, f"there is no command {word!r}. Did you mean {suggestion}?", "ralph --help"
    )


def test_a_word_like_nothing_gets_no_suggestion(here: Here) -> None:
    done = here("zzz")
    assert_clear(done, 2, "there is no command 'zzz'.")
    assert "mean" not in done.err


@pytest.mark.parametrize("words", [(), ("run",), ("-m", "3"), ("run", "-m", "3")])
def test_one_argument_with_a_blank_is_the_prompt(
    here: Here, workspace: Path, words: tuple[str, ...]
) -> None:
    """ "`ralph run "do x"` and `ralph "do x"` both work as `-p`"."""
    agent = prepare(workspace, {"response": "DONE"})
    assert_clear(here(*words, "fix the tests"), 0)
    assert prompts(agent)[0].startswith("fix the tests")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("staus",), "there is no command 'staus'. Did you mean status?"),
        ((" staus ",), "there is no command"),
        (("",), "there is no command"),
        (("fix", "the", "tests"), "there is no command 'fix'"),
        (("run", "staus"), "'staus' is unexpected: a prompt is one argument in quotes"),
        (("run", "fix", "the tests"), "'fix' is unexpected"),
        (("fix the tests", "and more tests"), "'and more tests' is unexpected"),
        (("run", "-p", "x", "do that"), "PROMPT and -p exclude each other"),
        (("run", "-f", "x", "do that"), "give exactly one of --prompt and --prompt-file"),
        (("tasks", "lst"), "Did you mean list?"),
    ],
)
def test_anything_else_that_is_unknown_starts_nothing(
    here: Here, workspace: Path, arguments: tuple[str, ...], words: str
) -> None:
    """ "anything else unknown is exit 2 with the nearest command: `ralph staus` starts nothing"."""
    agent = prepare(workspace, {"response": "DONE"})
    assert_clear(here(*arguments), 2, words)
    assert calls(agent) == []


@pytest.mark.parametrize("model", ["30", "+5"])
def test_where_m_is_the_model_a_number_is_refused(here: Here, workspace: Path, model: str) -> None:
    """ "in `prd run` a numeric `-m` is refused with "did you mean -n 30?""."""
    assert_clear(here("prd", "run", "-m", model), 2, f"did you mean -n {int(model)}?")


@pytest.mark.parametrize(
    ("flag", "suggestion"),
    [("--promt", "--prompt"), ("--max-iteration", "--max-iterations"), ("--jsn", "--json")],
)
def test_an_unknown_flag_is_refused_with_a_suggestion(
    here: Here, flag: str, suggestion: str
) -> None:
    assert_clear(here("run", flag, "x"), 2, flag, suggestion, "Try: ralph run --help")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "-p"), "Option '-p' requires an argument"),
        (("-p",), "Option '-p' requires an argument"),
        (("run", "-p", "x", "y"), "'y' is unexpected"),
        (("tasks", "run", "--pr"), "Option '--pr' requires an argument"),
    ],
)
def test_wrong_usage_says_where_to_look(here: Here, arguments: tuple[str, ...], words: str) -> None:
    command = " ".join(arguments[:2]) if arguments[0] == "tasks" else "run"
    assert_clear(here(*arguments), 2, words, f"Try: ralph {command} --help")


@pytest.mark.parametrize("arguments", [(), ("-p", "x", "-f", "y")])
def test_exactly_one_of_prompt_and_prompt_file(here: Here, arguments: tuple[str, ...]) -> None:
    """H §Validation: "exactly one of `--prompt` or `--prompt-file` must be provided"."""
    done = here("run", *arguments)
    assert_clear(
        done, 2, "give exactly one of --prompt and --prompt-file", "For example: ralph run"
    )


def test_c_works_in_another_directory(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, DONE)
    (workspace / "p.md").write_text("from there")
    os.chdir(workspace.parent)
    assert here("run", "-C", "workspace", "-f", "p.md").code == 0
    assert f'"cwd": "{workspace}"' in Path(f"{agent}.script.calls.jsonl").read_text()


@pytest.mark.parametrize(
    ("directory", "why"), [("/no/where", "No such file"), ("file", "Not a dir")]
)
def test_c_of_a_directory_that_is_none(
    here: Here, workspace: Path, directory: str, why: str
) -> None:
    (workspace / "file").write_text("x")
    assert_clear(here("run", "-C", directory, "-p", "x"), 2, f"{directory}: {why}")


def test_a_directory_that_was_removed_is_told_with_the_remedy(workspace: Path) -> None:
    """Bad input: the current directory is gone."""
    prepare(workspace, DONE)
    script = "mkdir gone; cd gone; rmdir ../gone; ralph"
    for command in ("run -p x", "explain"):
        done = in_shell(f"{script} {command}")
        assert_clear(done, 2, "the current directory cannot be used", "-C DIR")
    assert in_shell(f"{script} run -p x -C {workspace}").code == 0


def test_importing_ralph_does_nothing() -> None:
    """A library has no side effects."""
    script = "import sys, ralph; print(len([m for m in sys.modules if m.startswith('ralph')]))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert done.stdout == b"1\n"


def test_a_bug_is_reported_with_a_file_and_without_a_traceback(workspace: Path) -> None:
    """README §Exit codes: 70 is a bug of ours, with a report to paste."""
    script = (
        "import sys; from ralph.loops.prompt import loop\n"
        "from ralph.cli.main import run_command_line\n"
        "def stumble(*_): raise RuntimeError('sk-ant-' + 'a1' * 12)\n"
        "loop.load = stumble\n"
        "sys.exit(run_command_line(['run', '-p', 'x', '--json']))"
    )
    done = ralph(command=(sys.executable, "-c", script))
    assert done.code == 70
    assert "This is a bug in ralph: RuntimeError('[redacted]')" in done.err
    assert "Traceback" not in done.err
    assert done.objects[-1]["reason"] == "bug"
    (report,) = Path(os.environ["RALPH_STATE_DIR"]).glob("bug-*.txt")
    assert "stumble" in report.read_text()
    assert "sk-ant-a1" not in report.read_text()


def test_ctrl_c_before_the_run_begins_is_130(workspace: Path) -> None:
    script = (
        "import sys; from ralph.loops.prompt import loop\n"
        "from ralph.cli.main import run_command_line\n"
        "def interrupt(*_): raise KeyboardInterrupt\n"
        "loop.load = interrupt\n"
        "sys.exit(run_command_line(['run', '-p', 'x']))"
    )
    assert_clear(ralph(command=(*RALPH[:1], "-c", script)), 130, "interrupted")


@pytest.mark.parametrize(
    ("arguments", "type_"),
    [
        (["run", "--json"], "stop"),
        (["status", "--json"], "error"),
        (["logs", "nothing", "--json"], "error"),
        (["explain", "--json", "--nonsense"], "error"),
    ],
)
def test_a_command_that_fails_says_so_to_programs_too(
    here: Here, workspace: Path, arguments: list[str], type_: str
) -> None:
    """A run ends with `stop`; what is no run has an error and what to type next."""
    done = here(*arguments)
    said = json.loads(done.out)
    assert (done.code, said["type"], said["reason"], said["exit"]) == (2, type_, "config", 2)
    assert (type_ == "stop") is not bool(said.get("error") and said.get("remedy"))
