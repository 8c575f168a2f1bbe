"""`ralph clean`: removes what old runs have left on this machine."""

import json
import os
import time

import click

from ralph.cli.base import command
from ralph.cli.params import at_least, current_directory, option, print_lines, the_usual
from ralph.files.disk_use import size_words
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.runs import projects
from ralph.runner.arguments import refuse_agents
from ralph.runner.cleaning import SANDBOX, Remains, Terms, remains, remove
from ralph.text.plain import plain
from ralph.text.words import counted
from ralph.ui.status.report import age, fitted, tidy_path
from ralph.ui.style import Tone, style_here

_HEADINGS = ("RUN", "STATE", "LEFT", "SIZE", "REFS", "WORKSPACE")


@command()
@option("--older DURATION", "Only what was left alone for so long.", default="30d")
@option("--keep N", "Runs of each directory to keep.", type=at_least(0), default="1")
@option("--here", "Only the runs of this directory.")
@option("--dry-run", "Only say what would be removed.")
@the_usual
def clean(*, older: float, keep: int, here: bool, dry_run: bool, in_json: bool) -> int:
    """Remove old runs of this machine: journals, streams, sandboxes, and the refs that keep work.

    A run goes whole, with its refs (refs/ralph/RUN/...) and what its sandboxes have kept. These
    stay: a run that goes on; one that was interrupted or killed less than 30 days ago; one whose
    saved work a task names; a sandbox that you named. What runs have cost stays in the ledger.

    Examples:
      ralph clean --dry-run             what would go, and how much room it takes
      ralph clean                       what is older than 30 days
      ralph clean --older 7d --keep 5   but the five newest of each directory stay
      ralph clean --here --older 0      all ended runs of this directory, but the newest

    Exit codes: 0, 1 when something could not be removed, or 2.
    """
    refuse_agents(os.environ, "remove the records of runs", "")
    root = state_root(os.environ)
    places = [project_dir(root, current_directory())] if here else projects(root)
    found = [*remains(places, os.environ, Terms(older, keep, time.time()))]
    going, staying = [f for f in found if not f.kept], [f for f in found if f.kept]
    problems = [] if dry_run else remove(going, root, os.environ)
    if in_json:
        told = {
            "dry_run": dry_run,
            "bytes": sum(each.size for each in going),
            "removed": [each.as_dict() for each in going],
            "kept": [each.as_dict() for each in staying],
            "problems": problems,
        }
        click.echo(json.dumps(told, indent=2))
    else:
        print_lines([*_table(going), *_words(going, staying, dry_run=dry_run)])
        for problem in problems:
            click.echo(f"[ralph] {plain(problem)}", err=True)
    return int(bool(problems))


def _table(going: list[Remains]) -> list[str]:
    rows = [
        (
            each.name,
            each.state,
            f"{age(each.age)} ago",
            size_words(each.size),
            str(len(each.refs)),
            tidy_path(each.workspace or each.project),
        )
        for each in going
    ]
    tones = [Tone.FAINT, *(Tone.PLAIN for _ in rows)]
    return fitted([_HEADINGS, *rows], tones, style_here()) if rows else []


def _words(going: list[Remains], staying: list[Remains], *, dry_run: bool) -> list[str]:
    lines = [f"Kept: {each.name} ({each.state}): {each.kept}" for each in staying]
    if not going:
        stays = "What is younger stays (--older), and the newest of each directory (--keep)"
        return [*lines, f"Nothing to remove. {stays}."]
    boxes = sum(each.state == SANDBOX for each in going)
    runs = len(going) - boxes
    named = [counted(runs, "run")] * (runs > 0)
    named += [f"{boxes} sandbox{'' if boxes == 1 else 'es'}"] * (boxes > 0)
    what = " and ".join(named)
    size, refs = size_words(sum(each.size for each in going)), sum(len(each.refs) for each in going)
    with_refs = f", {counted(refs, 'ref')}" if refs else ""
    if dry_run:
        return [*lines, f"Would remove {what}{with_refs}: {size}. To do it, leave out --dry-run."]
    freed = " What the refs kept goes with git's next gc." if refs else ""
    return [*lines, f"Removed {what}{with_refs}: {size}.{freed}"]
