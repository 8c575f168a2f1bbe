"""Ignore rules of before the run, and what rules that came later hide."""

import os
from collections.abc import Iterable, Sequence

from ralph.adapters.files import unwritable_state
from ralph.adapters.git_view import View

_RULES = (":(top,glob).gitignore", ":(top,glob)**/.gitignore")


class Rules:
    """Knows what was ignored when the run began, and by which rules anything would have been."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: frozenset[str] = frozenset()  # ignored then, or by the rules of then
        self._hidden: frozenset[str] = frozenset()  # ignored only by later ones

    @property
    def _directory(self) -> str:
        """A work tree that holds the rules and nothing else."""
        return os.path.join(self._view.directory, "rules")

    def remember(self, ignored: Iterable[str]) -> None:
        """These are the rules, and what they ignore."""
        self._known = frozenset(ignored)
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
        except OSError as error:
            raise unwritable_state(self._directory, error) from error
        said = os.fsdecode(self._view.ask("ls-files", "-z", "--", *_RULES)).split("\0")[:-1]
        names = b"".join(os.fsencode(path) + b"\0" for path in said)
        words = ("checkout-index", "-z", "--stdin", "--force", "--quiet")
        self._view.ask(*words, f"--prefix={self._directory}/", stdin=names)

    def memo(self) -> list[str]:
        """What was ignored, for a run that goes on later."""
        return sorted(self._known)

    def recall(self, memo: Sequence[str]) -> None:
        """What `memo` said."""
        self._known = frozenset(memo)

    def hidden(self, ignored: Iterable[str]) -> tuple[str, ...]:
        """Of what is ignored now, that which the old rules would have shown."""
        new = frozenset(ignored) - self._known
        unknown = sorted(new - self._hidden)
        if unknown:
            by_old = self._ignored_by_old(unknown)
            self._known |= by_old
            self._hidden |= frozenset(unknown) - by_old
        return tuple(sorted(new & self._hidden))

    def _ignored_by_old(self, paths: Iterable[str]) -> frozenset[str]:
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        words = ("check-ignore", "--no-index", "-z", "--stdin")
        said = self._view.within(self._directory, *words, stdin=names).output
        return frozenset(os.fsdecode(said).split("\0")) - {""}
