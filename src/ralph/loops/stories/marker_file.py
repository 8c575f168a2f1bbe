"""`.ralph-active`: the marker of a run for the hooks in the agent's session (R §3)."""

import json
import os
import shutil
from datetime import UTC, datetime
from typing import Any

from ralph.git.uncommitted_text import MARKER
from ralph.kernel.value import value

_ANEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@value
class StoryMarker:
    """The marker of one run, which must hold the workspace's lock."""

    workspace: str
    fields: dict[str, Any]  # what is the same for every turn

    @property
    def path(self) -> str:
        return os.path.join(self.workspace, MARKER)

    def write(self, mode: str, snapshot: dict[str, Any], now: float) -> None:
        """Describe the next turn to the hooks, replacing whatever stands there. If that fails, the
        host judges alone."""
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        turn = {"iterationMode": mode, "preIterationSnapshot": snapshot}
        text = json.dumps({"timestamp": stamp, **self.fields, **turn}, indent=2)
        try:
            self.remove()
            # Anew, and never through a link: whatever comes between, nothing is followed.
            with os.fdopen(os.open(self.path, _ANEW, 0o644), "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
        except OSError:
            self.remove()

    def remove(self) -> None:
        """The run has ended, or the next turn begins."""
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            shutil.rmtree(self.path, ignore_errors=True)
        try:
            os.unlink(self.path)
        except OSError:
            pass  # there is none, or it is not ours to remove
