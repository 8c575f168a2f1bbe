"""`ralph web`: the runs of this machine in a browser."""

import json
import os

import click

from ralph.cli.base import command
from ralph.cli.params import a_file, option
from ralph.errors import ConfigError
from ralph.journal.write_access import refuse_agents

_EXTRA = (
    "Install it: pipx inject ralph-engine starlette uvicorn, or pip install 'ralph-engine[web]'"
)


@command()
@option("--host ADDRESS", "The address to listen at.", default="127.0.0.1")
@option(
    "--port N",
    "The port.  [default: any that is free]",
    default=0,
    type=click.IntRange(0, 65535),
    show_default=False,
)
@option("--socket PATH", "Listen at a Unix socket instead.", shell_complete=a_file)
@option("--read-only", "Only show: no run can be steered from the page.")
@option(
    "--allow-host NAME", "A name by which browsers may reach it; repeat for more.", multiple=True
)
@option("--tls-cert FILE", "The certificate, as PEM.")
@option("--tls-key FILE", "Its key, as PEM.")
@option("--open", "Open the page in the browser.", "open_page")
@option("--json", "Print one JSON object when it listens.", "in_json")
def web(
    *,
    host: str,
    port: int,
    socket: str | None,
    read_only: bool,
    allow_host: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    open_page: bool,
    in_json: bool,
) -> int:
    """Show the runs of this machine in a browser, live, and steer them there.

    The link that it prints opens the page; its token is what steers. It listens on this machine
    alone and ends with Ctrl+C; no run notices.

    Examples:
      ralph web                           then open the link
      ralph web --open                    it opens by itself
      ralph web --port 8734 --read-only   look, and steer nothing
      ssh -L 8734:127.0.0.1:8734 HOST     reach that of another machine
      ralph web --json | jq -r .url       for programs

    Exit codes: 0 after Ctrl+C, 2 when it cannot listen.
    """
    if not read_only:
        refuse_agents(os.environ, "start ralph web")
    try:
        from ralph.web.serve import Options, Place, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"ralph web needs the package {error.name}", _EXTRA) from error

    def ready(place: Place) -> None:
        if in_json:
            told = {
                "url": place.link,
                "port": place.port,
                "socket": place.socket,
                "pid": os.getpid(),
            }
            click.echo(json.dumps(told))
            return
        at = f" by the socket {place.socket}" if place.socket else ""
        click.echo(f"[ralph] {place.link}{at}")
        click.echo(
            f"[ralph] It shows the runs in {place.root}. Ctrl+C ends it, and no run.", err=True
        )

    options = Options(
        host, port, socket or "", read_only, allow_host, tls_cert or "", tls_key or ""
    )
    serve(options, os.environ, ready, lambda words: click.echo(f"[ralph] {words}", err=True))
    return 0
