"""Ignore rules as they were when the run began, and what later rules hide."""

import os
from collections.abc import Iterable, Sequence

from ralph.files.state_dir import unwritable_state
from ralph.git.repository import nul_joined, nul_split
from ralph.git.view import View

_RULES = (":(top,glob).gitignore", ":(top,glob)**/.gitignore")


class Rules:
    """Knows what was ignored when the run began, and by which rules anything would have been."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._directory = os.path.join(view.directory, "rules")  # the rules and nothing else
        self._known: frozenset[str] = frozenset()  # ignored then, or by the rules of then
        self._hidden: frozenset[str] = frozenset()  # ignored only by later ones

    def remember(self, ignored: Iterable[str]) -> None:
        """Keep the rules of now, and what they ignore."""
        self._known = frozenset(ignored)
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
        except OSError as error:
            raise unwritable_state(self._directory, error) from error
        names = self._view.ask("ls-files", "-z", "--", *_RULES)
        words = ("checkout-index", "-z", "--stdin", "--force", "--quiet")
        self._view.ask(*words, f"--prefix={self._directory}/", stdin=names)

    def memo(self) -> list[str]:
        """The ignored paths, for a run that goes on later."""
        return sorted(self._known)

    def recall(self, memo: Sequence[str]) -> None:
        """Take back what `memo` gave."""
        self._known = frozenset(memo)

    def hidden(self, ignored: Iterable[str]) -> tuple[str, ...]:
        """Of what is ignored now, that which the old rules would have shown."""
        new = frozenset(ignored) - self._known
        unknown = sorted(new - self._hidden)
        if unknown:
            words = ("check-ignore", "--no-index", "-z", "--stdin")
            done = self._view.within(self._directory, *words, stdin=nul_joined(unknown))
            by_old = frozenset(nul_split(done.output))
            self._known |= by_old
            self._hidden |= frozenset(unknown) - by_old
        return tuple(sorted(new & self._hidden))
