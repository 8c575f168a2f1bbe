"""`ralph fleet doctor`: what would go wrong with a fleet, and what to type about it."""

import json
import os
import shlex
import shutil
import sys

from ralph.agents.kinds import PROGRAMS
from ralph.cli.base import command
from ralph.cli.fleet import options
from ralph.cli.params import current_directory, option, the_usual
from ralph.doctor.checks import Area, CheckState, count
from ralph.doctor.fleet import Wanted, areas
from ralph.doctor.report import area_lines, health_dict, summary_line
from ralph.errors import RalphError
from ralph.fleet.place import remote_of
from ralph.kernel.value import replace
from ralph.settings.load import Loaded, load
from ralph.text.redact import redacted
from ralph.ui.style import style_of


@command()
@options.fleet
@option("--remote R", "The git remote that all machines reach.  [default: fleet.remote, or origin]")
@options.tls
@the_usual
def doctor(*, address: str | None, remote: str | None, tls: str | None, in_json: bool) -> int:
    """Look at a fleet: the way to it, its certificates, each machine and its way to the code.

    A ref of ralph is pushed to the remote repository from here and from each worker, and deleted
    again. No agent works and nothing is paid for.

    Examples:
      ralph fleet doctor                                 the fleet in fleet.address
      ralph fleet doctor --fleet tls://build.example.com:8786 --remote upstream
      ralph fleet doctor --json | jq '.checks[] | select(.state != "ok")'

    Exit codes: 0 nothing is wrong (there may be warnings), 1 something is.
    """
    given = {"fleet.address": address, "fleet.remote": remote, "fleet.tls": tls}
    flags = {name: (said, f"--{name[6:]}") for name, said in given.items() if said is not None}
    loaded = load(current_directory(), flags)
    style = style_of(sys.stdout, os.environ, loaded.settings.display)
    told: list[Area] = []
    for area in areas(_wanted(loaded)):
        told.append(area)
        if not in_json:
            print(*area_lines(area, style), sep="\n", flush=True)
    if in_json:
        print(json.dumps(redacted(health_dict(told, ())), indent=2))
    else:
        print(summary_line(told, style))
    return 1 if count(told, CheckState.PROBLEM) else 0


def _wanted(loaded: Loaded) -> Wanted:
    settings, environ = loaded.settings, dict(os.environ)
    first = next(filter(shutil.which, PROGRAMS), "")
    agent = settings.agent.command or first
    agent = agent if isinstance(agent, str) else shlex.join(agent)
    wanted = Wanted(
        settings.fleet.address,
        settings.fleet.tls,
        environ,
        agent,
        settings.sandbox or "auto",
        project=current_directory(),
    )
    try:
        return replace(wanted, remote=remote_of(loaded, current_directory(), environ))
    except RalphError as error:
        return replace(wanted, no_remote=error.message, remedy=error.remedy)
