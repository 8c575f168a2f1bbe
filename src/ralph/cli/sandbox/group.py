"""`ralph sandbox`: probes this machine, and runs a command whose changes can be undone (B)."""

import json
import os
import shutil
import sys
from typing import Any

import click

from ralph.cli.base import Command, Group
from ralph.cli.params import (
    completed_by,
    current_directory,
    in_directory,
    option,
    passed_on,
    shown_credentials,
    the_usual,
    together,
)
from ralph.cli.sandbox.kept import diff, discard, keep, list_kept
from ralph.cli.sandbox.visit import Visit, Wish, policy_of
from ralph.files.state_dir import state_root
from ralph.kernel.value import replace
from ralph.processes.interpreters import LANGUAGES
from ralph.processes.signals import ending_by
from ralph.sandbox.interface import Network
from ralph.sandbox.names import BACKENDS
from ralph.ui.style import Tone, style_here

_FATES = ("safe", "all")  # what --keep applies
_UNNAMED = "try"  # the name of a sandbox that was given none


def _wanted(network: str) -> Network:
    from ralph.sandbox.network import network_of

    try:
        return network_of(network)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_place = together(
    option(
        "--backend NAME",
        "overlay, srt, sbx, docker, worktree or direct.  [default: the first usable of overlay, "
        "srt and worktree]",
        type=click.Choice([*BACKENDS, "auto"]),
        default="auto",
        show_default=False,
    ),
    option(
        "--network off|on|HOST,...",
        "Whom the command may call: nobody, everybody, or these hosts: NAME, NAME:PORT, *.DOMAIN; "
        "localhost:PORT is that port of this machine.  [default: off, nobody]",
        type=_wanted,
    ),
    shown_credentials,
)
_fate = together(
    option(
        "--keep [=all]",
        "Keep the changes; with =all also those that are held for review.",
        is_flag=False,
        flag_value=_FATES[0],
        type=click.Choice(_FATES),
    ),
    option("--discard", "Throw the changes away."),
)
_name = option(
    "--name NAME",
    "Leave the changes in a sandbox of this name, and go on in it if there is one.",
    shell_complete=completed_by("sandbox_names"),
)
_json = option("--json", "Print one JSON object at the end.", "in_json")


@click.group(cls=Group)
@in_directory
def sandbox() -> None:
    """Run a command so that what it changes can be seen, kept or undone.

    A sandbox can do three things: contain (the command cannot touch anything but the project),
    rollback (what it did to the project can be undone) and egress (whom it may call).

    Examples:
      ralph sandbox probe                    what this machine can do
      ralph sandbox run -- make clean all    then look at what changed, and decide
    """


@sandbox.command()
@the_usual
def probe(*, in_json: bool) -> int:
    """Try every sandbox for real, and say what each can do here.

    A file is written in it, looked for in its layer, and must not be in the project; a call to this
    machine must fail.

    Examples:
      ralph sandbox probe
      ralph sandbox probe --json | jq -r .chosen

    Exit codes: 0 one is usable, 1 none is.
    """
    from ralph.sandbox.backends.overlay import LAUNCHER
    from ralph.sandbox.catalog import chosen, probe_all

    found = probe_all(current_directory(), policy_of(dict(os.environ)))
    LAUNCHER.close()
    name = chosen(found)
    if in_json:
        told = ("usable", "contain", "rollback", "egress", "why")
        rows = [{"name": one.name, **{k: getattr(one.can, k) for k in told}} for one in found]
        print(json.dumps({"chosen": name, "backends": rows}, indent=2))
    else:
        style = style_here()
        for one in found:
            usable = one.can.usable
            mark = style.paint(
                f"{'' if usable else 'not '}usable".ljust(10), Tone.GOOD if usable else Tone.FAINT
            )
            can = [word for word in ("contain", "rollback", "egress") if getattr(one.can, word)]
            print(f"{one.name:<9} {mark}  {' '.join(can) or '-':<23}  {one.can.why}")
        print(f"Chosen: {name}" if name else "None is usable: see the reasons above.")
    return 0 if name else 1


class _Kept(Command):
    """A command in which `--keep` takes what follows for its value only if it is one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args.index("--") if "--" in args else len(args)
        for at in range(own):
            if args[at] == "--keep" and args[at + 1 : at + 2] not in ([fate] for fate in _FATES):
                args[at] = f"--keep={_FATES[0]}"
        return super().parse_args(ctx, args)


@sandbox.command(cls=_Kept, context_settings={"allow_interspersed_args": False})
@passed_on
@_place
@_fate
@_name
@_json
@in_directory
def run(command: tuple[str, ...], **flags: Any) -> int:  # noqa: ANN401  for one function
    """Run a command in a sandbox over this directory, show what it changed, and ask.

    Without a terminal and without --keep or --discard nothing is applied. With --name the changes
    stay in a sandbox that you can come back to: see ralph sandbox shell. What somebody else
    changed meanwhile is never overwritten. Git hooks and configuration, settings of Claude Code and
    Ralph, CI files and links out of the project are held for review.

    Examples:
      ralph sandbox run -- make clean all
      ralph sandbox run --discard -- sh -c 'rm -rf *; ls'
      ralph sandbox run --keep --network pypi.org,files.pythonhosted.org -- \\
          .venv/bin/pip install requests
      ralph sandbox run --network localhost:8080 -- curl -s http://localhost:8080/
      ralph sandbox run --json --discard -- make test
      ralph sandbox run --name upgrade -- npm update    then: ralph sandbox diff upgrade

    Exit codes: the command's own (128 + n for signal n); 127 it was not found,
    126 it cannot be executed, 2 nothing was run, 130 interrupted.
    """
    return _visited(Wish(command), flags)


@sandbox.command("eval", cls=_Kept)
@click.argument("code", metavar="CODE|-")
@option(
    "-l, --language [python|typescript]",
    "The language; TypeScript takes node 22.6 or newer, deno or bun.",
    default=LANGUAGES[0],
)
@_place
@_fate
@_name
@_json
@in_directory
def evaluate(code: str, *, language: str, **flags: Any) -> int:  # noqa: ANN401  for one function
    """Run code in a sandbox, show what it changed, and ask.

    It runs in a fresh interpreter in this directory, as by `ralph sandbox run`. Python is that of
    the project's .venv, else python3. Imports begin in this directory.

    Examples:
      ralph sandbox eval --discard 'import json; print(json.load(open("package.json"))["name"])'
      ralph sandbox eval -l typescript --discard 'import {x} from "./src/x.ts"; console.log(x)'
      ralph sandbox eval --name tidy - < tidy.py

    Exit codes: those of `ralph sandbox run`; 2 when nothing runs that language.
    """
    if code == "-":
        code = sys.stdin.read() if sys.stdin is not None else ""
    return _visited(Wish(code=code, language=language), flags)


@sandbox.command()
@click.argument("name", required=False, shell_complete=completed_by("sandbox_names"))
@option("-c, --command TEXT", "Run this by the shell instead of what is typed.", "line")
@_place
@_json
@in_directory
def shell(name: str | None, *, line: str | None, **flags: Any) -> int:  # noqa: ANN401  for one function
    """Open a shell in a sandbox that stays, and go on in it later.

    The project is not touched: at the end the changes stay in the sandbox NAME until you apply them
    by `ralph sandbox keep`, or undo them by `ralph sandbox discard`. Without a name it is the only
    one there is, or a new one called try. One that has nothing different is removed. Who goes on
    has the backend and the network of before, unless --network says otherwise.

    Examples:
      ralph sandbox shell                      try something
      ralph sandbox shell upgrade --network pypi.org,files.pythonhosted.org
      ralph sandbox shell upgrade -c 'make test'
      ralph sandbox diff upgrade && ralph sandbox keep upgrade

    Exit codes: those of `ralph sandbox run`; 2 also when somebody else is in it.
    """
    from ralph.sandbox import kept

    there = kept.all_of(state_root(os.environ), current_directory())
    if name is None:
        name = kept.find(state_root(os.environ), current_directory()).name if there else _UNNAMED
    words = (_shell(), *(("-c", line) if line is not None else ()))
    return _visited(Wish(words, is_shell=line is None), {**flags, "name": name})


def _shell() -> str:
    """The user's own shell, where it is one that a sandbox has."""
    own = os.environ.get("SHELL", "")
    return own if os.path.isabs(own) and os.access(own, os.X_OK) else shutil.which("bash") or "sh"


def _visited(wish: Wish, flags: dict[str, Any]) -> int:
    kept, thrown, name = (flags.get(key) for key in ("keep", "discard", "name"))
    if kept and thrown:
        raise click.UsageError("--keep and --discard exclude each other.")
    if name is not None and (kept or thrown):
        words = "--name leaves the changes in the sandbox: leave out --keep and --discard."
        raise click.UsageError(words)
    asked = replace(
        wish,
        fate=kept or ("discard" if thrown else ""),
        name=name,
        backend=flags["backend"],
        network=flags["network"],
        show=tuple(flags["sandbox_show"] or ()),
        in_json=flags["in_json"],
    )
    visit = Visit(asked, dict(os.environ))
    with ending_by(lambda number, _: visit.asked.append(number)):
        return visit.run()


for _each in (list_kept, diff, keep, discard):
    sandbox.add_command(_each)
