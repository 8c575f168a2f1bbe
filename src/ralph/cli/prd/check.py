"""`ralph prd check`: says what is wrong with the stories, for people and for CI (R §5b)."""

import json
import os
from collections.abc import Mapping
from typing import Any

import click

from ralph.cli.base import command
from ralph.cli.params import at_least, option, usual_in_project
from ralph.cli.prd.group import ralph_dir
from ralph.errors import ConfigError, RalphError, StateError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import project_dir, state_root
from ralph.git.uncommitted import uncommitted
from ralph.git.uncommitted_text import MARKER
from ralph.journal.runs import live_owner
from ralph.loops.stories.file import PRD, PROMPT, TASKS, StoryFile, tasks_of
from ralph.loops.stories.folder import Folder, found_folder
from ralph.loops.stories.past_runs import unjudged
from ralph.review.check import Remark, about_order, about_titles, remarks, tally
from ralph.review.law import LARGEST, Marked, NotAListError, parsed
from ralph.runner.arguments import shown, text_of, warn
from ralph.text.words import listed

_MOST_NAMED = 5
_AGAIN = "go on with it: ralph resume, or begin anew: ralph prd run"


@command()
@ralph_dir
@option(
    "--review-cap N",
    "Maximum number of reviews of a story.  [default: the run's, else 5]",
    type=at_least(1),
)
@option("--skip-review", "Stories need no review.")
@usual_in_project
def check(*, ralph_dir: str, review_cap: int | None, skip_review: bool, in_json: bool) -> int:
    """Say what is wrong with the stories as they stand; change nothing.

    Examples:
      ralph prd check                   findings, one per line
      ralph prd check --json | jq .findings
      ralph prd check --skip-review     for a list that is worked on without reviews

    While a run is on (.ralph-active is there) it also says what the turn may not
    have done, and what is not committed: what the stop hook would say now.
    Exit codes: 0 nothing is wrong, 1 findings, 2 there is no ralph folder.
    """
    folder = found_folder(ralph_dir)
    marker = _marker(folder)
    if marker is None:
        try:  # what the last turn of a killed run wrote about its stories may not be so
            for left in unjudged(project_dir(state_root(os.environ), folder.project), folder.path):
                warn(f"run {left.run} was killed before its last turn was judged: {_AGAIN}")
        except StateError as error:
            warn(error.words)
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
    return int(bool(found))


def _look(
    folder: Folder, marker: Mapping[str, Any] | None, cap: int | None, *, skip_review: bool
) -> tuple[list[Remark], Mapping[str, int]]:
    """All that is wrong, and the number of stories."""
    marked = Marked(marker or {})
    if marker is not None and marked.lacks:
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
        tasks = tasks_of(listing)
        found += [*about_titles(tasks), *about_order(tasks)]
    for name, which in ((PROMPT, "prompt"), (PRD, "prd")):
        if problem := _text_problem(folder.of(name)):
            found.append(Remark(which, "", f"{folder.shown(name)}: {problem}."))
    # Check 3 is about a turn: a person who is still writing may commit later.
    if marker is not None and (left := uncommitted(folder.project, os.environ)):
        words = f"Not committed: {listed(left, _MOST_NAMED)}. Commit all changes."
        found.append(Remark("3", "", words))
    return found, tally(listing)


def _text_problem(path: str) -> str:
    """The reason why a file is no text to read; "" if it is one."""
    try:
        with open_regular(path) as file:
            text = text_of(file.read(LARGEST + 1), "it", LARGEST)
    except FileNotFoundError:
        return "it is missing; ralph prd init makes a new one"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except ConfigError as error:
        return error.message
    return "" if text.strip() else "it is empty"


def _marker(folder: Folder) -> Mapping[str, Any] | None:
    """The marker of the turn of a run of these stories; None while there is none, or nonsense."""
    path = os.path.join(folder.project, MARKER)
    try:
        marker = parsed(StoryFile(path).raw())
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
        warn(f"{MARKER} is there, but no run is on: if it was killed, {_AGAIN}")
    return marker
