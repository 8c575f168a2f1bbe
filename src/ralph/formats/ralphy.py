"""ralphy's tasks, in JSON or YAML: `tasks: [{title, completed, parallel_group, description}]`.

Tasks of a group run beside each other, and after all groups with lower numbers; without a number it
is group 0. With us a task waits for those of the group below.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ralph.formats.base import LARGEST_ROOT, ListedTask, Splice, TaskList, Writing, spliced
from ralph.formats.json_lists import (
    dumped,
    items,
    listed_task,
    member_of,
    opening,
    parsed,
    thickened,
    with_members,
)
from ralph.formats.records import (
    MEMBER,
    Losses,
    Names,
    Record,
    beside,
    from_beside,
    source_of,
    status_of,
    text_of,
    texts_of,
    values_of,
    without_cancelled,
)
from ralph.kernel.tasks.task import Status

_NAME = "ralphy"
_PLAIN = {"title": "title", "description": "description"}
_OTHERS = frozenset({"id", "status", "state", "passes"})  # lists of others have these
_MOST_WAITS = 200_000  # dependencies; two groups of thousands would need millions
_YAML = re.compile(r"^(?:tasks|[\"']tasks[\"']):[ \t]*(?:#.*|\[.*)?\r?$", re.MULTILINE)
_YAML_TITLE = re.compile(r"^[ \t]*(?:-[ \t]+)?(?:\{[ \t]*)?[\"']?title[\"']?:", re.MULTILINE)
Listed = dict[str, Any]


class Ralphy:
    """Tasks in YAML or JSON. YAML needs PyYAML, which is asked for only then."""

    name = _NAME

    def fits(self, name: str, text: str) -> bool:
        if opening(text) == "{":
            try:
                return _is_list(parsed(text).get("tasks"))
            except ValueError:
                return False
        if name.casefold().endswith((".md", ".json", ".jsonl", ".toml")):
            return False
        return _YAML.search(text) is not None and _YAML_TITLE.search(text) is not None

    def read(self, text: str, name: str) -> TaskList:
        found = _loaded(text)
        tasks = _checked(found)
        keys = _keys_in(tasks)
        waits = _waits(keys, tasks)
        made = tuple(_read(key, task, waits) for key, task in zip(keys, tasks, strict=True))
        rest = {one: it for one, it in found.items() if one != "tasks"}
        root: dict[str, Any] = {"rest": rest, "order": list(found)} if rest else {}
        if opening(text) == "{":
            root |= {"compact": True} if "\n" not in text.strip() else {}
        elif len(text) <= LARGEST_ROOT:
            root["yaml"] = text
        else:
            words = f"{name}: its comments are not kept for an export: the list is too long"
            return TaskList(made, {**root, "yaml": ""}, (words,))
        return TaskList(made, root if made else {})

    def write(self, tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
        """All tasks as one list, in JSON, or in YAML if that is where they came from."""
        losses = Losses()
        tasks = without_cancelled(tasks, losses)
        groups = _groups(tasks)
        titles = _keys_in([{"title": _title(record)} for record in tasks])
        keys = dict(zip((str(record["id"]) for record in tasks), titles, strict=True))
        found = [_written(record, groups[str(record["id"])], keys) for record in tasks]
        losses.statuses(tasks, (Status.PENDING, Status.DONE), "not completed")
        losses.strangers(tasks, keys)
        losses.times(tasks, _NAME)
        losses.kept(tasks, _NAME)
        rest, order = root.get("rest"), root.get("order")
        data = dict(rest) if isinstance(rest, Mapping) else {}
        data["tasks"] = found
        if isinstance(order, list):
            data = {name: data[name] for name in order if name in data}
        if "yaml" in root:
            return _in_yaml(tasks, data, root["yaml"], losses)
        text = dumped(data, compact=bool(root.get("compact")))
        return Writing(f"{text}\n", losses.words())

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        """ValueError where that cannot be done, because one is an alias of another one's."""
        tasks = _checked(_loaded(text))
        wrong = [
            place
            for place, (key, task) in enumerate(zip(_keys_in(tasks), tasks, strict=True))
            if key in keys and _is_done(task) is not done
        ]
        if not wrong:
            return text
        if opening(text) != "{":
            return _completed(text, dict.fromkeys(wrong, done))
        listed = member_of(text, "tasks")
        assert listed is not None
        places = items(text, listed.at)
        return with_members(text, [(places[place], {"completed": done}) for place in wrong])


def _loaded(text: str) -> Listed:
    """The whole list, of JSON or of YAML; ValueError for what is none."""
    if opening(text) == "{":
        found = parsed(text)
    else:
        from ralph.files.yaml_text import load

        found = load(text)
    if not isinstance(found, dict):
        raise ValueError("there is no `tasks:` at its top")
    return found


def _is_list(tasks: object) -> bool:
    if not isinstance(tasks, list) or not tasks:
        return False
    titled = all(isinstance(one, dict) and isinstance(one.get("title"), str) for one in tasks)
    return titled and all(_OTHERS.isdisjoint(one) for one in tasks)


def _checked(found: Listed) -> list[Listed]:
    """The tasks; ValueError for what is none."""
    tasks = found.get("tasks")
    if not isinstance(tasks, list):
        raise ValueError("`tasks` must be a list")
    for number, task in enumerate(tasks, 1):
        if not isinstance(task, dict):
            raise ValueError(f"task {number}: it must be an object with a title")
        if not text_of(task, "title").strip():
            raise ValueError(f"task {number}: title must be a text")
        if type(task.get("completed", False)) not in (bool, type(None)):
            raise ValueError(f"task {number}: completed must be true or false")
        if type(task.get("parallel_group", 0)) not in (int, type(None)):
            raise ValueError(f"task {number}: parallel_group must be a whole number")
    return tasks


def _keys_in(tasks: Sequence[Listed]) -> list[str]:
    """The titles, which are the names of tasks there; the / keeps them from being ids of ours."""
    names = Names()
    return [names.free(f"/{task['title']}") for task in tasks]


def _is_done(task: Listed) -> bool:
    return task.get("completed") is True


def _group(task: Record) -> int:
    return task.get("parallel_group") or 0


def _waits(keys: Sequence[str], tasks: Sequence[Listed]) -> dict[int, list[str]]:
    """For each group the keys of the one below, which waits for those below it in turn."""
    groups: dict[int, list[str]] = {}
    for key, task in zip(keys, tasks, strict=True):
        groups.setdefault(_group(task), []).append(key)
    pairs = list(pairwise(sorted(groups)))
    if sum(len(groups[low]) * len(groups[high]) for low, high in pairs) > _MOST_WAITS:
        raise ValueError(f"its parallel groups make more than {_MOST_WAITS} dependencies")
    return {high: groups[low] for low, high in pairs}


def _read(key: str, task: Listed, waits: Mapping[int, list[str]]) -> ListedTask:
    status = "done" if _is_done(task) else "pending"
    fields = {
        "title": task["title"],
        "description": text_of(task, "description"),
        "status": status,
        "blockedBy": waits.get(_group(task)),
        **from_beside(task.get(MEMBER), (), key, status),
    }
    return listed_task(key, task, fields, _PLAIN)


def _title(record: Record) -> str:
    return text_of(record, "title") or str(record["id"])


def _written(record: Record, group: int, keys: Mapping[str, str]) -> Listed:
    done = status_of(record) is Status.DONE
    task: Listed = {"title": _title(record), "completed": False}
    if source_of(record, _NAME):
        task = thickened(record, _NAME, _PLAIN)
    text = text_of(record, "description")
    if text and task.get("description") != text:
        task["description"] = text
    if _is_done(task) is not done:
        task["completed"] = done
    if group != _group(task):
        task["parallel_group"] = group
    ours = beside(record, (), keys, "done" if done else "pending")
    if ours or MEMBER in task:
        task[MEMBER] = ours
    return task


def _groups(tasks: Sequence[Record]) -> dict[str, int]:
    """A group for each task, so that all it waits for is in lower ones. What came with a group
    keeps it if that is enough. Not recursive: chains may be long. A circle is cut somewhere."""
    ids = {str(record["id"]) for record in tasks}
    waits = {str(r["id"]): [one for one in texts_of(r, "blockedBy") if one in ids] for r in tasks}
    least = {str(r["id"]): _group(values_of(r, _NAME)) for r in tasks}
    if not any(waits.values()) and not any(least.values()):
        return dict.fromkeys(waits, 0)
    found: dict[str, int] = {}
    for start in waits:
        path, entered = [start], set[str]()
        while path:
            task = path[-1]
            missing = [one for one in waits[task] if one not in found]
            if task not in entered and missing:
                entered.add(task)
                path += [one for one in missing if one not in entered]
                continue
            path.pop()
            below = [found[one] + 1 for one in waits[task] if one in found]
            found.setdefault(task, max([least[task], *below]))
    return found


# ------------------------------------------------------------------ YAML, so that comments stay


def _in_yaml(tasks: Sequence[Record], data: Listed, text: object, losses: Losses) -> Writing:
    """The text they came from where only `completed` is different; without its comments if not."""
    from ralph.files.yaml_text import dumped as dumped_yaml
    from ralph.files.yaml_text import load

    if isinstance(text, str) and text:
        before, after = load(text)["tasks"], data["tasks"]
        changes = _completions(before, after)
        try:
            new = None if changes is None else _completed(text, changes)
        except ValueError:
            new = None  # an alias: then all of it is written anew
        if new is not None:
            for record, old, now in zip(tasks, before, after, strict=True):
                held = dict(now.get(MEMBER, {})) if MEMBER not in old else {}
                held.pop("status", None)
                losses.fields([{**held, "id": record["id"]}], list(held))
            return Writing(new, losses.words())
    return Writing(dumped_yaml(data), ("comments and the way it was written", *losses.words()))


def _completions(before: Sequence[Listed], after: Sequence[Listed]) -> dict[int, bool] | None:
    """Tasks that are completed, or no more; None where more is different. What stands beside is not
    worth losing the comments."""
    if len(before) != len(after):
        return None
    changes: dict[int, bool] = {}
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        same = {"completed": None, MEMBER: old.get(MEMBER) or new.get(MEMBER)}
        if {**old, **same} != {**new, "completed": None, MEMBER: new.get(MEMBER)}:
            return None
        if _is_done(old) is not _is_done(new):
            changes[place] = _is_done(new)
    return changes


def _completed(text: str, changes: Mapping[int, bool]) -> str:
    """The text with another `completed` for these tasks, by their place in the list. ValueError
    where the text does not say then what it should: YAML has many corners."""
    from ralph.files.yaml_text import load, module

    yaml = module()
    bare = text.removeprefix("\ufeff")
    tasks = _member(yaml.compose(bare, Loader=yaml.SafeLoader), "tasks")[1].value
    edits = [_edit(bare, tasks[place], done) for place, done in changes.items()]
    result = text[: len(text) - len(bare)] + spliced(bare, edits)
    wanted = load(text)
    for place, done in changes.items():
        wanted["tasks"][place] = {**wanted["tasks"][place], "completed": done}
    try:
        same = load(result) == wanted
    except ValueError:
        same = False
    if not same:
        raise ValueError("`completed` cannot be changed in this text without changing more")
    return result


def _member(node: Any, name: str) -> Any:  # noqa: ANN401  nodes of PyYAML
    """A key and its value, the last of that name as when it is loaded."""
    return next((pair for pair in reversed(node.value) if pair[0].value == name), (None, None))


def _edit(text: str, task: Any, done: bool) -> Splice:  # noqa: ANN401
    words = "true" if done else "false"
    key, old = _member(task, "completed")
    if key is not None:
        if old.start_mark.index < key.end_mark.index or old.start_mark.index > task.end_mark.index:
            raise ValueError("`completed` is an alias of something else, and stays as it is")
        if old.start_mark.index == old.end_mark.index:  # nothing is written there
            return old.start_mark.index, old.end_mark.index, f" {words}"
        return old.start_mark.index, old.end_mark.index, words
    key, title = _member(task, "title")
    if key is None or key.start_mark.index < task.start_mark.index:
        raise ValueError("its title is an alias of something else")
    at = key.start_mark.index
    if task.flow_style:
        return at, at, f"completed: {words}, "
    newline = "\r\n" if "\r\n" in text else "\n"
    pad = " " * key.start_mark.column
    simple = title.style not in ("|", ">") and title.start_mark.index > at
    if not simple:
        return at, at, f"completed: {words}{newline}{pad}"
    end = text.find("\n", title.end_mark.index)
    end = len(text) if end < 0 else end - (newline == "\r\n")
    return end, end, f"{newline}{pad}completed: {words}"


FORMAT = Ralphy()
