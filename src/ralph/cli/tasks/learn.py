"""`ralph tasks learn`: what the tasks that ended have taught."""

import json

import click

from ralph.cli.params import current_directory, in_directory
from ralph.loops.backlog.learning import Lesson, lessons_of, summary
from ralph.loops.backlog.store.records import Records

_MOST = 100_000
_EPILOG = """\b
Examples:
  ralph tasks learn                 all tasks that ended, by type
  ralph tasks learn --type bug      only those of one type
  ralph tasks learn --json | jq .total.ratio.mean
\b
It reads .ralph/learning.jsonl. A task counts once, with all its tries;
estimates are iterations or a time (3, 2h), and only tasks that are done are
held against theirs.
"""


@click.command(epilog=_EPILOG)
@click.option("--type", "kind", metavar="TYPE", help="Only tasks of this type.")
@click.option("--json", "in_json", is_flag=True, help="Print one JSON object.")
@in_directory
def learn(kind: str | None, *, in_json: bool) -> None:
    """Show what tasks took, against their estimates, and what blocked them."""
    from ralph.loops.backlog.learning_report import learning_dict, learning_lines

    lessons = lessons_of(Records(current_directory(), "").lessons(_MOST))
    chosen = [lesson for lesson in lessons if kind is None or lesson.kind == kind]
    if in_json:
        click.echo(json.dumps(learning_dict(summary(chosen)), indent=2))
    elif not chosen:
        click.echo(_nothing(lessons, kind))
    else:
        click.echo("\n".join(learning_lines(summary(chosen))))


def _nothing(lessons: tuple[Lesson, ...], kind: str | None) -> str:
    if not lessons:
        return "Nothing was learned here yet: no task has ended. Work on some: ralph tasks run"
    known = sorted({lesson.kind or "(no type)" for lesson in lessons})
    return f"No task of type {kind} has ended yet. There are: {', '.join(known)}"
