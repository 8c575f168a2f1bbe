"""Branches, tags and stashes that an agent deleted or moved: a restore brings them back. New ones
are left alone (ADR 28)."""

from collections.abc import Iterable

from ralph.errors import StateError
from ralph.git.checkpoint.head import move
from ralph.git.checkpoint.refs import Ref, Refs, look, stash_of
from ralph.git.checkpoint.work import Work
from ralph.kernel.value import value
from ralph.text.words import listed

_TRIES = 3


@value
class BringBack:
    """Puts refs back where they were; what they point to now is kept."""

    work: Work
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
