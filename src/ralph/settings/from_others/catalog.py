"""Settings of other loops, as ours: the loop that a file belongs to, and its settings in our
words."""

import importlib
import os
import re
from typing import Any

from ralph.kernel.value import value
from ralph.settings.from_others.draft import Draft

_MODULES = {  # what its keys mean, and how it is written
    "ralph-cli": ("ralph.settings.from_others.ralph_cli", "ralph.settings.from_others.ralph_cli"),
    "ralph-orchestrator": ("ralph.settings.from_others.orchestrator", "ralph.files.yaml_text"),
    "ralph-tui": ("ralph.settings.from_others.tui", "ralph.settings.from_others.tui"),
    "ralphy": ("ralph.settings.from_others.ralphy", "ralph.files.yaml_text"),
    "ralphrc": ("ralph.settings.from_others.ralphrc", "ralph.settings.from_others.ralphrc"),
}
LOOPS = tuple(_MODULES)
FILES = "ralph.yml, .ralph-tui/config.toml, .ralphy/config.yaml, .ralphrc, .ralph/settings.json"
_LARGEST = 1 << 20  # characters
_KEY = re.compile(r"^(?:\[\[?)?([A-Za-z_][\w-]*)[ \t]*(?:\]|[:=])", re.MULTILINE)
_JSON_KEY = re.compile(r'"([A-Za-z]+)"[ \t]*:')
_CLI_KEYS = frozenset({"maximumIterations", "completionResponse", "guardrails", "reviews"})
_LISTS = frozenset({"userStories", "stories"})
_ORCHESTRATOR = (
    *("event_loop", "hats", "cli core", "agent max_iterations", "agent prompt_file"),
    "completion_promise",
)
_TUI = ("tracker agent", "defaultTracker", "defaultAgent", "agent maxIterations", "trackers")
_RALPHY = ("commands boundaries", "commands rules")
_YAML = (".yml", ".yaml")


@value
class Mapped:
    """Another loop's settings in our words."""

    loop: str
    settings: dict[str, Any]  # as settings.json has them
    lost: tuple[str, ...] = ()  # the keys that are not taken over, each with why


def fits(name: str, text: str) -> str | None:
    """The loop that a file with this name and text has the settings of; None: of none that is
    known. It is a look at names and keys; nothing is parsed, and nothing raised."""
    folder, base = os.path.split(name)
    folder = os.path.basename(folder)
    stem, ending = os.path.splitext(base)
    text = text[:_LARGEST]
    if base == ".ralphrc":
        return "ralphrc"
    if ending == ".json":
        keys = frozenset(_JSON_KEY.findall(text))
        named = folder == ".ralph" and base in ("settings.json", "settings.local.json")
        ours = named or (not keys & _LISTS and len(keys & _CLI_KEYS) > 1)
        return "ralph-cli" if ours else None
    keys = frozenset(_KEY.findall(text))
    if ending == ".toml":
        ours = folder in (".ralph-tui", "ralph-tui") and base == "config.toml"
        return "ralph-tui" if ours or _any(_TUI, keys) else None
    if ending not in _YAML:
        return None
    if folder == ".ralphy" and stem == "config":
        return "ralphy"
    if stem == "ralph" or _any(_ORCHESTRATOR, keys):
        return "ralph-orchestrator"
    return "ralphy" if _any(_RALPHY, keys) else None


def _any(sets: tuple[str, ...], keys: frozenset[str]) -> bool:
    return any(keys.issuperset(wanted.split()) for wanted in sets)


def read(name: str, text: str) -> Mapped:
    """Such a file in our words; ValueError, with a reason, for what cannot be read, or belongs to
    no loop that is known."""
    loop = fits(name, text)
    if loop is None:
        raise ValueError(f"no settings of a loop that is known; those are {FILES}")
    if len(text) > _LARGEST:
        raise ValueError("it is larger than any settings are")
    meaning, syntax = (importlib.import_module(one) for one in _MODULES[loop])
    document = syntax.load(text.removeprefix("\ufeff"))
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ValueError("keys with values are expected")
    draft = Draft()
    try:
        meaning.fill(draft, document)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return Mapped(loop, draft.settings, tuple(draft.lost))
