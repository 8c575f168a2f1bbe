"""ralphy's tasks, in JSON or YAML: `tasks: [{title, completed, parallel_group, description}]`.

Tasks of a group run beside each other, and after all groups with lower numbers; without a number it
is group 0. With us a task waits for those of the group below.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ralph.formats.base import TaskList, Writing
from ralph.formats.json_lists import items, member_of, parsed, with_members
from ralph.formats.ralphy.fields import (
    NAME,
    checked,
    is_done,
    is_json,
    is_list,
    item_of,
    keys_in,
    loaded,
    waits_of,
)

_YAML = re.compile(r"^(?:tasks|[\"']tasks[\"']):[ \t]*(?:#.*|\[.*)?\r?$", re.MULTILINE)
_YAML_TITLE = re.compile(r"^[ \t]*(?:-[ \t]+)?(?:\{[ \t]*)?[\"']?title[\"']?:", re.MULTILINE)
_LARGEST_ROOT = 1 << 19  # characters; the way back must fit into a line of tasks.jsonl


class Ralphy:
    """Tasks in YAML or JSON. YAML needs PyYAML, which is asked for only then."""

    name = NAME

    def fits(self, name: str, text: str) -> bool:
        if is_json(text):
            try:
                found = parsed(text)
            except ValueError:
                return False
            return isinstance(found, dict) and is_list(found.get("tasks"))
        lower = name.casefold()
        if lower.endswith((".md", ".json", ".jsonl", ".toml")):
            return False
        return _YAML.search(text) is not None and _YAML_TITLE.search(text) is not None

    def read(self, text: str, name: str) -> TaskList:
        found = loaded(text)
        tasks = checked(found)
        keys = keys_in(tasks)
        waits = waits_of(keys, tasks)
        made = tuple(item_of(key, task, waits) for key, task in zip(keys, tasks, strict=True))
        rest = {one: it for one, it in found.items() if one != "tasks"}
        root: dict[str, Any] = {"rest": rest} if rest else {}
        root |= {"order": list(found)} if rest else {}
        if is_json(text):
            root |= {"compact": True} if "\n" not in text.strip() else {}
        elif len(text) <= _LARGEST_ROOT:
            root["yaml"] = text
        else:
            words = f"{name}: its comments are not kept for an export: the list is too long"
            return TaskList(made, {**root, "yaml": ""}, (words,))
        return TaskList(made, root if made else {})

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        from ralph.formats.ralphy.write import written

        return written(tasks, root)

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        """ValueError where that cannot be done, because one is an alias of another one's."""
        tasks = checked(loaded(text))
        wrong = [
            place
            for place, (key, task) in enumerate(zip(keys_in(tasks), tasks, strict=True))
            if key in keys and is_done(task) is not done
        ]
        if not wrong:
            return text
        if not is_json(text):
            from ralph.formats.ralphy.write import completed

            return completed(text, dict.fromkeys(wrong, done))
        listed = member_of(text, "tasks")
        assert listed is not None
        places = items(text, listed.at)
        return with_members(text, [(places[place], {"completed": done}) for place in wrong])


FORMAT = Ralphy()
