"""`ralph tasks run`: work through the backlog (B)."""

import click

from ralph.cli.params import (
    agent_patience,
    dry_run,
    in_directory,
    json_lines,
    option,
    run_display,
    run_limits,
    run_loop,
    run_sandbox,
    which_agent,
)

_EPILOG = """\b
Examples:
  ralph tasks run                              all that is open, each turn in a sandbox
  ralph tasks run --task T-003 --no-sandbox    one task, in place
  ralph tasks run --tag backend --max-time 8h --max-cost 20
  ralph tasks run --agent codex --on-failure stop
  ralph tasks run --parallel 4                 four tasks at a time
  ralph tasks run --dry-run                    the first prompt and command
\b
Exit codes: 0 nothing is left, 1 a limit of the run, 2 configuration (a dirty
tree, a circle, an unknown task), 3 a task is blocked or asks something,
5 the agent keeps failing, 130 interrupted.
"""


@click.command(epilog=_EPILOG)
@option("--task ID", "Only this task.")
@option("--tag TAG", "Only tasks with one of these tags.", multiple=True)
@option("--allow-dirty", "Allow uncommitted changes; they stay as they are.")
@option("-m, --max-iterations N", "Maximum number of iterations of a task.")
@option("--max-tasks N", "Maximum number of tasks.")
@option("--parallel N", "Work on N tasks at once, each in its own git worktree.")
@run_limits
@option(
    "--on-failure [continue|stop|retry]",
    "What to do after a task fails.",
    type=click.Choice(["continue", "stop", "retry"]),
)
@which_agent()
@agent_patience
@run_sandbox
@run_display
@dry_run
@json_lines
@in_directory
def run(**flags: object) -> int:
    """Work through the backlog: pick a task, iterate until it is proven complete, commit, next.

    Tasks are in .ralph/tasks.jsonl. A task that names a check is complete when that passes, others
    when the agent says so and every guardrail passes. A task over its limits is undone, marked as
    blocked, and the next one starts.
    """
    return run_loop("backlog", flags)
