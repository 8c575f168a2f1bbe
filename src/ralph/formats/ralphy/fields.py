"""The fields of ralphy's tasks, as ours have them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ralph.formats.base import ListedTask
from ralph.formats.json_lists import parsed, thinned
from ralph.formats.records import MEMBER, Names, from_beside

NAME = "ralphy"
PLAIN = {"title": "title", "description": "description"}
_OTHERS = frozenset({"id", "status", "state", "passes"})  # lists of others have these
_MOST_WAITS = 200_000  # dependencies; two groups of thousands would need millions
Listed = Mapping[str, Any]


def is_json(text: str) -> bool:
    """True for JSON and no YAML, as far as that can be said."""
    return text.removeprefix("\ufeff").lstrip()[:1] == "{"


def loaded(text: str) -> dict[str, Any]:
    """The whole list, of JSON or of YAML; ValueError for what is none."""
    if is_json(text):
        found = parsed(text)
    else:
        from ralph.files.yaml_text import load

        found = load(text)
    if not isinstance(found, dict):
        raise ValueError("there is no `tasks:` at its top")
    return found


def is_list(tasks: object) -> bool:
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


def waits_of(keys: Sequence[str], tasks: Sequence[Listed]) -> dict[int, list[str]]:
    """For each group the keys of the one below, which waits for those below it in turn."""
    groups: dict[int, list[str]] = {}
    for key, task in zip(keys, tasks, strict=True):
        groups.setdefault(group_of(task), []).append(key)
    order = sorted(groups)
    pairs = list(pairwise(order))
    if sum(len(groups[low]) * len(groups[high]) for low, high in pairs) > _MOST_WAITS:
        raise ValueError(f"its parallel groups make more than {_MOST_WAITS} dependencies")
    return {high: groups[low] for low, high in pairs}


def item_of(key: str, task: Listed, waits: Mapping[int, list[str]]) -> ListedTask:
    description = task.get("description")
    fields: dict[str, Any] = {"title": task["title"]}
    if isinstance(description, str) and description:
        fields["description"] = description
    fields["status"] = "done" if is_done(task) else "pending"
    if below := waits.get(group_of(task)):
        fields["blockedBy"] = below
    fields |= from_beside(task.get(MEMBER), (), key, fields["status"])
    return ListedTask(key, fields, thinned(task, fields, PLAIN))
