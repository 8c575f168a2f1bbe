"""A commit of exactly what was proven (ADR 33). The user's own hooks run, and may refuse it; what
they change is found, and the commit taken back."""

import os
import stat
from collections.abc import Callable, Iterable, Sequence

from ralph.errors import AbortedError, StateError
from ralph.files.state_dir import lstat, writing_state
from ralph.git.checkpoint.commit import are_small
from ralph.git.checkpoint.files import ENTER, content, index_lines, mark, when_unlocked
from ralph.git.checkpoint.trees import GitTrees
from ralph.git.repository import GitResult, TreeChange, call, nul_joined, scratch_index
from ralph.git.status import hashed
from ralph.git.under_way import under_way
from ralph.kernel.ports import Committed
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.kernel.world import OF_GIT, Stand
from ralph.processes.child import Command, Starter, run_and_hear, start

_MOST_SAID = 64 << 10  # bytes of a refusal
_LONGEST_COMMIT = 3600.0  # seconds
_TOO_LONG = "the commit's hooks took too long"
# Git tidies up after some commits; in the background it would be ended with the commit.
_OPTIONS = ("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false")
_PLAIN = frozenset({"--quiet", "--no-status", "--cleanup=whitespace"})  # change nothing in a commit
_GO_ON = "Fix that, then go on: ralph resume"
_FEW = 64  # changed files
_MARKER = "committing"  # in the run's directory


def patient(seconds: float, longest: float | None = None) -> Cut | None:
    """Hooks of users may run all their tests; one that waits for somebody waits in vain."""
    most = _LONGEST_COMMIT if longest is None else min(longest, _LONGEST_COMMIT)
    return Cut(_TOO_LONG, grace=1.0) if seconds >= most else None


def _cleaned(message: bytes) -> bytes:
    """A message as git keeps it: no blanks at the ends of lines, no two empty lines."""
    lines = [line.rstrip(b" \t\r") for line in message.split(b"\n")]
    kept = [line for line, before in zip(lines, [b"", *lines], strict=False) if line or before]
    return b"\n".join(kept).rstrip(b"\n") + b"\n" if any(kept) else b""


@value
class ProvenCommit:
    """Commits on an index of our own. `watch` is asked every 250 ms, with the seconds so far."""

    trees: GitTrees
    start: Starter = start
    watch: Callable[[float], Cut | None] = patient

    def __call__(
        self,
        stand: Stand,
        message: tuple[str, ...],
        options: tuple[str, ...] = (),
        records: Iterable[str] = (),
    ) -> Committed:
        """Commit the stand's files on its HEAD, with `records` of the host as they are now. What a
        killed run has committed is found again. The message is given by its paragraphs."""
        trees, repository = self.trees, self.trees.repository
        entries = trees.growing.entries(records)
        tree = trees.view.edited(trees.commit_tree(stand), entries)
        done = self._done_before(stand, tree)
        if done is not None:
            return done
        if tree == (repository.tree_of(stand.head) or trees.view.empty):
            return Committed(commit=stand.head)
        self._mark(stand.head)
        said = when_unlocked(repository, lambda: self._commit(stand, tree, message, options))
        if said.code != 0:
            head = repository.resolve("HEAD")
            if head != stand.head and repository.tree_of(head) == tree:
                return self._compared(stand, tree)  # the last git of a killed run was faster
            self._mark(None)
            # Some hooks fix files, refuse, and want them added.
            return Committed(False, said.said, altered=self._since(stand, records))
        if head := said.output.decode():
            self._tell_index(stand.head, head)
            return Committed(commit=head)
        made = self._compared(stand, tree)
        if made.altered or not self._has_hooks():
            return made
        return replace(made, left=self._since(stand, records))

    def _has_hooks(self) -> bool:
        """True if a commit runs anything that could have changed a file."""
        try:
            names = os.listdir(self.trees.repository.place.hooks)
        except OSError:
            return False
        return any(not name.endswith(".sample") for name in names)

    def _since(self, stand: Stand, records: Iterable[str]) -> tuple[str, ...]:
        """Paths that were changed in the work tree since the proof."""
        changed = self.trees.changed(stand, self.trees.look())
        return tuple(sorted(changed - OF_GIT - frozenset(records)))

    def begun(self, trailers: str, since: str) -> tuple[str, str]:
        """The commit below which a killed run was about to commit, and the commit that came of it;
        both "" if it did not come to that. Anybody can write our trailers, but an agent not on top
        of that."""
        below = content(self._marker)
        repository = self.trees.repository
        head = repository.resolve("HEAD") if below is not None else ""
        if below is None or head in ("", since):
            return "", ""
        words = ("-z", "--no-show-signature", "--format=%H %P%n%(trailers:only,unfold)")
        said = repository.ask("log", *words, f"{since}..{head}" if since else head)
        for entry in said.decode("utf-8", "replace").split("\0"):
            (commit, *parents), *lines = (line.split(" ") for line in entry.split("\n"))
            told = {" ".join(words) for words in lines}
            if parents[:1] == below.decode().split() and {*trailers.split("\n")} <= told:
                return below.decode(), commit
        return "", ""

    def _done_before(self, stand: Stand, tree: str) -> Committed | None:
        """The commit that is there already; None if it is still to be made."""
        repository, below = self.trees.repository, content(self._marker)
        head = repository.resolve("HEAD")
        if head == stand.head:
            return None
        if self.trees.repository.tree_of(head) != tree:
            said = repository.run("rev-list", "--parents", "-1", head).output.decode()
            follows = said.split()[1:2] == ([stand.head] if stand.head else [])
            if below is None or below.decode() != stand.head or not follows:
                return Committed(False, "somebody has committed here since the work was proven")
        return self._compared(stand, tree)

    def _commit(
        self, stand: Stand, tree: str, message: tuple[str, ...], options: tuple[str, ...]
    ) -> GitResult:
        """Git's answer. `git commit` looks at every file: where it would run and ask nothing else,
        the commit is made without it."""
        repository, place = self.trees.repository, self.trees.repository.place
        is_plain = not (self._has_hooks() or {*options} - _PLAIN or under_way(place.git_dir))
        settings = ("config", "--get-regexp", r"^commit\.")
        if is_plain and call(settings, place.top, repository.environ).code == 1:
            return self._commit_tree(stand, tree, "\n\n".join(message))
        with scratch_index(self.trees.run_dir) as index:
            self.trees.view.copy(index, tree)
            paragraphs = (word for paragraph in message for word in ("-m", paragraph))
            return self._by_git((*options, *paragraphs), index)

    def _commit_tree(self, stand: Stand, tree: str, message: str) -> GitResult:
        """The same commit by its parts; its name is the output."""
        place, environ = self.trees.repository.place, self.trees.repository.environ
        said = _cleaned(message.encode("utf-8", "surrogateescape"))
        if not said:
            return GitResult(1, b"", "Aborting commit due to empty commit message.")
        parents = ("-p", stand.head) if stand.head else ()
        made = call(("commit-tree", tree, *parents), place.top, environ, said)
        if made.code != 0:
            return made
        what = os.fsdecode(said.partition(b"\n")[0])
        words = ("-c", f"core.hooksPath={os.devnull}", "update-ref", "-m", f"commit: {what}")
        made = replace(made, output=made.output.strip())
        self.trees.repository.know_tree(made.output.decode(), tree)
        new, old = made.output.decode(), stand.head or place.zeros
        moved = call((*words, "HEAD", new, old), place.top, environ)
        if moved.code != 0:
            return moved
        # As `git commit` does, but deaf: no hook that an agent has set up is run for it.
        self.trees.repository.run(*_OPTIONS, "maintenance", "run", "--auto", "--quiet")
        return made

    def _by_git(self, words: tuple[str, ...], index: str) -> GitResult:
        """Git's answer. An interrupted commit says nothing against the work: the run goes on."""
        repository = self.trees.repository
        hooks = ("-c", f"core.hooksPath={repository.place.hooks}")
        argv = ("git", *hooks, *_OPTIONS, "commit", *words)
        environ = {**repository.environ, "GIT_INDEX_FILE": index}
        command = Command(argv, repository.place.top, environ)
        try:
            ended, said = run_and_hear(self.start, command, self.watch, _MOST_SAID)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", error)
            raise StateError(f"the work cannot be committed: git: {why}", _GO_ON) from error
        if ended.code != 0 and ended.cut and ended.cut.why != _TOO_LONG:
            raise AbortedError(
                "interrupted in the middle of a commit", "Go on with it: ralph resume"
            )
        cut = f"{ended.cut.why}\n" if ended.cut else ""
        return GitResult(
            ended.code, b"", cut + (said or f"git commit exited with code {ended.code}")
        )

    def _compared(self, stand: Stand, tree: str) -> Committed:
        """HEAD holds what was proven, and the user's index knows it; or HEAD is as before."""
        repository = self.trees.repository
        head = repository.resolve("HEAD")
        altered = tuple(repository.differing(tree, repository.tree_of(head)))
        if altered:
            back = ("HEAD", stand.head, head) if stand.head else ("-d", "HEAD", head)
            repository.ask("update-ref", "-m", "ralph: take back what was not proven", *back)
            self._mark(None)
            return Committed(altered=altered)
        self._tell_index(stand.head, head)
        return Committed(commit=head)

    def _tell_index(self, old: str, new: str) -> None:
        """Let the user's index know the commit; what somebody else has staged stays staged."""
        repository = self.trees.repository
        changed = self.trees.view.changes(old or self.trees.view.empty, new)
        if self._have_been_read(changed, new):
            return
        lines = index_lines(changed)
        done = when_unlocked(repository, lambda: repository.run(*ENTER, stdin=lines))
        if done.code != 0:
            raise StateError(f"the index cannot be told of the commit: {done.said}", _GO_ON)
        # What it knows of these files is none of their times: git would look into them later.
        names = nul_joined(f":(top,literal){entry.path}" for entry in changed)
        refresh = ("add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul")
        repository.run(*refresh, stdin=names)

    def _have_been_read(self, changed: tuple[TreeChange, ...], new: str) -> bool:
        """Let git read these files into the index, with their times; false if the index does not
        hold the commit by that, as when somebody has changed one since. Records that are long by
        now are only named: the end of the run lets git read them."""
        if len(changed) > _FEW:
            return False
        repository = self.trees.repository
        records = [e for e in changed if repository.place.is_ours(e.path)]
        if are_small(repository.place.path(each.path) for each in records):
            records = []
        given = [
            word
            for each in records
            for word in ("--cacheinfo", f"{','.join(each.before)},{each.path}")
        ]
        words = ("update-index", "-z", "--add", "--remove", "--replace", *given, "--stdin")
        read = [each for each in changed if each not in records]
        marks = [self._marks(each.path) for each in read]
        if repository.run(*words, stdin=nul_joined(each.path for each in read)).code != 0:
            return False
        # What else it holds is not asked: git would have to read the whole index for that.
        if self._are_committed(read) and marks == [self._marks(each.path) for each in read]:
            return True
        paths = (each.path for each in changed)
        same = ("--literal-pathspecs", "diff-index", "--cached", "--quiet", new, "--", *paths)
        return repository.run(*same).code == 0

    def _marks(self, path: str) -> tuple[int, ...]:
        """The same again if nobody has written to a file: no program can set its change time."""
        at = lstat(self.trees.repository.place.path(path))
        return (at.st_ino, at.st_mode, at.st_size, at.st_ctime_ns) if at else ()

    def _are_committed(self, files: Sequence[TreeChange]) -> bool:
        """True if the commit has these files as they are; also false where that takes longer."""
        repository, there = self.trees.repository, {}
        for each in files:
            at = lstat(repository.place.path(each.path))
            if at is None or not stat.S_ISREG(at.st_mode):
                return False
            there[each.path] = "100755" if at.st_mode & stat.S_IXUSR else "100644"
        if not are_small(map(repository.place.path, there)):
            return False
        try:
            blobs = hashed(repository, list(there))
        except StateError:
            return False  # one is gone by now
        return all(each.before == (there[each.path], blobs[each.path]) for each in files)

    @property
    def _marker(self) -> str:
        return os.path.join(self.trees.run_dir, _MARKER)

    def _mark(self, head: str | None) -> None:
        """Remember on top of what we commit, or that we do not."""
        with writing_state(self.trees.run_dir):
            mark(self._marker, head)
