"""Selection of the next task, and of what to do to it."""

from ralph.kernel.case import Case
from ralph.kernel.tasks.task import ENDED, Assignment, Mode, ReviewStatus, Status, Task


def first_open(case: Case) -> Assignment | None:
    """H and S: the one task there is."""
    return next((Assignment(t.id, t.title) for t in case.open_tasks), None)


def next_task(case: Case) -> Assignment | None:
    """B §Task Selection: unblocked; in progress first, then priority, then age, then the file.
    Those in which an agent crashed before come last.

    The task under work stays so until it is done or parked, whatever is added meanwhile.
    """
    ready = (t for t in case.open_tasks if not t.blocked_by or not blockers(t, case))
    best = min(
        ready,
        key=lambda t: (
            t.id != case.state.task,
            t.status is not Status.IN_PROGRESS,
            t.status is Status.PENDING and t.used.iterations > 0,  # an agent has crashed in it
            -t.priority,
            t.created,
        ),
        default=None,
    )
    if best is None:
        return None
    before = best.used.iterations
    return Assignment(best.id, best.title, most=best.limits.iterations, before=before)


def next_story(case: Case) -> Assignment | None:
    """R §Iteration modes: review-fix before review before implement."""
    for mode, wanted in (
        (Mode.REVIEW_FIX, ReviewStatus.CHANGES_REQUESTED),
        (Mode.REVIEW, ReviewStatus.NEEDS_REVIEW),
        (Mode.IMPLEMENT, None),
    ):
        ready = [t for t in case.open_tasks if t.review is wanted and not t.passes]
        if mode is Mode.IMPLEMENT:
            ready = [t for t in ready if not blockers(t, case)]
        if ready:
            story = min(ready, key=lambda t: t.priority)  # R: priority 1 comes first
            return Assignment(story.id, story.title, mode)
    return None


def next_unreviewed(case: Case) -> Assignment | None:
    """R §Skip-review mode: implement, and nothing else."""
    ready = [t for t in case.open_tasks if not t.passes and not blockers(t, case)]
    story = min(ready, key=lambda t: t.priority, default=None)
    return None if story is None else Assignment(story.id, story.title)


def blockers(task: Task, case: Case) -> tuple[str, ...]:
    """The tasks it waits for. One that is done, cancelled or unknown does not block (ADR 21)."""

    def blocks(name: str) -> bool:
        blocker = case.backlog.get(name)
        if blocker is None:
            return False
        ended = blocker.status in ENDED or blocker.passes or blocker.id in case.state.done
        # One at work may be called done by now, and is not merged.
        return not ended or blocker.id in case.state.at_work

    return tuple(filter(blocks, task.blocked_by))
