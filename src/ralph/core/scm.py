"""What the steps of settling say about SCM tasks (H §SCM Tasks)."""

from ralph.core.facts import Step


def owed_after(owed: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """The SCM tasks that have failed, and have not succeeded since, after one more step."""
    task = scm_task(step)
    if not task or (step.ok and step.key == "scm:message"):
        return owed
    others = tuple(other for other in owed if scm_task(other) != task)
    return others if step.ok else (*others, step)


def scm_task(step: Step) -> str:
    """The SCM task that a step is about; "" for other steps."""
    prefix, _, task = step.key.partition(":")
    if prefix != "scm" or task in ("undone", "message cut off"):
        return ""
    return "commit" if task in ("message", "changes") or task.split()[:1] == ["commit"] else task


def pushed_after(pushed: tuple[tuple[str, str], ...], step: Step) -> tuple[tuple[str, str], ...]:
    """The commit that each task has sent away last, after one more step."""
    task = scm_task(step)
    if not step.ok or task.split()[:1] != ["push"]:
        return pushed
    return tuple({**dict(pushed), task: step.commit}.items())
