"""A task's completion rule (B §Completion Detection) and its own limits.

Whatever is wrong with them raises a ValueError with a sentence for people.
"""

import json
from enum import StrEnum

from ralph.kernel.limits import Limits
from ralph.kernel.value import value

_MOST = 1e15  # larger numbers are slips of the finger, and infinity is none
_SPELLINGS = "explicit, test:COMMAND, grep:TEXT, file:PATH, validate:SCRIPT or a JSON object"


class Kind(StrEnum):
    """The kind of a completion rule."""

    EXPLICIT = "explicit"
    TEST_PASSING = "test_passing"
    FILE_EXISTS = "file_exists"
    VALIDATE = "validate"


@value
class Completion:
    """A completion rule. Of `command` and `grep` at most one is there."""

    kind: Kind = Kind.EXPLICIT
    command: str = ""
    grep: str = ""
    path: str = ""
    script: str = ""
    timeout: float | None = None  # seconds


_FIELDS = {  # what a rule of a kind may say
    Kind.EXPLICIT: (),
    Kind.TEST_PASSING: ("command", "grep"),
    Kind.FILE_EXISTS: ("path",),
    Kind.VALIDATE: ("script",),
}
_SHORT = {  # how a rule is spelled on the command line
    "test": (Kind.TEST_PASSING, "command"),
    "grep": (Kind.TEST_PASSING, "grep"),
    "file": (Kind.FILE_EXISTS, "path"),
    "validate": (Kind.VALIDATE, "script"),
}


def parse(data: object, task_id: str) -> Completion:
    """The rule that a task's `completion` says; without one an explicit claim completes it."""
    if data is None:
        return Completion()
    if not isinstance(data, dict):
        raise ValueError('completion must be an object such as {"type": "explicit"}')
    name = data.get("type")
    kind = next((kind for kind in Kind if kind == name), None)
    if kind is None:
        raise ValueError(f"completion.type must be one of {', '.join(Kind)}, not {_shown(name)}")
    texts = {name: _text(data, name) for name in _FIELDS[kind] if data.get(name) is not None}
    timeout = _amount(data, "timeout", "completion")
    if kind is Kind.TEST_PASSING:
        if len(texts) > 1:
            raise ValueError("completion has both a command and a grep: one of them is enough")
        texts = texts or {"grep": task_id}
    elif kind is not Kind.EXPLICIT and not texts:
        raise ValueError(f"completion of type {kind} needs a {_FIELDS[kind][0]}")
    return Completion(kind, **texts, timeout=timeout)


def _text(data: dict[str, object], name: str) -> str:
    text = data[name]
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"completion.{name} must be a text that is not blank")
    if "\0" in text:
        raise ValueError(f"completion.{name} must not contain a NUL")
    return text


def words(completion: Completion, task_id: str) -> str:
    """The rule as a phrase, for the agent and for people; "" where a claim is enough."""
    if completion.kind is Kind.EXPLICIT:
        return ""
    if completion.command:
        return f"`{completion.command}` exits with 0"
    if completion.path:
        return f"{completion.path} is there"
    if completion.script:
        return f"the script {completion.script} exits with 0"
    return f'the tests that match "{completion.grep or task_id}" pass'


def spelled(spec: str) -> dict[str, object]:
    """The `completion` object that people mean by `test:make check`, `file:out.txt` and so on."""
    short, colon, rest = spec.strip().partition(":")
    if spec.lstrip().startswith("{"):
        try:
            data = json.loads(spec)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{_shown(spec)} is not JSON: {error}") from None
        assert isinstance(data, dict), "it begins with a brace"
        return data
    if short == Kind.EXPLICIT and not colon:
        return {"type": Kind.EXPLICIT.value}
    if short not in _SHORT or not rest.strip():
        raise ValueError(f"{_shown(spec)} is no completion rule: it is {_SPELLINGS}")
    kind, name = _SHORT[short]
    return {"type": kind.value, name: rest.strip()}


def parse_limits(data: object) -> Limits:
    """The limits that a task has of its own: `maxIterations`, `maxTime` (seconds), `maxCost`."""
    if data is None:
        return Limits()
    if not isinstance(data, dict):
        raise ValueError('limits must be an object such as {"maxIterations": 5}')
    iterations = data.get("maxIterations")
    seconds, dollars = (_amount(data, name, "limits") for name in ("maxTime", "maxCost"))
    if iterations is not None and (type(iterations) is not int or not 0 < iterations < _MOST):
        rule = "limits.maxIterations must be a whole number, 1 or more"
        raise ValueError(f"{rule}, not {_shown(iterations)}")
    return Limits(iterations, seconds, dollars)


def _amount(data: dict[str, object], name: str, where: str) -> float | None:
    number = data.get(name)
    if number is None:
        return None
    if type(number) not in (int, float) or not 0 < number < _MOST:  # type: ignore[operator]
        raise ValueError(f"{where}.{name} must be a number above 0, not {_shown(number)}")
    return float(number)  # type: ignore[arg-type]


def _shown(data: object) -> str:
    """As much of it as people can take in."""
    text = json.dumps(data, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:59]}…"
