"""The backend `sbx`: Docker Sandboxes. A virtual machine with a clone of the project's git
repository; what is done in it comes back only when it is kept."""

import io
import json
import os
import re
import tarfile
from collections.abc import Iterable, Sequence

from ralph.errors import ConfigError, RalphError, StateError
from ralph.git.digest import git_output
from ralph.kernel.value import replace
from ralph.processes.keeper import Keeper
from ralph.sandbox.backends import machine, worktree
from ralph.sandbox.backends.base import missing_keeper, real_project
from ralph.sandbox.backends.guest import LONG, Guest, SandboxTool, encoded
from ralph.sandbox.backends.machine import KeptMachine, Remote
from ralph.sandbox.changes.by_descriptor import Reach
from ralph.sandbox.changes.commit import Commit, closed_in, selected
from ralph.sandbox.changes.git_config_hooks import config_hooks
from ralph.sandbox.changes.landing import carry_out
from ralph.sandbox.changes.manifest import against
from ralph.sandbox.interface import Capabilities, Change, CommitResult, SandboxPolicy, unusable
from ralph.sandbox.layer_store import moment

NAME = "sbx"
WORDS = ("sbx",)
_INSTALL = "not installed: see docs.docker.com/ai/sandboxes"
_WHY = (
    "sbx answers, but no virtual machine was started to try it; it works on a clone by git, and "
    "hosts that are allowed add to what `sbx policy ls` allows everybody"
)
_OPEN = Capabilities(True, True, True, "a virtual machine with a clone by git")
_EVERYBODY = "**"


def probe(project: str, policy: SandboxPolicy) -> Capabilities:
    """Ask the tool for its sandboxes: to make one would fetch an image, and take minutes."""
    why = _problem(os.path.realpath(project), policy) or machine.not_answering(
        WORDS, policy.environ
    )
    return unusable(why) if why else Capabilities(True, True, True, _WHY)


def _problem(project: str, policy: SandboxPolicy) -> str:
    installed = SandboxTool(WORDS, policy.environ).is_installed()
    if why := missing_keeper() or ("" if installed else _INSTALL):
        return why
    if why := worktree.problem(project, policy):
        return why
    linked = not os.path.isdir(os.path.join(project, ".git"))
    return "a git worktree cannot be cloned into a sandbox" if linked else ""


def open(project: str, policy: SandboxPolicy) -> "Sbx":  # noqa: A001  the interface has it so
    """A machine with everything that the project has now, but for ignored files."""
    project = real_project(project)
    if why := _problem(project, policy):
        raise ConfigError(f"sbx cannot be used: {why}", "See: ralph sandbox probe")
    tool = SandboxTool(WORDS, policy.environ, ("rm", "--force"))
    guest = Guest(tool, machine.name_of(project, "-"), project)
    with machine.opening(policy, guest) as (ours, kept):
        _ready(ours)
        able = replace(_OPEN, lacks=worktree.lacking(_bring(guest, policy)))
        kept.settle()
        return Sbx(able, ours, kept)


def _ready(ours: KeptMachine) -> None:
    guest, network = ours.guest, ours.policy.network

    def reuse() -> bool:
        """With the project's last commit; then what was left in it is forgotten."""
        if ours.was_left_awake() is None:
            guest.stop()  # and all that runs
        head = git_output(guest.project, ours.policy.environ, "rev-parse", "HEAD") or b""
        return bool(head) and guest.ask("reset", encoded(head.strip())).code == 0

    there = guest.name in listed(guest.tool.must("list its sandboxes", "ls", "--json"))
    # Deny wins over allow, so that nobody means nobody; who is allowed is allowed as well.
    verb = "allow" if network.everybody or network.hosts else "deny"
    hosts = _EVERYBODY if network.everybody else ",".join(network.hosts) or _EVERYBODY
    rules = ("policy", verb, "network", "--sandbox", guest.name, hosts)
    words = ("--quiet", "--name", guest.name, "--clone")
    ours.ready(reuse if there else None, words=words, rules=rules)


def listed(output: bytes) -> set[str]:
    """Names in the output of `sbx ls --json`, which may talk of its daemon first."""
    text = output.decode("utf-8", "replace")
    begin = re.search(r"^\s*[\[{]", text, re.MULTILINE)
    try:
        found = json.loads(text[begin.start() :]) if begin else []
    except ValueError:
        raise ConfigError("sbx ls --json prints no JSON", "See: sbx ls --json") from None
    rows = found.get("sandboxes") or [] if isinstance(found, dict) else found
    return {row["name"] for row in rows if isinstance(row, dict) and "name" in row}


def _bring(guest: Guest, policy: SandboxPolicy) -> list[bytes]:
    """Bring what a clone has not, and was not committed; the paths that could not be read."""
    archive, gone, unread = io.BytesIO(), [], []
    project = os.fsencode(guest.project)
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in worktree.uncommitted(guest.project, policy):
            whole = os.path.join(project, path)
            if worktree.is_copied(project, path):
                unread += [] if _add(tar, whole, path) else [path]
            elif not os.path.lexists(whole) or not worktree.is_plain(whole):
                gone.append(path)
        empty = not tar.getmembers()
    if gone or unread:
        guest.must("remove", stdin=b"".join(b"./" + path + b"\0" for path in (*gone, *unread)))
    if not empty:
        guest.must("unpack", stdin=archive.getvalue())
    return unread


def _add(tar: tarfile.TarFile, whole: bytes, path: bytes) -> bool:
    """Add a file to an archive, as nobody's; False if it cannot be read, or is gone by now."""

    def nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    try:
        tar.add(os.fsdecode(whole), os.fsdecode(path), recursive=False, filter=nobodys)
    except (PermissionError, FileNotFoundError):
        return False
    return True


class Sbx(Remote):
    """A virtual machine; thrown away with whatever was not kept."""

    kind = NAME
    run_words = ("run", "--name")
    _fate = "remove"  # keep; or hold, where it has the only copy of what was not kept

    def changes(self) -> tuple[Change, ...]:
        try:
            return super().changes()
        except RalphError:
            self._fate = "hold"
            raise

    def commit(self, *, everything: bool = False) -> CommitResult:
        """End what runs, then apply the changes. If that fails, the machine stays."""
        return self._kept(everything=everything, paths=None)

    def keep(self, *, everything: bool = False, paths: Sequence[str] | None = None) -> CommitResult:
        done = self._kept(everything=everything, paths=paths)
        self._keeper = Keeper()
        first = dict(self._first)
        for path in map(os.fsencode, done.applied):
            if path in self._last:
                first[path] = self._last[path]
            else:
                first.pop(path, None)
        self._first = first
        self._place.since |= dict.fromkeys(done.applied, moment())
        return done

    def _kept(self, *, everything: bool, paths: Sequence[str] | None) -> CommitResult:
        self._fate = "hold"
        try:
            done = self._committed(everything=everything, paths=paths)
        except (OSError, RalphError) as error:
            why = error.message if isinstance(error, RalphError) else error.strerror
            enter = f"sbx exec -it {self._guest.name} bash"
            remedy = f"What was changed is in the machine still: {enter}"
            if self._place.is_begun():
                remedy = f"It is finished by the next: ralph sandbox run\n{remedy}"
            raise StateError(f"the changes could not be kept: {why}", remedy) from error
        self._fate = "keep"
        return done

    def _committed(self, *, everything: bool, paths: Sequence[str] | None) -> CommitResult:
        self._keeper.close()
        if not self._is_idle():
            self._guest.stop()
        changes = self.changes()
        commit = Commit(
            self.origin,
            self._results,
            self._place.opened,
            changes,
            frozenset(c.path for c in changes if os.fsencode(c.path) in self._first),
            everything,
            os.path.basename(self._place.path),
            config_hooks=frozenset()
            if everything
            else config_hooks(self.origin, self.policy.environ),
            closed=closed_in(self.origin, changes),
            since=self._place.since,
        )
        part = commit if paths is None else selected(commit, paths)
        return carry_out(part, self._place.path)

    def discard(self) -> None:
        self._fate = "remove"
        self.close()

    def _compared(self) -> Iterable[Change]:
        with Reach(self._results) as fetched:
            yield from against(self.origin, fetched, self._first, self._last)

    def _let_go(self) -> None:
        """Keep a machine for the next time, which is quicker; it does not run till then."""
        if self._fate == "hold":
            if not self._place.is_begun():
                self._ours.hold()
            self._guest.tool.ask("stop", self._guest.name, patience=LONG)
        elif self._fate == "keep":
            self._lull()
        else:
            self._ours.remove()
