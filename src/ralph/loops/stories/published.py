"""The pull requests of stories: one for each, on top of the one before, or one for all."""

from ralph.git.branch import branch_of
from ralph.kernel.state import RunState
from ralph.loops.stories.policy import Publishing
from ralph.runner.workplace import Workplace


def publishing_of(place: Workplace) -> Publishing:
    """How the stories are published, if they are: each on the one before, or all together."""
    if place.plan.destination is None:
        return Publishing()
    from ralph.runner.publishing.pull_words import Subject
    from ralph.runner.publishing.setup import publication

    each = place.plan.settings.pr.mode == "stacked"

    def about(state: RunState) -> Subject:
        stories = place.plan.backlog().tasks
        if each:
            title = next((story.title for story in stories if story.id == state.task), "")
            return Subject(f"{state.task}: {title}")
        lines = [f"{story.id}: {story.title}" for story in stories]
        return Subject(lines[0] if len(lines) == 1 else f"{len(lines)} stories", "\n".join(lines))

    branch = (lambda state: branch_of(state.task)) if each else None
    law = place.law(always=True)
    return Publishing(publication(place.plan, place.run, about, law=law, branch=branch), each)
