"""`ralph prd check`: says what is wrong with the stories, for people and for CI (R §5b)."""

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

import click

from ralph.cli.params import at_least, in_json, in_project, option
from ralph.cli.prd.group import ralph_dir
from ralph.errors import RalphError, StateError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import project_dir, state_root
from ralph.git.uncommitted import uncommitted
from ralph.git.uncommitted_text import MARKER
from ralph.journal.runs import live_owner
from ralph.loops.stories.file import PRD, PROMPT, TASKS, tasks_of
from ralph.loops.stories.folder import Folder, found_folder
from ralph.loops.stories.past_runs import unjudged
from ralph.review.check import Remark, about_order, remarks, tally
from ralph.review.law import NotAListError, parsed
from ralph.review.marker import Marked
from ralph.review.text import LARGEST
from ralph.runner.arguments import shown, warn
from ralph.text.words import listed

_MOST_NAMED = 5
_EPILOG = """\b
Examples:
  ralph prd check                   findings, one per line
  ralph prd check --json | jq .findings
  ralph prd check --skip-review     for a list that is worked on without reviews
\b
While a run is on (.ralph-active is there) it also says what the turn may not
have done, and what is not committed: what the stop hook would say now.
Exit codes: 0 nothing is wrong, 1 findings, 2 there is no ralph folder.
"""


@click.command(epilog=_EPILOG)
@ralph_dir
@option(
    "--review-cap N",
    "Maximum number of reviews of a story.  [default: the run's, else 5]",
    type=at_least(1),
)
@option("--skip-review", "Stories need no review.")
@in_json
@in_project
@click.pass_context
def check(
    context: click.Context,
    *,
    ralph_dir: str,
    review_cap: int | None,
    skip_review: bool,
    in_json: bool,
) -> None:
    """Say what is wrong with the stories as they stand; change nothing."""
    folder = found_folder(ralph_dir)
    marker = _marker(folder)
    found, counts = _look(folder, marker, review_cap, skip_review=skip_review)
    if in_json:
        findings = [{"check": r.check, "story": r.story or None, "text": r.text} for r in found]
        stories = {name.replace(" ", "_"): number for name, number in counts.items()}
        click.echo(json.dumps({"ok": not found, "findings": findings, "stories": stories}))
    else:
        total, *kinds = counts.items()
        told = ", ".join(f"{number} {kind}" for kind, number in kinds if number)
        right = f"{total[1]} {'story' if total[1] == 1 else 'stories'}: {told}"
        click.echo("\n".join(shown(r.text) for r in found) or right)
    context.exit(1 if found else 0)


def _look(
    folder: Folder, marker: Mapping[str, Any] | None, cap: int | None, *, skip_review: bool
) -> tuple[list[Remark], Mapping[str, int]]:
    """All that is wrong, and the number of stories."""
    marked = Marked(marker or {})
    if marker is None:
        _warn_of_unjudged(folder)
    elif marked.lacks:
        warn(f"{MARKER} has no {marked.lacks}: what the turn did to the stories is not checked")
    marked.skip_review |= skip_review
    marked.cap = cap or marked.cap
    try:
        listing = folder.file.listing()
    except NotAListError as error:
        listing, found = None, [Remark("1", "", f"{folder.shown(TASKS)}: {error}.")]
    else:
        found = remarks(listing, marked)
    if isinstance(listing, dict) and not any(r.check == "1" for r in found):
        found += about_order(tasks_of(listing))
    for name, which in ((PROMPT, "prompt"), (PRD, "prd")):
        if problem := _text_problem(folder.of(name)):
            found.append(Remark(which, "", f"{folder.shown(name)}: {problem}."))
    found += _uncommitted(folder.project) if marker is not None else ()
    return found, tally(listing)


def _text_problem(path: str) -> str:
    """The reason why a file is no text to read; "" if it is one."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            return f"it is larger than {LARGEST >> 20} MB: no agent reads that"
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        return "it is missing; ralph prd init makes a new one"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        return f"it is not UTF-8 text (byte {error.start})"
    if "\0" in text:
        return "it contains a NUL byte: it is not text"
    return "" if text.strip() else "it is empty"


def _uncommitted(project: str) -> Iterator[Remark]:
    """Check 3. Only of a turn: a person who is still writing may commit later."""
    left = uncommitted(project, os.environ) or []
    if left:
        words = f"Not committed: {listed(left, _MOST_NAMED)}. Commit all changes."
        yield Remark("3", "", words)


def _marker(folder: Folder) -> Mapping[str, Any] | None:
    """The marker of a run of these stories, about its turn; None while there is none. Nonsense says
    nothing."""
    path = os.path.join(folder.project, MARKER)
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise OSError(errno.ELOOP, "it is a symbolic link")
        with open_regular(path) as file:
            marker = parsed(file.read(LARGEST))
    except FileNotFoundError:
        return None
    except (OSError, NotAListError) as error:
        warn(f"{MARKER} is left out: {getattr(error, 'strerror', None) or error}")
        return {}
    if not isinstance(marker, dict):
        return {}
    theirs = os.path.join(folder.project, Marked(marker).folder)
    if os.path.realpath(theirs) != os.path.realpath(folder.path):
        return None
    try:
        live = live_owner(project_dir(state_root(os.environ), folder.project)) is not None
    except RalphError:
        live = False
    if not live:
        what = "if it was killed, go on with it: ralph resume, or begin anew: ralph prd run"
        warn(f"{MARKER} is there, but no run is on: {what}")
    return marker


def _warn_of_unjudged(folder: Folder) -> None:
    """Warn of a killed run: what its last turn wrote about its stories may not be so."""
    state = project_dir(state_root(os.environ), folder.project)
    try:
        for left in unjudged(state, folder.path):
            what = "go on with it: ralph resume, or begin anew: ralph prd run"
            warn(f"run {left.run} was killed before its last turn was judged: {what}")
    except StateError as error:
        warn(f"{error.message}. {error.remedy}")
