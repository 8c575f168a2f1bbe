"""The backend `sbx`: Docker Sandboxes. A virtual machine with a clone of the project's git
repository; what is done in it comes back only when it is kept."""

import io
import json
import os
import re
import tarfile
from collections.abc import Iterable

from ralph.adapters import keeper_process
from ralph.adapters.files import unwritable_state
from ralph.adapters.git import git_output
from ralph.adapters.sandbox import place, pulled, worktree
from ralph.adapters.sandbox.base import Moment, real_project
from ralph.adapters.sandbox.commit import Commit, closed_in
from ralph.adapters.sandbox.guest import LONG, Guest, Tool, encoded, told
from ralph.adapters.sandbox.interface import Capabilities, Change, Kept, Kind, Network, Policy
from ralph.adapters.sandbox.landing import finish
from ralph.adapters.sandbox.obeyed import obeyed_paths
from ralph.adapters.sandbox.place import JOURNAL
from ralph.adapters.sandbox.remote import (
    AGENT,
    Ours,
    Remote,
    at_home,
    login,
    name_of,
    program_of,
    set_up,
)
from ralph.core.value import replace
from ralph.errors import ConfigError, RalphError, StateError

NAME = "sbx"
WORDS = ("sbx",)
_INSTALL = "not installed: see docs.docker.com/ai/sandboxes"
_WHY = (
    "sbx answers, but no virtual machine was started to try it; it works on a clone by git, and "
    "hosts that are allowed add to what `sbx policy ls` allows everybody"
)
_OPEN = Capabilities(True, True, True, "a virtual machine with a clone by git")
_EVERYBODY = "**"


def probe(project: str, policy: Policy) -> Capabilities:
    """Ask the tool for its sandboxes: to make one would fetch an image, and take minutes."""
    why = _problem(os.path.realpath(project), policy)
    if not why:
        done = Tool(WORDS, policy.environ).ask("ls", "--json")
        why = f"sbx does not answer: {told(done)}" if done.code else ""
    if why:
        return Capabilities(False, False, False, why, usable=False)
    return Capabilities(True, True, True, _WHY)


def _problem(project: str, policy: Policy) -> str:
    if not keeper_process.is_possible():
        return "needs Linux 5.3 or newer"
    if not program_of(WORDS, policy.environ):
        return _INSTALL
    if why := worktree.problem(project, policy):
        return why
    linked = not os.path.isdir(os.path.join(project, ".git"))
    return "a git worktree cannot be cloned into a sandbox" if linked else ""


def open(project: str, policy: Policy) -> "Sbx":  # noqa: A001  the interface has it so
    """A machine with everything that the project has now, but for ignored files."""
    moment = Moment()
    project = real_project(project)
    if why := _problem(project, policy):
        raise ConfigError(f"sbx cannot be used: {why}", "See: ralph sandbox probe")
    guest = Guest(Tool(WORDS, policy.environ), name_of(project, "-"), project)
    ours = Ours(policy, project, guest.name)
    try:
        kept = place.claim(policy.state, project)
        try:
            lacks = worktree.lacking(_ready(guest, policy, ours))
            return Sbx(policy, guest, kept, ours, moment=moment.passed(), lacks=lacks)
        except BaseException:
            kept.remove()
            raise
    except OSError as error:
        ours.release()
        raise unwritable_state(policy.state, error) from error
    except BaseException:
        ours.release()
        raise


def _ready(guest: Guest, policy: Policy, ours: Ours) -> list[bytes]:
    """The sandbox that was left, if it will do, or a new one; then what was not committed. What of
    that could not be read is told."""
    state = login(policy.environ)
    if guest.name in listed(guest.tool.must("list its sandboxes", "ls", "--json")):
        ours.check_made(f"sbx rm {guest.name}")
        awake = ours.was_left_awake() is not None
        if not ours.may_call(policy.network) or not _is_as_new(guest, policy, awake=awake):
            _remove(guest, ours)
            _create(guest, policy, ours, state)
    else:
        _create(guest, policy, ours, state)
    set_up(guest, state)
    return _bring(guest, policy)


def listed(output: bytes) -> set[str]:
    """The names in what `sbx ls --json` says, which may talk of its daemon first."""
    text = output.decode("utf-8", "replace")
    begin = re.search(r"^\s*[\[{]", text, re.MULTILINE)
    try:
        found = json.loads(text[begin.start() :]) if begin else []
    except ValueError:
        raise ConfigError("sbx ls --json prints no JSON", "See: sbx ls --json") from None
    rows = found.get("sandboxes") or [] if isinstance(found, dict) else found
    return {row["name"] for row in rows if isinstance(row, dict) and "name" in row}


def _is_as_new(guest: Guest, policy: Policy, *, awake: bool) -> bool:
    """Whether it has the project's last commit; then it goes back to that, and forgets what was
    left in it."""
    if not awake:
        guest.tool.must("stop the sandbox", "stop", guest.name, patience=LONG)  # and all that runs
    head = git_output(guest.project, policy.environ, "rev-parse", "HEAD") or b""
    return bool(head) and guest.ask("reset", encoded(head.strip())).code == 0


def _create(guest: Guest, policy: Policy, ours: Ours, state: str) -> None:
    ours.note()
    words = ("create", "--quiet", "--name", guest.name, "--clone", AGENT, guest.project, state)
    try:
        guest.tool.must("make a sandbox", *words, patience=LONG)
        guest.tool.must("set the rules of a sandbox", *_rules(guest.name, policy.network))
    except BaseException:
        guest.tool.ask("rm", "--force", guest.name, patience=LONG)
        ours.forget()
        raise
    ours.note(policy.network)


def _rules(name: str, network: Network) -> tuple[str, ...]:
    """Deny wins over allow, so that nobody means nobody; who is allowed is allowed as well."""
    if not network.everybody and not network.hosts:
        return ("policy", "deny", "network", "--sandbox", name, _EVERYBODY)
    hosts = _EVERYBODY if network.everybody else ",".join(network.hosts)
    return ("policy", "allow", "network", "--sandbox", name, hosts)


def _bring(guest: Guest, policy: Policy) -> list[bytes]:
    """What the project has beyond its last commit: a clone has none of that."""
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
    """False if it cannot be read, or is gone by now."""
    try:
        tar.add(os.fsdecode(whole), os.fsdecode(path), recursive=False, filter=_nobodys)
    except (PermissionError, FileNotFoundError):
        return False
    return True


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _remove(guest: Guest, ours: Ours) -> None:
    guest.tool.must("remove the sandbox", "rm", "--force", guest.name, patience=LONG)
    ours.forget()


class Sbx(Remote):
    """A virtual machine; thrown away with whatever was not kept."""

    kind = NAME
    run_words = ("run", "--name")

    def __init__(
        self,
        policy: Policy,
        guest: Guest,
        kept: place.Place,
        ours: Ours,
        *,
        moment: int,
        lacks: str = "",
    ) -> None:
        able = at_home(replace(_OPEN, lacks=lacks), policy)
        super().__init__(policy, able, guest, kept, ours)
        self._moment = moment
        self._is_kept = False
        self._is_held = False  # it has the only copy of what could not be kept

    def changes(self) -> tuple[Change, ...]:
        """What differs from the project. If that cannot be told, the machine stays."""
        try:
            return super().changes()
        except RalphError:
            self._is_held = True
            raise

    def commit(self, *, everything: bool = False) -> Kept:
        """End what runs, then apply the changes to the project's files. If that fails, the machine
        stays."""
        self._is_held = True
        try:
            done = self._committed(everything=everything)
        except (OSError, RalphError) as error:
            why = error.message if isinstance(error, RalphError) else error.strerror
            raise StateError(f"the changes could not be kept: {why}", self._remedy()) from error
        self._is_kept, self._is_held = True, False
        return done

    def _remedy(self) -> str:
        enter = f"What was changed is in the machine still: sbx exec -it {self._guest.name} bash"
        begun = os.path.exists(os.path.join(self._place.path, JOURNAL))
        return f"It is finished by the next: ralph sandbox run\n{enter}" if begun else enter

    def _committed(self, *, everything: bool) -> Kept:
        self._keeper.close()
        if not self.policy.awake or not self._is_idle():
            self._guest.tool.must("stop the sandbox", "stop", self._guest.name, patience=LONG)
        changes = self.changes()
        commit = Commit(
            self.origin,
            self._fetched,
            self._moment,
            changes,
            frozenset(c.path for c in changes if os.fsencode(c.path) in self._first),
            everything,
            os.path.basename(self._place.path),
            obeyed=frozenset() if everything else obeyed_paths(self.origin, self.policy.environ),
            closed=closed_in(self.origin, changes),
        )
        commit.write(os.path.join(self._place.path, JOURNAL))
        return finish(commit, self._place.path)

    def discard(self) -> None:
        """Forget the changes; the sandbox is closed, and the machine is gone."""
        self._is_kept = self._is_held = False
        self.close()

    def _compared(self, paths: list[bytes]) -> Iterable[Change]:
        return pulled.against(self.origin, self._fetched, paths, self._first, self._last)

    def _after(self, change: Change) -> str:
        return "" if change.kind is Kind.DELETED else super()._after(change)

    def _leave(self) -> None:
        """What was kept may serve the next time, which is quicker; it does not run till then."""
        try:
            if self._is_held:
                if not os.path.exists(os.path.join(self._place.path, JOURNAL)):
                    self._ours.hold()
                self._guest.tool.ask("stop", self._guest.name, patience=LONG)
            elif self._is_kept:
                self._lull()
            else:
                _remove(self._guest, self._ours)
        finally:
            self._place.remove()
            self._ours.release()
