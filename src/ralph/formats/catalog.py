"""The formats by name, and the choice of one for a file. Each is imported on demand."""

import importlib
from collections.abc import Iterable
from typing import cast

from ralph.errors import ConfigError
from ralph.formats.base import MARKDOWN, Format
from ralph.text.words import listed

_PLACES = {  # the module and the name in it
    "prd": ("prd", "PRD"),
    "ralph-tui": ("prd", "RALPH_TUI"),
    "stories": ("prd", "STORIES"),
    "iannuttall": ("prd", "IANNUTTALL"),
    "markdown": ("markdown.format", "FORMAT"),
    "beads": ("beads", "FORMAT"),
    "ralphy": ("ralphy", "FORMAT"),
    "github": ("github", "FORMAT"),
}
NAMES = tuple(_PLACES)


def by_name(name: str) -> Format:
    """The format with this name, which must be one of NAMES."""
    module, held = _PLACES[name]
    return cast(Format, getattr(importlib.import_module(f"{__package__}.{module}"), held))


def detect(name: str, text: str, among: Iterable[str] = NAMES) -> Format:
    """The format of a file with this name and text; ConfigError where none or several fit. A text
    in which there are no tasks is markdown by its name."""
    fitting = [known for known in map(by_name, among) if known.fits(name, text)]
    if not fitting and name.casefold().endswith(MARKDOWN):
        fitting = [by_name("markdown")]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        which = listed([known.name for known in fitting])
        raise ConfigError(f"{name} could be {which}", f"Say which: --format {fitting[0].name}")
    why = ""
    if name.casefold().endswith(".json"):  # it may be cut off
        from ralph.formats.json_lists import parsed

        try:
            parsed(text)
        except ValueError as error:
            why = f": it is no JSON ({error})"
    remedy = f"If it is one, say which: --format {'|'.join(NAMES)}"
    raise ConfigError(f"{name} is no task list that is known{why}", remedy)
