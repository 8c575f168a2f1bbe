"""`ralph prd init` and `archive` by the standard library alone: what the plugin's scripts call in a
clone where no package is installed."""

import argparse
import os
import shlex
from collections.abc import Mapping
from typing import NoReturn

from ralph.cli.ending import ending, print_anything
from ralph.errors import ConfigError
from ralph.loops.stories import archive_folder, init_folder
from ralph.loops.stories.folder import RALPH_DIR
from ralph.runner.arguments import current_directory

_CLONE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", ".."))
_COMMANDS = {"init": init_folder, "archive": archive_folder}


class _Parser(argparse.ArgumentParser):
    """One whose errors are told as all others are."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message, f"Try: {self.prog} --help")


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Run one of the two; the exit code, as `ralph prd` has it."""
    print_anything()
    last = "error" if "--json" in arguments else ""
    return ending(lambda: _run(arguments, environ), arguments, last)


def _run(arguments: list[str], environ: Mapping[str, str]) -> int:
    command = arguments[0] if arguments else ""
    if command not in _COMMANDS:
        raise ConfigError(f"there is no command {command!r} without ralph", _install())
    asked = _parser(command).parse_args(arguments[1:])
    _enter(asked.directory)
    print(_work(command, asked, environ), flush=True)
    return 0


def _work(command: str, asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    if command == "archive":
        return archive_folder.archived(asked.ralph_dir, environ, asked.label, in_json=asked.in_json)
    project = current_directory()
    said = init_folder.initialized(project, environ, asked.name, in_json=asked.in_json)
    return said if asked.in_json else f"{said}\n\nralph itself is not installed yet. {_install()}"


def _install() -> str:
    where = shlex.quote(_CLONE)
    return f"Type:  pipx install {where}  (or: python3 -m pip install {where})"


def _parser(command: str) -> _Parser:
    what, program = _COMMANDS[command], f"ralph-{command}.sh"
    parser = _Parser(
        prog=program,
        description=what.ABOUT,
        epilog=_epilog(what.EPILOG).replace(f"ralph prd {command}", program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if command == "init":
        parser.add_argument("--name", metavar="NAME", help=init_folder.NAME_HELP)
    else:
        where = f"Where the stories are.  [default: ./{RALPH_DIR}]"
        parser.add_argument("--ralph-dir", metavar="PATH", default=f"./{RALPH_DIR}", help=where)
        parser.add_argument("--label", metavar="LABEL", help=archive_folder.LABEL_HELP)
    parser.add_argument(
        "--json", dest="in_json", action="store_true", help="Print one JSON object."
    )
    names, words = ("-C", "-d", "--project-dir"), "Work in DIR instead of the current directory."
    parser.add_argument(*names, dest="directory", metavar="DIR", help=words)
    return parser


def _epilog(text: str) -> str:
    """Without the signs by which click knows what not to wrap."""
    return text.replace("\n\b\n", "\n\n").replace("\b\n", "")


def _enter(directory: str | None) -> None:
    try:
        os.chdir(directory if directory is not None else ".")
    except OSError as error:
        message = f"{directory or 'the current directory'}: {error.strerror}"
        raise ConfigError(message, "Name one that is there: -d DIR") from error
