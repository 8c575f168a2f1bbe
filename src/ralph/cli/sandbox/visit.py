"""One command in one sandbox, for a person or a program: open, run, show what changed, decide."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress

from ralph.cli.params import current_directory
from ralph.cli.sandbox import terminal
from ralph.errors import ConfigError, RalphError, StateError
from ralph.files.state_dir import state_root
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut, Reason
from ralph.processes.child import memory_file
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
from ralph.text.plain import escaped
from ralph.text.words import counted
from ralph.ui.safe_stream import Channel

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
_NEXT = (("shell", "go on"), ("diff", "look"), ("keep", "apply them"), ("discard", "undo them"))


@value
class Wish:
    """What somebody wants to be done in a sandbox."""

    command: tuple[str, ...] = ()  # or code:
    code: str = ""
    language: str = ""
    is_shell: bool = False  # a person types in it
    fate: str = ""  # of the changes: safe, all, discard, or "" to ask
    name: str | None = None  # of the sandbox in which they stay; None is one that is thrown away
    backend: str = "auto"
    network: Network | None = None
    show: tuple[str, ...] = ()
    in_json: bool = False


class Visit:
    """One command in one sandbox."""

    def __init__(self, wish: Wish, environ: dict[str, str]) -> None:
        self.asked: list[int] = []  # the signals that came
        self._wish = wish
        self._environ = environ
        self._interrupted = False  # the command, or the person that was to decide
        self._people = Channel(sys.stderr)  # whatever becomes of what we say, changes are kept

    def run(self) -> int:
        """Open, run, show, decide; the command's exit code."""
        from ralph.runner.sandboxing import HIDING, hidden_words
        from ralph.sandbox import catalog
        from ralph.sandbox import policy as plan
        from ralph.sandbox.backends import overlay
        from ralph.sandbox.changes import landing
        from ralph.sandbox.credentials import secrets_of

        wish, project = self._wish, current_directory()
        policy = policy_of(self._environ)
        plan.refuse_within(policy.state, project)
        for finished in landing.recover(project, policy.state):
            self._say("An earlier sandbox was killed while it was kept; that is finished now:")
            self._say(*kept_lines(finished))
        name, network = self._place(project, policy)
        secrets = secrets_of([("text", self._environ)], wish.show)
        policy = replace(
            policy if wish.name is None else _named(policy, wish.name),
            network=network,
            programs=wish.command[:1],
            secret=secrets.hidden,
            visible=secrets.shown,
        )
        try:
            with catalog.backend(name).open(project, policy) as box:
                hides = hidden_words(secrets, project, self._environ) if name in HIDING else ""
                self._say(_headline(name, policy.network, hides, wish.name or ""))
                if lacks := box.capabilities.lacks:
                    self._say(f"{lacks[0].upper()}{lacks[1:]}.")
                if wish.is_shell and terminal.is_possible():
                    self._say("The project is not touched. Type exit to leave; what you did stays.")
                code, started = self._carried_out(box)
                refused = box.refused()
                self._say(*_refused_lines(refused, policy.network))
                changes = box.changes() if started or wish.name is not None else ()
                kept = self._decide(box, changes) if started or wish.name is not None else None
        finally:
            overlay.LAUNCHER.close()
        if wish.name is not None and not changes:
            self._drop(project, policy)
        code = _INTERRUPTED if self._interrupted and code < _BY_SIGNAL else code
        if not wish.in_json:
            return code
        told = {"backend": name, "network": str(policy.network), "refused": refused}
        told |= {"name": wish.name} if wish.name is not None else {}
        return self._tell({**told, "exit_code": code}, code, changes, kept)

    def _place(self, project: str, policy: SandboxPolicy) -> tuple[str, Network]:
        """The backend and the network, as they were before where somebody comes back."""
        from ralph.sandbox import catalog, kept
        from ralph.sandbox.network import network_of, on_the_network

        wish, network, name = self._wish, self._wish.network, self._wish.backend
        there = [one for one in kept.all_of(policy.state, project) if one.name == wish.name]
        if there:
            name, network = there[0].backend, network or network_of(there[0].network)
            if wish.backend not in ("auto", name):
                raise ConfigError(
                    f"the sandbox {wish.name} is one of {name}",
                    "Leave out --backend, or use another name.",
                )
        elif name == "auto":
            name = catalog.usable("auto", project, policy).name
        if wish.name is not None and name not in kept.ABLE:
            raise ConfigError(
                f"{name} has nothing to come back to", f"Use one of: {', '.join(kept.ABLE)}"
            )
        if name in _IN_PLACE and wish.fate not in ("safe", "all"):
            message = f"{name} works in place: what the command does cannot be undone"
            raise ConfigError(message, "Say that you want that: --keep")
        if name in _ON_THE_NETWORK:
            return name, on_the_network(name, network, "a command")
        return name, network or OFF

    def _drop(self, project: str, policy: SandboxPolicy) -> None:
        """Remove a sandbox in which nothing is different from the project."""
        from ralph.sandbox import kept

        with suppress(RalphError):  # somebody else is in it by now
            kept.discard(kept.find(policy.state, project, self._wish.name or ""), policy)

    def _tell(
        self,
        told: dict[str, object],
        code: int,
        changes: tuple[Change, ...],
        kept: CommitResult | None,
    ) -> int:
        """All of it, for programs; the exit code, which is an error where a disk is full."""
        rows = [change_dict(change) for change in changes]
        told = {**told, "kept": kept is not None, "changes": rows}
        told |= result_dict(kept or CommitResult())
        lost: list[str] = []
        Channel(sys.stdout, lost.append).write([json.dumps(told)])
        for why in lost:
            self._say(f"stdout {why}")
        return code or _CONFIG if lost and "closed" not in lost[0] else code

    def _carried_out(self, box: OpenSandbox) -> tuple[int, bool]:
        """The command's exit code, and False if it could not be started at all."""
        wish = self._wish
        command = box.runner(wish.language) if wish.language else wish.command
        program = command[0]
        try:
            if not program:
                raise FileNotFoundError
            if wish.language or wish.in_json or not terminal.is_possible():
                out, given = 2 if wish.in_json else 1, 0
                if wish.language:
                    given = memory_file(wish.code.encode())
                try:
                    ended = box.attach(command, given, out, 2).wait(self._cut)
                finally:
                    if given:
                        os.close(given)
            else:
                ended = terminal.carried_out(box, command, self._cut)
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
        name = self._wish.name
        if not changes:
            self._say(
                f"Nothing is different in the sandbox {name}." if name else "Nothing was changed."
            )
            self._seal(box)
            return None
        self._say(*change_lines(changes))
        if name:
            self._seal(box)
            self._say(f"The project is as it was; this stays in the sandbox {name}. Next:")
            self._say(
                *(
                    f"  ralph sandbox {f'{verb} {name}':<{len(name) + 9}} {what}"
                    for verb, what in _NEXT
                )
            )
            return None
        fate = self._wish.fate
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
        self._say(*kept_lines(kept))
        return kept

    def _seal(self, box: OpenSandbox) -> None:
        """Leave a sandbox that somebody comes back to."""
        if self._wish.name is None:
            return
        try:
            box.seal()
        except OSError as error:
            raise StateError(
                f"the list of changes could not be written: {error.strerror}",
                "They are in the sandbox still. Make room, then type: ralph sandbox list",
            ) from error

    def _say(self, *lines: str) -> None:
        self._people.write([f"[ralph] {line}" for line in lines])


def policy_of(environ: dict[str, str]) -> SandboxPolicy:
    """The policy of a user's own command: it can write caches and settings at home."""
    return SandboxPolicy(environ, state_root(environ), home=environ.get("HOME", ""))


def _named(policy: SandboxPolicy, name: str) -> SandboxPolicy:
    from ralph.sandbox import kept

    return kept.named(policy, name)


def _where_it_is(program: str) -> str:
    """The place of a program that a sandbox does not show, and what to do; "" if it is nowhere."""
    from ralph.sandbox.tools import is_hidden

    if not is_hidden(os.path.realpath(program)) or not os.path.exists(program):
        return ""
    return ", where temporary directories and Ralph's state are hidden: put it into the project"


def _headline(name: str, network: Network, hides: str, called: str) -> str:
    said = {
        "worktree": ", which undoes but does not contain",
        "docker": ", which contains but works in place",
        "direct": ", in place",
    }
    hidden = f"; hidden: {hides}" if hides else ""
    which = f" {called}" if called else ""
    return f"Sandbox{which}: {name}{said.get(name, '')}; network {network}{hidden}"


def change_dict(change: Change) -> dict[str, object]:
    return {"path": change.path, "kind": change.kind, "entry": change.entry}


def result_dict(done: CommitResult) -> dict[str, object]:
    lists = {k: getattr(done, k) for k in ("held", "changed", "failed")}
    spared = {k: [{"path": s.path, "why": s.why} for s in v] for k, v in lists.items()}
    return {"applied": list(done.applied), **spared, "saved": done.saved}


def change_lines(changes: tuple[Change, ...]) -> Iterator[str]:
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


def kept_lines(kept: CommitResult, apply: str = "--keep=all") -> Iterator[str]:
    """The number of changes that were applied, and those that were not, with the reason; `apply` is
    what applies what is held."""
    yield f"Kept {counted(len(kept.applied), 'change')}."
    for heading, spared in (
        ("Not overwritten, since somebody changed it meanwhile", kept.changed),
        (f"Held for review ({apply} applies it)", kept.held),
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
