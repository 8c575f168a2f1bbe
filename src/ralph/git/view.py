"""A view of a work tree that nobody else shapes (ADR 33).

It is a git directory of our own, beside the journal: an index, settings, filters, attributes and
ignore rules as they were when the run began. Objects are the repository's. Whatever an agent writes
to `.git` afterwards, the view sees the files as they are.
"""

import os
from collections.abc import Iterator

from ralph.agents.turn_files import private
from ralph.errors import StateError
from ralph.files.state_dir import lstat, unwritable_state
from ralph.git.attributes import flattened
from ralph.git.repository import GitResult, Repository, call, copy_index, nul_joined, nul_split
from ralph.git.status import TreeStatus, look
from ralph.kernel.value import replace

DIRECTORY = "view"  # in a run's directory
_CONFIG = ("config", "--list", "-z")
_UNBORN = "ref: refs/heads/unborn"
# These would lead git elsewhere, run something for a look, or trust somebody's word for a file.
_NOT_TAKEN = (
    *("alias.", "core.worktree", "core.bare", "core.hookspath", "core.fsmonitor", "include"),
    *("core.untrackedcache", "core.splitindex", "core.excludesfile", "core.attributesfile"),
    *("core.trustctime", "core.checkstat", "submodule.recurse", "index.", "safe.", "trace2."),
    *("core.repositoryformatversion", "core.gitproxy", "core.sshcommand", "core.askpass"),
)
_EXTENSIONS = ("extensions.objectformat", "extensions.partialclone")
_OURS = (
    ("core.repositoryformatversion", "1"),
    ("core.bare", "false"),
    ("core.excludesfile", ""),
    ("core.attributesfile", ""),
    ("index.sparse", "false"),
)
# Files and directories of a repository that are its own business, or that the view has itself.
_NOT_SHOWN = frozenset(
    {"HEAD", "config", "config.worktree", "description", "hooks", "index", "info", "logs"}
    | {"objects", "packed-refs", "refs", "reftable", "worktrees", "branches", "commondir", "gitdir"}
)
_RULES = (":(top,glob).gitattributes", ":(top,glob)**/.gitattributes")


class View(Repository):
    """The files of a repository's work tree, as git would commit them at the run's start."""

    def __init__(self, repository: Repository, run_dir: str) -> None:
        super().__init__(repository.place, repository.environ)
        self.repository = repository
        self.directory = os.path.join(os.path.abspath(run_dir), DIRECTORY)
        self._mine: tuple[int, ...] = ()  # the index as we left it
        self._tree = ""  # what it holds
        self._texts: dict[str, bytes] = {}  # what the view's files say
        pinned = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_COUNT")  # among the settings
        kept = {k: v for k, v in repository.environ.items() if not k.startswith(pinned)}
        self._view = {
            **kept,
            "GIT_DIR": self.directory,
            "GIT_WORK_TREE": self.place.top,
            "GIT_OBJECT_DIRECTORY": os.path.join(self.common, "objects"),
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }

    @property
    def index(self) -> str:
        return os.path.join(self.directory, "index")

    # ------------------------------------------------------------ making it

    def begin(self) -> None:
        """Make the view, before the first turn; a run that goes on has it."""
        if os.path.exists(os.path.join(self.directory, "config")):
            # Taken as it is found, but for the index.
            names = ("config", "info/exclude", "info/attributes")
            self._texts = {name: _content(os.path.join(self.directory, name)) for name in names}
            return
        try:
            for name in ("info", "refs"):
                os.makedirs(os.path.join(self.directory, name), mode=0o700, exist_ok=True)
            self._write("HEAD", f"{_UNBORN}\n".encode())
            self._show_the_rest()
            settings = list(self._settings())
            # The user's own ignore rules, then the repository's: of two the last one counts.
            files = (self._named("core.excludesfile"), self.place.exclude)
            self._write("info/exclude", b"".join(_content(path) + b"\n" for path in files if path))
            self._write("info/attributes", b"")
            copy_index(self.repository.index, self.index)
            sparse = _content(os.path.join(self.place.git_dir, "info/sparse-checkout"))
            if sparse:
                self._write("info/sparse-checkout", sparse)
            self._write("config", _config(settings))
            self._write("info/attributes", self._attributes())
        except OSError as error:
            raise unwritable_state(self.directory, error) from error
        if os.path.exists(self.index):
            self._take_over_index()
        self._mine = signature(self.index)

    @property
    def common(self) -> str:
        """The git directory where worktrees of one repository have their objects."""
        path = os.path.join(self.place.git_dir, "commondir")
        try:
            with open(path, encoding="utf-8") as file:
                return os.path.normpath(os.path.join(self.place.git_dir, file.read().strip()))
        except OSError:
            return self.place.git_dir

    def _show_the_rest(self) -> None:
        """Link what filters keep beside the objects, such as large files and keys."""
        if self.repository.run("config", "--get-regexp", r"^filter\.lfs\.").code == 0:
            os.makedirs(os.path.join(self.common, "lfs"), exist_ok=True)
        for name in os.listdir(self.common):
            if name not in _NOT_SHOWN and not name.endswith((".lock", "_HEAD", "MSG")):
                link = os.path.join(self.directory, name)
                if not os.path.lexists(link):
                    os.symlink(os.path.join(self.common, name), link)

    def _settings(self) -> Iterator[tuple[str, str | None]]:
        done = call(_CONFIG, self.place.top, {**self.repository.environ, "LC_ALL": "C"})
        yield from _OURS
        for entry in nul_split(done.output):
            name, has_value, text = entry.partition("\n")
            if name in _EXTENSIONS or not name.startswith((*_NOT_TAKEN, "extensions.")):
                yield name, text if has_value else None

    def _attributes(self) -> bytes:
        """Those of the user, of the work tree from the top down, and of the repository."""
        tracked = nul_split(self.run("ls-files", "-z", "--cached", "--", *_RULES).output)
        found = sorted({".gitattributes", *tracked}, key=lambda path: path.count("/"))
        named = [
            ("", self._named("core.attributesfile")),
            *((os.path.dirname(path), self.place.path(path)) for path in found),
            ("", os.path.join(os.path.dirname(self.place.exclude), "attributes")),
        ]
        return flattened([(folder, os.fsdecode(_content(path))) for folder, path in named if path])

    def _named(self, setting: str) -> str:
        """The file that a setting names, by what the repository was told or by default."""
        pairs = (text.partition("=") for text in self.place.settings)
        name = next((path for name, _, path in pairs if name == setting), "")
        return os.path.expanduser(name)

    def _take_over_index(self) -> None:
        """Look also at what a person has told git not to look at, where it is there."""
        said = self.names("ls-files", "-v", "-z")
        hidden = [entry[2:] for entry in said if entry[:1].islower() or entry[:1] == "S"]
        there = [path for path in hidden if os.path.lexists(self.place.path(path))]
        records = [entry[2:] for entry in said if self.place.is_ours(entry[2:])]  # the host's
        changes = {"no-assume-unchanged": there, "no-skip-worktree": there, "force-remove": records}
        for flag, paths in changes.items():
            if paths:
                self.ask("update-index", f"--{flag}", "-z", "--stdin", stdin=nul_joined(paths))

    # ------------------------------------------------------------ using it

    def run(self, *words: str, stdin: bytes | None = None, index: str = "") -> GitResult:
        """Run a git command in the view, with another index if one is named."""
        environ = {**self._view, "GIT_INDEX_FILE": index or self.index}
        return call(words, self.place.top, environ, stdin)

    def within(
        self, directory: str, *words: str, stdin: bytes | None = None, index: str = ""
    ) -> GitResult:
        """Run a git command by the view's rules on another directory."""
        own = {"GIT_WORK_TREE": directory, "GIT_INDEX_FILE": index or self.index}
        return call(words, directory, {**self._view, **own}, stdin)

    def holds(self, tree: str) -> bool:
        """True if the index is of that tree, and ours."""
        return tree == self._tree and self._mine == signature(self.index)

    def look(self, head: str) -> TreeStatus:
        """The differences from a commit, "" for none, and from the index, which is then of now.

        What the commit has is part of the work, also if it is ignored; what only our index has is
        not, once it is ignored or another repository's. New submodules are part of it.
        """
        self._make_sure(head)
        seen = look(self)
        back = [path for path in seen.removed if _is_there(self.place.path(path))]
        inner = {p for p in seen.added if is_repository(self.place.path(p))}
        links = self._links({*inner, *(p.rstrip("/") for p in seen.apart if p.endswith("/"))}, head)
        lost = {p for p in seen.added if self._is_elsewhere(p)} | (inner - links)
        if seen.added:
            words = ("check-ignore", "--no-index", "-z", "--stdin")
            lost.update(nul_split(self.run(*words, stdin=nul_joined(seen.added)).output))
        return replace(
            seen,
            head=head,
            there=(*(p for p in seen.there if p not in {*lost, *links}), *back, *sorted(links)),
            gone=(*seen.gone, *sorted(lost)),
            apart=tuple(path for path in seen.apart if path.rstrip("/") not in links),
        )

    def _is_elsewhere(self, path: str) -> bool:
        """True if a directory above it is a repository of its own."""
        above = os.path.dirname(path)
        while above:
            if is_repository(self.place.path(above)):
                return True
            above = os.path.dirname(above)
        return False

    def _links(self, inner: set[str], head: str) -> set[str]:
        """Those of the inner repositories that are submodules of this one."""
        if not inner:
            return set()
        modules = self.place.path(".gitmodules")
        words = ("config", "--file", modules, "-z", "--get-regexp", r"^submodule\..*\.path$")
        said = self.run(*words).output if os.path.isfile(modules) else b""
        named = {entry.partition("\n")[2] for entry in os.fsdecode(said).split("\0")}
        if head:
            tree = ("--literal-pathspecs", "ls-tree", "-z", "--full-tree", head, "--", *inner)
            named |= {e.partition("\t")[2] for e in self.names(*tree) if e.startswith("160000 ")}
        return inner & named

    def tree(self, seen: TreeStatus) -> str:
        """The files that were seen, as a tree in git."""
        if seen.gone or seen.there or not self._tree:
            done = self.stage(self.index, seen.gone, seen.there)
            if done.code != 0:
                raise StateError(f"the work cannot be saved: {done.said}", "Try: git status")
            self._tree = self.identifier("write-tree")
            self._mine = signature(self.index)
        return self._tree

    def _make_sure(self, head: str) -> None:
        """Put back the view as we left it. Somebody who has our rights can write to it: then its
        index is made anew, from the commit and the files themselves."""
        wanted = {**self._texts, "HEAD": f"{head or _UNBORN}\n".encode()}
        for name, text in wanted.items():
            if _content(os.path.join(self.directory, name)) != text:
                self._write(name, text)
        if self._mine and self._mine == signature(self.index):
            return
        self.ask("read-tree", head or "--empty")
        self._take_over_index()
        self._tree = ""
        self._mine = signature(self.index)

    def _write(self, name: str, text: bytes) -> None:
        if name != "HEAD":
            self._texts[name] = text
        path = os.path.join(self.directory, name)
        with open(f"{path}.new", "wb", opener=private) as file:
            file.write(text)
        os.replace(f"{path}.new", path)


def _is_there(path: str) -> bool:
    """True if git could add it: behind no link, and no directory unless that is a repository."""
    above = os.path.dirname(path)
    if os.path.realpath(above) != above:
        return False
    if os.path.isdir(path) and not os.path.islink(path):
        return is_repository(path)
    return os.path.lexists(path)


def is_repository(path: str) -> bool:
    """True if a repository of its own stands there, not a link to one."""
    path = path.rstrip("/")
    return not os.path.islink(path) and os.path.lexists(os.path.join(path, ".git"))


def signature(path: str) -> tuple[int, ...]:
    """Marks that change whenever somebody writes the file; () for no file."""
    found = lstat(path)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if found else ()


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _config(settings: list[tuple[str, str | None]]) -> bytes:
    lines = []
    for name, text in settings:
        section, _, rest = name.partition(".")
        inner, _, key = rest.rpartition(".")
        lines.append(f'[{section} "{_escaped(inner)}"]' if inner else f"[{section}]")
        value = _escaped(text or "").replace("\n", "\\n").replace("\t", "\\t").replace("\b", "\\b")
        lines.append(f"\t{key}" if text is None else f'\t{key} = "{value}"')
    return os.fsencode("\n".join(lines) + "\n")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
