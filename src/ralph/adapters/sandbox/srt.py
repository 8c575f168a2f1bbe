"""The backend `srt`: commands run by Anthropic's sandbox-runtime, over a clone of the project's
git repository. srt contains and decides who may be called; the clone can be thrown away."""

import errno
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from typing import IO

from ralph.adapters import keeper_process
from ralph.adapters.files import ensure_state_root, unwritable_state, write_atomically
from ralph.adapters.git import git_output
from ralph.adapters.sandbox import place, worktree
from ralph.adapters.sandbox.base import Moment, real_project
from ralph.adapters.sandbox.interface import Capabilities, Change, Policy
from ralph.adapters.sandbox.plan import secret_paths
from ralph.adapters.sandbox.tools import PRIVATE, is_hidden, needed
from ralph.core.value import replace
from ralph.errors import ConfigError, RalphError

NAME = "srt"
INSTALL = "npm install -g @anthropic-ai/sandbox-runtime"
_WHY = "srt over a clone by git, without files that git ignores; commits made in it are not kept"
_OF_SRT = "/tmp/claude"  # noqa: S108  writable without being asked for
_PATTERN = "*?[]{}"  # srt takes paths for patterns
_LONGEST = 70  # bytes; the path of a socket may have 107, and srt adds a name
_TEMPORARY, _PREFIX = "/tmp", "ralph-srt-"  # noqa: S108  the system's own, since it is short
# srt puts these into the tree while a command runs, so that nobody makes them. git must not take
# them for work, and if srt is killed they stay.
MARKS = (
    *(".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".gitconfig", ".gitmodules"),
    *(".ripgreprc", ".mcp.json", ".vscode", ".idea", ".claude/commands", ".claude/agents"),
)
_CLAUDE = ".claude"  # where this is missing, srt would let nobody make it


def probe(project: str, policy: Policy) -> Capabilities:
    """Try it for real: a file in it is in the clone, the host is clean, the network is shut."""
    from ralph.adapters.sandbox.srt_trial import trial

    why = _missing(policy) or worktree.problem(os.path.realpath(project), policy)
    if why:
        return Capabilities(False, False, False, why, usable=False)
    try:
        ensure_state_root(policy.state)
        with tempfile.TemporaryDirectory(prefix="ralph-probe-", dir=policy.state) as directory:
            return trial(open, directory, policy)
    except RalphError as error:
        return Capabilities(False, False, False, f"{error.message}. {error.remedy}", usable=False)
    except OSError as error:
        return Capabilities(False, False, False, str(error), usable=False)


def _missing(policy: Policy) -> str:
    if not keeper_process.is_possible():
        return "needs Linux 5.3 or newer"
    return "" if _program(policy) else f"not installed: {INSTALL}"


def _program(policy: Policy) -> str | None:
    return shutil.which("srt", path=policy.environ.get("PATH"))


def open(project: str, policy: Policy) -> "Srt":  # noqa: A001  the interface has it so
    """A clone with everything that the project has now, but for ignored files."""
    moment = Moment()
    project = real_project(project)
    if why := _missing(policy):
        raise ConfigError(f"srt cannot be used: {why}", "See: ralph sandbox probe")
    if policy.network.everybody:
        raise ConfigError("srt lets nobody call everybody", "Name the hosts: --network HOST,...")
    if why := worktree.problem(project, policy):
        raise ConfigError(f"srt cannot be used: {why}", worktree.REMEDY)
    kept = place.claim(policy.state, project, policy.name)
    try:
        return Srt(project, policy, kept, moment.passed())
    except OSError as error:
        kept.remove()
        raise unwritable_state(kept.path, error) from error
    except BaseException:
        kept.remove()
        raise


class Srt(worktree.Worktree):
    """A clone; each command in it is run by srt."""

    able = Capabilities(True, True, True, _WHY)

    def __init__(self, project: str, policy: Policy, kept: place.Place, moment: int) -> None:
        super().__init__(project, policy, kept, moment)
        if policy.home:
            lacks = ("the home directory is read only", self.capabilities.lacks)
            self.capabilities = replace(self.able, lacks="; ".join(filter(None, lacks)))
        os.makedirs(os.path.join(self.project, _CLAUDE), exist_ok=True)
        program = _program(policy)
        assert program is not None
        self._temporary = kept.directory("tmp")
        self._settings = os.path.join(kept.path, "srt.json")
        self._words = (program, "-s", self._settings, "--")
        self._sockets = Sockets(kept)
        try:
            network = {"allowedDomains": list(policy.network.hosts), "deniedDomains": []}
            rules = {"network": network, "filesystem": self._filesystem()}
            write_atomically(self._settings, json.dumps(rules, indent=2), mode=0o600)
        except BaseException:
            self._sockets.remove()
            raise
        self._environ = {
            **policy.environ,
            "TMPDIR": self._sockets.path,  # of srt itself
            "CLAUDE_CODE_TMPDIR": self._temporary,  # what commands get as TMPDIR
            "RALPH_SANDBOX": NAME,
        }

    @staticmethod
    def make(project: str, policy: Policy, tree: str) -> None:
        """A clone with the project's objects. In a worktree, commits would write into the
        project's own .git, which a sandbox must not."""
        words = ("clone", "--shared", "--quiet", project, tree)
        if git_output(project, policy.environ, *words) is None:
            raise ConfigError("git cannot clone the project", f"See why: git {' '.join(words)}")
        for key in ("user.name", "user.email"):  # a clone has none of the project's configuration
            if value := git_output(project, policy.environ, "config", "--get", key):
                git_output(tree, policy.environ, "config", key, os.fsdecode(value).rstrip("\n"))
        _ignore_marks(tree)

    def _filesystem(self) -> dict[str, list[str]]:
        """srt's rules: only the clone and a temporary directory can be written."""
        ours = [self.project, self._temporary]
        hidden = (*PRIVATE, *map(os.path.realpath, (self.policy.state, *self.policy.hidden)))
        seen = [*ours, self._sockets.path, *map(os.path.realpath, self.policy.visible)]
        seen += [*_package(self._words[0]), *self._tools()]
        rules = {
            "denyRead": [
                *(path for path in hidden if os.path.isdir(path)),
                *secret_paths(self.origin, self.policy),
            ],
            "allowRead": [*seen, *_objects(self.origin, self.policy)],
            "allowWrite": ours,
            "denyWrite": [_OF_SRT],
        }
        _refuse_patterns(path for paths in rules.values() for path in paths)
        return rules

    def _tools(self) -> list[str]:
        """What programs need of the private places, as far as srt can be told."""
        found = dict.fromkeys(map(os.path.realpath, needed(self.origin, self.policy)))
        return [path for path in found if is_hidden(path) and not set(path) & set(_PATTERN)]

    def environment(self) -> Mapping[str, str]:
        """Temporary files are private."""
        return self._environ

    def _outer(
        self, argv: tuple[str, ...], *, reads: bool, terminal: bool = False
    ) -> tuple[str, ...]:
        _find(argv[0], self.project, self._environ)
        return (*self._words, *argv)

    def changes(self) -> tuple[Change, ...]:
        """What differs from the project; what a killed srt left is none of it."""
        return tuple(change for change in super().changes() if not self._is_mark(change.path))

    def _is_mark(self, path: str) -> bool:
        """Whether it is new, of srt or for srt, and empty."""
        if path not in (*MARKS, _CLAUDE) or self._manifest.knows(path):
            return False
        there = os.path.join(self.project, path)
        if os.path.islink(there):
            return False
        if os.path.isdir(there):
            return all(self._is_mark(f"{path}/{name}") for name in os.listdir(there))
        return os.path.isfile(there) and not os.path.getsize(there)

    def _part(self) -> None:
        self._sockets.remove()

    def _leave(self) -> None:
        self._part()
        self._place.remove()


class Sockets:
    """Where srt puts the sockets of its proxy; the kernel wants short paths, so mostly in /tmp.

    Its owner holds a lock on it; what a killed one left is removed by the next.
    """

    def __init__(self, kept: place.Place) -> None:
        inside = os.path.join(kept.path, "s")
        if len(os.fsencode(inside)) <= _LONGEST:
            self.path = kept.directory("s")
        else:
            _tidy()
            self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=_TEMPORARY)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.makedirs(self.path, mode=0o700, exist_ok=True)  # if another tidied up just now

    def remove(self) -> None:
        """Nobody needs it any more."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _tidy() -> None:
    with os.scandir(_TEMPORARY) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(_PREFIX)]
    for path in found:
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # it is gone, or somebody else's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass  # in use
        finally:
            os.close(lock)


def _objects(project: str, policy: Policy) -> list[str]:
    """What the clone reads of the project's repository."""
    words = ("rev-parse", "--path-format=absolute", "--git-path", "objects")
    said = git_output(project, policy.environ, *words) or b""
    return [os.path.realpath(os.fsdecode(said.removesuffix(b"\n")))] if said else []


def _package(program: str) -> list[str]:
    """Where srt is installed: a helper of it runs inside."""
    directory = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    return [directory] if os.path.basename(directory) == "sandbox-runtime" else []


def _ignore_marks(tree: str) -> None:
    missing = [name for name in MARKS if not os.path.lexists(os.path.join(tree, name))]
    with _append(os.path.join(tree, ".git", "info", "exclude")) as file:
        file.writelines(f"/{name}\n" for name in missing)


def _append(path: str) -> IO[str]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), "a")


def _refuse_patterns(paths: Iterable[str]) -> None:
    for path in paths:
        if set(path) & set(_PATTERN):
            raise ConfigError(
                f"srt would take the path {path} for a pattern", "Use another: ralph sandbox probe"
            )


def _find(program: str, directory: str, environ: Mapping[str, str]) -> None:
    """OSError for a program that is not there: srt's shell would only say so."""
    where = os.path.join(directory, program) if "/" in program else program
    if shutil.which(where, path=environ.get("PATH")) is None:
        there = "/" in program and os.path.exists(where)
        number = errno.EACCES if there else errno.ENOENT
        raise OSError(number, os.strerror(number), program)
