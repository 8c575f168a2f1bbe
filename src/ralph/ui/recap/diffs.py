"""The diffs of a run's iterations and tasks, as far as git still knows them."""

from collections.abc import Callable, Iterable
from functools import cached_property

from ralph.errors import ConfigError
from ralph.git.past_diffs import LineCount, PastDiffs
from ralph.git.repository import Repository
from ralph.journal.runs import NONSENSE
from ralph.kernel.value import replace
from ralph.ui.recap.values import Diff, FileChange
from ralph.ui.recap.words import shown

_MOST_FILES = 500  # that are named
_MOST_SHOWN = 40  # whose differences are shown
_MOST_LINES, _MOST_CHARS = 400, 64 * 1024  # of a patch


class Diffs:
    """Asks git once for each difference: trees and commits never change. What is asked for is a
    commit, or two trees with a blank between."""

    def __init__(self, repository: Callable[[], Repository]) -> None:
        self._repository = repository  # ConfigError where there is none
        self._known: dict[str, Diff] = {"": Diff()}
        self._paths: dict[str, tuple[str, ...]] = {}

    @cached_property
    def _git(self) -> PastDiffs | None:
        """None where the repository is gone, or never was."""
        try:
            return PastDiffs(self._repository())
        except (ConfigError, OSError, *NONSENSE):
            return None

    def of(self, asked: Iterable[str]) -> dict[str, Diff]:
        """The difference of each, without its text; without files where git knows nothing."""
        asked = tuple(asked)
        new = [what for what in asked if what not in self._known]
        counts = self._git.counts(new) if new and self._git is not None else {}
        for what in new:
            files = counts.get(what, ())
            named = files[:_MOST_FILES]
            self._known[what] = Diff(tuple(map(_change, named)), left_out=len(files) - len(named))
            self._paths[what] = tuple(file.path for file in files[:_MOST_SHOWN])
        return {what: self._known[what] for what in asked}

    def with_patch(self, what: str, diff: Diff) -> Diff:
        """The same with its text."""
        paths = self._paths.get(what, ())
        if not paths or self._git is None:
            return diff
        whole = self._git.patch(what, paths)
        lines = whole[: _MOST_CHARS + 1].splitlines(keepends=True)
        patch = "".join(lines[:_MOST_LINES])[:_MOST_CHARS]
        is_cut = len(patch) < len(whole) or len(paths) < len(diff.files)
        return replace(diff, patch=shown(patch, _MOST_CHARS), is_cut=diff.is_cut or is_cut)


def _change(found: LineCount) -> FileChange:
    return FileChange(shown(found.path), found.added, found.removed)
