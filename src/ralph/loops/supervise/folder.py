"""A task's folder: where a supervised task keeps its markers, its bus and its runs (S)."""

import os
import re

from ralph.errors import ConfigError
from ralph.kernel.value import value

_ID = re.compile(r"[a-z0-9][a-z0-9-]*")


@value
class TaskFolder:
    """One task: an absolute path, and the ids by which messages name it."""

    path: str
    project: str
    task: str

    @property
    def done(self) -> str:
        """The agent says that the task is done by making this file."""
        return os.path.join(self.path, "DONE")

    @property
    def wait(self) -> str:
        """The agent says that it waits for something outside by making this file."""
        return os.path.join(self.path, "WAIT_WITHOUT_RESTART")

    @property
    def task_file(self) -> str:
        return os.path.join(self.path, "TASK.md")

    @property
    def bus(self) -> str:
        return os.path.join(self.path, "TASK-MESSAGE-BUS.md")

    @property
    def project_bus(self) -> str:
        """The messages of all tasks beside this one."""
        return os.path.join(os.path.dirname(self.path), "PROJECT-MESSAGE-BUS.md")

    @property
    def runs(self) -> str:
        """One directory for each attempt and each child run."""
        return os.path.join(self.path, "runs")

    def environ(self, run: str, parent: str, root: str) -> dict[str, str]:
        """The variables of a run of this task: itself, the run that started it, and the first."""
        return {
            "TASK_FOLDER": self.path,
            "RALPH_TASK_DIR": self.path,
            "RALPH_BUS": self.bus,
            "RALPH_RUN": run,
            "RALPH_PARENT_RUN": parent,
            "RALPH_ROOT_RUN": root,
        }

    def run_dir(self, run_id: str) -> str:
        return os.path.join(self.runs, run_id)


def folder_at(path: str, project: str | None = None, task: str | None = None) -> TaskFolder:
    """The folder at a path. Ids that are not given are the directories' names, as they are."""
    path = os.path.abspath(path)
    above = os.path.basename(os.path.dirname(path))
    return TaskFolder(
        path,
        above if project is None else project,
        os.path.basename(path) if task is None else task,
    )


def folder_of(root: str, project: str, task: str) -> TaskFolder:
    """`<root>/<project>/<task>`; ConfigError where an id could be something else than a name."""
    for kind, given in (("project", project), ("task", task)):
        if not _ID.fullmatch(given):
            raise ConfigError(
                f"{given!r} is no {kind} id: lower-case letters, digits and hyphens only, "
                "and no hyphen first",
                f"Choose another, such as my-{kind}, or name the directory: --task-dir DIR",
            )
    return folder_at(os.path.join(root, project, task), project, task)
