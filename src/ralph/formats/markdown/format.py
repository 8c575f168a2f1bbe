"""Markdown checklists: fix_plan.md, IMPLEMENTATION_PLAN.md, plans with `### Task 1: ...`, and lists
with boxes below boxes.

A box is a task, a box below a box a task with a `parent`; a section `### Task 1` is one task, and
its boxes are its steps. Headings such as High Priority, Optional and Completed say how urgent it
is, others what it is about.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ralph.formats.base import ListedTask, TaskList, Writing, spliced
from ralph.formats.markdown.entries import (
    NAME,
    entries_of,
    task_fields,
    ticks,
)
from ralph.formats.markdown.outline import checks_of

_NAMES = (".md", ".markdown", ".mdown", ".mdx", ".txt")
_OTHERS = (".json", ".jsonl", ".jsonc", ".yaml", ".yml", ".toml", ".csv")
_SOME_BOX = re.compile(r"^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[[ xX/~-]\][ \t]+\S", re.MULTILINE)
_LARGEST_ROOT = 1 << 19  # characters; the way back must fit into a line of tasks.jsonl


class Markdown:
    name = NAME

    def fits(self, name: str, text: str) -> bool:
        lower = name.casefold()
        if lower.endswith(_OTHERS) or "\0" in text:
            return False
        data = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and not lower.endswith(_NAMES)
        return not data and _SOME_BOX.search(text) is not None

    def read(self, text: str, name: str) -> TaskList:
        if "\0" in text:
            raise ValueError("it is not text: there is a NUL in it")
        found = entries_of(text)
        checks = checks_of(found.outline)
        items = []
        for entry in found.all:
            kept = {"section": list(entry.place.path)} if entry.place.path else {}
            items.append(ListedTask(entry.key, task_fields(entry, checks), kept))
        lost = [
            f"{name}: line {plan.line + 1}: {plan.text[:60]!r} has no box, so it is no task"
            for plan in found.bare
        ]
        if len(text) > _LARGEST_ROOT:
            words = "what stands between the tasks is not kept for an export: the list is too long"
            return TaskList(tuple(items), {}, (*lost, words))
        return TaskList(tuple(items), {"text": text} if items else {}, tuple(lost))

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        from ralph.formats.markdown.write import written

        return written(tasks, root)

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        found = entries_of(text)
        entries = [entry for entry in found.all if entry.key in keys]
        places = [at for entry in entries for at in ticks(found, entry, done)]
        return spliced(text, [(at, at + 1, "x" if done else " ") for at in places])


FORMAT = Markdown()
