"""The backend `srt`: commands run by Anthropic's sandbox-runtime, over a clone of the project's
git repository. srt contains and decides who may be called; the clone can be thrown away."""

import errno
import fcntl
import glob
import json
import os
import shutil
import tempfile
from contextlib import suppress

from ralph.errors import ConfigError
from ralph.files.state_dir import write_atomically
from ralph.git.digest import git_line, git_output, git_path
from ralph.kernel.value import replace
from ralph.sandbox import layer_store
from ralph.sandbox.backends import worktree
from ralph.sandbox.backends.base import missing_keeper, real_project
from ralph.sandbox.interface import Capabilities, Change, SandboxPolicy, unusable
from ralph.sandbox.policy import secret_paths
from ralph.sandbox.tools import PRIVATE, is_hidden, needed

NAME = "srt"
INSTALL = "npm install -g @anthropic-ai/sandbox-runtime"
_WHY = "srt over a clone by git, without files that git ignores; commits made in it are not kept"
_OF_SRT = "/tmp/claude"  # noqa: S108  writable without being asked for
_PATTERN = "*?[]{}"  # srt takes paths for patterns
_TEMPORARY, _PREFIX = "/tmp", "ralph-srt-"  # noqa: S108  the system's own, since it is short
# srt puts these into the tree while a command runs, so that nobody makes them. git must not take
# them for work, and if srt is killed they stay.
MARKS = (
    *(".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".gitconfig", ".gitmodules"),
    *(".ripgreprc", ".mcp.json", ".vscode", ".idea", ".claude/commands", ".claude/agents"),
)
_CLAUDE = ".claude"  # where this is missing, srt would let nobody make it
_TRIAL = """
for path in sys.argv[3:]:
    try:
        open(path, "w").write("x")  # into a layer that is thrown away, or not at all
    except OSError:
        pass
"""
_COMMIT = (
    *("-c", "user.name=Ralph", "-c", "user.email=ralph@localhost", "-c", "commit.gpgsign=false"),
    *("commit", "--quiet", "--allow-empty", "--message", "Begin"),
)


def probe(project: str, policy: SandboxPolicy) -> Capabilities:
    """Try it for real: a file in it is in the clone, the host is clean, the network is shut."""
    from ralph.sandbox.namespace.trial import tried

    def begin(directory: str) -> None:
        for words in (("init", "--quiet"), _COMMIT):
            if git_output(directory, policy.environ, *words) is None:
                raise ConfigError("git cannot make a repository", "See why: git init")

    why = _missing(policy) or worktree.problem(os.path.realpath(project), policy)
    return unusable(why) if why else tried(open, policy, _TRIAL, begin)


def _missing(policy: SandboxPolicy) -> str:
    return missing_keeper() or ("" if _program(policy) else f"not installed: {INSTALL}")


def _program(policy: SandboxPolicy) -> str | None:
    return shutil.which("srt", path=policy.environ.get("PATH"))


def open(project: str, policy: SandboxPolicy) -> "Srt":  # noqa: A001  the interface has it so
    """A clone with everything that the project has now, but for ignored files."""
    project = real_project(project)
    if why := _missing(policy):
        raise ConfigError(f"srt cannot be used: {why}", "See: ralph sandbox probe")
    if policy.network.everybody:
        raise ConfigError("srt lets nobody call everybody", "Name the hosts: --network HOST,...")
    if why := worktree.problem(project, policy):
        raise ConfigError(f"srt cannot be used: {why}", worktree.REMEDY)
    with layer_store.claimed(policy, project) as kept:
        return Srt(project, policy, kept)


class Srt(worktree.WorktreeSandbox):
    """A clone; each command in it is run by srt."""

    kind = NAME
    able = Capabilities(True, True, True, _WHY)

    def __init__(self, project: str, policy: SandboxPolicy, kept: layer_store.LayerDir) -> None:
        super().__init__(project, policy, kept)
        if policy.home:
            lacks = ("the home directory is read only", self.capabilities.lacks)
            self.capabilities = replace(self.able, lacks="; ".join(filter(None, lacks)))
        os.makedirs(os.path.join(self.project, _CLAUDE), exist_ok=True)
        program = _program(policy)
        assert program is not None
        self._temporary = kept.directory("tmp")
        self._settings = os.path.join(kept.path, "srt.json")
        self._words = (program, "-s", self._settings, "--")
        self._sockets = Sockets()
        try:
            network = {"allowedDomains": list(policy.network.hosts), "deniedDomains": []}
            rules = {"network": network, "filesystem": self._filesystem()}
            write_atomically(self._settings, json.dumps(rules, indent=2), mode=0o600)
        except BaseException:
            self._sockets.remove()
            raise
        self.environ = {
            **policy.environ,
            "TMPDIR": self._sockets.path,  # of srt itself
            "CLAUDE_CODE_TMPDIR": self._temporary,  # what commands get as TMPDIR
            "RALPH_SANDBOX": NAME,
        }

    @staticmethod
    def make(project: str, policy: SandboxPolicy, tree: str) -> None:
        """Clone the project with its objects: commits in a worktree would write into its .git."""
        words = ("clone", "--shared", "--quiet", project, tree)
        if git_output(project, policy.environ, *words) is None:
            raise ConfigError("git cannot clone the project", f"See why: git {' '.join(words)}")
        for key in ("user.name", "user.email"):  # a clone has none of the project's configuration
            if value := git_line(project, policy.environ, "config", "--get", key):
                git_output(tree, policy.environ, "config", key, value)
        missing = [name for name in MARKS if not os.path.lexists(os.path.join(tree, name))]
        exclude = os.path.join(tree, ".git", "info", "exclude")
        os.makedirs(os.path.dirname(exclude), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(os.open(exclude, flags, 0o644), "a") as file:
            file.writelines(f"/{name}\n" for name in missing)

    def _filesystem(self) -> dict[str, list[str]]:
        """Rules of srt: only the clone and a temporary directory can be written."""
        ours = [self.project, self._temporary]
        hidden = (*PRIVATE, *map(os.path.realpath, (self.policy.state, *self.policy.hidden)))
        seen = [*ours, self._sockets.path, *map(os.path.realpath, self.policy.visible)]
        package = os.path.dirname(os.path.dirname(os.path.realpath(self._words[0])))
        if os.path.basename(package) == "sandbox-runtime":
            seen.append(package)  # a helper of srt runs inside
        # What programs need of the private places, as far as srt can be told.
        tools = dict.fromkeys(map(os.path.realpath, needed(self.origin, self.policy)))
        seen += [path for path in tools if is_hidden(path) and not set(path) & set(_PATTERN)]
        if objects := git_path(self.origin, self.policy.environ, "objects"):
            seen.append(os.path.realpath(objects))
        rules = {
            "denyRead": [
                *(path for path in hidden if os.path.isdir(path)),
                *secret_paths(self.origin, self.policy),
            ],
            "allowRead": seen,
            "allowWrite": ours,
            "denyWrite": [_OF_SRT],
        }
        for path in (path for paths in rules.values() for path in paths):
            if set(path) & set(_PATTERN):
                why = f"srt would take the path {path} for a pattern"
                raise ConfigError(why, "Use another: ralph sandbox probe")
        return rules

    def _outer(self, argv: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
        program = argv[0]
        where = os.path.join(self.project, program) if "/" in program else program
        if shutil.which(where, path=self.environ.get("PATH")) is None:  # srt would only say so
            there = "/" in program and os.path.exists(where)
            number = errno.EACCES if there else errno.ENOENT
            raise OSError(number, os.strerror(number), program)
        return (*self._words, *argv)

    @property
    def places(self) -> tuple[str, ...]:
        return (*super().places, self._sockets.path)

    def changes(self) -> tuple[Change, ...]:
        return tuple(change for change in super().changes() if not self._is_mark(change.path))

    def _is_mark(self, path: str) -> bool:
        """True if a path is new, of srt or for srt, and empty."""
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

    def _leave(self) -> None:  # there is no worktree to prune
        super(worktree.WorktreeSandbox, self)._leave()


class Sockets:
    """The directory of srt's proxy sockets; in /tmp, since the kernel wants short paths. Its owner
    holds a lock on it; what a killed one left is removed by the next."""

    def __init__(self) -> None:
        for path in glob.glob(os.path.join(glob.escape(_TEMPORARY), f"{_PREFIX}*")):
            with suppress(OSError):  # it is gone, somebody else's, or in use
                lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(lock)
        self.path = tempfile.mkdtemp(prefix=_PREFIX, dir=_TEMPORARY)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.makedirs(self.path, mode=0o700, exist_ok=True)  # if another tidied up just now

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
