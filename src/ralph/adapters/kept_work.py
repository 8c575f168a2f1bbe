"""What a run that ended in the middle of a task had done, taken up again by the next one."""

from typing import Any

from ralph.adapters.checkpoint import WorkTree
from ralph.adapters.git_work import with_records
from ralph.adapters.task_file import TaskFile
from ralph.core.task import Status


def bring_back(work: WorkTree, ref: str) -> bool:
    """Put what a ref keeps into the work tree, if the project is as it was when the task began:
    otherwise it is for the agent to choose what is still of use."""
    repository, head = work.repository, work.head()
    begun = repository.resolve(f"{ref}^1")
    if not begun or work.dirty() or not _is_same_project(work, begun, head):
        return False
    tree = with_records(repository, work.run_dir, f"{ref}^{{tree}}", head)
    if repository.run("read-tree", "-m", "-u", "HEAD", tree).code != 0:
        return False
    return repository.run("read-tree", "HEAD").code == 0  # changed, and not staged


def reopen(file: TaskFile, *tasks: str) -> None:
    """Nothing is wrong with these, though they are blocked: they are for the next run."""

    def change(record: dict[str, Any]) -> dict[str, Any] | None:
        blocked = record.get("status") == Status.BLOCKED
        return {"status": Status.PENDING.value, "reason": None} if blocked else None

    for task in tasks:
        file.update(task, change)


def _is_same_project(work: WorkTree, begun: str, head: str) -> bool:
    """Whether a commit has nothing but records on top of another."""
    if begun == head:
        return True
    ours = work.repository.place.is_ours
    return work.repository.follows(begun) and all(map(ours, work.names(begun, head)))
