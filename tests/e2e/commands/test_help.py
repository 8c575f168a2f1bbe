"""Help: every command has it, with examples, and the list of commands costs no imports."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from run_support import Here, assert_clear

from ralph.cli import commands
from ralph.cli.commands import SECTIONS
from ralph.cli.commands import ralph as program


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def commands_of(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command, also those of groups within groups."""
    context = click.Context(group)
    found: list[tuple[str, ...]] = [path]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        nested = isinstance(command, click.Group)
        found += commands_of(command, (*path, name)) if nested else [(*path, name)]  # type: ignore[arg-type]
    return found


COMMANDS = commands_of(program)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_ends_with_examples(here: Here, command: tuple[str, ...]) -> None:
    said = here(*command, "--help").out
    heading, _, examples = said.partition("Examples:\n")
    assert heading.startswith(f"Usage: {' '.join(('ralph', *command))}")
    assert examples.strip().startswith(("ralph", "eval")), said
    assert "Options:" in heading


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_short_option_says_the_same(here: Here, command: tuple[str, ...]) -> None:
    short, long = here(*command, "-h"), here(*command, "--help")
    assert (short.code, short.err) == (0, "")
    assert short == long


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_a_terminal_of_80_columns(here: Here, command: tuple[str, ...]) -> None:
    wide = [line for line in here(*command, "--help").out.splitlines() if len(line) > 80]
    # Examples are not wrapped, since people copy them.
    assert [line for line in wide if "ralph " not in line] == []


def test_the_list_names_every_command_once_under_a_heading(here: Here) -> None:
    lines = here("--help").out.splitlines()
    shown = [line.split()[0] for line in lines if line[:2] == "  " and line[2:3].isalpha()]
    for name, (_, words) in commands.COMMANDS.items():
        assert shown.count(name) == 1
        assert any(line.strip().startswith(name) and words[:30] in line for line in lines)
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings[:2] == ["Options:", "Commands:"]
    assert set(headings[2:]) <= {f"{title}:" for title in SECTIONS}


def test_no_command_stands_under_two_headings() -> None:
    placed = [name for names in SECTIONS.values() for name in names]
    assert len(placed) == len(set(placed))


def test_the_list_imports_no_command() -> None:
    """README: `ralph --help` is quick because it imports nothing for the list."""
    modules = sorted({module for module, _ in commands.COMMANDS.values()})
    code = (
        "import sys; from ralph.cli.main import run_command_line as r; r(['--help']); "
        f"print([m for m in {modules} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", [c for c in COMMANDS if c], ids=" ".join)
def test_an_option_that_does_not_exist_is_refused(
    here: Here, workspace: Path, command: tuple[str, ...]
) -> None:
    where = f"Try: {' '.join(('ralph', *command))} --help"
    assert_clear(here(*command, "--nonsense"), 2, "No such option '--nonsense'", where)


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (("run", "--max-cots", "5"), "--max-cost"),
        (("--max-tme=5",), "--max-time"),
        (("explain", "--schem"), "--schema"),
        (("demo", "--jsno"), "--json"),
    ],
)
def test_a_slip_of_the_finger_is_told_the_near_option(
    here: Here, workspace: Path, arguments: tuple[str, ...], near: str
) -> None:
    assert_clear(here(*arguments), 2, "Did you mean", near)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c], ids=" ".join)
def test_help_says_default_and_unit(command: tuple[str, ...]) -> None:
    """ "Every `--help` says default and unit in plain words"."""
    found: click.Command = program
    for name in command:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), name)
        assert inner is not None
        found = inner
    silent = []
    for option in found.params:
        if not isinstance(option, click.Option) or option.metavar not in ("N", "DURATION", "USD"):
            continue
        record = option.get_help_record(click.Context(found))
        if record and "[default:" not in record[1] and "estimate" not in record[0]:
            silent.append(record)
    assert silent == []
