"""ralphy's tasks, in JSON or YAML: `tasks: [{title, completed, parallel_group, description}]`.

Tasks of a group run beside each other, and after all groups with lower numbers; without a number it
is group 0. With us a task waits for those of the group below.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ralph.adapters.formats.base import ListedTask, TaskList, Writing
from ralph.adapters.formats.json_lists import items, member_of, parsed, thinned, with_members
from ralph.adapters.formats.records import MEMBER, Names, from_beside

NAME = "ralphy"
PLAIN = {"title": "title", "description": "description"}
_YAML = re.compile(r"^(?:tasks|[\"']tasks[\"']):[ \t]*(?:#.*|\[.*)?\r?$", re.MULTILINE)
_YAML_TITLE = re.compile(r"^[ \t]*(?:-[ \t]+)?(?:\{[ \t]*)?[\"']?title[\"']?:", re.MULTILINE)
_OTHERS = frozenset({"id", "status", "state", "passes"})  # lists of others have these
_MOST_WAITS = 200_000  # dependencies; two groups of thousands would need millions
_LARGEST_ROOT = 1 << 19  # characters; the way back must fit into a line of tasks.jsonl
Listed = Mapping[str, Any]


class Ralphy:
    """Tasks in YAML or JSON. YAML needs PyYAML, which is asked for only then."""

    name = NAME

    def fits(self, name: str, text: str) -> bool:
        if is_json(text):
            try:
                found = parsed(text)
            except ValueError:
                return False
            return isinstance(found, dict) and _is_list(found.get("tasks"))
        lower = name.casefold()
        if lower.endswith((".md", ".json", ".jsonl", ".toml")):
            return False
        return _YAML.search(text) is not None and _YAML_TITLE.search(text) is not None

    def read(self, text: str, name: str) -> TaskList:
        found = _loaded(text)
        tasks = checked(found)
        keys = keys_in(tasks)
        waits = _waits(keys, tasks)
        made = tuple(_item(key, task, waits) for key, task in zip(keys, tasks, strict=True))
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
        from ralph.adapters.formats.ralphy_write import written

        return written(tasks, root)

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        """ValueError where that cannot be done, because one is an alias of another one's."""
        tasks = checked(_loaded(text))
        wrong = [
            place
            for place, (key, task) in enumerate(zip(keys_in(tasks), tasks, strict=True))
            if key in keys and is_done(task) is not done
        ]
        if not wrong:
            return text
        if not is_json(text):
            from ralph.adapters.formats.ralphy_write import completed

            return completed(text, dict.fromkeys(wrong, done))
        listed = member_of(text, "tasks")
        assert listed is not None
        places = items(text, listed.at)
        return with_members(text, [(places[place], {"completed": done}) for place in wrong])


def is_json(text: str) -> bool:
    """True for JSON and no YAML, as far as that can be said."""
    return text.removeprefix("\ufeff").lstrip()[:1] == "{"


def _loaded(text: str) -> dict[str, Any]:
    if is_json(text):
        found = parsed(text)
    else:
        from ralph.adapters.formats.yaml_text import load

        found = load(text)
    if not isinstance(found, dict):
        raise ValueError("there is no `tasks:` at its top")
    return found


def _is_list(tasks: object) -> bool:
    if not isinstance(tasks, list) or not tasks:
        return False
    titled = all(isinstance(one, dict) and isinstance(one.get("title"), str) for one in tasks)
    return titled and all(_OTHERS.isdisjoint(one) for one in tasks)


def checked(found: Listed) -> list[Listed]:
    """The tasks; ValueError for what is none."""
    tasks = found.get("tasks")
    if not isinstance(tasks, list):
        raise ValueError("`tasks` must be a list")
    for number, task in enumerate(tasks, 1):
        if not isinstance(task, dict):
            raise ValueError(f"task {number}: it must be an object with a title")
        if not isinstance(task.get("title"), str) or not task["title"].strip():
            raise ValueError(f"task {number}: title must be a text")
        if type(task.get("completed", False)) not in (bool, type(None)):
            raise ValueError(f"task {number}: completed must be true or false")
        if type(task.get("parallel_group", 0)) not in (int, type(None)):
            raise ValueError(f"task {number}: parallel_group must be a whole number")
    return tasks


def keys_in(tasks: Sequence[Listed]) -> list[str]:
    """The titles, which are the names of tasks there; the / keeps them from being ids of ours."""
    names = Names()
    return [names.free(f"/{task['title']}") for task in tasks]


def is_done(task: Listed) -> bool:
    return task.get("completed") is True


def group_of(task: Listed) -> int:
    """Its group; 0 without one."""
    return task.get("parallel_group") or 0


def _waits(keys: Sequence[str], tasks: Sequence[Listed]) -> dict[int, list[str]]:
    """For each group the keys of the one below, which waits for those below it in turn."""
    groups: dict[int, list[str]] = {}
    for key, task in zip(keys, tasks, strict=True):
        groups.setdefault(group_of(task), []).append(key)
    order = sorted(groups)
    pairs = list(pairwise(order))
    if sum(len(groups[low]) * len(groups[high]) for low, high in pairs) > _MOST_WAITS:
        raise ValueError(f"its parallel groups make more than {_MOST_WAITS} dependencies")
    return {high: groups[low] for low, high in pairs}


def _item(key: str, task: Listed, waits: Mapping[int, list[str]]) -> ListedTask:
    description = task.get("description")
    fields: dict[str, Any] = {"title": task["title"]}
    if isinstance(description, str) and description:
        fields["description"] = description
    fields["status"] = "done" if is_done(task) else "pending"
    if below := waits.get(group_of(task)):
        fields["blockedBy"] = below
    fields |= from_beside(task.get(MEMBER), (), key, fields["status"])
    return ListedTask(key, fields, thinned(task, fields, PLAIN))


FORMAT = Ralphy()
