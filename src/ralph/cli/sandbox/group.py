"""`ralph sandbox`: probes this machine, and runs a command whose changes can be undone (B)."""

import json
import os
import sys
from collections.abc import Iterator

import click

from ralph.cli.base import Group
from ralph.cli.params import (
    current_directory,
    in_directory,
    option,
    passed_on,
    shown_credentials,
    the_usual,
)
from ralph.cli.sandbox import terminal
from ralph.errors import ConfigError, StateError
from ralph.files.state_dir import state_root
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut, Reason
from ralph.processes.signals import ending_by
from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.interface import (
    OFF,
    Change,
    ChangeKind,
    CommitResult,
    FileType,
    Network,
    SandboxPolicy,
)
from ralph.sandbox.names import BACKENDS
from ralph.text.plain import escaped
from ralph.text.words import counted
from ralph.ui.safe_stream import Channel
from ralph.ui.style import Tone, style_here

_GRACE = 5.0
_MOST = 40  # changes that are listed one by one
_WIDTH = max(map(len, ChangeKind))
_IN_PLACE, _ON_THE_NETWORK = ("docker", "direct"), ("worktree", "direct")
_NOT_FOUND, _NOT_EXECUTABLE, _BY_SIGNAL = 127, 126, 128
_INTERRUPTED, _CONFIG = Reason.INTERRUPTED.exit_code, Reason.CONFIG.exit_code
_NOT_KEPT = {
    "discard": "Discarded.",
    "interrupted": "Interrupted: nothing is kept.",
    "": "Nothing is kept: say --keep or --discard.",
}


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

    found = probe_all(current_directory(), _policy(dict(os.environ)))
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


def _wanted(network: str) -> Network:
    from ralph.sandbox.network import network_of

    try:
        return network_of(network)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@sandbox.command(context_settings={"allow_interspersed_args": False})
@passed_on
@option(
    "--backend NAME",
    "overlay, srt, sbx, docker, worktree or direct.  [default: the first usable of overlay, srt "
    "and worktree]",
    type=click.Choice([*BACKENDS, "auto"]),
    default="auto",
    show_default=False,
)
@option(
    "--network off|on|HOST,...",
    "Whom the command may call: nobody, everybody, or these hosts: NAME, NAME:PORT, *.DOMAIN; "
    "localhost:PORT is that port of this machine.  [default: off, nobody]",
    type=_wanted,
)
@option(
    "--keep [=all]",
    "Keep the changes; with =all also those that are held for review.",
    is_flag=False,
    flag_value="safe",
    type=click.Choice(["safe", "all"]),
)
@option("--discard", "Throw the changes away.")
@shown_credentials
@option("--json", "Print one JSON object at the end.", "in_json")
@in_directory
def run(
    command: tuple[str, ...],
    *,
    backend: str,
    network: Network | None,
    keep: str | None,
    discard: bool,
    sandbox_show: list[str] | None,
    in_json: bool,
) -> int:
    """Run a command in a sandbox over this directory, show what it changed, and ask.

    Without a terminal and without --keep or --discard nothing is applied. What somebody else
    changed meanwhile is never overwritten. Git hooks and configuration, settings of Claude Code and
    Ralph, CI files and links out of the project are held for review.

    Examples:
      ralph sandbox run -- make clean all
      ralph sandbox run --discard -- sh -c 'rm -rf *; ls'
      ralph sandbox run --keep --network pypi.org,files.pythonhosted.org -- \\
          .venv/bin/pip install requests
      ralph sandbox run --network localhost:8080 -- curl -s http://localhost:8080/
      ralph sandbox run --json --discard -- make test

    Exit codes: the command's own (128 + n for signal n); 127 it was not found,
    126 it cannot be executed, 2 nothing was run, 130 interrupted.
    """
    if keep and discard:
        raise click.UsageError("--keep and --discard exclude each other.")
    fate = keep or ("discard" if discard else "")
    visit = _Visit(command, fate, dict(os.environ), in_json=in_json)
    with ending_by(lambda number, _: visit.asked.append(number)):
        return visit.run(backend, network, tuple(sandbox_show or ()))


class _Visit:
    """One command in one sandbox. `fate` of the changes: safe, all, discard, or "" to ask."""

    def __init__(
        self, command: tuple[str, ...], fate: str, environ: dict[str, str], *, in_json: bool
    ) -> None:
        self.asked: list[int] = []  # the signals that came
        self._command = command
        self._fate = fate
        self._environ = environ
        self._in_json = in_json
        self._interrupted = False  # the command, or the person that was to decide
        self._people = Channel(sys.stderr)  # whatever becomes of what we say, changes are kept

    def run(self, backend: str, wanted: Network | None, show: tuple[str, ...]) -> int:
        """Open, run, show, decide; the command's exit code."""
        from ralph.runner.sandboxing import HIDING, hidden_words
        from ralph.sandbox import catalog
        from ralph.sandbox import policy as plan
        from ralph.sandbox.backends import overlay
        from ralph.sandbox.changes import landing
        from ralph.sandbox.credentials import secrets_of
        from ralph.sandbox.network import on_the_network

        project = current_directory()
        policy = _policy(self._environ)
        plan.refuse_within(policy.state, project)
        name = catalog.usable("auto", project, policy).name if backend == "auto" else backend
        if name in _IN_PLACE and self._fate not in ("safe", "all"):
            message = f"{name} works in place: what the command does cannot be undone"
            raise ConfigError(message, "Say that you want that: --keep")
        secrets = secrets_of([("text", self._environ)], show)
        network = wanted or OFF
        if name in _ON_THE_NETWORK:
            network = on_the_network(name, wanted, "a command")
        policy = replace(
            policy,
            network=network,
            programs=self._command[:1],
            secret=secrets.hidden,
            visible=secrets.shown,
        )
        for finished in landing.recover(project, policy.state):
            self._say("An earlier sandbox was killed while it was kept; that is finished now:")
            self._say(*_kept_lines(finished))
        try:
            with catalog.backend(name).open(project, policy) as box:
                hides = hidden_words(secrets, project, self._environ) if name in HIDING else ""
                self._say(_headline(name, policy.network, hides))
                if lacks := box.capabilities.lacks:
                    self._say(f"{lacks[0].upper()}{lacks[1:]}.")
                code, started = self._carried_out(box)
                refused = box.refused()
                self._say(*_refused_lines(refused, policy.network))
                changes = box.changes() if started else ()
                kept = self._decide(box, changes) if started else None
        finally:
            overlay.LAUNCHER.close()
        code = _INTERRUPTED if self._interrupted and code < _BY_SIGNAL else code
        if not self._in_json:
            return code
        told = {"backend": name, "network": str(policy.network), "refused": refused}
        return self._tell({**told, "exit_code": code}, code, changes, kept)

    def _tell(
        self,
        told: dict[str, object],
        code: int,
        changes: tuple[Change, ...],
        kept: CommitResult | None,
    ) -> int:
        """All of it, for programs; the exit code, which is an error where a disk is full."""
        done = kept or CommitResult()
        lists = {k: getattr(done, k) for k in ("held", "changed", "failed")}
        told = {
            **told,
            "kept": kept is not None,
            "changes": [{"path": c.path, "kind": c.kind, "entry": c.entry} for c in changes],
            "applied": list(done.applied),
            **{k: [{"path": s.path, "why": s.why} for s in v] for k, v in lists.items()},
            "saved": done.saved,
        }
        lost: list[str] = []
        Channel(sys.stdout, lost.append).write([json.dumps(told)])
        for why in lost:
            self._say(f"stdout {why}")
        return code or _CONFIG if lost and "closed" not in lost[0] else code

    def _carried_out(self, box: OpenSandbox) -> tuple[int, bool]:
        """The command's exit code, and False if it could not be started at all."""
        program = self._command[0]
        try:
            if not program:
                raise FileNotFoundError
            if self._in_json or not terminal.is_possible():
                out = 2 if self._in_json else 1
                ended = box.attach(self._command, 0, out, 2).wait(self._cut)
            else:
                ended = terminal.carried_out(box, self._command, self._cut)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            why = f"not found in the sandbox{_where_it_is(program)}" if missing else error.strerror
            self._say(f"{escaped(program) or repr('')}: {why}")
            return _NOT_FOUND if missing else _NOT_EXECUTABLE, False
        self._interrupted = ended.cut is not None and ended.cut.why == terminal.INTERRUPTED
        if ended.cut is not None and not self._interrupted:
            self._say(ended.cut.why)
        return _INTERRUPTED if self.asked else ended.code, True

    def _cut(self) -> Cut | None:
        """The first signal asks the command to end, the second makes haste."""
        grace = _GRACE if len(self.asked) == 1 else 0.0
        return Cut(terminal.INTERRUPTED, grace) if self.asked else None

    def _decide(self, box: OpenSandbox, changes: tuple[Change, ...]) -> CommitResult | None:
        """Keep the changes as wished, or as the user at the terminal wants; None: none applied."""
        if not changes:
            self._say("Nothing was changed.")
            return None
        self._say(*_change_lines(changes))
        fate = self._fate
        if not fate and not (self.asked or self._interrupted):
            fate = terminal.asked(box, changes)
        self._interrupted = self._interrupted or bool(self.asked) or fate == "interrupted"
        if self._interrupted or fate not in ("safe", "all"):
            self._say(_NOT_KEPT["interrupted" if self._interrupted else fate])
            return None
        try:
            kept = box.commit(everything=fate == "all")
        except OSError as error:
            rescued = box.rescue()
            state = escaped(state_root(self._environ))
            raise StateError(
                f"the changes could not be kept: {error.strerror} (in {state})",
                f"{rescued}\nMake room there, or name another place: export RALPH_STATE_DIR=DIR",
            ) from error
        self._say(*_kept_lines(kept))
        return kept

    def _say(self, *lines: str) -> None:
        self._people.write([f"[ralph] {line}" for line in lines])


def _policy(environ: dict[str, str]) -> SandboxPolicy:
    """The policy of a user's own command: it can write caches and settings at home."""
    return SandboxPolicy(environ, state_root(environ), home=environ.get("HOME", ""))


def _where_it_is(program: str) -> str:
    """The place of a program that a sandbox does not show, and what to do; "" if it is nowhere."""
    from ralph.sandbox.tools import is_hidden

    if not is_hidden(os.path.realpath(program)) or not os.path.exists(program):
        return ""
    return ", where temporary directories and Ralph's state are hidden: put it into the project"


def _headline(name: str, network: Network, hides: str) -> str:
    said = {
        "worktree": ", which undoes but does not contain",
        "docker": ", which contains but works in place",
        "direct": ", in place",
    }
    hidden = f"; hidden: {hides}" if hides else ""
    return f"Sandbox: {name}{said.get(name, '')}; network {network}{hidden}"


def _change_lines(changes: tuple[Change, ...]) -> Iterator[str]:
    """A heading, then one line a change; of git's own files only their number."""
    yield f"{counted(len(changes), 'change')}:"
    # Of git's own only hooks and configuration are worth a line: not objects, index, refs.
    own = (".git/hooks", ".git/config")
    ours = [c for c in changes if not c.path.startswith(".git/") or c.path.startswith(own)]
    for change in ours[:_MOST]:
        slash = "/" if change.entry is FileType.DIRECTORY else ""
        yield f"  {change.kind:<{_WIDTH}}  {escaped(change.path)}{slash}"
    if len(ours) > _MOST:
        yield f"  ... and {len(ours) - _MOST} more"
    if gits := len(changes) - len(ours):
        yield f"  {counted(gits, 'change')} in .git"


def _kept_lines(kept: CommitResult) -> Iterator[str]:
    """The number of changes that were applied, and those that were not, with the reason."""
    yield f"Kept {counted(len(kept.applied), 'change')}."
    for heading, spared in (
        ("Not overwritten, since somebody changed it meanwhile", kept.changed),
        ("Held for review (--keep=all applies it)", kept.held),
        ("Could not be applied", kept.failed),
    ):
        if spared:
            yield f"{heading}:"
        for one in spared:  # all of them: what is not named here is taken for applied
            yield f"  {escaped(one.path)}: {one.why}"
    if kept.saved:
        yield f"What was not applied is in {escaped(kept.saved)}"


def _refused_lines(refused: tuple[str, ...], network: Network) -> Iterator[str]:
    """The hosts that the command called in vain, and how to allow them."""
    if refused:
        verb, them = ("was", "it") if len(refused) == 1 else ("were", "them")
        allowed = ",".join((*network.hosts, *refused))
        yield f"{', '.join(refused)} {verb} refused. To allow {them}: --network {allowed}"
