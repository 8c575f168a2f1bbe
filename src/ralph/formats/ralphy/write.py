"""Tasks as ralphy's list, in JSON, or in YAML if that is where they came from."""

from collections.abc import Mapping, Sequence
from typing import Any

from ralph.formats.base import Splice, Writing, spliced
from ralph.formats.json_lists import dumped, thickened
from ralph.formats.losses import Losses, without_cancelled
from ralph.formats.ralphy.fields import NAME, PLAIN, group_of, is_done, keys_in
from ralph.formats.records import (
    MEMBER,
    Record,
    beside,
    kept_of,
    source_of,
    status_of,
    text_of,
    texts_of,
)
from ralph.kernel.tasks.task import Status

Listed = dict[str, Any]


def written(tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
    """All tasks as one list."""
    losses = Losses()
    tasks = without_cancelled(tasks, losses)
    groups = _Groups(tasks)
    titles = keys_in([{"title": _title(record)} for record in tasks])
    keys = dict(zip((str(record["id"]) for record in tasks), titles, strict=True))
    found = [_task(record, groups, keys) for record in tasks]
    losses.statuses(tasks, (Status.PENDING, Status.DONE), "not completed")
    losses.strangers(tasks, keys)
    losses.times(tasks, NAME)
    losses.kept(tasks, NAME)
    rest, order = root.get("rest"), root.get("order")
    data = dict(rest) if isinstance(rest, Mapping) else {}
    data["tasks"] = found
    if isinstance(order, list):
        data = {name: data[name] for name in order if name in data}
    if "yaml" in root:
        return _in_yaml(tasks, data, root, losses)
    text = dumped(data, compact=bool(root.get("compact")))
    return Writing(f"{text}\n", losses.words())


def _in_yaml(
    tasks: Sequence[Record], data: Listed, root: Mapping[str, Any], losses: Losses
) -> Writing:
    """The text they came from where only `completed` is different; without its comments if not."""
    from ralph.files.yaml_text import dumped as dumped_yaml
    from ralph.files.yaml_text import load

    text = root["yaml"]
    if isinstance(text, str) and text:
        before, after = load(text)["tasks"], data["tasks"]
        changes = _completions(before, after)
        if changes is not None:
            try:
                new = completed(text, changes)
            except ValueError:
                pass  # an alias: then all of it is written anew
            else:
                for record, old, now in zip(tasks, before, after, strict=True):
                    held = dict(now.get(MEMBER, {})) if MEMBER not in old else {}
                    held.pop("status", None)
                    losses.fields([{**held, "id": record["id"]}], list(held))
                return Writing(new, losses.words())
    told = ("comments and the way it was written", *losses.words())
    return Writing(dumped_yaml(data), told)


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
        if is_done(old) is not is_done(new):
            changes[place] = is_done(new)
    return changes


def _title(record: Record) -> str:
    return text_of(record, "title") or str(record["id"])


def _task(record: Record, groups: "_Groups", keys: Mapping[str, str]) -> Listed:
    done = status_of(record) is Status.DONE
    task: Listed = {"title": _title(record), "completed": False}
    if source_of(record, NAME):
        task = thickened(kept_of(record, NAME), record, PLAIN)
    text = text_of(record, "description")
    if text and task.get("description") != text:
        task["description"] = text
    if is_done(task) is not done:
        task["completed"] = done
    group = groups.of(str(record["id"]))
    if group != group_of(task):
        task["parallel_group"] = group
    ours = beside(record, (), keys, "done" if done else "pending")
    if ours or MEMBER in task:
        task[MEMBER] = ours
    return task


class _Groups:
    """A group for each task, so that all it waits for is in lower ones. What came with a group
    keeps it if that is enough."""

    def __init__(self, tasks: Sequence[Record]) -> None:
        ids = {str(record["id"]) for record in tasks}
        self._waits = {
            str(r["id"]): [one for one in texts_of(r, "blockedBy") if one in ids] for r in tasks
        }
        values = {str(r["id"]): kept_of(r, NAME).get("values") for r in tasks}
        self._least = {
            task: group_of(found) if isinstance(found, Mapping) else 0
            for task, found in values.items()
        }
        self._any = any(self._waits.values()) or any(self._least.values())
        self._found: dict[str, int] = {}
        for task in self._waits:
            self._find(task)

    def of(self, task: str) -> int:
        return self._found[task] if self._any else 0

    def _find(self, start: str) -> None:
        """Not recursive: a chain may be as long as the list. A circle is cut somewhere."""
        path = [start]
        entered: set[str] = set()
        while path:
            task = path[-1]
            missing = [one for one in self._waits[task] if one not in self._found]
            if task not in entered and missing:
                entered.add(task)
                path += [one for one in missing if one not in entered]
                continue
            path.pop()
            below = [self._found[one] + 1 for one in self._waits[task] if one in self._found]
            self._found.setdefault(task, max([self._least[task], *below]))


# ------------------------------------------------------------------ YAML, so that comments stay


def completed(text: str, changes: Mapping[int, bool]) -> str:
    """The text with another `completed` for these tasks, by their place in the list. ValueError
    where the text does not say then what it should."""
    from ralph.files.yaml_text import module

    yaml = module()
    bare = text.removeprefix("\ufeff")
    tasks = _member(yaml.compose(bare, Loader=yaml.SafeLoader), "tasks")[1].value
    edits = [_edit(bare, tasks[place], done) for place, done in changes.items()]
    result = text[: len(text) - len(bare)] + spliced(bare, edits)
    _check(text, result, changes)
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


def _check(before: str, after: str, changes: Mapping[int, bool]) -> None:
    """YAML has many corners: what was not asked for must say what it said."""
    from ralph.files.yaml_text import load

    wanted = load(before)
    for place, done in changes.items():
        wanted["tasks"][place] = {**wanted["tasks"][place], "completed": done}
    try:
        same = load(after) == wanted
    except ValueError:
        same = False
    if not same:
        raise ValueError("`completed` cannot be changed in this text without changing more")
