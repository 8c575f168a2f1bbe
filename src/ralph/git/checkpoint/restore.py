"""Goes back to a checkpoint. First what stands there is saved, then HEAD, the rules of what is
ignored, the files and last the index are put back: whoever is killed begins again."""

import os
from functools import partial

from ralph.errors import StateError
from ralph.files.state_dir import write_atomically
from ralph.git import repository, status, under_way
from ralph.git.checkpoint import nested
from ralph.git.checkpoint.files import (
    NOTHING,
    FileRestore,
    TreeChange,
    content,
    differing,
    index_lines,
    make_usable,
    put_index_back,
)
from ralph.git.checkpoint.head import put_head_back
from ralph.git.checkpoint.ignored import put_back
from ralph.git.checkpoint.lost_refs import BringBack
from ralph.git.checkpoint.work import Checkpoint, Work
from ralph.git.status import TreeStatus, is_among
from ralph.kernel.value import value
from ralph.text.words import listed

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
        self._apart = work.apart(to)
        self._files = FileRestore(
            work.repository,
            work.workspace,
            work.run_dir,
            os.path.join(work.run_dir, "aside", label),
            self._apart,
        )
        self._ref = ""

    def __call__(self) -> str:
        try:
            ref = self._all()
            BringBack(self._work, self._work.refs_at(self._to), self._label, self._to.branch)()
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
        tree = self._work.tree_of(seen)
        kept = self._kept()
        if self._is_there(seen, tree):
            return kept[-1].ref if kept else ""
        differing = self._differing(tree)
        self._ref = self._save(seen, tip, tree, differing, kept)
        if self._was_killed(self._ref):
            self._save_also(tree, differing)
        self._mark(self._ref)
        under_way.forget(self._repository)
        if not put_head_back(self._repository, self._to, seen, tip):
            return None
        if self._put_rules_back(seen, differing):
            seen = self._look()
            tree = self._work.tree_of(seen)
            differing = self._differing(tree)
            self._save_also(tree, differing)
        self._files.put_aside(path for path in seen.apart if not is_among(path, self._apart.apart))
        self._files.put_back(differing)
        self._files.put_modes_back()
        idle = partial(under_way.is_idle, self._repository)
        put_index_back(self._to.index, self._repository.index, idle)
        self._mark("")
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

    def _differing(self, tree: str, to: str = "") -> list[TreeChange]:
        return differing(self._repository, tree, to or self._to.tree)

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
        differing: list[TreeChange],
        kept: list[SavedCommit],
    ) -> str:
        """The ref that keeps what stands there: a new one, unless nothing is new to an older."""
        parents = list(dict.fromkeys(commit for commit in (seen.head, tip) if commit))
        for old in reversed(kept):
            if self._knows(old, tree, differing, parents):
                return old.ref
        ref = f"{self._work.refs}/{self._label}" + (f".{len(kept)}" if kept else "")
        self._repository.ask("update-ref", ref, self._work.save(tree, parents, self._what))
        return ref

    def _knows(
        self, old: SavedCommit, tree: str, differing: list[TreeChange], parents: list[str]
    ) -> bool:
        """True if all that is there is of the checkpoint or of what was saved. What comes to light
        when we were killed can be added."""
        if not {*parents} <= {*old.parents, self._to.head}:
            return False
        adding = self._was_killed(old.ref)
        others = {
            entry.path
            for entry in self._differing(tree, old.tree)
            if not (adding and entry.old_mode == NOTHING)
        }
        return not any(each.path in others and each.mode != NOTHING for each in differing)

    @property
    def _marker(self) -> str:
        return os.path.join(self._work.run_dir, "restoring")

    def _mark(self, ref: str) -> None:
        """Remember which restore is under way, or that none is."""
        if ref:
            write_atomically(self._marker, ref, 0o600)
        elif os.path.exists(self._marker):
            os.unlink(self._marker)

    def _was_killed(self, ref: str) -> bool:
        return content(self._marker) == ref.encode()

    def _save_also(self, tree: str, differing: list[TreeChange]) -> None:
        """Add what came to light since, as when the old rules are back, to what was saved."""
        saved = self._repository.identifier("rev-parse", f"{self._ref}^{{tree}}")
        new = {entry.path for entry in differing if entry.mode != NOTHING}
        found = (each for each in self._differing(saved, tree) if each.mode == NOTHING)
        come = [each for each in found if each.path in new]
        if not come:
            return
        with repository.scratch_index(self._work.run_dir) as index:
            self._repository.ask("read-tree", saved, index=index)
            words = ("update-index", "-z", "--index-info")
            self._repository.ask(*words, stdin=index_lines(come), index=index)
            whole = self._repository.identifier("write-tree", index=index)
        parents = self._repository.identifier("rev-parse", f"{self._ref}^@").split()
        self._repository.ask("update-ref", self._ref, self._work.save(whole, parents, self._what))

    @property
    def _what(self) -> str:
        return f"what stood there before {self._label} was undone"

    # Putting it back

    def _put_rules_back(self, seen: TreeStatus, differing: list[TreeChange]) -> bool:
        """Put back the rules that say what is ignored; true if they were others."""
        rules = [entry for entry in differing if entry.is_rule]
        hidden = (*self._new_rules(seen), *self._inner_repositories())
        path, text = self._place.exclude, self._apart.exclude
        changed = self._work.exclude() != text
        if changed and text is None:
            os.unlink(path)
        elif changed and text is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(f"{path}.ralph", "wb") as file:
                file.write(os.fsencode(text))
            os.replace(f"{path}.ralph", path)
        self._files.put_aside(hidden)
        self._files.put_back(rules)
        return bool(rules or hidden or changed)

    def _put_unseen_back(self) -> None:
        """Put back what git does not see: inner repositories and ignored files."""
        directory, to = os.path.dirname(self._to.index), self._to
        copies = self._work.repositories_at(to)
        inner, lost = nested.put_back(self._files, copies, directory)
        if inner:
            self._note_back("Put back, a repository of its own", inner)
        if lost:
            why = "too large to be copied, or not readable"
            self._work.note(f"Not undone, {why}: {listed(lost)} is gone")
        ignored = put_back(self._files, self._work.copies_at(to), directory)
        if ignored:
            self._note_back("Put back, though git ignores it", ignored)

    def _note_back(self, what: str, paths: list[str]) -> None:
        aside = self._files.aside
        stood = f". What stood there: {aside}" if os.path.isdir(aside) else ""
        self._work.note(f"{what}: {listed(paths)}{stood}")


def give_back(work: Work, since: Checkpoint, label: str) -> tuple[str, tuple[str, ...]]:
    """Put a person's uncommitted files back as they were when a task began that is done: the ref
    that keeps what stood there, and which they are; nothing if they were left alone. Who is killed
    calls it again."""
    # A gate may write what it likes.
    persons = work.persons_paths.difference(work.trees.memo.left_out)
    tree = work.tree() if persons else ""
    found = differing(work.repository, tree, since.tree) if persons else []
    entries = [entry for entry in found if entry.path in persons]
    if not entries:
        return "", ()
    ref = f"{work.refs}/{label}"
    if not work.repository.resolve(ref):
        parents = [work.head()] if work.head() else []
        saved = work.save(tree, parents, "what stood in the place of a person's files")
        work.repository.ask("update-ref", ref, saved)
    aside = os.path.join(work.run_dir, "aside", label)
    files = FileRestore(work.repository, work.workspace, work.run_dir, aside, work.apart(since))
    files.put_back(entries)
    files.put_modes_back()
    return ref, tuple(entry.path for entry in entries)
