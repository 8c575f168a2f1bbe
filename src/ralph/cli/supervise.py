"""`ralph supervise`: the restart manager (S)."""

import os
import sys

import click

from ralph.cli.params import (
    completed_by,
    current_directory,
    duration,
    in_directory,
    not_negative,
    whole_number,
)

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
@click.option(
    "--agent",
    metavar="NAME",
    shell_complete=completed_by("agents"),
    help="The agent: claude, codex, amp, gemini, opencode, any command.",
)
@click.option(
    "--model", metavar="NAME", shell_complete=completed_by("models"), help="The agent's model."
)
@click.option(
    "--max-restarts",
    metavar="N",
    type=not_negative(whole_number),
    default="100",
    show_default=True,
    help="Most attempts.",
)
@click.option(
    "--restart-delay",
    metavar="DURATION",
    type=duration,
    default="1",
    show_default=True,
    help="Time between two attempts.",
)
@click.option(
    "--wait-timeout",
    metavar="DURATION",
    type=duration,
    default="300",
    show_default=True,
    help="Longest wait, after DONE, for the agent and its child runs.",
)
@click.option(
    "--poll-interval",
    metavar="DURATION",
    type=duration,
    default="1",
    show_default=True,
    help="How often that wait looks for child runs.",
)
@click.option("--timeout", metavar="DURATION", type=duration, help="Longest attempt.")
@click.option("--idle-timeout", metavar="DURATION", type=duration, help="Longest silence in it.")
@click.option("--stop-grace", metavar="DURATION", type=duration, help="Time left after Ctrl+C.")
@click.option(
    "--stream-agent-output/--no-stream-agent-output",
    default=None,
    help="Show the agent's output as it comes.",
)
@click.option("-V", "--verbose", is_flag=True, help="Say more about what happens.")
@click.option("--emoji/--no-emoji", default=None, help="Emoji as markers.")
@click.option("--color/--no-color", default=None, help="Colours.")
@click.option("--timestamps/--no-timestamps", default=None, help="The time before each line.")
@click.option("--json", "in_json", is_flag=True, help="Only JSON objects on stdout, one a line.")
@in_directory
def supervise(**flags: object) -> int:
    """Restart an agent until its task is done.

    The task is done when there is a file DONE in its folder, which the agent finds in
    $TASK_FOLDER. Whatever exit code the agent ends with, it is started again, until then.
    """
    from ralph.cli.loop import begin
    from ralph.cli.planning import Invocation
    from ralph.cli.supervised import make_folder, plan_supervised

    here = current_directory()
    streams = (sys.stdin, sys.stdout, sys.stderr)
    keeper = click.get_current_context().obj
    invocation = Invocation(here, dict(os.environ), flags, *streams, keeper)
    plan = plan_supervised(invocation)
    return begin(invocation, plan, lambda: make_folder(plan))
