"""Git as the host calls it: by argument vectors, without prompts or hooks, and deaf to settings
that an agent may have put into the repository since the run began."""

import errno
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple
from functools import cache, cached_property
from typing import TypeVar

from ralph.errors import ConfigError, StateError
from ralph.files.safe_open import open_regular, read_or_nothing
from ralph.kernel.value import value
from ralph.processes.child import memory_file
from ralph.processes.which import which

# They would lead git elsewhere, or change what a path means.
_ELSEWHERE = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"}
    | {"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_IMPLICIT_WORK_TREE"}
    | {"GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE", "GIT_QUARANTINE_PATH"}
    | {"GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS"}
    | {"GIT_ICASE_PATHSPECS", "GIT_EXTERNAL_DIFF", "GIT_REFLOG_ACTION", "GIT_INDEX_VERSION"}
    | {"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GPG_TTY"}
)
PINNED = "git.json"  # where the repository is, in a run's directory
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


_FIXED = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")  # the full name of an object
_ON_BRANCH = re.compile(rb"ref: (refs/heads/[^.\s][^\s]*)\n")
NOTHING = "000000"  # the mode of a file that is not there
_TREE = "040000"
LINK = "160000"  # the mode of a repository in a tree
_PACKED_TREE = 2 << 4
NO_INDEX = "/proc/none"  # git would read all of its own first, also where it needs none of it
Entry = tuple[str, str]  # mode and object
_LOOSE = 1000  # objects that are worth a pack
_MOST_KEPT = 8  # answers that are remembered
_Key = TypeVar("_Key")
_Answer = TypeVar("_Answer")


@value
class TreeChange:
    """A path in which two trees differ: what it is now, and what it was."""

    path: str
    mode: str
    identifier: str
    old_mode: str
    old_identifier: str

    @property
    def kind(self) -> str:
        """Added, deleted or modified."""
        names = {self.mode: "deleted", self.old_mode: "added"}
        return names.get(NOTHING, "modified")

    @property
    def before(self) -> Entry:
        """The entry of the older tree."""
        return self.old_mode, self.old_identifier

    @property
    def reversed(self) -> "TreeChange":
        """The same as the older tree sees it."""
        now, was = (self.mode, self.identifier), (self.old_mode, self.old_identifier)
        return TreeChange(self.path, *was, *now)


@value
class GitResult:
    """The end of a git command."""

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
        return any(name == one or name.startswith(f"{one}/") for one in self.ours)

    @property
    def ours(self) -> tuple[str, ...]:
        """`.ralph`, and the run's directory if that is in the repository."""
        return (self.records, self.run) if self.run else (self.records,)

    @property
    def common(self) -> str:
        """The git directory where worktrees of one repository have their objects."""
        where = os.fsdecode(read_or_nothing(os.path.join(self.git_dir, "commondir"), 4096)).strip()
        return os.path.normpath(os.path.join(self.git_dir, where))

    def text(self) -> str:
        """As JSON, for a run that goes on later."""
        return json.dumps(astuple(self))

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
    arguments: Iterable[str], cwd: str, environ: Mapping[str, str], stdin: bytes = b""
) -> GitResult:
    """Run git to its end, on files in memory: the pipes of `subprocess` take as long as git itself.
    A Ctrl+C in the terminal does not reach it: nothing is left half done."""
    return begun(arguments, cwd, environ, stdin)()


def begun(
    arguments: Iterable[str], cwd: str, environ: Mapping[str, str], stdin: bytes = b""
) -> Callable[[], GitResult]:
    """Start git as `call` does; what is given waits for its end, and is to be called once."""
    git = _program(environ.get("PATH", os.defpath))
    argv, files = ("git", "-C", cwd, *arguments), list[int]()

    def ended() -> GitResult:
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            output, said = (os.pread(file, os.fstat(file).st_size, 0) for file in files[1:])
        finally:
            for file in files:
                os.close(file)
        return GitResult(code, output, said.decode("utf-8", "replace").strip())

    try:
        if git is None or not os.path.isdir(cwd):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        files += [memory_file(data) for data in (stdin, b"", b"")]
        actions = [(os.POSIX_SPAWN_DUP2, file, n) for n, file in enumerate(files)]
        pid = os.posix_spawn(git, argv, environ, file_actions=actions, setsid=True)
    except OSError as error:
        for file in files:
            os.close(file)
        failed = GitResult(127, b"", f"cannot run git in {cwd}: {error.strerror}")
        return lambda: failed
    return ended


@cache
def _program(path: str) -> str | None:
    return which("git", path)


def is_repository(workspace: str) -> bool:
    """True if there is one around it, also a broken one; git passes by an empty `.git`."""
    here = os.path.realpath(workspace)
    while True:
        git = os.path.join(here, ".git")
        try:
            found = bool(os.listdir(git))
        except OSError:
            found = os.path.lexists(git)
        here, below = os.path.dirname(here), here
        if found or here == below:
            return found


def find(workspace: str, environ: Mapping[str, str], run_dir: str) -> RepositoryPlace:
    """The repository that the workspace is in; a ConfigError where there is none to work in."""
    environ = {**clean_environ(environ), "LC_ALL": "C"}
    pattern = f"^({'|'.join(_SHAPING)})$".replace(".", r"\.")
    settings = begun(("config", "-z", "--get-regexp", pattern), workspace, environ)
    done, said = call(_WHERE, workspace, environ), settings().output
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
    shaping = _settings(said, environ)
    return RepositoryPlace(top, git_dir, exclude, hooks, records, run, zeros, shaping)


def repository_of_run(workspace: str, environ: Mapping[str, str], run_dir: str) -> "Repository":
    """The repository as it was when the run began, also for a run that goes on."""
    path = os.path.join(run_dir, PINNED)
    if os.path.exists(path):
        with open_regular(path) as file:
            return Repository(RepositoryPlace.of(file.read().decode()), environ)
    place = find(os.path.realpath(workspace), environ, os.path.abspath(run_dir))
    return Repository(place, environ)


def _settings(said: bytes, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Settings that shape the work tree, for the command line, so that nobody can change them: what
    git has `said` of them, and its defaults."""
    found = dict(_SHAPING)
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", ""), ".config")
    if os.path.isabs(home):
        found["core.excludesfile"] = os.path.join(home, "git", "ignore")
        found["core.attributesfile"] = os.path.join(home, "git", "attributes")
    for entry in nul_split(said):
        name, has_value, text = entry.partition("\n")
        found[name] = text if has_value else "true"
    return tuple(f"{name}={text}" for name, text in found.items())


class Repository:
    """A repository to ask and to change. A failed command is a StateError with git's words."""

    def __init__(self, place: RepositoryPlace, environ: Mapping[str, str]) -> None:
        self.place = place
        self.environ = clean_environ(environ)
        kept = {"GIT_DIR": place.git_dir, "GIT_WORK_TREE": place.top, "LC_ALL": "C"}
        self._environ = {**self.environ, **kept, **RALPH, "GIT_OPTIONAL_LOCKS": "0"}
        pairs = (("-c", setting) for setting in (*_DEAF, *place.settings))
        self._options = tuple(word for pair in pairs for word in pair)
        self._changes: dict[tuple[str, str], tuple[TreeChange, ...]] = {}
        self._trees: dict[str, str] = {}  # of commits

    @property
    def index(self) -> str:
        return os.path.join(self.place.git_dir, "index")

    def run(self, *words: str, stdin: bytes = b"", index: str = "") -> GitResult:
        """Run a command, with another index if one is named."""
        return self.begun(*words, stdin=stdin, index=index)()

    def begun(self, *words: str, stdin: bytes = b"", index: str = "") -> Callable[[], GitResult]:
        """Start a command; what is given waits for its end."""
        environ = {**self._environ, "GIT_INDEX_FILE": index} if index else self._environ
        return begun((*self._options, *words), self.place.top, environ, stdin)

    def ask(self, *words: str, stdin: bytes = b"", index: str = "") -> bytes:
        """The output of a command; a StateError if it fails."""
        return self.asking(*words, stdin=stdin, index=index)()

    def asking(self, *words: str, stdin: bytes = b"", index: str = "") -> Callable[[], bytes]:
        """Start a command; what is given waits for its output."""
        ended = self.begun(*words, stdin=stdin, index=index)

        def output() -> bytes:
            done = ended()
            if done.code != 0:
                said = done.said or f"it exited with code {done.code}"
                raise StateError(f"git {words[0]}: {said}", f"Try: git -C {self.place.top} status")
            return done.output

        return output

    def names(self, *words: str, index: str = "") -> list[str]:
        """The names that a command prints with `-z`; a StateError if it fails."""
        return nul_split(self.ask(*words, index=index))

    def changes(self, tree: str, since: str) -> tuple[TreeChange, ...]:
        """The paths in which two trees differ. Objects never change, so git is asked once."""
        if tree == since:
            return ()
        if (since, tree) in self._changes:
            return tuple(change.reversed for change in self._changes[since, tree])
        if (tree, since) in self._changes:
            return self._changes[tree, since]
        words = ("diff-tree", "-r", "-z", "--no-renames", "--raw")
        parts = self.names(*words, tree, since, index=NO_INDEX)
        found = tuple(map(_change, parts[::2], parts[1::2]))
        if _FIXED.fullmatch(tree) and _FIXED.fullmatch(since):
            _remember(self._changes, (tree, since), found)
        return found

    def know_changes(self, tree: str, since: str, changes: tuple[TreeChange, ...]) -> None:
        """Remember in what a tree differs that was made of another."""
        _remember(self._changes, (tree, since), changes)

    def differing(self, tree: str, since: str) -> list[str]:
        """The paths in which two trees differ."""
        return [change.path for change in self.changes(tree, since)]

    @cached_property
    def empty(self) -> str:
        """The tree of nothing."""
        return self.identifier("hash-object", "-t", "tree", "-w", "--stdin", stdin=b"")

    def identifier(self, *words: str, stdin: bytes = b"", index: str = "") -> str:
        """The one word that a command prints."""
        return self.ask(*words, stdin=stdin, index=index).decode().strip()

    def resolve(self, name: str) -> str:
        """The object of that name; "" if there is none."""
        return self.run("rev-parse", "--verify", "--quiet", name).output.decode().strip()

    def tree_of(self, commit: str) -> str:
        """The tree of a commit; "" for none."""
        tree = self._trees.get(commit, "")
        if commit and not tree and (tree := self.resolve(f"{commit}^{{tree}}")):
            _remember(self._trees, commit, tree)
        return tree

    def know_tree(self, commit: str, tree: str) -> None:
        """Remember the tree that a commit was made of."""
        _remember(self._trees, commit, tree)

    def follows(self, old: str, new: str = "HEAD") -> bool:
        """True if everything of the one commit is in the other."""
        return self.run("merge-base", "--is-ancestor", old, new).code == 0

    def symbolic(self, name: str) -> str:
        """The ref that another stands for, such as the branch of HEAD; "" if it is none."""
        if name == "HEAD":
            path = os.path.join(self.place.git_dir, name)
            said = b"" if os.path.islink(path) else read_or_nothing(path)
            if found := _ON_BRANCH.fullmatch(said):  # as nearly always; otherwise git knows
                return os.fsdecode(found[1])
        return os.fsdecode(self.run("symbolic-ref", "--quiet", name).output).strip("\n")

    def hidden(self) -> list[str]:
        """The files that git was told not to look at."""
        return hidden_in(self.ask("ls-files", "-v", "-z"))

    def entries(self, paths: Collection[str], directory: str) -> dict[str, Entry]:
        """The entries git would make of these files as they are now, by a scratch index."""
        if not paths:
            return {}
        with scratch_index(directory) as index:
            self.stage(index, (), paths)
            rows = self.names("ls-files", "-s", "-z", index=index)
        parts = (row.partition("\t") for row in rows)
        found = {path: (fields[:6], fields.split(" ")[1]) for fields, _, path in parts}
        return {path: found.get(path, (NOTHING, self.place.zeros)) for path in paths}

    def edited(self, tree: str, entries: Mapping[str, Entry]) -> str:
        """A tree with these entries by path; one of mode NOTHING is taken out. Only the folders
        above them are read and written: an index would hold all files."""
        if not entries:
            return tree
        folders: dict[str, dict[str, Entry]] = {"": {}}
        for path in entries:
            while path := os.path.dirname(path):
                folders.setdefault(path, {})
        listed = self.names("ls-tree", "-z", tree, index=NO_INDEX)
        if len(folders) > 1:
            words = ("--literal-pathspecs", "ls-tree", "-z", "-t", tree, "--")
            inner = (f"{folder}/" for folder in folders if folder)
            listed += self.names(*words, *inner, index=NO_INDEX)
        for line in listed:
            fields, _, path = line.partition("\t")
            folder, _, name = path.rpartition("/")
            mode, _, identifier = fields.split(" ")
            folders[folder][name] = mode, identifier
        return self._written(folders, entries)

    def _written(self, folders: dict[str, dict[str, Entry]], entries: Mapping[str, Entry]) -> str:
        """Write these folders with the entries, from the innermost up; the tree of the top. As a
        pack: `git mktree` would look at every object that a folder names."""
        import hashlib

        kind = hashlib.sha1 if len(self.place.zeros) == 40 else hashlib.sha256
        for path, entry in entries.items():
            folder, _, name = path.rpartition("/")
            folders[folder].pop(name, None)
            if entry[0] != NOTHING:
                folders[folder][name] = entry
        trees, made = [], ""
        for folder in sorted(folders, key=len, reverse=True):  # the top is the last
            data = _tree(folders[folder])
            made = kind(b"tree %d\0%s" % (len(data), data)).hexdigest()
            trees.append(data)
            above, _, name = folder.rpartition("/")
            if data:
                folders[above][name] = _TREE, made
            elif folder not in entries:  # else it has become a file
                folders[above].pop(name, None)
        pack = _pack(trees)
        self.ask("unpack-objects", "-q", stdin=pack + kind(pack).digest())
        return made

    def commit(self, tree: str, parents: Iterable[str], what: str) -> str:
        """A commit of a tree, on no branch."""
        words = [word for parent in parents for word in ("-p", parent)]
        message = f"ralph: {what}\n".encode("utf-8", "replace")
        return self.identifier("commit-tree", tree, *words, stdin=message)

    def save(self, ref: str, tree: str, parents: Iterable[str], what: str) -> None:
        """Keep a tree by a ref of our own."""
        self.ask("update-ref", ref, self.commit(tree, parents, what))

    def pack(self) -> None:
        """Pack what a long run has left as single files, unless the user has told git not to."""
        words = ("rev-parse", "--path-format=absolute", "--git-path", "objects/17")
        folder = os.fsdecode(self.run(*words).output).strip("\n")
        some = len(os.listdir(folder)) if os.path.isdir(folder) else 0  # as git counts them
        if some * 256 >= _LOOSE and self.run("config", "gc.auto").output.strip() != b"0":
            self.run("repack", "-d", "-q")

    def stash(self) -> tuple[tuple[str, str], ...]:
        """The commits of the stash with their words, newest first."""
        kept = ("logs/refs/stash", "reftable")  # where git has them
        if not any(os.path.lexists(os.path.join(self.place.common, name)) for name in kept):
            return ()
        words = ("log", "--walk-reflogs", "-z", "--no-show-signature", "--format=%H %gs")
        said = nul_split(self.run(*words, "refs/stash", "--").output)
        pairs = (entry.strip("\n").partition(" ") for entry in said)
        return tuple((commit, words) for commit, _, words in pairs)

    def inside(self, path: str, *words: str, index: str = "") -> GitResult:
        """Run a command in a submodule, whose settings an agent may have changed as well."""
        options = (word for setting in _DEAF for word in ("-c", setting))
        environ = {**self.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        own = {"GIT_INDEX_FILE": index} if index else {}
        return call((*options, *words), self.place.path(path), {**environ, **own})

    def stage(self, index: str, gone: Iterable[str], there: Iterable[str]) -> None:
        """Make an index agree with the work tree about these paths; a StateError if git cannot."""
        removed = nul_joined(f"0 {self.place.zeros}\t{name}" for name in gone)
        steps = (
            (("--index-info",), removed),
            (("--add", "--remove", "--replace", "--stdin"), nul_joined(there)),
        )
        for words, names in steps:
            if names:
                done = self.run("update-index", "-z", *words, stdin=names, index=index)
                if done.code != 0:
                    raise StateError(f"the work cannot be saved: {done.said}", "Try: git status")


def _remember(answers: dict[_Key, _Answer], key: _Key, answer: _Answer) -> None:
    """Keep an answer, and of the others the newest: a run may ask for thousands."""
    answers[key] = answer
    if len(answers) > _MOST_KEPT:
        del answers[next(iter(answers))]


def _change(words: str, path: str) -> TreeChange:
    """An entry of `git diff-tree --raw -z`."""
    mode, old_mode, identifier, old_identifier, _ = words.removeprefix(":").split(" ")
    return TreeChange(path, mode, identifier, old_mode, old_identifier)


def _tree(entries: Mapping[str, Entry]) -> bytes:
    """A folder as git keeps it, which sorts by names, those of folders with a slash."""
    rows = [(os.fsencode(name) + b"/" * (m == _TREE), m, i) for name, (m, i) in entries.items()]
    return b"".join(
        b"%s %s\0%s" % (mode.lstrip("0").encode(), name.rstrip(b"/"), bytes.fromhex(identifier))
        for name, mode, identifier in sorted(rows)
    )


def _pack(trees: list[bytes]) -> bytes:
    """A pack of trees, but for the checksum at its end."""
    import zlib

    parts = [b"PACK", (2).to_bytes(4, "big"), len(trees).to_bytes(4, "big")]
    for data in trees:
        size, low = len(data) >> 4, len(data) & 15 | _PACKED_TREE
        while size:
            parts.append(bytes([low | 128]))
            size, low = size >> 7, size & 127
        parts += bytes([low]), zlib.compress(data, 0)  # git does it anew
    return b"".join(parts)


def hidden_in(listing: bytes) -> list[str]:
    """What git was told not to look at, of what `git ls-files -v -z` prints."""
    if listing.count(b"\0") == listing.startswith(b"H ") + listing.count(b"\0H "):
        return []  # nearly always: this is quick
    odd = [row for row in listing.split(b"\0") if row[:1].islower() or row[:1] == b"S"]
    return [os.fsdecode(row[2:]) for row in odd]


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
    import shutil

    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


def with_records(repository: Repository, tree: str, base: str) -> str:
    """A tree with `.ralph` as it was: that is the host's, and others have written to theirs."""
    records = repository.place.records
    was = repository.resolve(f"{base}:{records}")
    return repository.edited(tree, {records: (_TREE, was)}) if was else tree
