"""Branches, tags and the stash: a checkpoint remembers where they were, a restore brings back those
that an agent deleted or moved. New ones are left alone (ADR 28)."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ralph.adapters.checkpoint_head import move
from ralph.adapters.git_work import Repository
from ralph.core.value import value
from ralph.core.words import listed
from ralph.errors import StateError

if TYPE_CHECKING:
    from ralph.adapters.checkpoint import WorkTree

_FIELDS = ("refname", "objectname", "objecttype", "*objectname", "*objecttype", "symref")
_FORM = "--format=" + "%00".join(f"%({field})" for field in (*_FIELDS, "worktreepath"))
_STASH = "refs/stash"
_MOST_PARENTS = 1000  # of the commit that keeps what refs pointed to
_TRIES = 3


@value
class Ref:
    """Where a ref points to now."""

    name: str
    at: str
    commit: str  # also what a tag with a message is about; "" for a tag of something else
    checked_out: str  # the work tree that has it checked out, "" for none


@value
class Refs:
    """What the refs were at a checkpoint."""

    places: Mapping[str, str]  # branches and tags, and where they pointed to
    stash: tuple[tuple[str, str], ...]  # commits with their words, newest first


def look(repository: Repository) -> tuple[dict[str, Ref], Refs]:
    """The refs as they are now."""
    words = ("for-each-ref", _FORM, "refs/heads", "refs/tags", _STASH)
    found = {}
    for line in os.fsdecode(repository.ask(*words)).split("\n")[:-1]:
        name, at, kind, about, its_kind, symbolic, checked_out = line.split("\0")
        commits = [each for each, what in ((at, kind), (about, its_kind)) if what == "commit"]
        if not symbolic:
            found[name] = Ref(name, at, "".join(commits), checked_out)
    stash = stash_of(repository) if _STASH in found else ()
    places = {name: ref.at for name, ref in found.items() if name != _STASH}
    return found, Refs(places, stash)


def stash_of(repository: Repository) -> tuple[tuple[str, str], ...]:
    """The commits of the stash with their words, newest first."""
    words = ("log", "--walk-reflogs", "-z", "--no-show-signature", "--format=%H %gs", _STASH, "--")
    said = os.fsdecode(repository.run(*words).output).split("\0")
    pairs = (entry.strip("\n").partition(" ") for entry in said if entry)
    return tuple((commit, words) for commit, _, words in pairs)


def tips(found: Mapping[str, Ref], refs: Refs, head: str) -> tuple[str, ...]:
    """What has to be kept, lest an agent that tidies up removes it; tags last, since most of them
    are about commits of branches."""
    ordered = sorted(found.values(), key=lambda ref: ref.name.startswith("refs/tags/"))
    commits = (*(commit for commit, _ in refs.stash), *(ref.commit for ref in ordered))
    return tuple(each for each in dict.fromkeys(commits) if each not in (head, ""))[:_MOST_PARENTS]


@value
class BringBack:
    """Puts refs back where they were; what they point to now is kept."""

    work: "WorkTree"
    refs: Refs
    label: str
    but: str  # the branch that HEAD was on: it is back already

    def __call__(self) -> None:
        """What cannot be brought back is told, and stops nothing."""
        found, _ = look(self.work.repository)
        wrong = [
            name
            for name, at in self.refs.places.items()
            if name != self.but and (name not in found or found[name].at != at)
        ]
        back = [name for name in wrong if self._bring_back(name, found)]
        if back:
            became = any(name in found for name in back)
            kept = f". What they had become is kept in {self._kept}/" if became else ""
            self.work.note(f"Brought back as they were: {listed([*_short(back)])}{kept}")
        self._bring_stash_back()

    @property
    def _kept(self) -> str:
        return f"{self.work.refs}/refs-{self.label}"

    def _bring_back(self, name: str, found: dict[str, Ref]) -> bool:
        repository, was = self.work.repository, self.refs.places[name]
        now = found[name].at if name in found else ""
        if now and found[name].checked_out:
            return self._fails(name, f"it is checked out in {found[name].checked_out}")
        try:
            for _ in range(_TRIES):
                if now:
                    self._keep(name, now)
                if move(repository, name, was, now):
                    return True
                now = repository.resolve(name)
        except StateError as error:
            return self._fails(name, error.message)
        return self._fails(name, "others move it")

    def _fails(self, name: str, why: str) -> bool:
        self.work.note(f"Not brought back: {listed([*_short([name])])}: {why}")
        return False

    def _keep(self, name: str, now: str) -> None:
        """Under a name that is free; a killed restore finds its own again."""
        repository = self.work.repository
        kept, number = f"{self._kept}/{name.removeprefix('refs/')}", 0
        while True:
            ref = f"{kept}.{number}" if number else kept
            there = repository.resolve(ref)
            if not there:
                repository.ask("update-ref", ref, now)
            if there in ("", now):
                return
            number += 1

    def _bring_stash_back(self) -> None:
        """Entries that are gone come back on top; those that were added stay."""
        repository = self.work.repository
        there = {commit for commit, _ in stash_of(repository)} if self.refs.stash else set()
        gone = [entry for entry in self.refs.stash if entry[0] not in there]
        for commit, words in reversed(gone):
            done = repository.run("stash", "store", "--quiet", "--message", words, commit)
            if done.code != 0:
                self._fails(f"stash {commit}", done.said)
        if gone:
            self.work.note(f"Brought back to the stash: {listed([words for _, words in gone])}")


def _short(names: Iterable[str]) -> Iterable[str]:
    return (name.removeprefix("refs/heads/").removeprefix("refs/") for name in names)
