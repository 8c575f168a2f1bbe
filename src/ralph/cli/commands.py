"""The commands of `ralph` by name, each imported only when it is called."""

import click

from ralph import __version__
from ralph.cli.base import LazyGroup, is_prompt
from ralph.runner.loops import LOOPS

COMMANDS = {
    "run": ("ralph.cli.run", "Run an agent in a loop until its work is done and proven."),
    "tasks": ("ralph.cli.tasks.group", "Work through a backlog, one proven task at a time."),
    "prd": ("ralph.cli.prd.group", "Work through stories that must survive a fresh review."),
    "loop": ("ralph.cli.loop", "Keep one session of an agent at a task until it is done."),
    "supervise": ("ralph.cli.supervise.command", "Restart an agent until its task is marked DONE."),
    "job": ("ralph.cli.supervise.job", "Run a command as a child run of a task."),
    "bus": ("ralph.cli.supervise.bus", "Post, read and follow the messages of a task."),
    "fleet": ("ralph.cli.fleet.group", "Take turns of a backlog to other machines."),
    "agent": ("ralph.cli.agent", "Let a model work here, with nothing but its key."),
    "eval": ("ralph.cli.evaluate.command", "Measure agents over a suite of tasks."),
    "list": ("ralph.cli.runs.list", "List the runs of this machine, newest first."),
    "status": ("ralph.cli.runs.status", "Show what a run is doing and what it has spent."),
    "watch": ("ralph.cli.runs.watch", "Watch a run in the terminal, and steer it."),
    "logs": ("ralph.cli.runs.logs", "Show what a run did, or follow it."),
    "web": ("ralph.cli.web", "Show the runs of this machine in a browser, and steer them."),
    "replay": ("ralph.cli.runs.replay", "Judge a run again, by today's parsers and rules."),
    "report": ("ralph.cli.runs.report", "Write down what a run did, as a page, Markdown or JSON."),
    "export": ("ralph.cli.runs.export", "Give a run to other tools: Harbor, OpenTelemetry, JSON."),
    "stop": ("ralph.cli.runs.steer", "End a run after its current operation, or at once."),
    "pause": ("ralph.cli.runs.steer", "Pause a run before its next turn."),
    "note": ("ralph.cli.runs.steer", "Tell a run something with its next prompt."),
    "resume": ("ralph.cli.runs.resume", "Continue a run that was paused, or has ended."),
    "notify": ("ralph.cli.notify", "Try how you are told that a run has ended."),
    "clean": ("ralph.cli.runs.clean", "Remove old runs, and what was kept for them."),
    "guard": ("ralph.cli.guard", "Check a shell command as the guard does."),
    "mcp": ("ralph.cli.mcp", "Let other programs start and steer runs, as tools of MCP."),
    "hook": ("ralph.cli.hook", "Answer an agent's host (called by its hooks)."),
    "plugin": ("ralph.cli.plugin", "Install or remove Ralph's hooks in claude, codex or gemini."),
    "sandbox": ("ralph.cli.sandbox.group", "Run a command so that what it changes can be undone."),
    "init": ("ralph.cli.init.command", "Look at this project and propose .ralph/settings.json."),
    "explain": ("ralph.cli.explain", "Show the settings in force and the rules, in order."),
    "doctor": ("ralph.cli.doctor", "Check this machine, and say what to fix."),
    "demo": ("ralph.cli.demo", "See Ralph at work, without any agent, key or network."),
    "completion": ("ralph.cli.completion", "Print the script that makes a shell complete ralph."),
}
SECTIONS = {  # of the help; what is named in none of them stands first
    "Supervise": ("supervise", "job", "bus"),
    "Watch and steer": (
        *("list", "status", "watch", "web", "mcp", "logs", "report", "export", "replay"),
        *("stop", "pause", "note", "resume", "clean"),
    ),
    "Safety": ("sandbox", "guard", "hook"),
    "Set up and understand": (
        "init",
        "plugin",
        "notify",
        "doctor",
        "explain",
        "demo",
        "completion",
    ),
}


def commands() -> dict[str, tuple[str, str, str]]:
    """The table above, and a command for each loop that it does not know."""
    told = {name: (module, name, words) for name, (module, words) in COMMANDS.items()}
    loops = {command.split()[0]: name for name, (_, command) in LOOPS.items()}
    return told | {w: (f"ralph.cli.{w}", w, f"Run the loop {n}.") for w, n in loops.items()} | told


@click.group(
    cls=LazyGroup,
    lazy=commands,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(
    __version__, "-v", "--version", message="ralph %(version)s", help="Print the version."
)
def ralph() -> None:
    """Run AI coding agents in a loop until the work is done, and prove that it is done.

    `ralph "what to do"` and `ralph -p ...` are short for `ralph run`.

    Examples:
      ralph demo                            what it is about, in a few seconds
      ralph init                            settings for a project of yours
      ralph run -p "Make the tests pass"    then let it work

    Every command has examples too: ralph COMMAND --help
    """


def with_command(arguments: list[str]) -> list[str]:
    """`ralph -p x` and `ralph "do x"` are of `ralph run`, and `ralph -C dir explain` is `ralph
    explain -C dir`."""
    if arguments[:1] == ["-C"] and arguments[2:3] and arguments[2] in commands():
        return [arguments[2], *arguments[:2], *arguments[3:]]
    ours = ("-h", "--help", "-v", "--version")
    first = arguments[0] if arguments else ""
    to_run = is_prompt(first) or (first.startswith("-") and first not in ours)
    return ["run", *arguments] if to_run else arguments
