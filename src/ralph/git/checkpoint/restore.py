"""Goes back to a checkpoint. First what stands there is saved, then HEAD, the rules of what is
ignored, the files and last the index are put back: whoever is killed begins again."""

import os
from functools import partial

from ralph.errors import StateError
from ralph.files.state_dir import write_atomically
from ralph.git import status, under_way
from ralph.git.checkpoint.copies import CopiedFile, put_file_back, put_repository_back
from ralph.git.checkpoint.files import content, make_usable, mark, put_index_back
from ralph.git.checkpoint.head import put_head_back
from ralph.git.checkpoint.refs import LostRefs
from ralph.git.checkpoint.work import Checkpoint, Work
from ralph.git.repository import NOTHING, TreeChange
from ralph.git.status import TreeStatus, is_among
from ralph.git.view import is_repository
from ralph.kernel.value import value
from ralph.text.words import listed

_RULES = frozenset({".gitignore", ".gitattributes"})
_TRIES = 3


@value
class SavedCommit:
    """A commit that a restore made before it began."""

    ref: str
    tree: str
    parents: tuple[str, ...]


class Restore:
    """One way back. Nothing that was ignored at the checkpoint is touched, nor `.ralph`."""

    def __init__(self, work: Work, to: Checkpoint, label: str) -> None:
        self._work, self._to, self._label = work, to, label
        self._repository, self._place = work.repository, work.repository.place
        self._files = work.files(to, label)
        self._apart = self._files.known
        self._ref = ""
        self._marker = os.path.join(work.run_dir, "restoring")  # holds the ref of one under way

    def __call__(self) -> str:
        try:
            ref = self._all()
            LostRefs(self._work, self._apart, self._label).bring_back(but=self._to.branch)
            self._put_unseen_back()
            self._work.note_inner_changes("Not undone", self._apart.inner)
        except (OSError, StateError) as error:
            if isinstance(error, OSError):
                why = f"{os.fsdecode(error.filename or self._place.top)}: {error.strerror}"
            else:
                why = error.message
            kept = f"; what stood there is kept in {self._ref}" if self._ref else ""
            by_hand = f"git restore --overlay --source={self._to.tree} --worktree :/"
            raise StateError(
                f"cannot go back to the checkpoint: {why}{kept}",
                f"Fix that, then let the run go on; or by hand: {by_hand}",
            ) from error
        return ref

    def _all(self) -> str:
        head = os.path.join(self._place.git_dir, "HEAD")
        if not os.path.lexists(head) and os.path.isdir(self._place.git_dir):
            # Without it git takes this for no repository; an agent can delete it.
            text = f"ref: {self._to.branch}" if self._to.branch else self._to.head
            write_atomically(head, f"{text}\n")
        for _ in range(_TRIES):
            ref = self._once()
            if ref is not None:
                return ref
        raise StateError("others commit here at the same time")

    def _once(self) -> str | None:
        """None if somebody moved the branch after it was saved: that has to be saved too."""
        seen = self._look()
        tip = self._repository.resolve(self._to.branch) if self._to.branch else ""
        tree = self._work.trees.tree
        kept = self._kept()
        if self._is_there(seen, tree):
            return kept[-1].ref if kept else ""
        wrong = self._repository.changes(tree, self._to.tree)
        self._ref = self._save(seen, tip, tree, wrong, kept)
        if self._was_killed(self._ref):
            self._save_also(tree, wrong)
        mark(self._marker, self._ref)
        under_way.forget(self._repository)
        if not put_head_back(self._repository, self._to, seen, tip):
            return None
        if self._put_rules_back(seen, wrong):
            seen = self._look()
            tree = self._work.trees.tree
            wrong = self._repository.changes(tree, self._to.tree)
            self._save_also(tree, wrong)
        for path in seen.apart:
            if not is_among(path, self._apart.apart):
                self._files.put_aside(path)
        self._files.put_back(wrong)
        self._files.put_modes_back()
        idle = partial(under_way.is_idle, self._repository)
        put_index_back(self._to.index, self._repository.index, idle)
        mark(self._marker, None)
        return self._ref

    # What is there

    def _look(self) -> TreeStatus:
        """The work tree now; what an agent made unreadable is made readable first."""
        seen = self._work.look()
        while seen.blind:
            found = status.unreadable(self._repository)
            ours = [path for path in found if not is_among(path, self._apart.spared)]
            made = [make_usable(self._place.path(path)) for path in ours]
            if not any(made):
                break
            seen = self._work.look()
        return seen

    def _is_there(self, seen: TreeStatus, tree: str) -> bool:
        to = self._to
        return (
            (seen.head, seen.branch, tree) == (to.head, to.branch, to.tree)
            and not under_way.under_way(self._place.git_dir)
            and self._work.exclude() == self._apart.exclude
            and all(is_among(path, self._apart.apart) for path in seen.apart)
            and not self._new_rules(seen)
            and not self._inner_repositories()
            and self._has_same_index()
        )

    def _has_same_index(self) -> bool:
        """True if the index says the same, whatever times it holds."""
        now, then = (content(path) for path in (self._repository.index, self._to.index))
        if now == then or now is None or then is None:
            return now == then
        words = ("ls-files", "--stage", "-v", "-z")
        return self._repository.ask(*words) == self._repository.ask(*words, index=self._to.index)

    def _new_rules(self, seen: TreeStatus) -> list[str]:
        """Rules that hide themselves, new in a directory of the work: they would hide more."""
        found = [
            path
            for path in seen.ignored
            if os.path.basename(path) == ".gitignore" and not is_among(path, self._apart.ignored)
        ]
        above = {path: os.path.dirname(path) for path in found}
        names, known = sorted({*above.values()} - {""}), {""}
        if names:  # which of them were in the work at the checkpoint?
            words = ("ls-tree", "-d", "-z", "--name-only", self._to.tree, *names)
            known.update(self._repository.names(*words))
        return [path for path, directory in above.items() if directory in known]

    def _inner_repositories(self) -> list[str]:
        """`.git` between the workspace and the top: an agent made it, or git had found it first."""
        found, path = [], self._work.workspace
        while path != self._place.top and len(path) > len(self._place.top):
            if os.path.lexists(os.path.join(path, ".git")):
                found.append(os.path.relpath(os.path.join(path, ".git"), self._place.top))
            path = os.path.dirname(path)
        return found

    # Saving it

    def _kept(self) -> list[SavedCommit]:
        """Commits that this restore had saved when it was killed, in order."""
        name = f"{self._work.refs}/{self._label}"
        form = "--format=%(refname) %(tree) %(parent)"
        said = self._repository.ask("for-each-ref", form, "--sort=version:refname", f"{name}*")
        found = [line.split(" ") for line in said.decode().splitlines()]
        return [
            SavedCommit(ref, tree, tuple(parents))
            for ref, tree, *parents in found
            if ref == name or ref.startswith(f"{name}.")
        ]

    def _save(
        self,
        seen: TreeStatus,
        tip: str,
        tree: str,
        wrong: tuple[TreeChange, ...],
        kept: list[SavedCommit],
    ) -> str:
        """The ref that keeps what stands there: a new one, unless nothing is new to an older."""
        parents = list(dict.fromkeys(commit for commit in (seen.head, tip) if commit))
        for old in reversed(kept):
            if self._knows(old, tree, wrong, parents):
                return old.ref
        ref = f"{self._work.refs}/{self._label}" + (f".{len(kept)}" if kept else "")
        self._repository.save(ref, tree, parents, self._what)
        return ref

    def _knows(
        self, old: SavedCommit, tree: str, wrong: tuple[TreeChange, ...], parents: list[str]
    ) -> bool:
        """True if all that is there is of the checkpoint or of what was saved. What comes to light
        when we were killed can be added."""
        if not {*parents} <= {*old.parents, self._to.head}:
            return False
        adding = self._was_killed(old.ref)
        others = {
            entry.path
            for entry in self._repository.changes(tree, old.tree)
            if not (adding and entry.old_mode == NOTHING)
        }
        return not any(each.path in others and each.mode != NOTHING for each in wrong)

    def _was_killed(self, ref: str) -> bool:
        return content(self._marker) == ref.encode()

    def _save_also(self, tree: str, wrong: tuple[TreeChange, ...]) -> None:
        """Add what came to light since, as when the old rules are back, to what was saved."""
        saved = self._repository.identifier("rev-parse", f"{self._ref}^{{tree}}")
        new = {entry.path for entry in wrong if entry.mode != NOTHING}
        found = self._repository.changes(saved, tree)
        come = {e.path: e.before for e in found if e.mode == NOTHING and e.path in new}
        if not come:
            return
        whole = self._repository.edited(saved, come)
        parents = self._repository.identifier("rev-parse", f"{self._ref}^@").split()
        self._repository.save(self._ref, whole, parents, self._what)

    @property
    def _what(self) -> str:
        return f"what stood there before {self._label} was undone"

    # Putting it back

    def _put_rules_back(self, seen: TreeStatus, wrong: tuple[TreeChange, ...]) -> bool:
        """Restore the rules of ignored files and attributes; true if they differed."""
        rules = [entry for entry in wrong if os.path.basename(entry.path) in _RULES]
        # Rules of ours are not for a repository that came to stand around them.
        around = [p for p in seen.apart if any(is_among(entry.path, {p}) for entry in rules)]
        hidden = [*self._new_rules(seen), *self._inner_repositories()]
        hidden += [path for path in around if not is_among(path, self._apart.spared)]
        path, text = self._place.exclude, self._apart.exclude
        changed = self._work.exclude() != text
        if changed and text is None:
            os.unlink(path)
        elif changed and text is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(f"{path}.ralph", "wb") as file:
                file.write(os.fsencode(text))
            os.replace(f"{path}.ralph", path)
        for name in hidden:
            self._files.put_aside(name)
        self._files.put_back(rules)
        return bool(rules or hidden or changed)

    def _put_unseen_back(self) -> None:
        """Put back what git does not see: inner repositories and ignored files."""
        directory, aside = os.path.dirname(self._to.index), self._files.aside
        inner: list[str] = []
        lost: list[str] = []
        ignored = []
        for path, (name, _) in self._apart.repositories.items():
            if is_repository(self._place.path(path)):
                continue
            if name:
                put_repository_back(self._files, path, os.path.join(directory, name))
            (inner if name else lost).append(path)
        for path, (name, size, mode, changed) in self._apart.copies.items():
            copy, kept = CopiedFile(name, size, mode, (*changed,)), os.path.join(directory, name)
            if put_file_back(self._files, path, copy, kept):
                ignored.append(path)
        for what, paths in (("a repository of its own", inner), ("though git ignores it", ignored)):
            stood = f". What stood there: {aside}" if os.path.isdir(aside) else ""
            if paths:
                self._work.note(f"Put back, {what}: {listed(paths)}{stood}")
        if lost:
            why = "too large to be copied, or not readable"
            self._work.note(f"Not undone, {why}: {listed(lost)} is gone")


def give_back(work: Work, since: Checkpoint, label: str) -> tuple[str, tuple[str, ...]]:
    """Put a person's uncommitted files back as they were when a task began that is done: the ref
    that keeps what stood there, and which they are; nothing if they were left alone. Who is killed
    calls it again."""
    # A gate may write what it likes.
    persons = work.persons_paths.difference(work.trees.memo.left_out)
    tree = work.tree() if persons else ""
    found = work.repository.changes(tree, since.tree) if persons else []
    entries = [entry for entry in found if entry.path in persons]
    if not entries:
        return "", ()
    ref = f"{work.refs}/{label}"
    if not work.repository.resolve(ref):
        parents = [work.head()] if work.head() else []
        what = "what stood in the place of a person's files"
        work.repository.save(ref, tree, parents, what)
    files = work.files(since, label)
    files.put_back(entries)
    files.put_modes_back()
    return ref, tuple(entry.path for entry in entries)
