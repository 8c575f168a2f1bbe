"""`ralph fleet status` and `ralph fleet drain`: short visits to a fleet."""

import json
import os
from collections.abc import Sequence

import click

from ralph.cli.base import command
from ralph.cli.fleet import options
from ralph.cli.params import option, print_lines, the_usual
from ralph.errors import AbortedError, ConfigError
from ralph.fleet.cluster.asking import Fleet, Worker, visit
from ralph.journal.write_access import refuse_agents
from ralph.text.plain import clean
from ralph.text.redact import redacted
from ralph.text.words import counted


@command()
@options.fleet
@options.tls
@the_usual
def status(*, address: str | None, tls: str | None, in_json: bool) -> None:
    """Show the workers of a fleet: where they are, and what they are at.

    Examples:
      ralph fleet status                                  of the fleet in fleet.address
      ralph fleet status --fleet tcp://127.0.0.1:41233
      ralph fleet status --json | jq '.workers[] | select(.draining)'

    Exit codes: 0 it answered, 2 no fleet is there.
    """
    from ralph.fleet.cluster.status_words import lines

    async def look(fleet: Fleet) -> tuple[str, list[Worker]]:
        return str(fleet.place), await fleet.workers()

    settings = options.settings()
    place, workers = visit(address or settings.address, tls or settings.tls, dict(os.environ), look)
    if in_json:
        told = {"address": place, "workers": [worker.as_dict() for worker in workers]}
        click.echo(json.dumps(redacted(told), indent=2))
        return
    print_lines(lines(place, workers))


@command()
@click.argument("workers", nargs=-1, metavar="[WORKER]...")
@option("-y, --yes", "Do not ask before all of them are drained.")
@options.fleet
@options.tls
@the_usual
def drain(
    *, workers: tuple[str, ...], yes: bool, address: str | None, tls: str | None, in_json: bool
) -> int:
    """Have workers take nothing new, finish what they are at, and end.

    A worker is named by its name, host or address, as `ralph fleet status` shows them; without any
    it is all of them. To do it again changes nothing.

    Examples:
      ralph fleet drain build3        before that machine restarts
      ralph fleet drain --yes         all of them

    Exit codes: 0 they have heard it, 1 one of them has not, 2 no such worker or
    no fleet.
    """
    refuse_agents(os.environ, "drain a fleet")
    settings = options.settings()
    where = (address or settings.address, tls or settings.tls, dict(os.environ))
    if not workers and not yes:
        found = visit(*where, lambda fleet: fleet.workers())
        if not _confirmed(f"[ralph] Drain {counted(len(found), 'worker')}?"):
            remedy = "Or name some: ralph fleet drain WORKER. All, and nobody is asked: --yes"
            raise AbortedError("nothing was drained", remedy)

    async def go(fleet: Fleet) -> list[Worker]:
        from ralph.fleet.cluster import on_worker

        chosen = _chosen(await fleet.workers(), workers)
        told = await fleet.ask([worker.address for worker in chosen], on_worker.drain)
        return [w.heard(answer) for w, answer in zip(chosen, told, strict=True)]

    done = visit(*where, go)
    if in_json:
        told = {"workers": [worker.as_dict() for worker in done]}
        click.echo(json.dumps(redacted(told), indent=2))
        return 1 if any(worker.trouble for worker in done) else 0
    if not done:
        click.echo("There are no workers.")
    for worker in done:
        click.echo(_told(worker))
    return 1 if any(worker.trouble for worker in done) else 0


def _confirmed(question: str) -> bool:
    """The answer of a person; no where there is none, or at Ctrl+C."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def _chosen(found: Sequence[Worker], named: Sequence[str]) -> list[Worker]:
    """The workers of these names; ConfigError for one that nobody has."""
    for name in named:
        if not any(name in worker.names for worker in found):
            known = ", ".join(worker.name for worker in found) or "there are none"
            raise ConfigError(f"there is no worker {name!r}", f"Known: {known}")
    return [w for w in found if not named or not set(named).isdisjoint(w.names)]


def _told(worker: Worker) -> str:
    """What becomes of a worker that was asked to leave."""
    name = clean(worker.name)
    if worker.trouble:
        return f"{name}: has not heard it ({clean(worker.trouble)})"
    if worker.attempts:
        return f"{name}: finishes {counted(len(worker.attempts), 'attempt')}, then it ends"
    return f"{name}: has nothing to finish, and ends"
