"""Settings of other loops, as ours: which loop a file belongs to, and what it says in our words."""

import importlib
import os
import re
from collections.abc import Callable
from typing import Any

from ralph.adapters.formats.loop_draft import Draft, Json
from ralph.core.value import value

_MODULES = {  # what its keys mean, and how it is written
    "ralph-cli": ("loop_ralph_cli", "loop_ralph_cli"),
    "ralph-orchestrator": ("loop_orchestrator", "yaml_text"),
    "ralph-tui": ("loop_tui", "loop_tui"),
    "ralphy": ("loop_ralphy", "yaml_text"),
    "ralphrc": ("loop_ralphrc", "loop_ralphrc"),
}
LOOPS = tuple(_MODULES)
FILES = "ralph.yml, .ralph-tui/config.toml, .ralphy/config.yaml, .ralphrc, .ralph/settings.json"
_LARGEST = 1 << 20  # characters
_KEY = re.compile(r"^(?:\[\[?)?([A-Za-z_][\w-]*)[ \t]*(?:\]|[:=])", re.MULTILINE)
_JSON_KEY = re.compile(r'"([A-Za-z]+)"[ \t]*:')
_CLI_KEYS = frozenset({"maximumIterations", "completionResponse", "guardrails", "reviews"})
_LISTS = frozenset({"userStories", "stories"})
_ORCHESTRATOR = (
    frozenset({"event_loop"}),
    frozenset({"hats"}),
    frozenset({"cli", "core"}),
    frozenset({"agent", "max_iterations"}),
    frozenset({"agent", "prompt_file"}),
    frozenset({"completion_promise"}),
)
_TUI = (
    frozenset({"tracker", "agent"}),
    frozenset({"defaultTracker"}),
    frozenset({"defaultAgent"}),
    frozenset({"agent", "maxIterations"}),
    frozenset({"trackers"}),
)
_RALPHY = (frozenset({"commands", "boundaries"}), frozenset({"commands", "rules"}))
_YAML = (".yml", ".yaml")


@value
class Mapped:
    """What another loop's settings are with us."""

    loop: str
    settings: dict[str, Any]  # as settings.json has them
    lost: tuple[str, ...] = ()  # the keys that are not taken over, each with why


def fits(name: str, text: str) -> str | None:
    """Which loop a file with this name and text has the settings of; None: of none that is known.
    It is a look at names and keys; nothing is parsed, and nothing raised."""
    folder, base = os.path.split(name)
    folder = os.path.basename(folder)
    ending = os.path.splitext(base)[1]
    if base == ".ralphrc":
        return "ralphrc"
    if ending == ".json":
        return "ralph-cli" if _fits_cli(folder, base, text) else None
    keys = frozenset(_KEY.findall(text[:_LARGEST]))
    if ending == ".toml":
        ours = folder in (".ralph-tui", "ralph-tui") and base == "config.toml"
        return "ralph-tui" if ours or _any(_TUI, keys) else None
    if ending in _YAML:
        return _fitting_yaml(folder, base, keys)
    return None


def _fits_cli(folder: str, base: str, text: str) -> bool:
    keys = frozenset(_JSON_KEY.findall(text[:_LARGEST]))
    named = folder == ".ralph" and base in ("settings.json", "settings.local.json")
    return named or (not keys & _LISTS and len(keys & _CLI_KEYS) > 1)


def _fitting_yaml(folder: str, base: str, keys: frozenset[str]) -> str | None:
    stem = os.path.splitext(base)[0]
    if folder == ".ralphy" and stem == "config":
        return "ralphy"
    if stem == "ralph" or _any(_ORCHESTRATOR, keys):
        return "ralph-orchestrator"
    return "ralphy" if _any(_RALPHY, keys) else None


def _any(sets: tuple[frozenset[str], ...], keys: frozenset[str]) -> bool:
    return any(wanted <= keys for wanted in sets)


def read(name: str, text: str) -> Mapped:
    """What such a file says in our words; ValueError, with a reason, for what cannot be read, or
    belongs to no loop that is known."""
    loop = fits(name, text)
    if loop is None:
        raise ValueError(f"no settings of a loop that is known; those are {FILES}")
    if len(text) > _LARGEST:
        raise ValueError("it is larger than any settings are")
    load, fill = _reader(loop)
    document = load(text.removeprefix("\ufeff"))
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ValueError("keys with values are expected")
    draft = Draft()
    try:
        fill(draft, document)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return Mapped(loop, draft.settings, tuple(draft.lost))


def _reader(loop: str) -> tuple[Callable[[str], Any], Callable[[Draft, Json], None]]:
    """How it is written, and what it means; imported only now."""
    meaning, syntax = _MODULES[loop]
    load = importlib.import_module(f"{__package__}.{syntax}").load
    return load, importlib.import_module(f"{__package__}.{meaning}").fill
