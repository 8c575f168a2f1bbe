"""`ralph fleet`: the commands by name."""

import click

from ralph.cli.base import LazyGroup
from ralph.cli.params import in_directory

_COMMANDS = {  # the module, the name in it, and a line about it
    "up": ("ralph.cli.fleet.members", "up", "Start a fleet on this machine, until Ctrl+C."),
    "worker": ("ralph.cli.fleet.members", "worker", "Let this machine work for a fleet."),
    "status": ("ralph.cli.fleet.visits", "status", "Show the workers and what they are at."),
    "drain": ("ralph.cli.fleet.visits", "drain", "Have workers finish what they are at, and end."),
    "doctor": ("ralph.cli.fleet.doctor", "doctor", "Check a fleet, and say what to fix."),
}


@click.group(cls=LazyGroup, lazy=lambda: _COMMANDS)
@in_directory
def fleet() -> None:
    """Take turns of `ralph tasks run` to other machines.

    The tasks, their checks and the merging stay where the run is; the agents work on the machines
    of the fleet, each paid by the login there. Code travels by git. It needs the extra fleet:
    pip install 'ralph-engine[fleet]'

    Examples:
      ralph fleet up --workers 2                        a fleet on this machine, to try it
      ralph tasks run --parallel 2 --fleet ADDRESS      with the address that it has printed
      ralph fleet worker --scheduler tls://HOST:8786    on each machine of a team
      ralph fleet status                                who is at what
      ralph fleet doctor                                what would go wrong
    """
