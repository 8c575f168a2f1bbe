"""Reads the text of a list of stories, which an agent may have written (R §5b, check 1).

Whatever is read here can be written again, compared and shown. Hooks import this too: nothing
heavy at the top.
"""

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from typing import Any, NoReturn

LARGEST = 64 << 20  # bytes of a list, for whoever reads one
_DEEPEST = 64  # Python compares and writes what is nested by calling itself
_MOST_DIGITS = 100
_LONGEST_NAME = 100
NAME_RULE = f"must be a string of 1 to {_LONGEST_NAME} characters on one line, without idle blanks"
_LONGEST_SHOWN = 60


class NotAListError(ValueError):
    """The text is no JSON."""


def parsed(raw: bytes) -> object:
    """The content of tasks.json. Raises NotAListError if it is not JSON in UTF-8, or is JSON that
    two readers could understand differently."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotAListError(f"it is not UTF-8 text (byte {error.start})") from error
    try:
        found = _without_halves(_loaded(text), text)
    except RecursionError as error:
        raise NotAListError("it is not valid JSON: it is nested too deeply") from error
    except ValueError as error:
        raise NotAListError(f"it is not valid JSON: {error}") from error
    if _is_deep(found):
        raise NotAListError(f"it is nested too deeply: more than {_DEEPEST} levels")
    return found


def _loaded(text: str) -> object:
    import json

    return json.loads(
        text,
        object_pairs_hook=_unique,
        parse_constant=_no_number,
        parse_float=_finite,
        parse_int=_short,
    )


def _unique(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
    """One reader takes the first of two equal keys, another the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        last = {key: place for place, (key, _) in enumerate(pairs)}
        twice = next(key for place, (key, _) in enumerate(pairs) if last[key] != place)
        raise ValueError(f"the key {shown(twice)} is twice in one object")
    return found


def _no_number(name: str) -> "NoReturn":
    raise ValueError(f"{name} is not a number")


def _finite(digits: str) -> float:
    """1e999 would be read as infinite, and written as something that is no JSON."""
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


def _short(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is too large")
    return int(digits)


def _without_halves(found: object, text: str) -> object:
    r"""Half a character, which JSON can spell (\ud83d) and nothing can show, becomes "?"."""
    if "\\ud" not in text and "\\uD" not in text:
        return found
    import json

    whole = json.dumps(found, ensure_ascii=False).encode(errors="replace")
    return _loaded(whole.decode())


def _is_deep(found: object) -> bool:
    level: list[Any] = [found]
    for _ in range(_DEEPEST + 1):
        nested = [one for one in level if isinstance(one, dict | list)]
        if not nested:
            return False
        level = [i for one in nested for i in (one.values() if isinstance(one, dict) else one)]
    return any(isinstance(one, dict | list) for one in level)


def is_name(given: object) -> bool:
    """True if it can name a story: on one line of a prompt, a commit or a console, and not beside
    another that looks the same but for its blanks."""
    return (
        isinstance(given, str)
        and 0 < len(given) <= _LONGEST_NAME
        and given.isprintable()
        and given == " ".join(given.split())
    )


def shown(given: object) -> str:
    """A value as the file spells it, shortened, and safe to show."""
    import json

    text = json.dumps(given, ensure_ascii=False)
    text = text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def some(names: "list[str]") -> str:
    """A few of the names; a list of a hundred thousand is no help."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}"
