"""`--detach` and `--watch`: a run that goes on in the background, and what is said of it."""

import json
import os
import time
from collections.abc import Callable

import click

from ralph.journal.journal import JOURNAL
from ralph.journal.runs import Run, look_again
from ralph.kernel.value import replace
from ralph.runner.detaching import Detached, detach
from ralph.runner.invocation import Invocation


def in_background(
    invocation: Invocation, begin: Callable[[Invocation], int], *, watched: bool = False
) -> int:
    """Begin a run in the background, and watch it, or say how to watch, stop and resume it. The
    exit code is that of a run which has ended by then, or never began."""
    if watched:
        _refuse_watching(invocation)
    found = detach(
        lambda reader: begin(
            replace(invocation, follow=lambda told, _: reader(os.path.dirname(told.journal)))
        ),
        stdin=invocation.flags.get("prompt_file") == "-",
    )
    if not isinstance(found, Detached):
        return found
    if watched:
        from ralph.watch.front import watch

        run = look_again(Run(found.run, os.path.dirname(os.path.dirname(found.directory))))
        looks = {name: invocation.flags.get(name) for name in ("emoji", "color")}
        return watch(run, looks, begun=True)
    if invocation.flags["in_json"]:
        told = {"type": "detached", "time": time.time(), "run": found.run, "pid": found.pid}
        journal = os.path.join(found.directory, JOURNAL)
        paths = {"state_dir": found.directory, "journal": journal, "output": found.output}
        click.echo(json.dumps({**told, **paths}))
        return 0
    click.echo(
        f"Run {found.run} has begun in the background (pid {found.pid}).\n"
        f"  Watch it:   ralph logs -f {found.run}\n"
        f"  Stop it:    ralph stop {found.run}\n"
        f"  Resume it:  ralph resume {found.run}    when it was stopped or killed\n"
        f"  Its output: {found.output}"
    )
    return 0


def _refuse_watching(invocation: Invocation) -> None:
    """Before a run begins that nobody could watch."""
    from ralph.watch.front import refuse_no_terminal

    if invocation.flags["in_json"]:
        raise click.UsageError("--watch and --json exclude each other: use --detach --json.")
    refuse_no_terminal("Without a terminal: --detach, then ralph logs -f")
