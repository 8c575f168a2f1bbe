"""`ralph prd init` and `archive` with the standard library alone, for the plugin's scripts in a
clone where no package is installed."""

import argparse
import os
import shlex
from collections.abc import Mapping
from typing import NoReturn

from ralph.cli.ending import ending, print_anything
from ralph.errors import ConfigError, failing
from ralph.loops.stories import archive as archiving
from ralph.loops.stories import init_folder
from ralph.loops.stories.folder import RALPH_DIR
from ralph.runner.arguments import current_directory

_CLONE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", ".."))
_COMMANDS = {"init": init_folder, "archive": archiving}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message, f"Try: {self.prog} --help")


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Run one of the two, and return the exit code that `ralph prd` has."""
    print_anything()
    last = "error" if "--json" in arguments else ""
    return ending(lambda: _run(arguments, environ), arguments, last)


def _run(arguments: list[str], environ: Mapping[str, str]) -> int:
    command, where = arguments[0] if arguments else "", shlex.quote(_CLONE)
    install = f"Type:  pipx install {where}  (or: python3 -m pip install {where})"
    if command not in _COMMANDS:
        raise ConfigError(f"there is no command {command!r} without ralph", install)
    asked = _parser(command).parse_args(arguments[1:])
    with failing(asked.directory or "the current directory", "Name one that is there: -d DIR"):
        os.chdir(asked.directory if asked.directory is not None else ".")
    in_json: bool = asked.in_json
    if command == "archive":
        said = archiving.archived(asked.ralph_dir, environ, asked.label, in_json=in_json)
    else:
        said = init_folder.initialized(current_directory(), environ, asked.name, in_json=in_json)
        said += "" if in_json else f"\n\nralph itself is not installed yet. {install}"
    print(said, flush=True)
    return 0


def _parser(command: str) -> _Parser:
    what, program = _COMMANDS[command], f"ralph-{command}.sh"
    about, heading, more = what.HELP.partition("Examples:\n")
    parser = _Parser(
        prog=program,
        description=about,
        epilog=f"{heading}{more}".replace(f"ralph prd {command}", program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if command == "init":
        parser.add_argument("--name", metavar="NAME", help=init_folder.NAME_HELP)
    else:
        where = f"Where the stories are.  [default: ./{RALPH_DIR}]"
        parser.add_argument("--ralph-dir", metavar="PATH", default=f"./{RALPH_DIR}", help=where)
        parser.add_argument("--label", metavar="LABEL", help=archiving.LABEL_HELP)
    parser.add_argument(
        "--json", dest="in_json", action="store_true", help="Print one JSON object."
    )
    names, words = ("-C", "-d", "--project-dir"), "Work in DIR instead of the current directory."
    parser.add_argument(*names, dest="directory", metavar="DIR", help=words)
    return parser
