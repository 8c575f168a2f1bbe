"""`ralph web`: the runs of this machine in a browser."""

import json
import os
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.base import command
from ralph.cli.params import a_file, option, together
from ralph.errors import ConfigError
from ralph.journal.write_access import refuse_agents

if TYPE_CHECKING:
    from ralph.web.serve import Place

_EXTRA = (
    "Install it: pipx inject ralph-engine starlette uvicorn, or pip install 'ralph-engine[web]'"
)
_OPENED_WITHIN = 30.0  # seconds, then the file that leads there is gone
_where = together(
    option("--host ADDRESS", "The address to listen at.", default="127.0.0.1"),
    option(
        "--port N",
        "The port.  [default: any that is free]",
        default=0,
        type=click.IntRange(0, 65535),
    ),
    option("--socket PATH", "Listen at a Unix socket instead.", shell_complete=a_file),
    option(
        "--allow-host NAME",
        "A name by which browsers may reach it; repeat for more.",
        "names",
        multiple=True,
    ),
    option("--tls-cert FILE", "The certificate, as PEM."),
    option("--tls-key FILE", "Its key, as PEM."),
)


@command()
@_where
@option("--read-only", "Only show: no run can be steered from the page.")
@option("--open", "Open the page in the browser.", "open_page")
@option("--json", "Print one JSON object when it listens.", "in_json")
def web(*, open_page: bool, in_json: bool, **given: Any) -> None:  # noqa: ANN401  see Options
    """Show the runs of this machine in a browser, live, and steer them there.

    The link that it prints opens the page; its token is what steers. It listens on this machine
    alone and ends with Ctrl+C; no run notices.

    Examples:
      ralph web                           then open the link
      ralph web --open                    it opens by itself
      ralph web --port 8734 --read-only   look, and steer nothing
      ssh -L 8734:127.0.0.1:8734 HOST     reach that of another machine
      ralph web --json | jq -r .url       for programs

    Another --host than this machine needs --tls-cert and --tls-key.
    RALPH_WEB_TOKEN gives a service its token.
    Exit codes: 0 after Ctrl+C, 2 when it cannot listen.
    """
    if not given["read_only"]:
        refuse_agents(os.environ, "steer runs by ralph web")
    try:
        from ralph.web.serve import TOKEN, Options, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"ralph web needs the package {error.name}", _EXTRA) from error

    environ = dict(os.environ)
    os.environ.pop(TOKEN, None)  # what we start has no use for it
    with ExitStack() as at_end:

        def ready(place: "Place") -> None:
            _tell(place, in_json=in_json)
            if open_page:
                _open(place, at_end)

        serve(
            Options(**given), environ, ready, lambda words: click.echo(f"[ralph] {words}", err=True)
        )


def _tell(place: "Place", *, in_json: bool) -> None:
    if in_json:
        told = {"url": place.link, "port": place.port, "socket": place.socket, "pid": os.getpid()}
        click.echo(json.dumps(told))
        return
    at = f" by the socket {place.socket}" if place.socket else ""
    click.echo(f"[ralph] {place.link}{at}")
    if place.names:
        host = place.url.partition("://")[2].rstrip("/")
        words = f"It also answers as {', '.join(place.names)}: behind a proxy type that for {host}."
        click.echo(f"[ralph] {words}", err=True)
    click.echo(f"[ralph] It shows the runs in {place.root}. Ctrl+C ends it, and no run.", err=True)


def _open(place: "Place", at_end: ExitStack) -> None:
    from ralph.web.opening import open_in_browser

    remove = open_in_browser(place.link)
    timer = threading.Timer(_OPENED_WITHIN, remove)
    timer.daemon = True
    timer.start()
    at_end.callback(remove)
