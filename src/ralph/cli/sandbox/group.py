"""`ralph sandbox`: what this machine can do, and a command whose changes can be undone (B)."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from ralph.cli.params import current_directory, in_directory, shown_credentials
from ralph.cli.sandbox import question, terminal
from ralph.cli.sandbox.lines import (
    change_lines,
    kept_lines,
    probe_lines,
    refused_lines,
    shown,
)
from ralph.errors import ConfigError, StateError
from ralph.files.state_dir import state_root
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut, Reason
from ralph.processes.child import Exit
from ralph.processes.signals import ending_signals
from ralph.sandbox.backends.base import Sandbox
from ralph.sandbox.interface import OFF, ON, Change, CommitResult, Network, SandboxPolicy
from ralph.sandbox.names import BACKENDS
from ralph.ui.safe_stream import Channel
from ralph.ui.terminal import style_here

_GRACE = 5.0
_NOT_FOUND, _NOT_EXECUTABLE, _BY_SIGNAL = 127, 126, 128
_INTERRUPTED, _CONFIG = Reason.INTERRUPTED.exit_code, Reason.CONFIG.exit_code
_NOT_KEPT = {
    "discard": "Discarded.",
    "interrupted": "Interrupted: nothing is kept.",
    "": "Nothing is kept: say --keep or --discard.",
}


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  ralph sandbox probe                    what this machine can do
  ralph sandbox run -- make clean all    then look at what changed, and decide
""",
)
@click.pass_context
@in_directory
def sandbox(context: click.Context) -> None:
    """Run a command so that what it changes can be seen, kept or undone.

    A sandbox can do three things: contain (the command cannot touch anything but the project),
    rollback (what it did to the project can be undone) and egress (whom it may call).
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(Reason.CONFIG.exit_code)


@sandbox.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  ralph sandbox probe
  ralph sandbox probe --json | jq -r .chosen
\b
Exit codes: 0 one is usable, 1 none is.
""",
)
@click.option("--json", "in_json", is_flag=True, help="Print one JSON object.")
@in_directory
def probe(*, in_json: bool) -> int:
    """Try every sandbox for real, and say what each can do here.

    A file is written in it, looked for in its layer, and must not be in the project; a call to this
    machine must fail.
    """
    from ralph.sandbox.backends.overlay import LAUNCHER
    from ralph.sandbox.catalog import chosen, probe_all

    environ = dict(os.environ)
    policy = _policy(environ)
    found = probe_all(current_directory(), policy)
    LAUNCHER.close()
    name = chosen(found)
    if in_json:
        rows = [{"name": one.name, **_row(one.can)} for one in found]
        print(json.dumps({"chosen": name, "backends": rows}, indent=2))
    else:
        print(*probe_lines(found, name, style_here()), sep="\n")
    return 0 if name else 1


def _row(can: object) -> dict[str, object]:
    return {k: getattr(can, k) for k in ("usable", "contain", "rollback", "egress", "why")}


@sandbox.command(
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
    epilog="""\b
Examples:
  ralph sandbox run -- make clean all
  ralph sandbox run --discard -- sh -c 'rm -rf *; ls'
  ralph sandbox run --keep --network pypi.org,files.pythonhosted.org -- \\
      .venv/bin/pip install requests
  ralph sandbox run --network localhost:8080 -- curl -s http://localhost:8080/
  ralph sandbox run --json --discard -- make test
\b
Exit codes: the command's own (128 + n for signal n); 127 it was not found,
126 it cannot be executed, 2 nothing was run, 130 interrupted.
""",
)
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
@click.option(
    "--backend",
    metavar="NAME",
    type=click.Choice([*BACKENDS, "auto"]),
    default="auto",
    help="overlay, srt, sbx, docker, worktree or direct. Default: the first usable of overlay, "
    "srt and worktree.",
)
@click.option(
    "--network",
    metavar="off|on|HOST,...",
    help="Whom the command may call: nobody (default), everybody, or these hosts: NAME, "
    "NAME:PORT, *.DOMAIN; localhost:PORT is that port of this machine.",
)
@click.option(
    "--keep",
    is_flag=False,
    flag_value="safe",
    metavar="[=all]",
    type=click.Choice(["safe", "all"]),
    help="Keep the changes; with =all also those that are held for review.",
)
@click.option("--discard", is_flag=True, help="Throw the changes away.")
@shown_credentials
@click.option("--json", "in_json", is_flag=True, help="Print one JSON object at the end.")
@in_directory
def run(
    command: tuple[str, ...],
    *,
    backend: str,
    network: str | None,
    keep: str | None,
    discard: bool,
    sandbox_show: list[str] | None,
    in_json: bool,
) -> int:
    """Run a command in a sandbox over this directory, show what it changed, and ask.

    Without a terminal and without --keep or --discard nothing is applied. What somebody else
    changed meanwhile is never overwritten. Git hooks and configuration, settings of Claude Code and
    Ralph, CI files and links out of the project are held for review.
    """
    if keep and discard:
        raise click.UsageError("--keep and --discard exclude each other.")
    fate = keep or ("" if not discard else "discard")
    wish = _Wish(command, fate, tuple(sandbox_show or ()), in_json=in_json)
    with _signals() as asked:
        return _Visit(wish, asked, dict(os.environ)).run(backend, network)


@value
class _Wish:
    command: tuple[str, ...]
    fate: str  # of the changes: safe, all, discard, or "" to ask
    show: tuple[str, ...]
    in_json: bool


class _Visit:
    """One command in one sandbox."""

    def __init__(self, wish: _Wish, asked: list[int], environ: dict[str, str]) -> None:
        self._wish = wish
        self._asked = asked  # the signals that came
        self._environ = environ
        self._interrupted = False  # the command, or the person that was to decide
        # Whatever becomes of what we say, changes are kept.
        self._people = Channel(sys.stderr, lambda _: None)

    def run(self, backend: str, network: str | None) -> int:
        """Open, run, show, decide; the command's exit code."""
        from ralph.runner.sandboxing import HIDING, hidden_words
        from ralph.sandbox import catalog
        from ralph.sandbox import policy as plan
        from ralph.sandbox.backends import overlay
        from ralph.sandbox.changes import landing
        from ralph.sandbox.credentials import secrets_of

        project = current_directory()
        policy = _policy(self._environ)
        wanted = None if network is None else _wanted(network)
        plan.refuse_within(policy.state, project)
        name = catalog.usable("auto", project, policy).name if backend == "auto" else backend
        self._check(name)
        programs = self._wish.command[:1]
        secrets = secrets_of([("text", self._environ)], self._wish.show)
        policy = replace(
            policy,
            network=_network(name, wanted),
            programs=programs,
            secret=secrets.hidden,
            visible=secrets.shown,
        )
        for finished in landing.recover(project, policy.state):
            self._say("An earlier sandbox was killed while it was kept; that is finished now:")
            self._say(*kept_lines(finished))
        try:
            with catalog.backend(name).open(project, policy) as box:
                hides = hidden_words(secrets, project, self._environ) if name in HIDING else ""
                self._say(_headline(name, policy.network, hides), *_shortcoming(box))
                code, started = self._carried_out(box)
                refused = box.refused()
                self._say(*refused_lines(refused, policy.network))
                changes = box.changes() if started else ()
                kept = self._decide(box, changes) if started else None
        finally:
            overlay.LAUNCHER.close()
        code = _INTERRUPTED if self._interrupted and code < _BY_SIGNAL else code
        told = _told(name, policy.network, code, refused=refused, changes=changes, kept=kept)
        return self._tell(told, code) if self._wish.in_json else code

    def _check(self, name: str) -> None:
        if name in _IN_PLACE and self._wish.fate not in ("safe", "all"):
            raise ConfigError(
                f"{name} works in place: what the command does cannot be undone",
                "Say that you want that: --keep",
            )

    def _carried_out(self, box: Sandbox) -> tuple[int, bool]:
        """The command's exit code, and whether it could be started at all."""
        program = self._wish.command[0]
        try:
            ended = self._ended(box)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            why = f"not found in the sandbox{_where_it_is(program)}" if missing else error.strerror
            self._say(f"{shown(program) or repr('')}: {why}")
            return _NOT_FOUND if missing else _NOT_EXECUTABLE, False
        self._interrupted = ended.cut is not None and ended.cut.why == terminal.INTERRUPTED
        if ended.cut is not None and not self._interrupted:
            self._say(ended.cut.why)
        return _INTERRUPTED if self._asked else ended.code, True

    def _ended(self, box: Sandbox) -> Exit:
        argv = self._wish.command
        if not argv[0]:
            raise FileNotFoundError
        if self._wish.in_json or not terminal.is_possible():
            return box.attach(argv, 0, 2 if self._wish.in_json else 1, 2).wait(self._cut)
        return terminal.carried_out(box, argv, self._cut)

    def _cut(self) -> Cut | None:
        """The first signal asks the command to end, the second makes haste."""
        grace = _GRACE if len(self._asked) == 1 else 0.0
        return Cut(terminal.INTERRUPTED, grace) if self._asked else None

    def _decide(self, box: Sandbox, changes: tuple[Change, ...]) -> CommitResult | None:
        """What becomes of the changes; None: nothing was applied."""
        if not changes:
            self._say("Nothing was changed.")
            return None
        self._say(*change_lines(changes))
        fate = self._fate(box, changes)
        if fate in ("safe", "all"):
            kept = self._committed(box, everything=fate == "all")
            self._say(*kept_lines(kept))
            return kept
        self._say(_NOT_KEPT[fate])
        return None

    def _fate(self, box: Sandbox, changes: tuple[Change, ...]) -> str:
        """What was wished for, or what a person at the terminal wants; "" without one."""
        fate = self._wish.fate
        if not fate and not (self._asked or self._interrupted):
            fate = question.asked(box, changes)
        self._interrupted = self._interrupted or bool(self._asked) or fate == "interrupted"
        return "interrupted" if self._interrupted else fate

    def _committed(self, box: Sandbox, *, everything: bool) -> CommitResult:

        try:
            return box.commit(everything=everything)
        except OSError as error:
            rescued = box.rescue()
            state = shown(state_root(self._environ))
            raise StateError(
                f"the changes could not be kept: {error.strerror} (in {state})",
                f"{rescued}\nMake room there, or name another place: export RALPH_STATE_DIR=DIR",
            ) from error

    def _tell(self, told: dict[str, object], code: int) -> int:
        """All of it, for programs; the exit code, which is an error where a disk is full."""
        lost: list[str] = []
        Channel(sys.stdout, lost.append).write([json.dumps(told)])
        for why in lost:
            self._say(f"stdout {why}")
        return code or _CONFIG if lost and "closed" not in lost[0] else code

    def _say(self, *lines: str) -> None:
        self._people.write([f"[ralph] {line}" for line in lines])


def _told(
    name: str,
    network: Network,
    code: int,
    *,
    refused: tuple[str, ...],
    changes: tuple[Change, ...],
    kept: CommitResult | None,
) -> dict[str, object]:
    done = kept or CommitResult()
    lists = {k: getattr(done, k) for k in ("held", "changed", "failed")}
    return {
        "backend": name,
        "network": str(network),
        "refused": list(refused),
        "exit_code": code,
        "kept": kept is not None,
        "changes": [{"path": c.path, "kind": c.kind, "entry": c.entry} for c in changes],
        "applied": list(done.applied),
        **{k: [{"path": s.path, "why": s.why} for s in v] for k, v in lists.items()},
        "saved": done.saved,
    }


def _policy(environ: dict[str, str]) -> SandboxPolicy:
    """As a person's command needs it: caches and settings at home can be written, for the time."""
    return SandboxPolicy(environ, state_root(environ), home=environ.get("HOME", ""))


def _where_it_is(program: str) -> str:
    """Where a program is that a sandbox does not show, and what to do; "" if it is nowhere."""
    from ralph.sandbox.tools import is_hidden

    if not is_hidden(os.path.realpath(program)) or not os.path.exists(program):
        return ""
    return ", where temporary directories and Ralph's state are hidden: put it into the project"


def _wanted(network: str) -> Network:
    from ralph.sandbox.network import network_of

    try:
        return network_of(network)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--network'") from None


def _network(name: str, wanted: Network | None) -> Network:
    """What was asked for, if the backend can see to it."""
    if name not in _ON_THE_NETWORK:
        return wanted or OFF
    if wanted not in (None, ON):
        raise ConfigError(
            f"{name} cannot keep a command off the network",
            "Use overlay, or say that it may call everybody: --network on",
        )
    return ON


_IN_PLACE = ("docker", "direct")
_ON_THE_NETWORK = ("worktree", "direct")


def _headline(name: str, network: Network, hides: str) -> str:
    said = {
        "worktree": ", which undoes but does not contain",
        "docker": ", which contains but works in place",
        "direct": ", in place",
    }
    hidden = f"; hidden: {hides}" if hides else ""
    return f"Sandbox: {name}{said.get(name, '')}; network {network}{hidden}"


def _shortcoming(box: Sandbox) -> tuple[str, ...]:
    lacks = box.capabilities.lacks
    return (f"{lacks[0].upper()}{lacks[1:]}.",) if lacks else ()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Count what would end us while the command runs."""
    asked: list[int] = []
    numbers = ending_signals()
    before = [signal.signal(n, lambda number, _: asked.append(number)) for n in numbers]
    try:
        yield asked
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
