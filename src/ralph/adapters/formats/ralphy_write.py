"""Tasks as ralphy's list, in JSON, or in YAML if that is where they came from."""

from collections.abc import Mapping, Sequence
from typing import Any

from ralph.adapters.formats.base import Writing
from ralph.adapters.formats.json_lists import dumped, thickened
from ralph.adapters.formats.ralphy import NAME, PLAIN, group_of, is_done
from ralph.adapters.formats.records import (
    Losses,
    Record,
    kept_of,
    status_of,
    text_of,
    texts_of,
)

_LOST = (
    *("priority", "type", "tags", "parent", "notes", "estimate", "completion", "limits"),
    "externalUrl",
)
Listed = dict[str, Any]


def written(tasks: Sequence[Record], root: Mapping[str, Any]) -> Writing:
    """All tasks as one list."""
    losses = Losses()
    groups = _Groups(tasks)
    found = [_task(record, groups, losses) for record in tasks]
    rest, order = root.get("rest"), root.get("order")
    data = dict(rest) if isinstance(rest, Mapping) else {}
    data["tasks"] = found
    if isinstance(order, list):
        data = {name: data[name] for name in order if name in data}
    if "yaml" in root:
        return _in_yaml(data, root, losses)
    text = dumped(data, compact=bool(root.get("compact")))
    return Writing(f"{text}\n", losses.words())


def _in_yaml(data: Listed, root: Mapping[str, Any], losses: Losses) -> Writing:
    """The text they came from where only `completed` is different; without its comments if not."""
    from ralph.adapters.formats import ralphy_yaml

    text = root["yaml"]
    if isinstance(text, str) and text:
        before = ralphy_yaml.loaded(text)["tasks"]
        changes = _completions(before, data["tasks"])
        if changes is not None:
            try:
                return Writing(ralphy_yaml.completed(text, changes), losses.words())
            except ValueError:
                pass  # an alias: then all of it is written anew
    told = ("comments and the way it was written", *losses.words())
    return Writing(ralphy_yaml.dumped(data), told)


def _completions(before: Sequence[Listed], after: Sequence[Listed]) -> dict[int, bool] | None:
    """Which tasks are completed or not as they were before; None where more is different."""
    if len(before) != len(after):
        return None
    changes: dict[int, bool] = {}
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new and {**old, "completed": None} != {**new, "completed": None}:
            return None
        if is_done(old) is not is_done(new):
            changes[place] = is_done(new)
    return changes


def _task(record: Record, groups: "_Groups", losses: Losses) -> Listed:
    kept, done = kept_of(record, NAME), status_of(record) == "done"
    task: Listed = {"title": text_of(record, "title") or str(record["id"]), "completed": False}
    if kept is not None:
        task = thickened(kept, record, PLAIN)
    text = text_of(record, "description")
    if text and task.get("description") != text:
        task["description"] = text
    if is_done(task) is not done:
        task["completed"] = done
    group = groups.of(str(record["id"]))
    if group != group_of(task):
        task["parallel_group"] = group
    if status_of(record) not in ("pending", "done"):
        losses.add(f"status {status_of(record)} (written as not completed)", str(record["id"]))
    if not groups.knows(texts_of(record, "blockedBy")):
        losses.add("blockers that are not in this list", str(record["id"]))
    losses.fields(record, _LOST)
    return task


class _Groups:
    """A group for each task, so that all it waits for is in lower ones. What came with a group
    keeps it if that is enough."""

    def __init__(self, tasks: Sequence[Record]) -> None:
        ids = {str(record["id"]) for record in tasks}
        self._waits = {
            str(r["id"]): [one for one in texts_of(r, "blockedBy") if one in ids] for r in tasks
        }
        self._least = {str(r["id"]): group_of(_kept_values(r)) for r in tasks}
        self._any = any(self._waits.values()) or any(self._least.values())
        self._found: dict[str, int] = {}
        for task in self._waits:
            self._find(task)

    def of(self, task: str) -> int:
        return self._found[task] if self._any else 0

    def knows(self, tasks: Sequence[str]) -> bool:
        return all(task in self._found for task in tasks)

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


def _kept_values(record: Record) -> Mapping[str, Any]:
    values = (kept_of(record, NAME) or {}).get("values")
    return values if isinstance(values, Mapping) else {}
