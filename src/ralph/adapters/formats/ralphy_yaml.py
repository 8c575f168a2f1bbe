"""ralphy's tasks in YAML, changed in place so that comments stay."""

from collections.abc import Mapping
from typing import Any

from ralph.adapters.formats.splices import Splice, spliced
from ralph.adapters.formats.yaml_text import load, module


def completed(text: str, changes: Mapping[int, bool]) -> str:
    """The text with another `completed` for these tasks, by their place in the list. ValueError
    where the text does not say then what it should."""
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
    wanted = load(before)
    for place, done in changes.items():
        wanted["tasks"][place] = {**wanted["tasks"][place], "completed": done}
    try:
        same = load(after) == wanted
    except ValueError:
        same = False
    if not same:
        raise ValueError("`completed` cannot be changed in this text without changing more")
