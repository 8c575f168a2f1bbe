"""What travels between coordinator, relay and attempt, as text: JSON of at most MOST_BYTES."""

import json
from dataclasses import fields
from typing import Any, TypeGuard

from ralph.fleet.port import MOST_BYTES, Done, Failed, Job, Launched
from ralph.kernel.turn import Pulse

MOST_WORDS = 4096  # characters of a reason, and of a remedy
_MOST = 1e15  # and NaN is not less
MOST_STREAM = 32_768  # bytes of the stream in one answer
_FIELDS = tuple(field.name for field in fields(Job))
Message = dict[str, Any]


def text_of(message: Message) -> str:
    """A message as it travels; ValueError if it is too large."""
    text = json.dumps(message, separators=(",", ":"))
    if len(text) > MOST_BYTES:  # it is ASCII
        raise ValueError(f"it has {len(text)} bytes, and {MOST_BYTES} are the most")
    return text


def message_of(text: str | bytes) -> Message:
    """What it says; ValueError if it is no JSON object, or too large."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES} bytes")
    try:
        message = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(message, dict):
        raise ValueError("it is no object")
    return message


def plain(job: Job) -> Message:
    """A job as a message, or a part of one."""
    return {name: getattr(job, name) for name in _FIELDS}


def job_text(job: Job) -> str:
    """A job as it travels; ValueError if it is too large."""
    return text_of(plain(job))


def job_of(message: Message) -> Job:
    """The job that a message holds; ValueError if there is none."""
    kinds: dict[str, Any] = {"attempt": int, "schema": int, "lease": (int, float)}
    for name in _FIELDS:
        if not isinstance(message.get(name), kinds.get(name, str)):
            raise ValueError(f"{name} is missing or wrong")
    return Job(**{name: message[name] for name in _FIELDS})


def is_number(told: object) -> TypeGuard[float]:
    """True of a number that is neither infinite nor beyond any sense."""
    return isinstance(told, (int, float)) and abs(told) < _MOST


def failure(why: str, remedy: str = "", *, passes: bool = False) -> Message:
    """A result that is none."""
    return {"why": why[:MOST_WORDS], "remedy": remedy[:MOST_WORDS], "passes": passes}


def result_of(message: object) -> Done | Failed:
    """The last event of an attempt whose machine tells this of its end."""
    if not isinstance(message, dict):
        return Failed("its machine did not tell how it ended", passes=True)
    if isinstance(commit := message.get("commit"), str) and commit:
        return Done(commit)
    why, remedy = (str(message.get(name, ""))[:MOST_WORDS] for name in ("why", "remedy"))
    return Failed(why or "it gave no reason", remedy, passes=message.get("passes") is True)


def launched_of(message: object) -> Launched | None:
    """What is said of an agent that is about to start; None if that cannot be understood."""
    if not isinstance(message, dict):
        return None
    dialect, agent, model = (message.get(name, "") for name in ("dialect", "agent", "model"))
    if not (isinstance(dialect, str) and isinstance(agent, str) and isinstance(model, str)):
        return None
    return Launched(dialect, agent, model) if dialect else None


def pulse_of(message: object) -> Pulse | None:
    """What is said of a turn that runs; None if that cannot be understood."""
    if not isinstance(message, dict):
        return None
    seconds, idle, dollars = (message.get(name, 0.0) for name in ("seconds", "idle", "dollars"))
    since = message.get("since_result")
    numbers = (seconds, idle, dollars, *(() if since is None else (since,)))
    if not all(is_number(number) and number >= 0 for number in numbers):
        return None
    return Pulse(seconds, idle, since, dollars)
