"""The commands about sandboxes that one comes back to: list, diff, keep, discard."""

import json
import os
import time

import click

from ralph.cli.base import command
from ralph.cli.params import (
    completed_by,
    current_directory,
    in_directory,
    option,
    print_lines,
    the_usual,
)
from ralph.cli.sandbox.visit import change_dict, change_lines, kept_lines, policy_of, result_dict
from ralph.errors import StateError
from ralph.sandbox import kept
from ralph.sandbox.changes import landing
from ralph.sandbox.changes.by_descriptor import path_in
from ralph.sandbox.changes.commit import is_at
from ralph.sandbox.interface import SandboxPolicy
from ralph.sandbox.kept import KeptSandbox
from ralph.text.plain import clean
from ralph.text.words import counted
from ralph.ui.status.report import age, fitted
from ralph.ui.style import Tone, style_here

_HEADINGS = ("NAME", "STATE", "LEFT", "CHANGES", "NETWORK", "BACKEND")
_BEGIN = "No sandbox is kept here. Begin one: ralph sandbox shell NAME"
_names = completed_by("sandbox_names")
_words = click.argument("words", nargs=-1, metavar="[NAME] [PATH]...", shell_complete=_names)


@command("list")
@the_usual
def list_kept(*, in_json: bool) -> None:
    """List the sandboxes of this directory that wait for you.

    One is kept, in use (somebody is in it), or cut off (its shell was killed; what it did is there
    still).

    Examples:
      ralph sandbox list
      ralph sandbox list --json | jq -r '.[].name'
    """
    policy = policy_of(dict(os.environ))
    found = kept.all_of(policy.state, current_directory())
    if in_json:
        print(json.dumps([_told(one) for one in found], indent=2))
        return
    if not found:
        print_lines([_BEGIN])
        return
    rows = [_HEADINGS]
    now = time.time()
    for one in found:
        count = "?" if one.changes is None else str(one.changes)
        left = f"{age(max(0.0, now - one.used))} ago"
        rows.append((one.name, one.state, left, count, one.network, one.backend))
    tones = [Tone.FAINT, *(Tone.PLAIN for _ in found)]
    print_lines(fitted(rows, tones, style_here()))


@command()
@_words
@option("--json", "Print a JSON object: the changes, and the diff.", "in_json")
@in_directory
def diff(words: tuple[str, ...], *, in_json: bool) -> None:
    """Show what a sandbox would change.

    It is a unified diff, of everything or only at each PATH and below. Without a name it is the
    only sandbox there is. What has changed in .git is left out, unless PATH names it.

    Examples:
      ralph sandbox diff
      ralph sandbox diff upgrade src/app.py
      ralph sandbox diff upgrade | less
    """
    policy, one, paths = _found(words)
    with kept.taken(one, policy) as sealed:
        parts = [*kept.diff(sealed, paths)]
    if in_json:
        rows = [change_dict(change) for change in sealed.changes]
        print(json.dumps({**_told(one), "changes": rows, "diff": "".join(parts)}))
        return
    click.echo(clean("".join(parts)), nl=False)
    if not parts or not any(parts):
        click.echo("[ralph] There is no text to show:", err=True)
        for line in change_lines(sealed.changes):
            click.echo(f"[ralph] {line}", err=True)


@command()
@_words
@option("--all", "Also what is held for review.", "everything")
@option("--json", "Print one JSON object.", "in_json")
@in_directory
def keep(words: tuple[str, ...], *, everything: bool, in_json: bool) -> int:
    """Apply to the project what a sandbox has changed.

    It is everything, or only that at each PATH and below. Without a name it is the only sandbox
    there is. What you changed in the project meanwhile is never
    overwritten; what would act on your machine by itself is held. Both stay in the sandbox and are
    named. A sandbox that has nothing left is removed.

    Examples:
      ralph sandbox keep
      ralph sandbox keep upgrade package.json package-lock.json
      ralph sandbox keep upgrade .github --all      what is held too

    Exit codes: 0 all of it was applied, 1 some was not, 2 nothing was.
    """
    policy, one, inner = _found(words)
    try:
        done, left = kept.keep(one, policy, inner, everything=everything)
    except OSError as error:
        raise StateError(
            f"the changes could not be kept: {error.strerror}",
            f"They are in the sandbox still. Fix that, then: ralph sandbox keep {one.name}",
        ) from error
    if in_json:
        print(json.dumps({"name": one.name, **result_dict(done), "left": left}))
        return int(bool(done.spared))
    lines = [*kept_lines(done, f"ralph sandbox keep {one.name} --all")]
    if left:
        them = f"{counted(left, 'change')} {'is' if left == 1 else 'are'}"
        lines.append(f"{them} left in the sandbox {one.name}: ralph sandbox diff {one.name}")
    else:
        lines.append(f"The sandbox {one.name} has nothing left, and is removed.")
    for line in lines:
        click.echo(f"[ralph] {line}", err=True)
    return int(bool(done.spared))


@command()
@click.argument("name", required=False, shell_complete=_names)
@option("--json", "Print one JSON object.", "in_json")
@in_directory
def discard(name: str | None, *, in_json: bool) -> None:
    """Throw away a sandbox and what it has changed.

    Without a name it is the only one there is.

    Examples:
      ralph sandbox discard
      ralph sandbox discard upgrade
    """
    policy = policy_of(dict(os.environ))
    one = kept.find(policy.state, current_directory(), name or "")
    kept.discard(one, policy)
    if in_json:
        print(json.dumps({"name": one.name, "discarded": True}))
        return
    what = "" if one.changes is None else f" {counted(one.changes, 'change')} with it."
    click.echo(f"[ralph] Discarded the sandbox {one.name}.{what}", err=True)


def _found(words: tuple[str, ...]) -> tuple[SandboxPolicy, KeptSandbox, list[str]]:
    """The sandbox that is meant, and paths below the project. Where there is only one, a first word
    that is no name is a path at which something has changed."""
    policy, project = policy_of(dict(os.environ)), current_directory()
    for finished in landing.recover(project, policy.state):
        click.echo("[ralph] A sandbox was killed while it was kept; that is finished:", err=True)
        for line in kept_lines(finished):
            click.echo(f"[ralph] {line}", err=True)
    there = kept.all_of(policy.state, project)
    name = words[0] if words else ""
    if name and len(there) == 1 and name != there[0].name:
        with kept.taken(there[0], policy) as sealed:
            path = path_in(project, name)
            if any(is_at(change, path) for change in sealed.changes):
                return policy, there[0], [path_in(project, word) for word in words]
    one = kept.find(policy.state, project, name)
    return policy, one, [path_in(project, word) for word in words[1:]]


def _told(one: KeptSandbox) -> dict[str, object]:
    names = ("name", "state", "backend", "network", "changes", "used")
    return {name: getattr(one, name) for name in names}
