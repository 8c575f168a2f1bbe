"""Takes up the work of a run that ended in the middle of a task."""

from typing import Any

from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.repository import with_records
from ralph.kernel.tasks.task import Status
from ralph.loops.backlog.store.task_file import TaskFile


def bring_back(work: WorkTree, ref: str) -> bool:
    """Put what a ref keeps into the work tree, if the project is as it was when the task began:
    otherwise it is for the agent to choose what is still of use."""
    repository, head = work.repository, work.head()
    begun, ours = repository.resolve(f"{ref}^1"), repository.place.is_ours
    if not begun or work.dirty():
        return False
    if begun != head and not (
        repository.follows(begun) and all(map(ours, work.names(begun, head)))
    ):
        return False
    tree = with_records(repository, work.run_dir, f"{ref}^{{tree}}", head)
    if repository.run("read-tree", "-m", "-u", "HEAD", tree).code != 0:
        return False
    return repository.run("read-tree", "HEAD").code == 0  # changed, and not staged


def reopen(file: TaskFile, *tasks: str) -> None:
    """Reopen blocked tasks that nothing is wrong with: they are for the next run."""

    def change(record: dict[str, Any]) -> dict[str, Any] | None:
        blocked = record.get("status") == Status.BLOCKED
        return {"status": Status.PENDING.value, "reason": None} if blocked else None

    for task in tasks:
        file.update(task, change)
