"""`ralph tasks run`: work through the backlog (B)."""

import click

from ralph.cli.params import (
    agent_output,
    agent_patience,
    in_directory,
    json_lines,
    looks,
    run_limits,
    run_loop,
    run_sandbox,
    which_agent,
    whole_number,
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


@click.command(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--task", metavar="ID", help="Only this task.")
@click.option("--tag", metavar="TAG", multiple=True, help="Only tasks with one of these tags.")
@click.option(
    "--allow-dirty",
    is_flag=True,
    help="Work beside changes that you have not committed: they stay as they are.",
)
@click.option(
    "-m", "--max-iterations", metavar="N", type=whole_number, help="Most iterations of a task."
)
@click.option("--max-tasks", metavar="N", type=whole_number, help="Most tasks of the run.")
@click.option(
    "--parallel",
    metavar="N",
    type=whole_number,
    help="Work on so many tasks at once, each in a git worktree of its own.",
)
@run_limits
@click.option(
    "--on-failure",
    type=click.Choice(["continue", "stop", "retry"]),
    help="After a task that failed: the next one, an end, or once more.",
)
@which_agent
@agent_patience
@run_sandbox
@agent_output
@click.option("-V", "--verbose", is_flag=True, help="Say more about what happens.")
@looks
@click.option("--dry-run", is_flag=True, help="Print the prompt and the command, run nothing.")
@json_lines
@in_directory
def run(**flags: object) -> int:
    """Work through the backlog: pick a task, iterate until it is proven complete, commit, next.

    Tasks are in .ralph/tasks.jsonl. A task that names a check is complete when that passes, others
    when the agent says so and every guardrail passes. A task over its limits is undone, marked as
    blocked, and the next one starts.
    """
    return run_loop("backlog", flags)
