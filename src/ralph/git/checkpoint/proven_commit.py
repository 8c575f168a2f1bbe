"""A commit of exactly what was proven (ADR 33). The user's own hooks run, and may refuse it; what
they change is found, and the commit taken back."""

import os
import tempfile
from collections.abc import Callable, Iterable

from ralph.errors import AbortedError, StateError
from ralph.files.state_dir import unwritable_state, write_atomically
from ralph.git.checkpoint.files import content, differing, index_lines, when_unlocked
from ralph.git.checkpoint.trees import GitTrees
from ralph.git.repository import GitResult, nul_joined, scratch_index
from ralph.kernel.ports import Committed
from ralph.kernel.proof import OF_GIT, Stand
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, Starter, start

_MOST_SAID = 64 << 10  # bytes of a refusal
_LONGEST_COMMIT = 3600.0  # seconds
_TOO_LONG = "the commit's hooks took too long"
# Git tidies up after some commits; in the background it would be ended with the commit.
_OPTIONS = ("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false")
_GO_ON = "Fix that, then go on: ralph resume"
_MARKER = "committing"  # in the run's directory


def patient(seconds: float, longest: float | None = None) -> Cut | None:
    """Hooks of users may run all their tests; one that waits for somebody waits in vain."""
    most = _LONGEST_COMMIT if longest is None else min(longest, _LONGEST_COMMIT)
    return Cut(_TOO_LONG, grace=1.0) if seconds >= most else None


@value
class ProvenCommit:
    """Commits on an index of our own. `watch` is asked every 250 ms with the seconds since the
    start."""

    trees: GitTrees
    start: Starter = start
    watch: Callable[[float], Cut | None] = patient

    def __call__(
        self, stand: Stand, words: tuple[str, ...], records: Iterable[str] = ()
    ) -> Committed:
        """Commit the stand's files on its HEAD, with `records` of the host as they are now. What a
        killed run has committed is found again."""
        place = self.trees.repository.place
        with scratch_index(self.trees.run_dir) as index:
            self.trees.stage(index, stand)
            there = {path: os.path.lexists(place.path(path)) for path in records}
            gone = [path for path, is_there in there.items() if not is_there]
            staged = self.trees.view.stage(index, gone, [path for path in there if there[path]])
            if staged.code != 0:
                raise StateError(f"the work cannot be committed: {staged.said}", _GO_ON)
            tree = self.trees.view.identifier("write-tree", index=index)
            done = self._done_before(stand, tree)
            if done is not None:
                return done
            if tree == (self._tree_of(stand.head) or self.trees.view.empty):
                return Committed(commit=stand.head)
            self._mark(stand.head)
            said = when_unlocked(self.trees.repository, lambda: self._commit(words, index))
        if said.code != 0:
            self._mark(None)
            # Some hooks fix files, refuse, and want them added.
            return Committed(False, said.said, altered=self._since(stand, records))
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
        if self._tree_of(head) != tree:
            said = repository.run("rev-list", "--parents", "-1", head).output.decode()
            follows = said.split()[1:2] == ([stand.head] if stand.head else [])
            if below is None or below.decode() != stand.head or not follows:
                return Committed(False, "somebody has committed here since the work was proven")
        return self._compared(stand, tree)

    def _commit(self, words: tuple[str, ...], index: str) -> GitResult:
        """Git's answer. Who was in a hurry said nothing against the work: the run goes on with
        it."""
        repository = self.trees.repository
        hooks = ("-c", f"core.hooksPath={repository.place.hooks}")
        argv = ("git", *hooks, *_OPTIONS, "commit", *words)
        environ = {**repository.environ, "GIT_INDEX_FILE": index}
        command = Command(argv, repository.place.top, environ)
        try:
            with tempfile.TemporaryFile() as output:
                child = self.start(command, log=output)
                ended = child.wait(lambda: self.watch(child.seconds()))
                output.seek(max(0, output.seek(0, os.SEEK_END) - _MOST_SAID))
                said = output.read().decode("utf-8", "replace").strip()
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
        altered = tuple(self.trees.names(tree, head)) if self._tree_of(head) != tree else ()
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
        changed = differing(self.trees.view, old or self.trees.view.empty, new)
        words, lines = ("update-index", "--replace", "-z", "--index-info"), index_lines(changed)
        done = when_unlocked(repository, lambda: repository.run(*words, stdin=lines))
        if done.code != 0:
            raise StateError(f"the index cannot be told of the commit: {done.said}", _GO_ON)
        # What it knows of these files is none of their times: git would look into them later.
        names = nul_joined(f":(top,literal){entry.path}" for entry in changed)
        refresh = ("add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul")
        repository.run(*refresh, stdin=names)

    def _tree_of(self, commit: str) -> str:
        return self.trees.repository.resolve(f"{commit}^{{tree}}") if commit else ""

    @property
    def _marker(self) -> str:
        return os.path.join(self.trees.run_dir, _MARKER)

    def _mark(self, head: str | None) -> None:
        """Remember on top of what we commit, or that we do not."""
        try:
            if head is not None:
                write_atomically(self._marker, head, 0o600)
            elif os.path.exists(self._marker):
                os.unlink(self._marker)
        except OSError as error:
            raise unwritable_state(self.trees.run_dir, error) from error
