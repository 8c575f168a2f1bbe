"""`ralph supervise`: the restart manager (S)."""

import click

from ralph.cli.base import command
from ralph.cli.params import (
    agent_patience,
    at_least,
    in_directory,
    json_lines,
    option,
    run_display,
    run_loop,
    which_agent,
)


@command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED)
@option("--task-dir DIR", "The task's folder; made if it is missing.")
@option("--root DIR", "With --project and --task: DIR/PROJECT/TASK.")
@option("--project ID", "The project's id: a-z, 0-9 and -.")
@option("--task ID", "The task's id: a-z, 0-9 and -.")
@option("-p, --prompt TEXT", "What to do; without it TASK.md says so.")
@option("-f, --prompt-file FILE", "Read the prompt from FILE before each attempt; - is stdin.")
@which_agent()
@option(
    "-m, --max-iterations, --max-restarts N",
    "Maximum number of attempts.",
    "max_restarts",
    type=at_least(0),
    default="100",
)
@option("--restart-delay DURATION", "Time between two attempts.", default="1s")
@option(
    "--wait-timeout DURATION",
    "Maximum wait, after DONE, for the agent and its child runs.",
    default="5m",
)
@option("--poll-interval DURATION", "How often that wait looks for child runs.", default="1s")
@agent_patience
@run_display
@json_lines
@in_directory
def supervise(**flags: object) -> int:
    """Restart an agent until its task is done.

    The task is done when there is a file DONE in its folder, which the agent finds in
    $TASK_FOLDER. Until then it is restarted, whatever its exit code.

    Examples:
      ralph supervise --task-dir tasks/login -p "Build the page" --agent claude
      ralph supervise --task-dir tasks/login            what TASK.md there says
      ralph supervise --task-dir tasks/login -- ./agent.sh --fast
      ralph supervise --root work --project shop --task login -f login.md

    Exit codes: 0 the task is done (DONE), 1 restarts used up, 2 configuration,
    3 the agent waits (exit code 42, WAIT_WITHOUT_RESTART), 130 interrupted.
    """
    return run_loop("supervise", flags)
