"""Merges the settings of another loop into `.ralph/settings.json`: adds those that are not there,
and reports and leaves those that are there with another value."""

import json
import os
from dataclasses import asdict
from typing import Any

from ralph.errors import ConfigError
from ralph.files.state_dir import ensure_ralph_dir, write_atomically
from ralph.kernel.value import replace, value
from ralph.settings.explain import redacted
from ralph.settings.from_others.catalog import FILES, fits, read
from ralph.settings.from_others.draft import Draft
from ralph.settings.load import combine, load, merge
from ralph.settings.paths import Json, dotted, leaves, nested
from ralph.settings.problems import problems
from ralph.settings.schema import Settings
from ralph.settings.source import (
    SETTINGS,
    Layer,
    decoded,
    normalized,
    parse,
    read_bytes,
    read_layer,
)
from ralph.text.plain import plain
from ralph.text.words import counted

# One agent with the flags of another would be neither.
_TOGETHER = frozenset(
    ("agent", name) for name in ("command", "flags", "kind", "model", "promptVia", "prices")
)
_FIX = "Fix it, or write .ralph/settings.json by hand: ralph explain --schema"


@value
class Difference:
    """A key that has another value here than there; the one here stays."""

    key: str
    here: Any
    there: Any


@value
class TakenOver:
    """The settings of another loop that were merged, or not. No value in it is a secret."""

    loop: str
    added: tuple[tuple[str, Any], ...] = ()
    same: tuple[str, ...] = ()
    conflicts: tuple[Difference, ...] = ()
    lost: tuple[str, ...] = ()  # keys that are not taken over, each with why
    written: bool = False


def take_over(workspace: str, path: str, text: str | None = None, *, dry_run: bool) -> TakenOver:
    """Merge another loop's settings into the workspace's; `text` where the file is read already.
    ConfigError, with the file's name, for what cannot be read or belongs to no loop."""
    if text is None:
        raw = read_bytes(path, path)
        if raw is None:
            raise ConfigError(f"{path}: is not there.", "Check its name.")
        text = decoded(raw, path)
    if not text.strip():
        raise ConfigError(f"{path}: is empty.", f"Those that are known: {FILES}")
    if fits(os.path.abspath(path), text) is None:
        raise ConfigError(
            f"{path}: has no settings of a loop that is known.",
            f"Those are {FILES}; a list of tasks: ralph tasks import {path}",
        )
    try:
        found = read(os.path.abspath(path), text)
    except ValueError as error:
        raise ConfigError(f"{path}: cannot be read: {plain(str(error))}.", _FIX) from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", error.remedy) from None
    own = os.path.join(workspace, SETTINGS)
    if os.path.exists(path) and os.path.exists(own) and os.path.samefile(path, own):
        loaded = load(workspace)  # says what has to go, if anything
        return TakenOver(found.loop, same=tuple(loaded.origins))
    return write_settings(workspace, found, dry_run=dry_run)


def write_settings(workspace: str, draft: Draft, *, dry_run: bool) -> TakenOver:
    """Add to the workspace's settings what they do not say yet, all or nothing; ConfigError where
    they are broken. With `dry_run` nothing is written."""
    _check(draft)
    layer = read_layer(workspace, SETTINGS)
    if layer:
        combine([layer])
    raw = read_bytes(os.path.join(workspace, SETTINGS), SETTINGS) or b""
    here = normalized(json.loads(raw.decode("utf-8-sig"))) if raw else {}
    outcome, merged = _merged(here, draft)
    if outcome.added and not dry_run:
        combine([Layer(SETTINGS, parse(_spelled(merged).encode(), SETTINGS))])
        write(workspace, merged, raw)
        return replace(outcome, written=True)
    return outcome


def _check(draft: Draft) -> None:
    """Leave the settings that our own schema admits, with all that `protect` protects anyhow."""
    settings, found = normalized(draft.settings), {}
    for problem in problems(settings):
        # Half a guardrail is none: an item of a list goes as a whole.
        places = [at for at, step in enumerate(problem.path) if isinstance(step, int)]
        found[problem.path[: places[0] + 1] if places else problem.path] = problem.words
    for path in sorted(found, reverse=True):  # the last of a list first
        document: Any = settings
        for step in path[:-1]:
            document = document[step]
        del document[path[-1]]
    draft.lost += [f"{dotted(path)}: {words}" for path, words in found.items()]
    if "protect" in settings:
        settings["protect"] = list(dict.fromkeys((*Settings().protect, *settings["protect"])))


def _merged(here: Json, proposed: Draft) -> tuple[TakenOver, Json]:
    merged = here
    known = {path: found for path, found in leaves(here) if found is not None}  # null: the default
    there = {path: value for path, value in leaves(proposed.settings) if value not in ([], {})}
    differ = {path for path, value in there.items() if path in known and known[path] != value}
    # Something that is no group may stand above it.
    differ |= {path for path in there if any(path[:n] in known for n in range(1, len(path)))}
    apart = _TOGETHER if differ & _TOGETHER else frozenset()
    new = {path: value for path, value in there.items() if path not in known.keys() | differ}
    added = {path: value for path, value in new.items() if path not in apart}
    for path, found in added.items():
        merged = merge(merged, nested(path, found))
    left = [path for path in there if path in differ or (path in new and path not in added)]
    outcome = TakenOver(
        proposed.loop,
        added=tuple((dotted(path), redacted(found, path)) for path, found in added.items()),
        same=tuple(dotted(path) for path in there if path in known and path not in differ),
        conflicts=tuple(
            Difference(dotted(path), redacted(known.get(path), path), redacted(there[path], path))
            for path in left
        ),
        lost=tuple(proposed.lost),
    )
    return outcome, merged


def _spelled(settings: Json) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def write(workspace: str, settings: Json, before: bytes | None = None) -> None:
    """Write the settings file; ConfigError if it is not, or no longer as it was `before`."""
    ensure_ralph_dir(workspace)
    path = os.path.join(workspace, SETTINGS)
    try:
        if before not in (None, read_bytes(path, SETTINGS) or b""):
            raise ConfigError(f"{SETTINGS}: somebody has just changed it.", "Try again.")
        write_atomically(path, _spelled(settings))
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}.",
            "Check the disk (df -h .) and who may write there (ls -ld .ralph).",
        ) from None


def report(outcome: TakenOver, name: str, *, in_json: bool = False) -> str:
    """The outcome for people, or for programs."""
    if in_json:
        told = {"source": name, **asdict(outcome), "added": dict(outcome.added)}
        return json.dumps(told, ensure_ascii=False)
    after = ["Settings written to .ralph/settings.json"] if outcome.written else []
    return "\n".join((*lines(outcome, name), *after))


def lines(outcome: TakenOver, name: str) -> list[str]:
    """One for each key."""
    count = counted(len(outcome.added), "setting")
    done = f"{count} {'added' if outcome.written else 'would be added'}"
    first = f"{name} ({outcome.loop}): {done if outcome.added else 'nothing new'}."
    return [first, *changes(outcome)]


def changes(outcome: TakenOver) -> list[str]:
    """What becomes of each key."""
    conflicts = []
    for each in outcome.conflicts:
        here, there = _shown(each.here), _shown(each.there)
        words = f"{each.key} stays {here}; there it is {there}"
        if each.here is None:
            words = f"{each.key} is not added, {there}: another agent is set here"
        conflicts.append(f"  ! {words}")
    return [
        *(f"  + {key} = {_shown(found)}" for key, found in outcome.added),
        *conflicts,
        *(f"  = {key} is the same here" for key in outcome.same),
        *(f"  - {words}" for words in outcome.lost),
    ]


def _shown(found: object) -> str:
    return plain(json.dumps(found, ensure_ascii=False), 100)
