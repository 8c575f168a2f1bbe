"""Merges the settings of another loop into `.ralph/settings.json`: adds those that are not there,
and reports and leaves those that are there with another value."""

import copy
import json
import os
from dataclasses import asdict
from typing import Any

from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import ensure_ralph_dir, write_atomically
from ralph.kernel.value import replace, value
from ralph.settings.explain import redacted
from ralph.settings.from_others.catalog import FILES, Mapped, fits, read
from ralph.settings.load import combine, load
from ralph.settings.paths import Json, Path, dotted, leaves
from ralph.settings.problems import problems
from ralph.settings.schema import Settings
from ralph.settings.source import SETTINGS, Layer, parse, read_layer
from ralph.text.plain import plain
from ralph.text.words import counted

# One agent with the flags of another would be neither.
_TOGETHER = frozenset(
    ("agent", name) for name in ("command", "flags", "kind", "model", "promptVia", "prices")
)
_LARGEST = 1 << 20
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
    text = _text(path) if text is None else text
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


def _text(path: str) -> str:
    try:
        with open_regular(path) as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.", "Check its name.") from None
    if len(data) > _LARGEST:
        raise ConfigError(f"{path}: is larger than any settings are.", f"Those are {FILES}")
    try:
        text: str = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text.", f"Save {path} as UTF-8.") from None
    if not text.strip():
        raise ConfigError(f"{path}: is empty.", f"Those that are known: {FILES}")
    return text


def write_settings(workspace: str, mapped: Mapped, *, dry_run: bool) -> TakenOver:
    """Add to the workspace's settings what they do not say yet, all or nothing; ConfigError where
    they are broken. With `dry_run` nothing is written."""
    proposed = _checked(mapped)
    layer = read_layer(workspace, SETTINGS)
    if layer:
        combine([layer])
    raw = _raw(workspace) if layer else b""
    here = json.loads(raw.decode("utf-8-sig")) if raw else {}
    outcome, merged = _merged(here, proposed)
    if outcome.added and not dry_run:
        combine([Layer(SETTINGS, parse(_spelled(merged).encode(), SETTINGS))])
        write(workspace, merged, raw)
        return replace(outcome, written=True)
    return outcome


def _checked(mapped: Mapped) -> Mapped:
    """The settings without what our own schema does not admit, and with all that `protect` protects
    anyhow."""
    settings, lost = copy.deepcopy(mapped.settings), list(mapped.lost)
    found = {_whole(problem.path): problem.words for problem in problems(settings)}
    for path in sorted(found, reverse=True):  # the last of a list first
        document: Any = settings
        for step in path[:-1]:
            document = document[step]
        del document[path[-1]]
    lost += [f"{dotted(path)}: {words}" for path, words in found.items()]
    if "protect" in settings:
        settings["protect"] = list(dict.fromkeys((*Settings().protect, *settings["protect"])))
    return replace(mapped, settings=settings, lost=tuple(lost))


def _whole(path: Path) -> Path:
    """Half a guardrail is none: an item of a list goes as a whole."""
    places = [place for place, step in enumerate(path) if isinstance(step, int)]
    return path[: places[0] + 1] if places else path


def _merged(here: Json, proposed: Mapped) -> tuple[TakenOver, Json]:
    merged = copy.deepcopy(here)
    known = {path: found for path, found in leaves(here) if found is not None}  # null: the default
    there = {path: value for path, value in leaves(proposed.settings) if value not in ([], {})}
    differ = {path for path, value in there.items() if path in known and known[path] != value}
    differ |= {path for path in there if _is_in_the_way(here, path)}
    apart = _TOGETHER if differ & _TOGETHER else frozenset()
    new = {path: value for path, value in there.items() if path not in known.keys() | differ}
    added = {path: value for path, value in new.items() if path not in apart}
    for path, found in added.items():
        _set(merged, path, found)
    left = [path for path in there if path in differ or (path in new and path not in added)]
    outcome = TakenOver(
        proposed.loop,
        added=tuple((dotted(path), redacted(found, path)) for path, found in added.items()),
        same=tuple(dotted(path) for path in there if path in known and path not in differ),
        conflicts=tuple(
            Difference(dotted(path), redacted(known.get(path), path), redacted(there[path], path))
            for path in left
        ),
        lost=proposed.lost,
    )
    return outcome, merged


def _is_in_the_way(here: object, path: Path) -> bool:
    """True if something that is no group stands above the path."""
    for step in path[:-1]:
        here = here.get(step) if isinstance(here, dict) else None
        if here is None:
            return False
        if not isinstance(here, dict):
            return True
    return False


def _set(document: Json, path: Path, found: object) -> None:
    for step in path[:-1]:
        if document.get(str(step)) is None:
            document[str(step)] = {}
        document = document[str(step)]
    document[str(path[-1])] = found


def _raw(workspace: str) -> bytes:
    with open(os.path.join(workspace, SETTINGS), "rb") as file:
        return file.read()


def _spelled(settings: Json) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def write(workspace: str, settings: Json, before: bytes | None = None) -> None:
    """Write the settings file; ConfigError if it is not, or no longer as it was `before`."""
    ensure_ralph_dir(workspace)
    path = os.path.join(workspace, SETTINGS)
    try:
        now = _raw(workspace) if os.path.exists(path) else b""
        if before not in (None, now):
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
    return [
        f"{name} ({outcome.loop}): {done if outcome.added else 'nothing new'}.",
        *(f"  + {key} = {_shown(found)}" for key, found in outcome.added),
        *(f"  ! {_conflict(each)}" for each in outcome.conflicts),
        *(f"  = {key} is the same here" for key in outcome.same),
        *(f"  - {words}" for words in outcome.lost),
    ]


def _conflict(each: Difference) -> str:
    if each.here is None:
        return f"{each.key} is not added, {_shown(each.there)}: another agent is set here"
    return f"{each.key} stays {_shown(each.here)}; there it is {_shown(each.there)}"


def _shown(found: object) -> str:
    return plain(json.dumps(found, ensure_ascii=False), 100)
