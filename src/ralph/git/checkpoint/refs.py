"""Branches, tags and the stash at a checkpoint. What an agent deleted or moved of them comes back
with a restore; new ones are left alone (ADR 28)."""

import os
from collections.abc import Mapping
from itertools import count

from ralph.errors import StateError
from ralph.git.checkpoint.files import Apart
from ralph.git.checkpoint.head import move
from ralph.git.checkpoint.work import Work
from ralph.git.repository import Repository
from ralph.kernel.value import value
from ralph.text.words import listed

_FIELDS = ("refname", "objectname", "objecttype", "*objectname", "*objecttype", "symref")
_FORM = "--format=" + "%00".join(f"%({field})" for field in (*_FIELDS, "worktreepath"))
STASH = "refs/stash"
_MOST_PARENTS = 1000  # of the commit that keeps what refs pointed to
_TRIES = 3


@value
class Ref:
    """The place that a ref points to now."""

    at: str
    commit: str  # also what a tag with a message is about; "" for a tag of something else
    checked_out: str  # the work tree that has it checked out, "" for none


def look(repository: Repository) -> dict[str, Ref]:
    """Branches, tags and the stash by their names, as they are now."""
    words = ("for-each-ref", _FORM, "refs/heads", "refs/tags", STASH)
    found = {}
    for line in os.fsdecode(repository.ask(*words)).split("\n")[:-1]:
        name, at, kind, about, its_kind, symbolic, checked_out = line.split("\0")
        commits = [each for each, what in ((at, kind), (about, its_kind)) if what == "commit"]
        if not symbolic:
            found[name] = Ref(at, "".join(commits), checked_out)
    return found


def tips(found: Mapping[str, Ref], stash: tuple[tuple[str, str], ...], head: str) -> list[str]:
    """Commits that have to be kept, lest an agent that tidies up removes them; tags last, since
    most of them are about commits of branches."""
    ordered = sorted(found, key=lambda name: name.startswith("refs/tags/"))
    commits = (*(commit for commit, _ in stash), *(found[name].commit for name in ordered))
    return [each for each in dict.fromkeys(commits) if each not in (head, "")][:_MOST_PARENTS]


@value
class LostRefs:
    """Puts refs back where they were; what they point to now is kept."""

    work: Work
    known: Apart
    label: str

    def bring_back(self, but: str) -> None:
        """Bring back all but the branch that HEAD was on: it is back already. What cannot be
        brought back is told, and stops nothing."""
        found = look(self.work.repository)
        wrong = [
            name
            for name, at in self.known.refs.items()
            if name != but and (name not in found or found[name].at != at)
        ]
        back = [name for name in wrong if self._bring_back(name, found.get(name))]
        if back:
            became = any(name in found for name in back)
            kept = f". What they had become is kept in {self._kept}/" if became else ""
            self.work.note(f"Brought back as they were: {listed([*map(_short, back)])}{kept}")
        self._bring_stash_back()

    @property
    def _kept(self) -> str:
        return f"{self.work.refs}/refs-{self.label}"

    def _bring_back(self, name: str, found: Ref | None) -> bool:
        repository, was = self.work.repository, self.known.refs[name]
        now = found.at if found else ""
        if found and found.checked_out:
            return self._fails(_short(name), f"it is checked out in {found.checked_out}")
        try:
            for _ in range(_TRIES):
                if now:
                    self._keep(name, now)
                if move(repository, name, was, now):
                    return True
                now = repository.resolve(name)
        except StateError as error:
            return self._fails(_short(name), error.message)
        return self._fails(_short(name), "others move it")

    def _fails(self, name: str, why: str) -> bool:
        self.work.note(f"Not brought back: {listed([name])}: {why}")
        return False

    def _keep(self, name: str, now: str) -> None:
        """Under a name that is free; a killed restore finds its own again."""
        repository = self.work.repository
        for number in count():
            suffix = f".{number}" if number else ""
            ref = f"{self._kept}/{name.removeprefix('refs/')}{suffix}"
            there = repository.resolve(ref)
            if not there:
                repository.ask("update-ref", ref, now)
            if there in ("", now):
                return

    def _bring_stash_back(self) -> None:
        """Entries that are gone come back on top; those that were added stay."""
        repository, stash = self.work.repository, self.known.stash
        there = {commit for commit, _ in repository.stash()} if stash else set()
        gone = [(commit, words) for commit, words in stash if commit not in there]
        for commit, words in reversed(gone):
            done = repository.run("stash", "store", "--quiet", "--message", words, commit)
            if done.code != 0:
                self._fails(f"stash {commit}", done.said)
        if gone:
            self.work.note(f"Brought back to the stash: {listed([words for _, words in gone])}")


def _short(name: str) -> str:
    return name.removeprefix("refs/heads/").removeprefix("refs/")
