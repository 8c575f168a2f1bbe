"""Checks that what a claim of completion says it has made is there (B §Explicit Completion)."""

import os
from collections.abc import Iterator

from ralph.kernel.case import Case
from ralph.kernel.contracts import CompleteClaim, artifacts_of
from ralph.kernel.findings import Finding
from ralph.kernel.value import value
from ralph.text.plain import plain
from ralph.text.words import listed

_SHOWN = 10  # paths that are named
_LONGEST = 200  # characters of each


@value
class Artifacts:
    """Objects to a claim of completion whose result names artifacts that are not there.

    Paths are from the workspace; one that leads out of it, or is absolute, must exist all the same.
    A directory is fine, a link to nothing is not, and a blank name says nothing.
    """

    workspace: str
    name = "artifacts"
    always = False

    def executes(self, case: Case) -> bool:
        return False

    def check(self, case: Case) -> Iterator[Finding]:
        if case.task.check or CompleteClaim().met_by(case.turn) is None:
            return  # a check decides whatever the agent says
        named = dict.fromkeys(path for path in artifacts_of(case.turn) if path.strip())
        # Whatever cannot be a path, with a NUL or too long, is not there.
        missing = [path for path in named if not os.path.exists(os.path.join(self.workspace, path))]
        if missing:
            told = listed([plain(path, _LONGEST) or "?" for path in missing], _SHOWN)
            yield Finding(
                self.name,
                f"Not complete yet: your result names artifacts that do not exist: {told}. "
                "Make them, or name only files and directories that are there.",
            )
