"""The prompt of a story's turn: the project's own text, headed by the host's choice (R §6)."""

import re
from collections.abc import Mapping

from ralph.kernel.tasks.task import Assignment
from ralph.kernel.value import value
from ralph.review.law import DEFAULT_CAP

FOLDER = "ralph"  # where it usually is
_NAME = re.compile(r"\{\{RALPH_([A-Z_0-9]+)\}\}|\$\{RALPH_([A-Z_0-9]+)\}|\$RALPH_([A-Z_0-9]+)")


@value
class StoryTerms:
    """Settings that are the same for every turn of a run."""

    max_iterations: int
    review_cap: int = DEFAULT_CAP
    skip_review: bool = False
    host_commits: bool = False  # the agent works where it cannot
    folder: str = FOLDER  # of prd.md, tasks.json and progress.txt, as people write it

    def values(self, iteration: int, assignment: Assignment) -> dict[str, str]:
        """The values that a prompt may name as RALPH_..."""
        return {
            "ITERATION": str(iteration),
            "MAX_ITERATIONS": str(self.max_iterations),
            "MODE": str(assignment.mode),
            "STORY": assignment.task,
            "REVIEW_CAP": str(self.review_cap),
            "SKIP_REVIEW": "true" if self.skip_review else "false",
            "DIR": self.folder,
        }


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with `$RALPH_X`, `${RALPH_X}` and `{{RALPH_X}}` filled in. Values go in as they are,
    and unknown names stay."""
    return _NAME.sub(lambda found: values.get(found[1] or found[2] or found[3], found[0]), text)


def headed(text: str, assignment: Assignment, folder: str = FOLDER) -> str:
    """The text below the host's choice of mode and story, and the folder if it is not the usual."""
    head = f"Mode: {assignment.mode}\nStory: {assignment.task}"
    if folder != FOLDER:
        head += f"\nFolder of prd.md, tasks.json and progress.txt: {folder}"
    return f"{head}\n\n{text}"
