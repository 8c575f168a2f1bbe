"""`ralph supervise`: the restart manager (S)."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ralph.cli.params import (
    agent_output,
    agent_patience,
    completed_by,
    duration,
    in_directory,
    json_lines,
    looks,
    not_negative,
    run_loop,
    which_agent,
    whole_number,
)

_Function = TypeVar("_Function", bound=Callable[..., Any])
_EPILOG = """\b
Examples:
  ralph supervise --task-dir tasks/login -p "Build the page" --agent claude
  ralph supervise --task-dir tasks/login            what TASK.md there says
  ralph supervise --task-dir tasks/login -- ./agent.sh --fast
  ralph supervise --root work --project shop --task login -f login.md
\b
Exit codes: 0 the task is done (DONE), 1 restarts used up, 2 configuration,
3 the agent waits (exit code 42, WAIT_WITHOUT_RESTART), 130 interrupted.
"""


def _seconds(flag: str, default: str, words: str) -> Callable[[_Function], _Function]:
    return click.option(
        flag, metavar="DURATION", type=duration, default=default, show_default=True, help=words
    )


@click.command(
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
@click.option(
    "--task-dir",
    metavar="DIR",
    shell_complete=completed_by("directories"),
    help="The task's folder; made if it is missing.",
)
@click.option("--root", metavar="DIR", help="With --project and --task: DIR/PROJECT/TASK.")
@click.option("--project", metavar="ID", help="The project's id: a-z, 0-9 and -.")
@click.option("--task", metavar="ID", help="The task's id: a-z, 0-9 and -.")
@click.option("-p", "--prompt", metavar="TEXT", help="What to do; without it TASK.md says so.")
@click.option(
    "-f",
    "--prompt-file",
    metavar="FILE",
    shell_complete=completed_by("files"),
    help="Read it from FILE, before each attempt; - is stdin.",
)
@which_agent
@click.option(
    "--max-restarts",
    metavar="N",
    type=not_negative(whole_number),
    default="100",
    show_default=True,
    help="Most attempts.",
)
@_seconds("--restart-delay", "1", "Time between two attempts.")
@_seconds("--wait-timeout", "300", "Longest wait, after DONE, for the agent and its child runs.")
@_seconds("--poll-interval", "1", "How often that wait looks for child runs.")
@agent_patience
@agent_output
@click.option("-V", "--verbose", is_flag=True, help="Say more about what happens.")
@looks
@json_lines
@in_directory
def supervise(**flags: object) -> int:
    """Restart an agent until its task is done.

    The task is done when there is a file DONE in its folder, which the agent finds in
    $TASK_FOLDER. Whatever exit code the agent ends with, it is started again, until then.
    """
    return run_loop("supervise", flags)
