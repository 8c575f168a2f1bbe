"""`ralph completion`: the real shells, and what they are told."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from run_support import Here, assert_clear, in_shell, ralph

from ralph.files.state_dir import make_run_dir, project_dir

SHELLS = ("bash", "zsh", "fish")
needs_bash, needs_zsh, needs_fish = (
    pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")
    for shell in SHELLS
)


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ralph` is a command, as after an installation."""
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    command = bin_directory / "ralph"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ralph "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_directory}{os.pathsep}{os.environ['PATH']}")


def asked(words: str, cursor: int | None = None) -> list[str]:
    """What bash would be told for this line, the cursor at its end."""
    env = {"COMP_WORDS": words, "COMP_CWORD": str(cursor or words.count(" "))}
    done = ralph(env={**env, "_RALPH_COMPLETE": "bash_complete"})
    assert (done.code, done.err) == (0, "")
    return done.out.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ralph comp", ["plain,completion"]),
        ("ralph zzz", []),
        ("ralph --vers", ["plain,--version"]),
        ("ralph --max-co", ["plain,--max-cost"]),
        ("ralph run --max-co", ["plain,--max-cost"]),
        ("ralph -p x --max-co", ["plain,--max-cost"]),
        ("ralph -C / comp", ["plain,completion"]),
        ("ralph -C / explain --sch", ["plain,--schema"]),
        ("ralph -C /us", ["dir,/us"]),
        ("ralph run -C /us", ["dir,/us"]),
        ("ralph run -f PRO", ["file,PRO"]),
        ("ralph run --prompt-file=PRO", ["file,PRO"]),
        ("ralph run --agent cod", ["plain,codex"]),
        ("ralph run --agent ./bin/a", ["file,./bin/a"]),
        ("ralph run --model gpt-5.4-na", ["plain,gpt-5.4-nano"]),
        ("ralph completion f", ["plain,fish"]),
        ("ralph run -p ", []),
        ("ralph run -C /nowhere --max-co", ["plain,--max-cost"]),
        ("ralph --version ru", ["plain,run"]),
    ],
)
def test_what_may_stand_where_the_cursor_is(words: str, offered: list[str]) -> None:
    assert asked(words) == offered


def test_without_a_word_every_command_is_offered_and_none_is_imported() -> None:
    from ralph.cli.commands import COMMANDS

    assert asked("ralph ", 1) == [f"plain,{name}" for name in COMMANDS]
    modules = [module for module, _ in COMMANDS.values() if module != "ralph.cli.completion"]
    env = {**os.environ, "_RALPH_COMPLETE": "bash_complete"}
    env |= {"COMP_WORDS": "ralph ", "COMP_CWORD": "1"}
    code = (
        "import sys; from ralph.cli.main import run_command_line as r; r([]); "
        f"print([m for m in {modules} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[-1] == "[]"


def test_a_dash_offers_the_options_of_run_and_of_ralph_itself() -> None:
    offered = asked("ralph -", 1)
    assert {"plain,-h", "plain,--version", "plain,-p", "plain,--prompt-file"} <= set(offered)
    assert len(offered) == len(set(offered))


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("bash_complete", "ralph nonsense --x"),
        ("nonsense", "ralph r"),
        ("tcsh_complete", "ralph r"),
        ("zsh_complete", "ralph 'unfinished"),
    ],
)
def test_nonsense_prints_nothing_into_the_line_someone_types(instruction: str, words: str) -> None:
    done = ralph(env={"_RALPH_COMPLETE": instruction, "COMP_WORDS": words, "COMP_CWORD": "2"})
    assert (done.out.strip(), done.err) == ("", "")


def test_a_variable_that_was_left_behind_does_no_harm(here: Here) -> None:
    done = ralph("--help", env={"_RALPH_COMPLETE": "bash_complete"})
    assert (done.code, "Usage: ralph" in done.out) == (0, True)


def test_runs_of_this_workspace_first_then_of_all(workspace: Path) -> None:
    import click

    from ralph.cli.completion import run_ids

    state = os.environ["RALPH_STATE_DIR"]
    runs = ("20261114-101010-aaaa", "20261115-101010-bbbb")
    for run in runs:
        make_run_dir(project_dir(state, str(workspace)), run)
    make_run_dir(project_dir(state, "/elsewhere"), "20251231-101010-cccc")
    context, param = click.Context(click.Command("x")), click.Argument(["run"])

    def offered(beginning: str) -> list[str]:
        return [item.value for item in run_ids(context, param, beginning)]

    assert offered("") == [runs[1], runs[0]]
    assert offered("20261114") == [runs[0]]
    assert offered("2025") == ["20251231-101010-cccc"]
    assert offered("x") == []


def test_runs_where_there_is_no_state_are_none(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import click

    from ralph.cli.completion import run_ids

    monkeypatch.setenv("RALPH_STATE_DIR", str(workspace / "nowhere"))
    context, param = click.Context(click.Command("x")), click.Argument(["run"])
    assert run_ids(context, param, "") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_and_nothing_else(here: Here, shell: str) -> None:
    done = here("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_RALPH_COMPLETE={shell}_complete" in done.out


@pytest.mark.parametrize("shell", SHELLS)
def test_without_a_name_the_shell_of_the_environment_and_how_to_install(
    here: Here, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", f"/some/where/{shell}")
    done = here("completion")
    assert done.code == 0
    assert f"_RALPH_COMPLETE={shell}_complete" in done.out
    assert f"This was for {shell}." in done.err
    assert f"ralph completion {shell}" in done.err


@pytest.mark.parametrize(
    ("own", "words"),
    [("/bin/tcsh", "$SHELL is tcsh"), ("", "$SHELL is not set"), (None, "$SHELL is not set")],
)
def test_a_shell_that_is_not_known(
    here: Here, own: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if own is None:
        monkeypatch.delenv("SHELL", raising=False)
    else:
        monkeypatch.setenv("SHELL", own)
    assert_clear(here("completion"), 2, words, "ralph completion bash|zsh|fish")
    assert_clear(here("completion", "tcsh"), 2, "'tcsh' is not one of", "ralph completion --help")
    assert_clear(here("completion", "bash", "zsh"), 2, "unexpected extra argument")


def test_a_reader_that_has_seen_enough() -> None:
    assert in_shell("ralph completion bash | true; echo fine").out == "fine\n"


class Typist:
    """Types into a real shell on a terminal."""

    def __init__(self, shell: str, *arguments: str) -> None:
        env = {**os.environ, "TERM": "dumb", "PS1": "$ "}
        self._shell = pexpect.spawn(
            shell, [*arguments], env=env, encoding="utf-8", timeout=30, dimensions=(40, 200)
        )

    def command(self, line: str) -> None:
        """Type a line, and wait until the shell has done it."""
        self._shell.sendline(f"{line}; echo re''ady")
        self._shell.expect("ready\r\n")

    def completes(self, beginning: str, whole: str) -> None:
        """Press Tab after the beginning, wait for the rest, and clear the line."""
        self._shell.send(f"{beginning}\t")
        self._shell.expect_exact(whole)
        self._shell.send("\x15")

    def leave(self) -> None:
        self._shell.close(force=True)


@pytest.fixture
def bash(on_path: None, workspace: Path) -> Iterator[Typist]:
    typist = Typist("bash", "--norc", "--noprofile", "-i")
    typist.command("bind 'set bell-style none'")
    typist.command('eval "$(ralph completion bash)"')
    yield typist
    typist.leave()


@pytest.fixture
def zsh(on_path: None, workspace: Path) -> Iterator[Typist]:
    typist = Typist("zsh", "-f", "-i")
    typist.command("unsetopt beep; autoload -U compinit; compinit -u -D")
    typist.command('eval "$(ralph completion zsh)"')
    yield typist
    typist.leave()


TYPED = [
    ("ralph comp", "ralph completion "),
    ("ralph run --max-co", "ralph run --max-cost "),
    ("ralph --max-co", "ralph --max-cost "),
    ("ralph -C . expl", "ralph -C . explain "),
    ("ralph completion f", "ralph completion fish "),
    ("ralph run -f PROM", "ralph run -f PROMPT.md "),
    ("ralph run -C docu", "ralph run -C documents/"),
    ("ralph run --agent open", "ralph run --agent opencode "),
]


@needs_bash
def test_bash_completes(bash: Typist, workspace: Path) -> None:
    (workspace / "PROMPT.md").touch()
    (workspace / "documents").mkdir()
    for beginning, whole in TYPED:
        bash.completes(beginning, whole)


@needs_zsh
def test_zsh_completes(zsh: Typist, workspace: Path) -> None:
    (workspace / "PROMPT.md").touch()
    (workspace / "documents").mkdir()
    for beginning, whole in TYPED:
        zsh.completes(beginning, whole)


@needs_fish
@pytest.mark.usefixtures("on_path")
def test_fish_completes(workspace: Path) -> None:
    (workspace / "PROMPT.md").touch()
    (workspace / "documents").mkdir()
    for beginning, whole in TYPED:
        script = f"ralph completion fish | source; complete -C '{beginning}'"
        done = ralph("--no-config", "-c", script, command=("fish",))
        assert done.out.partition("\t")[0].strip() == whole.split()[-1], done


@needs_fish
@pytest.mark.usefixtures("on_path")
def test_fish_shows_the_whole_description(workspace: Path) -> None:
    script = "ralph completion fish | source; complete -C 'ralph expl'"
    done = ralph("--no-config", "-c", script, command=("fish",))
    assert done.out == "explain\tShow the settings in force and the rules, in order.\n"


@pytest.mark.parametrize("command", ["status", "logs", "stop", "pause", "resume"])
def test_a_run_is_completed_where_one_is_asked_for(workspace: Path, command: str) -> None:
    make_run_dir(project_dir(os.environ["RALPH_STATE_DIR"], str(workspace)), "20261114-101010-aaaa")
    assert asked(f"ralph {command} 2026") == ["plain,20261114-101010-aaaa"]
    os.chdir("/")
    assert asked(f"ralph {command} -C {workspace} 2026") == ["plain,20261114-101010-aaaa"]
