"""HEAD and its branch: on their way back to a checkpoint, and what an agent did to them before a
task's work is committed (ADR 28)."""

import os

from ralph.adapters.checkpoint_files import when_unlocked
from ralph.adapters.checkpoint_work import Checkpoint, Work
from ralph.adapters.git_look import Seen
from ralph.adapters.git_work import Repository
from ralph.core.value import value
from ralph.core.words import listed
from ralph.errors import StateError

_LOG = ("log", "--format=", "--name-only", "-z", "--no-renames", "--root", "--no-show-signature")
_TRIES = 3


def move(repository: Repository, ref: str, new: str, old: str) -> bool:
    """Let a ref point elsewhere, "" for nowhere; False if it is not at `old` any more."""
    none, words = repository.place.zeros, ("update-ref", "-m", "ralph: restore", "--no-deref")
    change = (ref, new, old or none) if new else ("-d", ref, old or none)
    done = repository.run(*words, *change)
    if done.code == 0:
        return True
    if repository.resolve(ref) == old:
        raise StateError(f"git update-ref: {done.said}", f"Try: git -C {repository.place.top} fsck")
    return False


def put_head_back(repository: Repository, to: Checkpoint, seen: Seen, tip: str) -> bool:
    """HEAD as at the checkpoint; False if somebody has moved the branch on from `tip`."""
    reflog = ("-m", "ralph: restore")
    if not to.branch:
        if seen.branch or seen.head != to.head:
            repository.ask("update-ref", "--no-deref", *reflog, "HEAD", to.head)
        return True
    if tip != to.head and not move(repository, to.branch, to.head, tip):
        return False
    if seen.branch != to.branch:
        repository.ask("symbolic-ref", *reflog, "HEAD", to.branch)
    return True


@value
class AgentCommits:
    """What the agent committed by itself in a task that is accepted."""

    work: Work
    since: Checkpoint

    def settle(self) -> Seen:
        """Take those commits off the branch that hold what a person had not committed, and go back
        to the branch of before; what there is to commit then."""
        repository = self.work.repository
        for _ in range(_TRIES):
            self._mend_branch()
            seen = self.work.where()
            tip = self._tip(seen)
            persons = self._persons_paths(seen.head, tip)
            if not persons:
                return self._back_on_branch(seen, tip)
            refs = [self._kept(commit) for commit in self._new(seen.head, tip)]
            self._put_entries_back()
            if put_head_back(repository, self.since, seen, tip):
                self.work.note(
                    f"The agent committed what you had not: {listed(persons)}. One commit without"
                    f" it takes the place of its own, which are kept in {listed(refs)}."
                )
                return self.work.where()
        raise StateError("others commit here at the same time", "Go on: ralph resume")

    def _mend_branch(self) -> None:
        """A branch that the agent deleted is there again: the commit must not be its first."""
        branch, repository = self.since.branch, self.work.repository
        if branch and self.since.head and not repository.resolve(branch):
            move(repository, branch, self.since.head, "")
            self.work.note(f"The agent deleted {_short(branch)}: it was brought back.")

    def _tip(self, seen: Seen) -> str:
        elsewhere = self.since.branch and self.since.branch != seen.branch
        return self.work.repository.resolve(self.since.branch) if elsewhere else seen.head

    def _new(self, *tips: str) -> list[str]:
        return [tip for tip in dict.fromkeys(tips) if tip and tip != self.since.head]

    def _persons_paths(self, *tips: str) -> list[str]:
        """The paths of a person's in commits since; against the first parent, so that a merge
        counts with all that it brought."""
        new = self._new(*tips)
        if not new or not self.work.persons_paths:
            return []
        without = (f"^{self.since.head}",) if self.since.head else ()
        words = (*_LOG, "--diff-merges=first-parent", *new, *without, "--")
        said = os.fsdecode(self.work.repository.ask(*words))
        return sorted(self.work.persons_paths & {*said.split("\0")})

    def _kept(self, commit: str) -> str:
        """The ref that keeps a commit; a killed run finds its own again."""
        repository, name = self.work.repository, f"{self.work.refs}/commits-"
        form = "--format=%(objectname) %(refname)"
        said = repository.ask("for-each-ref", form, f"{name}*").decode().split("\n")
        kept = dict(line.split(" ", 1) for line in said if line)
        if commit not in kept:
            kept[commit] = f"{name}{len(kept) + 1}"
            repository.ask("update-ref", kept[commit], commit)
        return kept[commit]

    def _put_entries_back(self) -> None:
        """A person's paths, and Ralph's, are staged as they were, or not at all."""
        repository = self.work.repository
        old, now = (self._entries(index) for index in (self.since.index, repository.index))
        none = f"0 {repository.place.zeros}\t".encode()
        gone = sorted({*self.work.persons_paths, *old, *now})
        lines = [*(none + os.fsencode(path) for path in gone), *old.values()]
        text = b"".join(line + b"\0" for line in lines)
        words = ("update-index", "--replace", "-z", "--index-info")
        done = when_unlocked(repository, lambda: repository.run(*words, stdin=text))
        if done.code != 0:
            raise StateError(f"git update-index: {done.said}", "Try: git status")

    def _entries(self, index: str) -> dict[str, bytes]:
        """What an index says about a person's paths and Ralph's."""
        said = self.work.repository.ask("ls-files", "--stage", "-z", index=index).split(b"\0")
        entries = {os.fsdecode(entry.partition(b"\t")[2]): entry for entry in said if entry}
        is_ours, persons = self.work.repository.place.is_ours, self.work.persons_paths
        return {path: e for path, e in entries.items() if path in persons or is_ours(path)}

    def _back_on_branch(self, seen: Seen, tip: str) -> Seen:
        """The branch of before gets the work, unless that would take something from it. Who began
        on none loses nothing on an agent's branch: HEAD stays there."""
        branch = self.since.branch
        if seen.branch == branch:
            self._tell_rewritten(seen.head)
            return seen
        here = _short(seen.branch) or "no branch (HEAD is detached)"
        if not branch or not self._follows(tip, seen.head):
            away = f" and not on {_short(branch)}" if branch else ""
            self.work.note(f"The task is committed where the agent went: on {here}{away}.")
            return seen
        repository = self.work.repository
        if seen.head not in ("", tip) and not move(repository, branch, seen.head, tip):
            raise StateError(f"{_short(branch)} was moved meanwhile", "Go on: ralph resume")
        repository.ask("symbolic-ref", "-m", "ralph: back", "HEAD", branch)
        self.work.note(f"The agent went to {here}: its work is on {_short(branch)}, as is HEAD.")
        return self.work.where()

    def _tell_rewritten(self, head: str) -> None:
        """That may be the very task: what was there before is kept."""
        if not self._follows(self.since.head, head):
            ref, where = self._kept(self.since.head), _short(self.since.branch) or "HEAD"
            self.work.note(f"The agent rewrote the commits of {where}; the old ones: git log {ref}")

    def _follows(self, old: str, new: str) -> bool:
        """Whether everything of the one is in the other; nothing is in everything."""
        return old in ("", new) or not new or self.work.repository.follows(old, new)


def _short(branch: str) -> str:
    return branch.removeprefix("refs/heads/")
