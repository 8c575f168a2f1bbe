"""`ralph tasks`: the backlog of a project, and the run that works through it (B)."""

import click

from ralph.cli.base import LazyGroup, command
from ralph.cli.params import in_directory, option, run_loop, run_options

_COMMANDS = {  # the module, the name in it, and a line about it
    "add": ("ralph.cli.tasks.edit", "add", "Add a task."),
    "plan": ("ralph.cli.tasks.plan", "plan", "Have an agent split a goal into tasks."),
    "list": ("ralph.cli.tasks.show", "list_tasks", "List the tasks."),
    "show": ("ralph.cli.tasks.show", "show", "Show everything about a task."),
    "edit": ("ralph.cli.tasks.edit", "edit", "Change a task."),
    "next": ("ralph.cli.tasks.show", "next_one", "Say which task would be taken next."),
    "run": ("ralph.cli.tasks.group", "run", "Work through the tasks until nothing is left."),
    "answer": ("ralph.cli.tasks.edit", "answer", "Answer the question of a task."),
    "import": ("ralph.cli.tasks.lists", "import_list", "Import another task list."),
    "export": ("ralph.cli.tasks.lists", "export", "Write the tasks as another tool's list."),
    "sync": ("ralph.cli.tasks.lists", "sync", "Mark done tasks in the lists they came from."),
    "learn": ("ralph.cli.tasks.show", "learn", "Show what earlier tasks took."),
}


@click.group(cls=LazyGroup, lazy=lambda: _COMMANDS)
@in_directory
def tasks() -> None:
    """Work through a backlog, one proven task at a time.

    The tasks are in .ralph/tasks.jsonl, one per line, to be kept in git. A task that names a
    check is done when that check passes, whatever the agent says.

    Examples:
      ralph tasks add "Sort the list by date" --completion "test:make test"
      ralph tasks add "Write it up" --blocked-by T-001 --completion file:NEWS.md
      ralph tasks plan "Import bank statements as CSV" --from SPEC.md
      ralph tasks import prd.json
      ralph tasks list
      ralph tasks run
    """


@command()
@option("--task ID", "Only this task.  [default: all]")
@option("--tag TAG", "Only tasks with one of these tags; repeat for more.", multiple=True)
@option("--allow-dirty", "Allow uncommitted changes; they stay as they are.")
@option("-m, --max-iterations N", "Maximum number of iterations of a task.  [default: 10]")
@option("--max-tasks N", "Maximum number of tasks.  [default: 50]")
@option("--parallel N", "Work on N tasks at once, each in its own git worktree.  [default: 1]")
@option("--fleet ADDRESS", "Take the turns on the machines of a fleet; none: here.")
@option("--on-failure [continue|stop|retry]", "What to do after a task fails.  [default: continue]")
@run_options(time="4h", cost="50", sandbox="auto")
@in_directory
def run(**flags: object) -> int:
    """Work through the backlog: pick a task, iterate until it is proven complete, commit, next.

    Tasks are in .ralph/tasks.jsonl. A task that names a check is complete when that passes, one
    with tests named after its id when these do (loop.testCommand), others when the agent says so;
    every guardrail must pass too. A task over its limits is undone, marked as blocked, and the next
    one starts.

    Examples:
      ralph tasks run                              all that is open, in a sandbox
      ralph tasks run --task T-003 --no-sandbox    one task, in place
      ralph tasks run --tag backend --max-time 8h --max-cost 20
      ralph tasks run --agent codex --on-failure stop
      ralph tasks run --parallel 4                 four tasks at a time
      ralph tasks run --fleet tls://build:8786     their turns on other machines
      ralph tasks run --dry-run                    the first prompt and command

    Exit codes: 0 nothing is left, 1 a limit of the run, 2 configuration (a dirty
    tree, a circle, an unknown task), 3 a task is blocked or asks something,
    5 the agent keeps failing, 130 interrupted.
    """
    return run_loop("backlog", flags)
