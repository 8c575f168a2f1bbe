"""Stories that must survive a fresh review as a library (R): `from ralph import StoryRun`."""

import os
from collections.abc import Iterator
from typing import Unpack

from ralph.kernel.state import RunState
from ralph.loops.library import LoopRun, RunOptions, TaskResult
from ralph.loops.stories.folder import RALPH_DIR
from ralph.loops.stories.plan import folder_of
from ralph.review.law import DEFAULT_CAP


class StoryOptions(RunOptions, total=False):
    """What a run over stories may be given: the flags of `ralph prd run` with `_` for `-`."""

    ralph_dir: str | None
    skip_review: bool
    review_cap: int
    review_agent: str | None
    review_model: str | None


class StoryRun(LoopRun):
    """Works through the stories of `ralph/tasks.json` in a project until each is approved."""

    loop, options = "stories", StoryOptions.__optional_keys__

    def __init__(
        self, project: str | os.PathLike[str] = ".", **options: Unpack[StoryOptions]
    ) -> None:
        skips, cap = bool(options.get("skip_review")), options.get("review_cap", DEFAULT_CAP)
        super().__init__(project, options, skip_review=skips, review_cap=cap)
        self._folder = os.path.join(self.project, options.get("ralph_dir") or RALPH_DIR)

    def _tasks(self, state: RunState) -> Iterator[TaskResult]:
        """Every story of the list: it is the law."""
        for story in folder_of(self.project, os.path.realpath(self._folder)).backlog().tasks:
            yield TaskResult(story.id, done=story.passes, title=story.title)
