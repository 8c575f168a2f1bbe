"""What a machine keeps of a remote: a bare repository, and warm work trees, one for each attempt
that is under way at the same time. An agent that nothing contains can reach all of it, so git's
settings and hooks are written anew for each attempt.

    <cache>/ralph/fleet/<name>-<8 hex>/repo.git
                                       trees/<n>, <n>.lock, <n>.index, <n>.setup
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count

from ralph.errors import ConfigError, StateError, failing
from ralph.files.digest import digest_of
from ralph.files.safe_open import read_or_nothing, remove_file
from ralph.files.state_dir import write_atomically
from ralph.files.state_home import cache_home
from ralph.git.repository import Repository, RepositoryPlace, call, clean_environ, copy_index
from ralph.kernel.value import value
from ralph.processes.child import Command
from ralph.processes.keeper import end_orphans
from ralph.sandbox import layer_store

_UNUSED = 30 * 24 * 3600.0  # seconds after which what is kept of a remote goes
_DEAF = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
TIDY = ("-c", "gc.autoDetach=false", "gc", "--auto", "--quiet", "--prune=2.hours.ago")
_OURS = "refs/fleet/"
_BROKEN = "broken"  # how the names of repositories begin that are of no use
_FREE = "Free some space, or choose another place: export XDG_CACHE_HOME=/some/where"


@value
class Slot:
    """A work tree that one attempt has for itself."""

    number: int
    tree: str
    git_dir: str
    inside: str = ""  # the project in it

    @property
    def workspace(self) -> str:
        return os.path.normpath(os.path.join(self.tree, self.inside))

    @property
    def index(self) -> str:
        """The index as it was when the files were laid out, which no agent has written."""
        return f"{self.tree}.index"

    @property
    def stamp(self) -> str:
        """Says for what the tree is set up."""
        return f"{self.tree}.setup"

    @property
    def ref(self) -> str:
        """Keeps the order, and tells the remote what is here already."""
        return f"{_OURS}{self.number}"

    def wipe(self) -> None:
        """Begin anew."""
        for path in (self.stamp, self.index):
            remove_file(path)
        remove(self.tree)
        remove(self.git_dir)


class Cache:
    """What is kept of one remote. Whoever has it holds a lock that others may hold as well."""

    def __init__(self, path: str, environ: Mapping[str, str], lock: int) -> None:
        self.path, self.environ, self._lock = path, environ, lock
        self.git_dir = os.path.join(path, "repo.git")
        self.trees = os.path.join(path, "trees")
        place = RepositoryPlace(path, self.git_dir, "", "", ".ralph", "", "0" * 40, ())
        self.repository = Repository(place, environ)

    def prepare(self, order: str) -> None:
        """Have the repository, as git makes it; `order` is a commit of it."""
        with self._alone():
            config = os.path.join(self.path, "config")
            if not os.path.isfile(os.path.join(self.git_dir, "HEAD")) or not os.path.isfile(config):
                kind = "sha256" if len(order) == 64 else "sha1"
                words = ("init", "--quiet", "--bare", "--template=", f"--object-format={kind}")
                made = call((*words, self.git_dir), self.path, clean_environ(self.environ))
                if made.code == 127:
                    raise ConfigError("git was not found", "Install git there.")
                if made.code != 0:
                    raise StateError(f"no repository can be made: {made.said}", _FREE)
                said = read_or_nothing(os.path.join(self.git_dir, "config"))
                write_atomically(config, said.decode())
            self.scrub()
            if self._is_only_ours():
                others = [ref for ref, at in self._refs() if not at]
                lines = "".join(f"delete {ref}\n" for ref in others)
                self.repository.ask("update-ref", "--stdin", stdin=os.fsencode(lines))
                self._share()

    def command(self, *words: str) -> Command:
        """A git that may take long."""
        environ = {**clean_environ(self.environ), "GIT_DIR": self.git_dir, "LC_ALL": "C"}
        return Command(("git", *_DEAF, *words), self.path, environ)

    def scrub(self) -> None:
        """Put git's settings back, and have no hooks."""
        wanted = read_or_nothing(os.path.join(self.path, "config"))
        config = os.path.join(self.git_dir, "config")
        if read_or_nothing(config) != wanted:
            remove_file(config)
            write_atomically(config, wanted.decode())
        for name in ("hooks", "info"):
            remove(os.path.join(self.git_dir, name))
        for name in ("config.worktree", "objects/info/alternates", "shallow"):
            remove_file(os.path.join(self.git_dir, name))

    @contextmanager
    def slot(self, holder: str) -> Iterator[Slot]:
        """A work tree that nobody else has. What `holder` says in its environment finds the
        processes of a holder that is killed."""
        os.makedirs(self.trees, mode=0o700, exist_ok=True)
        number, lock = self._free()
        try:
            before = os.fsdecode(os.pread(lock, 4096, 0))
            end_orphans(before)  # it was killed, and its keeper may need a moment
            _note(lock, holder)
            tree = os.path.join(self.trees, str(number))
            slot = Slot(number, tree, os.path.join(self.git_dir, "worktrees", str(number)))
            try:
                yield slot
            finally:
                self._leave(slot)
                _note(lock, "")
        finally:
            os.close(lock)

    def lay_out(self, slot: Slot, tree: str, head: str, branch: str) -> None:
        """Have exactly these files in the slot, but for what git ignores, on a branch of that name
        which is at `head`. What is in the way goes, and all of it if that does not help."""
        for last in (False, True):
            try:
                self._on_branch(slot, head, branch)
                self.fill(slot, tree)
                break
            except (StateError, OSError):
                if last:
                    raise
                slot.wipe()

    def fill(self, slot: Slot, tree: str) -> None:
        """Have exactly the files of a tree, but for what git ignores."""
        git, ours = self._repository_of(slot), os.path.join(slot.inside, ".ralph")
        git.ask("read-tree", "--reset", "-u", tree)
        git.ask("clean", "-ffdq")
        git.ask("--literal-pathspecs", "clean", "-ffdqx", "--", ours)  # that is one attempt's own
        copy_index(os.path.join(slot.git_dir, "index"), f"{slot.index}.new")
        os.replace(f"{slot.index}.new", slot.index)

    def stage(self, slot: Slot, head: str) -> None:
        """Have the index of a commit; the files stay."""
        self._repository_of(slot).ask("read-tree", "--reset", head)

    def make_anew(self, order: str) -> bool:
        """Throw all of it away and begin anew, unless somebody else works with it."""
        if not self._is_only_ours():
            return False
        with suppress(FileNotFoundError):
            os.rename(self.git_dir, os.path.join(self.path, f"{_BROKEN}-{time.time_ns():x}"))
        for name in os.listdir(self.path):
            if name.startswith(_BROKEN):
                remove(os.path.join(self.path, name))
        for name in os.listdir(self.trees):
            if not name.endswith(".lock"):
                remove(os.path.join(self.trees, name))
        self._share()
        self.prepare(order)
        return True

    def _is_only_ours(self) -> bool:
        """True if nobody else works with it, until it is shared again."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._share()  # it is lost by such a try
            return False
        return True

    def _share(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def _repository_of(self, slot: Slot) -> Repository:
        place = RepositoryPlace(slot.tree, slot.git_dir, "", "", ".ralph", "", "0" * 40, ())
        return Repository(place, self.environ)

    def _on_branch(self, slot: Slot, head: str, branch: str) -> None:
        """Write what git keeps of a work tree anew, so that nothing of the one before is left: its
        locks, what it was in the middle of, where it had HEAD."""
        with self._alone():
            remove(slot.git_dir)
            os.makedirs(slot.git_dir)
            if os.path.islink(slot.tree):
                slot.wipe()
            os.makedirs(slot.tree, mode=0o700, exist_ok=True)
            taken = {ref for ref, at in self._refs() if at and at != slot.tree}
            names = (branch, *(f"{branch}-{n}" for n in range(2, 1000)))
            ref = next(name for name in names if name not in taken)
            link = os.path.join(slot.tree, ".git")
            remove(link)
            for path, text in (
                (link, f"gitdir: {slot.git_dir}\n"),
                (os.path.join(slot.git_dir, "gitdir"), f"{link}\n"),
                (os.path.join(slot.git_dir, "commondir"), "../..\n"),
                (os.path.join(slot.git_dir, "HEAD"), f"ref: {ref}\n"),
            ):
                write_atomically(path, text)
            copy_index(slot.index, os.path.join(slot.git_dir, "index"))
            self.repository.ask("update-ref", "--no-deref", ref, head)

    def _refs(self) -> list[tuple[str, str]]:
        """All but ours, and where each is checked out."""
        form = "--format=%(refname)%00%(worktreepath)"
        said = os.fsdecode(self.repository.ask("for-each-ref", form)).splitlines()
        found = [(ref, at) for ref, _, at in (line.partition("\0") for line in said)]
        return [(ref, at) for ref, at in found if not ref.startswith(_OURS)]

    def _leave(self, slot: Slot) -> None:
        """Leave the branch, which is for one attempt."""
        with suppress(OSError, StateError):
            head = os.path.join(slot.git_dir, "HEAD")
            said = os.fsdecode(read_or_nothing(head, 4096))
            ref = said.removeprefix("ref: ").strip()
            at = self.repository.resolve(slot.ref)
            if at and ref.startswith("refs/heads/"):
                write_atomically(head, f"{at}\n")
                self.repository.run("update-ref", "-d", ref)

    def _free(self) -> tuple[int, int]:
        for number in count():
            path = os.path.join(self.trees, f"{number}.lock")
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            return number, lock
        raise AssertionError

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep the others of this cache waiting for a moment."""
        lock = os.open(os.path.join(self.path, "making"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


@contextmanager
def opened(environ: Mapping[str, str], remote: str) -> Iterator[Cache]:
    """What is kept here of a remote; what is kept of others, and was not used for long, goes."""
    above = os.path.join(cache_home(environ), "ralph", "fleet")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", remote.rstrip("/").rpartition("/")[2])[:60].strip(".-")
    named = f"{name.removesuffix('.git') or 'remote'}-{digest_of([os.fsencode(remote)], size=4)}"
    path = os.path.join(above, named)
    with failing(f"cannot write the cache {path}", _FREE, StateError):
        os.makedirs(path, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            os.utime(lock)
            _forget(above, but=named)
            cache = Cache(path, environ, lock)
        except BaseException:
            os.close(lock)
            raise
    try:
        yield cache
    finally:
        os.close(lock)


def remove(path: str) -> None:
    """Remove what is there, whatever it is; what a link leads to stays."""
    if os.path.isdir(path) and not os.path.islink(path):
        layer_store.remove(path)
    else:
        remove_file(path)


def _forget(above: str, *, but: str) -> None:
    for name in os.listdir(above):
        path = os.path.join(above, name)
        with suppress(OSError):
            lock = os.open(os.path.join(path, "lock"), os.O_RDWR)
            try:
                old = time.time() - os.fstat(lock).st_mtime > _UNUSED
                if old and name != but:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove(path)
            finally:
                os.close(lock)


def _note(lock: int, text: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, os.fsencode(text), 0)
