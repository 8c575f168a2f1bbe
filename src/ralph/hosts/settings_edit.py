"""Installs, finds and removes Ralph's hooks in the text of a host's settings.

Claude Code, Codex and Gemini have one shape: `{"hooks": {EVENT: [{"matcher", "hooks": [...]}]}}`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ralph.files.json_edit import Item, JsonText, JsonTextError, fresh

MARK = "ralph.hooks.installed"  # in every command that is ours
KEY = "hooks"
Group = Mapping[str, Any]


def installed(text: JsonText | None, groups: Mapping[str, Group]) -> str:
    """The settings with one group an event, and no other of ours. Text that has just these stays
    as it is; None is a missing file."""
    wanted = {event: [group] for event, group in groups.items()}
    if text is not None:
        _refuse_other_shapes(text, groups)
        if found(text) == wanted:
            return text.raw
        text = _removed(text)
    if text is None or text.is_hollow(text.top):
        return fresh([(KEY, wanted)])
    for event, group in groups.items():
        hooks = text.member(text.top, KEY)
        there = text.member(hooks.at, event) if hooks is not None else None
        if hooks is None:
            text = text.appended(text.top, 0, {event: [group]}, KEY)
        elif there is None:
            text = text.appended(hooks.at, 1, [group], event)
        else:
            text = text.appended(there.at, 2, group)
    return text.raw


def uninstalled(text: JsonText) -> str | None:
    """The settings without what is ours; None where nothing else was ever in the file."""
    left = _removed(text)
    return None if left.is_hollow(left.top) else left.raw


def found(text: JsonText) -> dict[str, list[Group]]:
    """Our groups by event, each with only our commands in it."""
    groups: dict[str, list[Group]] = {}
    for event, group, command in _ours(text):
        groups.setdefault(event.key, []).append({**group.content, KEY: [command.content]})
    return groups


def _refuse_other_shapes(text: JsonText, groups: Mapping[str, Group]) -> None:
    """Raise JsonTextError if something else stands in the place of hooks."""
    hooks = text.member(text.top, KEY)
    if hooks is None:
        return
    if not isinstance(hooks.content, dict):
        raise JsonTextError(f'"{KEY}" is not an object')
    for event in groups:
        if not isinstance(hooks.content.get(event, []), list):
            raise JsonTextError(f'"{event}" in "{KEY}" is not a list')


def _removed(text: JsonText) -> JsonText:
    """Remove one command at a time, and what that leaves empty; every edit moves what follows."""
    while ours := next(_ours(text), None):
        event, group, command = ours
        commands = text.member(group.at, KEY)
        assert commands is not None
        if len(commands.content) > 1:
            text = text.removed(commands.at, command.start)
            continue
        text = text.removed(event.at, group.start)
        hooks = text.member(text.top, KEY)
        assert hooks is not None
        there = text.member(hooks.at, event.key)
        if there is not None and text.is_hollow(there.at):
            text = text.removed(hooks.at, there.start)
            if text.is_hollow(hooks.at):
                text = text.removed(text.top, hooks.start)
    return text


def _ours(text: JsonText) -> Iterator[tuple[Item, Item, Item]]:
    """Each command of ours, with its event and group."""
    hooks = text.member(text.top, KEY)
    for event in _inside(text, hooks, dict):
        for group in _inside(text, event, list):
            commands = text.member(group.at, KEY) if isinstance(group.content, dict) else None
            for command in _inside(text, commands, list):
                if is_ours(command.content):
                    yield event, group, command


def _inside(text: JsonText, item: Item | None, kind: type) -> list[Item]:
    return text.items(item.at) if item is not None and isinstance(item.content, kind) else []


def is_ours(command: object) -> bool:
    """True if `ralph plugin install` wrote this command."""
    words = command.get("command") if isinstance(command, dict) else None
    return isinstance(words, str) and MARK in words
