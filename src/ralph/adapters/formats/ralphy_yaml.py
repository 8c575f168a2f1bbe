"""ralphy's tasks in YAML: read as plain data, and changed in place so that comments stay.

The pure parser of PyYAML is used and not the one in C: that one crashes the whole process when a
text is nested deeply.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ralph.errors import ConfigError

_MOST = 1_000_000  # values; aliases of aliases make far more of a few lines
_DEEPEST = 50


def _yaml() -> ModuleType:
    try:
        import yaml
    except ImportError:
        raise ConfigError(
            "YAML cannot be read: PyYAML is not installed", "pip install 'ralph-engine[formats]'"
        ) from None
    return yaml


def loaded(text: str) -> Any:  # noqa: ANN401  any data
    """What the text says, with nothing in it that JSON has not; ValueError for what is no YAML."""
    yaml = _yaml()

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Without times: they stay texts, as they were written."""

        yaml_implicit_resolvers = {  # noqa: RUF012  as its base has it
            first: [rule for rule in rules if not rule[0].endswith(":timestamp")]
            for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return _Plain().of(yaml.load(text.removeprefix("\ufeff"), Loader=Loader))
    except yaml.YAMLError as error:
        raise ValueError(_why(error)) from None
    except (RecursionError, TypeError, OverflowError, AttributeError) as error:
        raise ValueError(f"it is no YAML that can be read: {error}") from None


def _why(error: Any) -> str:  # noqa: ANN401  PyYAML is not imported here
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).split("\n")[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)


class _Plain:
    """Makes data of YAML such as JSON has, and stops where there is no end of it."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, found: object, depth: int = 0) -> Any:  # noqa: ANN401  any data
        self.count += 1
        if self.count > _MOST or depth > _DEEPEST:
            raise ValueError("there is too much in it, or it is nested too deeply")
        if isinstance(found, dict):
            return {str(key): self.of(inner, depth + 1) for key, inner in found.items()}
        if isinstance(found, list | tuple | set):
            return [self.of(inner, depth + 1) for inner in found]
        if found is None or isinstance(found, str | bool | int):
            return found
        # Infinity and the like are no JSON.
        plain = isinstance(found, float) and found - found == 0
        return found if plain else str(found)


def dumped(data: Mapping[str, Any]) -> str:
    """Data as YAML, in its order."""
    text: str = _yaml().safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=1000)
    return text


# ------------------------------------------------------------------ in place


def completed(text: str, changes: Mapping[int, bool]) -> str:
    """The text with another `completed` for these tasks, by their place in the list. ValueError
    where the text does not say then what it should."""
    yaml = _yaml()
    bare = text.removeprefix("\ufeff")
    tasks = _member(yaml.compose(bare, Loader=yaml.SafeLoader), "tasks")[1].value
    edits = [_edit(bare, tasks[place], done) for place, done in changes.items()]
    new, at = [text[: len(text) - len(bare)]], 0
    for start, end, words in sorted(edits):
        new += [bare[at:start], words]
        at = max(at, end)
    result = "".join([*new, bare[at:]])
    _check(text, result, changes)
    return result


def _member(node: Any, name: str) -> Any:  # noqa: ANN401  nodes of PyYAML
    """A key and its value, the last of that name as when it is loaded."""
    return next((pair for pair in reversed(node.value) if pair[0].value == name), (None, None))


def _edit(text: str, task: Any, done: bool) -> tuple[int, int, str]:  # noqa: ANN401
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
    wanted = loaded(before)
    for place, done in changes.items():
        wanted["tasks"][place] = {**wanted["tasks"][place], "completed": done}
    try:
        same = loaded(after) == wanted
    except ValueError:
        same = False
    if not same:
        raise ValueError("`completed` cannot be changed in this text without changing more")
