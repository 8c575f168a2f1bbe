"""YAML, by PyYAML (the extra `formats`), as plain data.

Its parser in C is not used: that one crashes the process when a text is nested deeply.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from types import ModuleType
from typing import Any

from ralph.errors import ConfigError

_MOST = 1_000_000  # values; aliases of aliases make far more of a few lines
_DEEPEST = 50
_TOO_MUCH = "there is too much in it, or it is nested too deeply"


def module() -> ModuleType:
    """PyYAML; ConfigError, with what to type, where it is missing."""
    try:
        import yaml
    except ImportError:
        raise ConfigError(
            "YAML cannot be read: PyYAML is not installed",
            "Type: pip install 'ralph-engine[formats]'",
        ) from None
    return yaml


def load(text: str) -> Any:  # noqa: ANN401  any data
    """The content of the text as plain JSON data; ValueError for what is no YAML."""
    yaml = module()

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Without times: they stay texts, as they were written."""

        yaml_implicit_resolvers = {  # noqa: RUF012  as its base has it
            first: [rule for rule in rules if not rule[0].endswith(":timestamp")]
            for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def flatten_mapping(self, node: Any) -> None:  # noqa: ANN401  a node of PyYAML
            super().flatten_mapping(node)
            if len(node.value) > _MOST:  # `<<` of aliases, over and over
                raise ValueError(_TOO_MUCH)

    try:
        return _plain(yaml.load(text.removeprefix("\ufeff"), Loader=Loader), count(), 0)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{where}{problem}") from None
    except RecursionError:
        raise ValueError(_TOO_MUCH) from None
    except (TypeError, OverflowError, AttributeError) as error:
        raise ValueError(f"it is no YAML that can be read: {error}") from None


def _plain(found: object, seen: Iterator[int], depth: int) -> Any:  # noqa: ANN401  any data
    """Data such as JSON has; stops where there is no end of it."""
    if next(seen) >= _MOST or depth > _DEEPEST:
        raise ValueError(_TOO_MUCH)
    if isinstance(found, dict):
        return {str(key): _plain(inner, seen, depth + 1) for key, inner in found.items()}
    if isinstance(found, list | tuple | set):
        return [_plain(inner, seen, depth + 1) for inner in found]
    if found is None or isinstance(found, str | bool | int):
        return found
    # Infinity and the like are no JSON.
    plain = isinstance(found, float) and found - found == 0
    return found if plain else str(found)


def dumped(data: Mapping[str, Any]) -> str:
    """Data as YAML, in its order."""
    text: str = module().safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=1000)
    return text
