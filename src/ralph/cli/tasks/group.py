"""`ralph tasks`: the backlog of a project, and the run that works through it (B)."""

import click

from ralph.cli.lazy import LazyGroup
from ralph.cli.params import in_directory

_COMMANDS = {  # the module, the name in it, and a line about it
    "add": ("ralph.cli.tasks.add", "add", "Add a task."),
    "list": ("ralph.cli.tasks.show", "list_tasks", "List the tasks."),
    "show": ("ralph.cli.tasks.show", "show", "Show everything about a task."),
    "edit": ("ralph.cli.tasks.edit", "edit", "Change a task."),
    "next": ("ralph.cli.tasks.show", "next_one", "Say which task would be taken next."),
    "run": ("ralph.cli.tasks.run", "run", "Work through the tasks until nothing is left."),
    "answer": ("ralph.cli.tasks.edit", "answer", "Answer the question of a task."),
    "import": ("ralph.cli.tasks.import_", "import_list", "Import another task list."),
    "export": ("ralph.cli.tasks.export", "export", "Write the tasks as another tool's list."),
    "sync": ("ralph.cli.tasks.sync", "sync", "Mark done tasks in the lists they came from."),
    "learn": ("ralph.cli.tasks.show", "learn", "Show what earlier tasks took."),
}


@click.group(
    cls=LazyGroup,
    lazy=lambda: _COMMANDS,
    epilog="""\b
Examples:
  ralph tasks add "Sort the list by date" --completion "test:make test"
  ralph tasks add "Write it up" --blocked-by T-001 --completion file:NEWS.md
  ralph tasks import prd.json
  ralph tasks list
  ralph tasks run
""",
)
@in_directory
def tasks() -> None:
    """Work through a backlog, one proven task at a time.

    The tasks are in .ralph/tasks.jsonl, one per line, to be kept in git. A task that names a
    check is done when that check passes, whatever the agent says.
    """
