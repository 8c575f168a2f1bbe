"""A view of a work tree that nobody else shapes (ADR 33).

It is a git directory of our own, beside the journal: an index, settings, filters, attributes and
ignore rules as they were when the run began. Objects are the repository's. Whatever an agent writes
to `.git` afterwards, the view sees the files as they are.
"""

import os
import stat
from collections.abc import Iterable, Iterator

from ralph.agents.turn_files import private
from ralph.errors import StateError
from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import lstat, writing_state
from ralph.git.attributes import flattened
from ralph.git.repository import (
    NOTHING,
    Entry,
    GitResult,
    Repository,
    call,
    copy_index,
    hidden_in,
    nul_joined,
    nul_split,
    scratch_index,
)
from ralph.git.status import TreeStatus, hashed, is_among, look
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
# To write an index of so many bytes takes longer than to read so few files again at each look.
_LARGE = 1 << 20
_FEW, _FEW_BYTES = 64, 1 << 20
_PLAIN = {"core.filemode=true", "core.symlinks=true", "core.ignorecase=false"}
_IGNORE_RULES = (":(top,glob).gitignore", ":(top,glob)**/.gitignore")


class View(Repository):
    """The files of a repository's work tree, as git would commit them at the run's start."""

    def __init__(self, repository: Repository, run_dir: str) -> None:
        super().__init__(repository.place, repository.environ)
        self.repository = repository
        self.directory = os.path.join(os.path.abspath(run_dir), DIRECTORY)
        self._mine: tuple[int, ...] = ()  # the index as we left it
        self.base = ""  # the tree that it holds, without Ralph's own
        self._is_behind = False  # whether the last look found more than it holds
        self._edited: tuple[str, dict[str, Entry], str] = ("", {}, "")  # it, and the tree of that
        self._own: list[str] = []  # Ralph's own that it still holds
        self._listing = b""  # its entries, as long as nobody has changed it
        self._hides = False  # whether git was told not to look at something
        self._texts: dict[str, bytes] = {}  # what the view's files say
        pinned = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_COUNT")  # among the settings
        kept = {k: v for k, v in repository.environ.items() if not k.startswith(pinned)}
        self._view = {
            **kept,
            "GIT_DIR": self.directory,
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

    def begin(self) -> None:
        """Make the view, before the first turn; a run that goes on has it."""
        if os.path.exists(os.path.join(self.directory, "config")):
            # Taken as it is found, but for the index.
            names = ("config", "info/exclude", "info/attributes")
            self._texts = {
                name: read_or_nothing(os.path.join(self.directory, name)) for name in names
            }
            return
        with writing_state(self.directory):
            for name in ("info", "refs"):
                os.makedirs(os.path.join(self.directory, name), mode=0o700, exist_ok=True)
            self._write("HEAD", f"{_UNBORN}\n".encode())
            self._show_the_rest()
            settings = list(self._settings())
            # The user's own ignore rules, then the repository's: of two the last one counts.
            files = (self._named("core.excludesfile"), self.place.exclude)
            self._write(
                "info/exclude", b"".join(read_or_nothing(path) + b"\n" for path in files if path)
            )
            self._write("info/attributes", b"")
            copy_index(self.repository.index, self.index)
            sparse = read_or_nothing(os.path.join(self.place.git_dir, "info/sparse-checkout"))
            if sparse:
                self._write("info/sparse-checkout", sparse)
            self._write("config", _config(settings))
            self._take_over_index()
            self._write("info/attributes", self._attributes())

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
        tracked = _named(self._listing, ".gitattributes")
        found = sorted({".gitattributes", *tracked}, key=lambda path: path.count("/"))
        named = [
            ("", self._named("core.attributesfile")),
            *((os.path.dirname(path), self.place.path(path)) for path in found),
            ("", os.path.join(os.path.dirname(self.place.exclude), "attributes")),
        ]
        return flattened(
            [(folder, os.fsdecode(read_or_nothing(path))) for folder, path in named if path]
        )

    def _named(self, setting: str) -> str:
        """The file that a setting names, by what the repository was told or by default."""
        settings = dict(text.split("=", 1) for text in self.place.settings)
        return os.path.expanduser(settings.get(setting, ""))

    def _take_over_index(self) -> None:
        """Look also at what a person has told git not to look at, where it is there."""
        self._listing = listing = (
            self.ask("ls-files", "-v", "-z") if os.path.exists(self.index) else b""
        )
        self.base, self._is_behind = "", False
        hidden = hidden_in(listing)
        self._hides = bool(hidden)
        there = [path for path in hidden if os.path.lexists(self.place.path(path))]
        self._own = [path for top in self.place.ours for path in _below(listing, top)]
        changes = {"no-assume-unchanged": there, "no-skip-worktree": there}
        if len(listing) < _LARGE:
            changes["force-remove"], self._own = self._own, []
        for flag, paths in changes.items():
            if paths:
                self.ask("update-index", f"--{flag}", "-z", "--stdin", stdin=nul_joined(paths))
        self._mine = signature(self.index)

    def ignore_rules(self) -> bytes:
        """The files of ignore rules in the index, as `git update-index --index-info` reads them."""
        if self._listing and not any(_named(self._listing, ".gitignore")):
            return b""
        return self.ask("ls-files", "-s", "-z", "--", *_IGNORE_RULES)

    def run(self, *words: str, stdin: bytes = b"", index: str = "") -> GitResult:
        """Run a git command in the view, with another index if one is named."""
        return self.within(self.place.top, *words, stdin=stdin, index=index)

    def within(self, directory: str, *words: str, stdin: bytes = b"", index: str = "") -> GitResult:
        """Run a git command by the view's rules on another directory."""
        own = {"GIT_WORK_TREE": directory, "GIT_INDEX_FILE": index or self.index}
        return call(words, directory, {**self._view, **own}, stdin)

    def take_clean(self, seen: TreeStatus) -> str:
        """The tree of the view where nothing differs from the commit, but for what is Ralph's; ""
        if only git can tell."""
        tree = "" if self._hides or seen.changed else self.tree_of(seen.head)
        if tree:
            gone = (NOTHING, self.place.zeros)
            self.base = tree = self.edited(tree, dict.fromkeys(self.place.ours, gone))
        return tree

    def copy(self, index: str, tree: str) -> None:
        """Write an index of a tree, with what ours knows of its files."""
        if self._mine and self._mine == signature(self.index):
            copy_index(self.index, index)
        self.ask("read-tree", "--reset", tree, index=index)

    def look(self, head: str) -> TreeStatus:
        """The differences from a commit, "" for none, and from the index, which is then of now.

        What the commit has is part of the work, also if it is ignored; what only our index has is
        not, once it is ignored or another repository's. New submodules are part of it.
        """
        self._make_sure(head)
        seen = self._seen(head)
        # What is ignored is told by the index: that has to know what the commit has.
        behind = any(os.path.lexists(self.place.path(path)) for path in seen.gone)
        behind = behind or any(is_among(path, seen.ignored) for path in seen.there)
        if behind and self._is_behind:
            self._learn(seen)
            seen = self._seen(head)
        return seen

    def _seen(self, head: str) -> TreeStatus:
        seen = look(self)
        there = (*seen.there, *(p for p in seen.removed if _is_there(self.place.path(p))))
        inner = {p for p in (*seen.added, *there) if is_repository(self.place.path(p))}
        links = self._links({*inner, *(p.rstrip("/") for p in seen.apart if p.endswith("/"))}, head)
        elsewhere = self._elsewhere(seen)
        lost = {p for p in seen.added if is_among(p, elsewhere)} | (inner - links)
        there = tuple(path for path in there if not is_among(path, elsewhere))
        if seen.added:
            words = ("check-ignore", "--no-index", "-z", "--stdin")
            lost.update(nul_split(self.run(*words, stdin=nul_joined(seen.added)).output))
        return replace(
            seen,
            head=head,
            there=(*(path for path in there if path not in {*lost, *links}), *sorted(links)),
            gone=(*seen.gone, *sorted(lost)),
            apart=tuple(
                path for path in (*seen.apart, *elsewhere) if path.rstrip("/") not in links
            ),
        )

    def _elsewhere(self, seen: TreeStatus) -> frozenset[str]:
        """Directories that are repositories of their own now, and of which no commit has a file.
        Git would go on to see what is in there, because our index knows some of it."""
        found = set[str]()
        for path in seen.added:
            above = os.path.dirname(path)
            while above and not is_repository(self.place.path(above)):
                above = os.path.dirname(above)
            found |= {above} if above else set()
        words, known = ("--literal-pathspecs", "ls-files", "-z", "--"), {*seen.added, *seen.gone}
        alone = (above for above in found if known.issuperset(self.names(*words, above)))
        return frozenset(f"{above}/" for above in alone)

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
        """The files that were just seen, as a tree in git. Where they are few in a large repository
        the index stays as it is: the next look finds them again."""
        if not self.base:
            self.take_clean(seen)
        if self.base:
            entries = self._few(seen)
            if entries is not None:
                self._is_behind = bool(entries)
                if self._edited[:2] != (self.base, entries):
                    self._edited = self.base, entries, self.edited(self.base, entries)
                return self._edited[2]
        self._learn(seen)
        return self.base

    def _learn(self, seen: TreeStatus) -> None:
        """Let the index hold the files that were seen."""
        self.stage(self.index, (*seen.gone, *self._own), seen.there)
        self._own, self._listing, self._is_behind = [], b"", False
        self.base = self.identifier("write-tree")
        self._mine = signature(self.index)

    def _few(self, seen: TreeStatus) -> dict[str, Entry] | None:
        """The entries in which the files differ from the index; None if the index had better learn
        them, or if it decides what they are."""
        count = len(seen.there) + len(seen.gone)
        if not count:
            return {}
        is_large = bool(self._mine) and self._mine[1] >= _LARGE
        if not is_large or count > _FEW or not _PLAIN.issubset(self.place.settings):
            return None
        modes, room = dict[str, str](), _FEW_BYTES
        for path in seen.there:
            found = lstat(self.place.path(path))
            if found is None or not stat.S_ISREG(found.st_mode):
                return None
            room -= found.st_size
            # Where the index has such ends of lines, git keeps them.
            if room < 0 or b"\r" in read_or_nothing(self.place.path(path)):
                return None
            modes[path] = "100755" if found.st_mode & stat.S_IXUSR else "100644"
        try:
            blobs = hashed(self, [*modes], "-w")
        except StateError:  # it is gone by now
            return None
        gone = dict.fromkeys(seen.gone, (NOTHING, self.place.zeros))
        return gone | {path: (mode, blobs[path]) for path, mode in modes.items()}

    def _make_sure(self, head: str) -> None:
        """Put back the view as we left it. Somebody who has our rights can write to it: then its
        index is made anew, from the commit and the files themselves."""
        wanted = {**self._texts, "HEAD": f"{head or _UNBORN}\n".encode()}
        for name, text in wanted.items():
            if read_or_nothing(os.path.join(self.directory, name)) != text:
                self._write(name, text)
        if self._mine and self._mine == signature(self.index):
            return
        self.ask("read-tree", head or "--empty")
        self._take_over_index()

    def _write(self, name: str, text: bytes) -> None:
        if name != "HEAD":
            self._texts[name] = text
        path = os.path.join(self.directory, name)
        with open(f"{path}.new", "wb", opener=private) as file:
            file.write(text)
        os.replace(f"{path}.new", path)


class IgnoreRules:
    """Knows what was ignored when the run began, and by which rules anything would have been."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._directory = os.path.join(view.directory, "rules")  # the rules and nothing else
        self.known: frozenset[str] = frozenset()  # ignored then, or by the rules of then
        self._hidden: frozenset[str] = frozenset()  # ignored only by later ones

    def remember(self, ignored: Iterable[str]) -> None:
        """Keep the rules of now, and what they ignore."""
        self.known = frozenset(ignored)
        self.keep()

    def keep(self) -> None:
        """Keep the rules of now, unless there are some: another run may have tidied them up."""
        if os.path.isdir(self._directory):
            return
        with writing_state(self._directory):
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
        rows = self._view.ignore_rules()
        if rows:
            with scratch_index(self._view.directory) as index:
                self._view.ask("update-index", "-z", "--index-info", stdin=rows, index=index)
                words = ("checkout-index", "--all", "--force", "--quiet")
                self._view.ask(*words, f"--prefix={self._directory}/", index=index)

    def hidden(self, ignored: Iterable[str]) -> tuple[str, ...]:
        """Of what is ignored now, that which the old rules would have shown."""
        new = frozenset(ignored) - self.known
        unknown = sorted(new - self._hidden)
        if unknown:
            words = ("check-ignore", "--no-index", "-z", "--stdin")
            done = self._view.within(self._directory, *words, stdin=nul_joined(unknown))
            by_old = frozenset(nul_split(done.output))
            self.known |= by_old
            self._hidden |= frozenset(unknown) - by_old
        return tuple(sorted(new & self._hidden))


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


def _named(listing: bytes, name: str) -> Iterator[str]:
    """The paths of files of that name, in any folder, in what `git ls-files -v -z` prints."""
    yield from (path for path in _found(listing, name) if os.path.basename(path) == name)


def _below(listing: bytes, top: str) -> Iterator[str]:
    """The paths below a directory, or that path itself."""
    for path in _found(listing, top):
        if path == top or path.startswith(f"{top}/"):
            yield path


def _found(listing: bytes, text: str) -> Iterator[str]:
    """The paths that hold a text. The listing is long: it is not taken apart."""
    at = listing.find(sought := os.fsencode(text))
    while at >= 0:
        end = listing.find(b"\0", at)
        yield os.fsdecode(listing[listing.rfind(b"\0", 0, at) + 3 : end])  # behind "H "
        at = listing.find(sought, end)


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
