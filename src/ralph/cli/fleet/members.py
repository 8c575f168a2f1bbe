"""`ralph fleet up` and `ralph fleet worker`: the parts of a fleet, each until Ctrl+C."""

import os
import socket
from functools import partial

import click

from ralph.cli.base import command
from ralph.cli.fleet import options
from ralph.cli.params import at_least, in_directory, option
from ralph.fleet.place import LOCAL, NONE
from ralph.fleet.security import address_of, is_loopback, require_extra, security_of

_a_port = click.IntRange(0, 65535)
_MOST_WORKERS = 256  # each is a process of 45 MB
_slots = option("--slots N", "Attempts at once, of each worker.", default="1", type=at_least(1))


@command()
@option("--workers N", "Workers on this machine; 0: none.", default="2", type=at_least(0))
@option("--host ADDRESS", "The address to listen at.", default="127.0.0.1")
@option("--port P", "The port.  [default: any that is free]", default=0, type=_a_port)
@option(
    "--tls DIR",
    "The directory with ca.pem, cert.pem and key.pem.  [default: none for this machine alone, else "
    "fleet.tls or ~/.config/ralph/fleet]",
)
@_slots
@in_directory
def up(*, workers: int, host: str, port: int, tls: str | None, slots: int) -> int:
    """Start a fleet: a scheduler, and workers on this machine.

    The first line that it prints is the address for `--fleet`. Everything ends with Ctrl+C: what is
    under way there too.

    Examples:
      ralph fleet up                                   two workers, to try it
      ralph fleet up --workers 4 --slots 2             eight attempts at once
      ralph fleet up --workers 0 --host build.example.com --port 8786
                                                       a scheduler alone, by TLS

    Exit codes: 0 after Ctrl+C, 2 when it cannot listen.
    """
    from ralph.fleet.cluster.up import planned
    from ralph.fleet.cluster.up import up as begin

    if not host.strip():
        raise click.UsageError("--host: name an address of this machine.")
    if workers > _MOST_WORKERS:
        more = "Each takes more attempts with --slots; start others elsewhere: ralph fleet worker"
        raise click.UsageError(f"--workers: {_MOST_WORKERS} are the most on a machine. {more}")
    environ = dict(os.environ)
    if not is_loopback(host):
        tls = tls or options.settings().tls
    plan = planned(host, port, workers=workers, slots=slots, tls=tls, environ=environ)
    return begin(plan, environ, partial(_write, 1), partial(_write, 2))


@command()
@option("--scheduler ADDRESS", "The fleet's scheduler.  [default: the setting fleet.address]")
@_slots
@option("--name NAME", "A name for this worker.  [default: the host's, and a number]")
@option("--port P", "The port to listen at.  [default: any that is free]", default=0, type=_a_port)
@options.tls
@in_directory
def worker(
    *, scheduler: str | None, slots: int, name: str | None, port: int, tls: str | None
) -> int:
    """Let this machine work for a fleet, until Ctrl+C.

    It waits for a scheduler that is not there yet, and comes back to one that was away. Agents run
    with the environment and the logins of who starts it. The scheduler must reach this machine too.

    Examples:
      ralph fleet worker --scheduler tls://build.example.com:8786
      ralph fleet worker --slots 3                     of the fleet in fleet.address

    Exit codes: 0 after Ctrl+C or when it is drained, 2 when it cannot work there.
    """
    if name is not None and not (name.isprintable() and name.split() == [name]):
        raise click.UsageError(f"--name: {name!r} is no name of one word.")
    require_extra()
    settings = options.settings()
    address = scheduler or settings.address
    if not address or address in (LOCAL, NONE):
        raise click.UsageError("name the fleet: --scheduler ADDRESS")
    place, environ = address_of(address), dict(os.environ)
    security = security_of(address, tls or settings.tls, environ)
    from ralph.fleet.cluster.scratch import scratch
    from ralph.fleet.cluster.worker import Post, work

    host = socket.gethostname().partition(".")[0] or "worker"
    with scratch(environ) as directory:
        post = Post(place, slots, name or f"{host}-{os.getpid()}", directory, port)
        return work(post, security, lambda words: click.echo(f"[ralph] {words}", err=True))


def _write(descriptor: int, data: bytes) -> None:
    """Pass on what the fleet prints; a closed stream is no reason to end it."""
    try:
        os.write(descriptor, data)
    except OSError:
        pass
