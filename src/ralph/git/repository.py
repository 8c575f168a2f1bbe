"""Git as the host calls it: by argument vectors, without prompts or hooks, and deaf to settings
that an agent may have put into the repository since the run began."""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property

from ralph.errors import ConfigError, StateError
from ralph.kernel.value import value

# They would lead git elsewhere, or change what a path means.
_ELSEWHERE = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"}
    | {"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_IMPLICIT_WORK_TREE"}
    | {"GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE", "GIT_QUARANTINE_PATH"}
    | {"GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS"}
    | {"GIT_ICASE_PATHSPECS", "GIT_EXTERNAL_DIFF", "GIT_REFLOG_ACTION", "GIT_INDEX_VERSION"}
    | {"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GPG_TTY"}
)
SCRATCH = "git-"  # how the names of directories begin that a killed run leaves
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":"}


def committer(name: str) -> dict[str, str]:
    """Environment that names who commits, whatever git's settings say."""
    who = (("NAME", name), ("EMAIL", "ralph@localhost"))
    return {f"GIT_{role}_{k}": text for role in ("AUTHOR", "COMMITTER") for k, text in who}


RALPH = committer("ralph")  # who saves what stood there; a task's own commit is the user's
_DEAF = (
    *("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.untrackedCache=false"),
    *("core.splitIndex=false", "core.safecrlf=false", "advice.addEmbeddedRepo=false"),
    "submodule.recurse=false",
)
_WHERE = (
    *("rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir"),
    *("--git-path", "info/exclude", "--git-path", "hooks", "--show-object-format"),
)
# The settings that decide which files there are and what is in them, with git's defaults.
_SHAPING = {
    "core.autocrlf": "false",
    "core.eol": "native",
    "core.filemode": "true",
    "core.symlinks": "true",
    "core.ignorecase": "false",
    "core.excludesfile": "",
    "core.attributesfile": "",
}


@value
class GitResult:
    """How a git command ended."""

    code: int
    output: bytes
    said: str


@value
class RepositoryPlace:
    """The paths and settings of a repository, as they were when the run began."""

    top: str
    git_dir: str
    exclude: str  # its own list of ignored files
    hooks: str  # the user's; an agent must not get rid of them by a setting
    records: str  # `.ralph` of the workspace, relative to the top
    run: str  # the run's directory, if somebody keeps the state in the repository, else ""
    zeros: str  # the id of nothing
    settings: tuple[str, ...]

    def path(self, name: str) -> str:
        """A file of the work tree, absolute."""
        return os.path.join(self.top, name)

    def is_ours(self, name: str) -> bool:
        """True for `.ralph` and the run's directory: they are no part of the work."""
        ours = (self.records, self.run) if self.run else (self.records,)
        return any(name == one or name.startswith(f"{one}/") for one in ours)

    def text(self) -> str:
        """As JSON, for a run that goes on later."""
        paths = (self.top, self.git_dir, self.exclude, self.hooks, self.records, self.run)
        return json.dumps((*paths, self.zeros, self.settings))

    @staticmethod
    def of(text: str) -> "RepositoryPlace":
        """Read what `text` wrote."""
        top, git_dir, exclude, hooks, records, run, zeros, settings = json.loads(text)
        return RepositoryPlace(top, git_dir, exclude, hooks, records, run, zeros, tuple(settings))


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what leads git elsewhere, prompts or opens an editor."""
    kept = {name: text for name, text in environ.items() if name not in _ELSEWHERE}
    return {**kept, **_QUIET}


def call(
    arguments: Iterable[str], cwd: str, environ: Mapping[str, str], stdin: bytes | None = None
) -> GitResult:
    """Run git to its end. A Ctrl+C in the terminal does not reach it: nothing is left half done."""
    git = _program(environ.get("PATH", os.defpath))
    argv = ("git", "-C", cwd, *arguments)
    try:
        if git is None or not os.path.isdir(cwd):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        run = _by_memory if hasattr(os, "memfd_create") else _by_pipes
        return run(git, argv, environ, stdin or b"")
    except OSError as error:
        return GitResult(127, b"", f"cannot run git in {cwd}: {error.strerror}")


@cache
def _program(path: str) -> str | None:
    return shutil.which("git", path=path)


def _by_memory(
    git: str, argv: tuple[str, ...], environ: Mapping[str, str], stdin: bytes
) -> GitResult:
    """Run git on files in memory: a run asks git some dozen times a task, and `subprocess` takes as
    long for its pipes as git for an answer."""
    files = [os.memfd_create(name) for name in ("in", "out", "err")]
    try:
        if stdin:
            with os.fdopen(os.dup(files[0]), "wb") as stream:
                stream.write(stdin)
            os.lseek(files[0], 0, os.SEEK_SET)
        pid = os.posix_spawn(
            git,
            argv,
            environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, file, n) for n, file in enumerate(files)],
            setsid=True,
        )
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        output, said = (os.pread(file, os.fstat(file).st_size, 0) for file in files[1:])
    finally:
        for file in files:
            os.close(file)
    return GitResult(code, output, said.decode("utf-8", "replace").strip())


def _by_pipes(
    git: str, argv: tuple[str, ...], environ: Mapping[str, str], stdin: bytes
) -> GitResult:
    """The same where there are no such files."""
    done = subprocess.run(
        argv,
        executable=git,
        env=environ,
        input=stdin,
        capture_output=True,
        check=False,
        start_new_session=True,
    )
    return GitResult(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip())


def find(workspace: str, environ: Mapping[str, str], run_dir: str) -> RepositoryPlace:
    """The repository that the workspace is in; a ConfigError where there is none to work in."""
    environ = {**clean_environ(environ), "LC_ALL": "C"}
    done = call(_WHERE, workspace, environ)
    if done.code == 127:
        raise ConfigError(f"git is needed to roll back: {done.said}", "Install git.")
    if done.code != 0:
        if "not a git repository" in done.said:
            message = f"{workspace} is in no git repository: there would be no way back"
            raise ConfigError(message, 'Try: git init && git add -A && git commit -m "Begin"')
        if "must be run in a work tree" in done.said:
            message = f"{workspace} is in a repository without files (bare, or its .git directory)"
            raise ConfigError(message, "Work in a clone of it: git clone REPOSITORY")
        raise ConfigError(f"git cannot work in {workspace}: {done.said}", "Try: git status")
    top, git_dir, exclude, hooks, kind = os.fsdecode(done.output).splitlines()
    records = os.path.relpath(os.path.join(os.path.realpath(workspace), ".ralph"), top)
    run = os.path.relpath(os.path.realpath(run_dir), top)
    run = "" if run.startswith("..") else run
    zeros = "0" * (64 if kind == "sha256" else 40)
    settings = _settings(workspace, environ)
    return RepositoryPlace(top, git_dir, exclude, hooks, records, run, zeros, settings)


def _settings(workspace: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Settings that shape the work tree, for the command line, so that nobody can change them."""
    found = dict(_SHAPING)
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", ""), ".config")
    if os.path.isabs(home):
        found["core.excludesfile"] = os.path.join(home, "git", "ignore")
        found["core.attributesfile"] = os.path.join(home, "git", "attributes")
    pattern = f"^({'|'.join(_SHAPING)})$".replace(".", r"\.")
    said = call(("config", "-z", "--get-regexp", pattern), workspace, environ).output
    for entry in nul_split(said):
        name, has_value, text = entry.partition("\n")
        found[name] = text if has_value else "true"
    return tuple(f"{name}={text}" for name, text in found.items())


class Repository:
    """A repository to ask and to change; a command that fails is a StateError with git's own
    words."""

    def __init__(self, place: RepositoryPlace, environ: Mapping[str, str]) -> None:
        self.place = place
        self.environ = clean_environ(environ)
        kept = {"GIT_DIR": place.git_dir, "GIT_WORK_TREE": place.top, "LC_ALL": "C"}
        self._environ = {**self.environ, **kept, **RALPH, "GIT_OPTIONAL_LOCKS": "0"}
        pairs = (("-c", setting) for setting in (*_DEAF, *place.settings))
        self._options = tuple(word for pair in pairs for word in pair)

    @property
    def index(self) -> str:
        return os.path.join(self.place.git_dir, "index")

    def run(self, *words: str, stdin: bytes | None = None, index: str = "") -> GitResult:
        """Run a command, with another index if one is named."""
        environ = {**self._environ, "GIT_INDEX_FILE": index} if index else self._environ
        return call((*self._options, *words), self.place.top, environ, stdin)

    def ask(self, *words: str, stdin: bytes | None = None, index: str = "") -> bytes:
        """The output of a command; a StateError if it fails."""
        done = self.run(*words, stdin=stdin, index=index)
        if done.code != 0:
            said = done.said or f"it exited with code {done.code}"
            raise StateError(f"git {words[0]}: {said}", f"Try: git -C {self.place.top} status")
        return done.output

    def names(self, *words: str, index: str = "") -> list[str]:
        """The names that a command prints with `-z`; a StateError if it fails."""
        return nul_split(self.ask(*words, index=index))

    @cached_property
    def empty(self) -> str:
        """The tree of nothing."""
        return self.identifier("hash-object", "-t", "tree", "-w", "--stdin", stdin=b"")

    def identifier(self, *words: str, stdin: bytes | None = None, index: str = "") -> str:
        """The one word that a command prints."""
        return self.ask(*words, stdin=stdin, index=index).decode().strip()

    def resolve(self, name: str) -> str:
        """The object of that name; "" if there is none."""
        return self.run("rev-parse", "--verify", "--quiet", name).output.decode().strip()

    def follows(self, old: str, new: str = "HEAD") -> bool:
        """True if everything of the one commit is in the other."""
        return self.run("merge-base", "--is-ancestor", old, new).code == 0

    def symbolic(self, name: str) -> str:
        """The ref that another stands for, such as the branch of HEAD; "" if it is none."""
        return os.fsdecode(self.run("symbolic-ref", "--quiet", name).output).strip("\n")

    def inside(self, path: str, *words: str, index: str = "") -> GitResult:
        """Run a command in a submodule, whose settings an agent may have changed as well."""
        options = (word for setting in _DEAF for word in ("-c", setting))
        environ = {**self.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        own = {"GIT_INDEX_FILE": index} if index else {}
        return call((*options, *words), self.place.path(path), {**environ, **own})

    def stage(self, index: str, gone: Iterable[str], there: Iterable[str]) -> GitResult:
        """Make an index agree with the work tree about these paths."""
        done = GitResult(0, b"", "")
        removed = nul_joined(f"0 {self.place.zeros}\t{name}" for name in gone)
        if removed:
            done = self.run("update-index", "-z", "--index-info", stdin=removed, index=index)
        added = nul_joined(there)
        if added and done.code == 0:
            words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            done = self.run(*words, stdin=added, index=index)
        return done


def nul_joined(names: Iterable[str]) -> bytes:
    """Names as git reads them with `-z`."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def nul_split(output: bytes) -> list[str]:
    """Names as git prints them with `-z`."""
    return os.fsdecode(output).split("\0")[:-1]


@contextmanager
def scratch_index(directory: str) -> Iterator[str]:
    """The path of an index of our own, gone afterwards."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=directory) as path:
        yield os.path.join(path, "index")


def copy_index(source: str, target: str) -> None:
    """Copy an index, if there is one. Its time goes with it: git takes a file that is younger than
    the index for one that may have changed since."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        pass


def with_records(repository: Repository, run_dir: str, tree: str, base: str) -> str:
    """A tree with `.ralph` as it was: that is the host's, and others have written to theirs."""
    records = repository.place.records
    if not repository.resolve(f"{base}:{records}"):
        return tree
    with scratch_index(run_dir) as index:
        repository.ask("read-tree", tree, index=index)
        repository.ask("read-tree", f"--prefix={records}/", f"{base}:{records}", index=index)
        return repository.identifier("write-tree", index=index)
