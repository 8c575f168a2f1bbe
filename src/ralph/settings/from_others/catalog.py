"""Finds the loop that a file of settings belongs to, and puts its settings into our words."""

import os
import re

from ralph.settings.from_others.draft import Draft

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


def read(name: str, text: str) -> Draft:
    """Such a file in our words; ValueError, with a reason, for what is none or cannot be read."""
    loop = fits(name, text)
    if loop is None:
        raise ValueError(f"no settings of a loop that is known; those are {FILES}")
    if len(text) > _LARGEST:
        raise ValueError("it is larger than any settings are")
    from ralph.settings.from_others.keys import LOOPS

    load, fill = LOOPS[loop]
    draft = Draft(loop)
    try:
        document = load(text.removeprefix("\ufeff"))
        if document is None:
            document = {}
        if not isinstance(document, dict):
            raise ValueError("keys with values are expected")
        fill(draft, document)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return draft
