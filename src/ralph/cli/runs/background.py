"""`--detach`: what is said of a run that goes on in the background."""

import json
import os
import time
from collections.abc import Callable

import click

from ralph.journal.journal import JOURNAL
from ralph.kernel.value import replace
from ralph.runner.detaching import Detached, detach
from ralph.runner.invocation import Invocation


def in_background(invocation: Invocation, begin: Callable[[Invocation], int]) -> int:
    """Begin a run in the background, and say how to watch, stop and resume it; its exit code, where
    it ended before it had begun."""
    found = detach(
        lambda reader: begin(
            replace(invocation, follow=lambda told, _: reader(os.path.dirname(told.journal)))
        ),
        stdin=invocation.flags.get("prompt_file") == "-",
    )
    if not isinstance(found, Detached):
        return found
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
