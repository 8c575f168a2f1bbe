"""Puts HEAD and its branch back, and settles what an agent did to them (ADR 28)."""

from ralph.errors import StateError
from ralph.git.checkpoint.files import ENTER, when_unlocked
from ralph.git.checkpoint.work import Checkpoint, Work
from ralph.git.repository import Repository, nul_joined
from ralph.git.status import TreeStatus
from ralph.kernel.value import value
from ralph.text.words import listed

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


def put_head_back(repository: Repository, to: Checkpoint, seen: TreeStatus, tip: str) -> bool:
    """HEAD as at the checkpoint; False if somebody has moved the branch on from `tip`."""
    reflog = ("-m", "ralph: restore")
    if not to.branch:
        if seen.branch or seen.head != to.head:
            repository.ask("update-ref", "--no-deref", *reflog, "HEAD", to.head)
        return True
    if (tip or to.head) and not move(repository, to.branch, to.head, tip):
        return False
    if seen.branch != to.branch:
        repository.ask("symbolic-ref", *reflog, "HEAD", to.branch)
    return True


@value
class AgentCommits:
    """The commits that the agent made by itself in a task that is accepted."""

    work: Work
    since: Checkpoint

    def settle(self) -> TreeStatus:
        """Take those commits off the branch that hold what a person had not committed, and go back
        to the branch of before; HEAD and branch then."""
        repository, branch = self.work.repository, self.since.branch
        for _ in range(_TRIES):
            seen = self.work.where()
            there = seen.head if seen.branch == branch else branch and repository.resolve(branch)
            if branch and self.since.head and not there:
                move(repository, branch, self.since.head, "")  # ours must not be its first commit
                self.work.note(f"The agent deleted {_short(branch)}: it was brought back.")
                seen = self.work.where()
            elsewhere = branch and branch != seen.branch
            tip = repository.resolve(branch) if elsewhere else seen.head
            tips = dict.fromkeys((seen.head, tip))
            new = [tip for tip in tips if tip and tip != self.since.head]
            persons = self._persons_paths(new)
            if not persons:
                return self._back_on_branch(seen, tip)
            refs = [self._kept(commit) for commit in new]
            self._put_entries_back()
            if put_head_back(repository, self.since, seen, tip):
                self.work.note(
                    f"The agent committed what you had not: {listed(persons)}. One commit without"
                    f" it takes the place of its own, which are kept in {listed(refs)}."
                )
                return self.work.where()
        raise StateError("others commit here at the same time", "Go on: ralph resume")

    def _persons_paths(self, new: list[str]) -> list[str]:
        """The user's paths in new commits. A merge counts with all that it brought."""
        if not new or not self.work.persons_paths:
            return []
        without = (f"^{self.since.head}",) if self.since.head else ()
        words = (*_LOG, "--diff-merges=first-parent", *new, *without, "--")
        return sorted(self.work.persons_paths.intersection(self.work.repository.names(*words)))

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
        """Stage a person's paths, and Ralph's, as they were, or not at all."""
        repository = self.work.repository
        old, now = (self._entries(index) for index in (self.since.index, repository.index))
        gone = sorted({*self.work.persons_paths, *old, *now})
        none = (f"0 {repository.place.zeros}\t{path}" for path in gone)
        text = nul_joined((*none, *old.values()))
        done = when_unlocked(repository, lambda: repository.run(*ENTER, stdin=text))
        if done.code != 0:
            raise StateError(f"git update-index: {done.said}", "Try: git status")

    def _entries(self, index: str) -> dict[str, str]:
        """The entries of an index for a person's paths and Ralph's."""
        said = self.work.repository.names("ls-files", "--stage", "-z", index=index)
        entries = {entry.partition("\t")[2]: entry for entry in said}
        is_ours, persons = self.work.repository.place.is_ours, self.work.persons_paths
        return {path: e for path, e in entries.items() if path in persons or is_ours(path)}

    def _back_on_branch(self, seen: TreeStatus, tip: str) -> TreeStatus:
        """Let the branch of before have the work, unless that would take something from it. Who
        began on none loses nothing on an agent's branch: HEAD stays there."""
        work, since, branch = self.work, self.since, self.since.branch
        if seen.branch == branch:
            if not self._follows(since.head, seen.head):  # that may be the very task: keep the old
                ref, where = self._kept(since.head), _short(branch) or "HEAD"
                work.note(f"The agent rewrote the commits of {where}; the old ones: git log {ref}")
            return seen
        here = _short(seen.branch) or "no branch (HEAD is detached)"
        if not branch or not self._follows(tip, seen.head):
            away = f" and not on {_short(branch)}" if branch else ""
            work.note(f"The task is committed where the agent went: on {here}{away}.")
            return seen
        if seen.head not in ("", tip) and not move(work.repository, branch, seen.head, tip):
            raise StateError(f"{_short(branch)} was moved meanwhile", "Go on: ralph resume")
        work.repository.ask("symbolic-ref", "-m", "ralph: back", "HEAD", branch)
        work.note(f"The agent went to {here}: its work is on {_short(branch)}, as is HEAD.")
        return work.where()

    def _follows(self, old: str, new: str) -> bool:
        """True if everything of the one is in the other; nothing is in everything."""
        return old in ("", new) or not new or self.work.repository.follows(old, new)


def _short(branch: str) -> str:
    return branch.removeprefix("refs/heads/")
