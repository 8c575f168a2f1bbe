"""`ralph report`: what a run did, as a file to read, to keep and to send."""

import os
import stat
import sys
import time
from collections.abc import Sequence

import click

from ralph.cli.base import command
from ralph.cli.params import completed_by, current_directory, in_directory, option
from ralph.errors import ConfigError, failing
from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import ensure_ralph_dir, state_root, write_atomically
from ralph.journal.runs import find_run
from ralph.runner.showing.recaps import beside_of
from ralph.ui.recap.gather import recap_of
from ralph.ui.recap.values import Recap

_HEAD = 4096  # bytes in which a file says who made it
_KINDS = {".md": "md", ".markdown": "md", ".json": "json"}  # by how a file's name ends


@command()
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=completed_by("run_ids"))
@option("-o, --output FILE", "Write it there; - is stdout.  [default: below .ralph, see above]")
@option("--open", "Show it in a browser.", "shown")
@option(
    "--format [html|md|json]",
    "A page, Markdown for a pull request, or data.  [default: as FILE ends, else html]",
    "kind",
)
@option("--json", "The same as --format json.", "in_json")
@in_directory
def report(
    runs: tuple[str, ...], *, output: str | None, shown: bool, kind: str | None, in_json: bool
) -> None:
    """Write down what a run did: outcome, tasks, plots, and every iteration with its verdict.

    The page is one file that needs neither network nor scripts. Without -o it is
    .ralph/report-RUN.html in this directory, which git does not see. Markdown and JSON go to
    stdout.

    Without RUN: the run that is going on in this directory, else its last one. Several are
    compared first.

    Examples:
      ralph report --open             the last run here, in a browser
      ralph report 3f2a -o night.html
      ralph report 3f2a 77c1          two runs, compared
      ralph report -o night.md        for a pull request
      ralph report --json | jq '.iterations[].judgement.rule'

    RUN is a run's id or any part of it that only one run has, a worker's too.
    Exit codes: 0, or 2 when there is no such run or the file cannot be written.
    """
    if in_json and kind not in (None, "json"):
        raise click.UsageError(f"--json and --format {kind} exclude each other.")
    ending = os.path.splitext(output or "")[1].lower()
    kind = "json" if in_json else kind or _KINDS.get(ending, "html")
    if shown and (kind != "html" or output == "-"):
        words = "--open shows a page: leave out --format and --json, or name FILE.html."
        raise click.UsageError(words)
    root, here = state_root(os.environ), current_directory()
    found = [find_run(root, here, part, "report", workers=True) for part in runs or (None,)]
    unique = list({(run.project, run.id): run for run in found}.values())
    now = time.time()
    recaps = [recap_of(run, now, beside_of(run, os.environ)) for run in unique]
    text = _text(recaps, kind)
    if output == "-" or (output is None and kind != "html"):
        click.echo(text, nl=False)
        return
    path = _written(text, output, here, recaps)
    click.echo(f"{path}  ({len(text.encode()) / 1000:,.0f} KB)" if output is None else path)
    if shown:
        _open(path)


def _text(recaps: Sequence[Recap], kind: str) -> str:
    if kind == "json":
        import json

        import msgspec

        told: object = recaps[0] if len(recaps) == 1 else recaps
        return f"{json.dumps(msgspec.to_builtins(told), indent=2)}\n"  # ASCII, whatever is in it
    if kind == "md":
        from ralph.ui.paper.markdown import markdown

        return markdown(recaps)
    from ralph.ui.paper.page import page

    return page(recaps)


def _written(text: str, output: str | None, here: str, recaps: Sequence[Recap]) -> str:
    """Write the file, and give its path. One that nobody named replaces none but ours."""
    path = output or _usual_path(here, recaps)
    if output is None and not _is_ours(path):
        raise ConfigError(f"{path} is no report of Ralph's", "Name another file: -o FILE")
    with failing(f"cannot write {path}", "Name another file: -o FILE"):
        mode = os.stat(path).st_mode if os.path.exists(path) else stat.S_IFREG
        if stat.S_ISREG(mode):
            write_atomically(path, text, 0o600)
        else:  # a device, or a pipe that somebody reads
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return path


def _usual_path(here: str, recaps: Sequence[Recap]) -> str:
    runs = recaps[0].run if len(recaps) == 1 else f"{len(recaps)}-runs"
    return os.path.join(ensure_ralph_dir(here), f"report-{runs}.html")


def _is_ours(path: str) -> bool:
    from ralph.ui.paper.page import GENERATOR

    if not os.path.lexists(path):
        return True
    return f'name="generator" content="{GENERATOR}'.encode() in read_or_nothing(path, _HEAD)


def _open(path: str) -> None:
    """Ask a browser to show it; without one, the path has been printed."""
    import webbrowser
    from pathlib import Path

    try:
        opened = webbrowser.open(Path(path).resolve().as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        click.echo("There is no browser here: open that file with one.", file=sys.stderr)
