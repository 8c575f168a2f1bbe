"""The options of `ralph tasks add` and `edit` that say what a task is, and the fields they make."""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from ralph.cli.params import completed_by, dollars, duration, whole_number
from ralph.cli.tasks.common import needed, read_text, task_option
from ralph.errors import ConfigError
from ralph.kernel.tasks.completion import spelled
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.arguments import proper

_LONGEST_TITLE = 500
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _estimate(text: str) -> float | str:
    """Iterations, also parts of one, or a time, which stays as it is written."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?[smhd]", text):
        return text
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise click.BadParameter(f"{text!r} is neither iterations such as 3 nor a time such as 2h.")
    return float(text)


def _rule(text: str) -> dict[str, object]:
    try:
        return spelled(proper(text, "--completion"))
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


_OPTIONS = (
    click.option("-d", "--description", metavar="TEXT", help="What the agent is told."),
    click.option(
        "-f",
        "description_file",
        metavar="FILE",
        shell_complete=completed_by("files"),
        help="The description from a file; - is standard input.",
    ),
    click.option("--type", "kind", metavar="T", help="feature, bug, docs, anything."),
    click.option("--priority", metavar="N", type=whole_number, help="Higher comes first."),
    click.option("--tag", "tags", metavar="T", multiple=True, help="A tag; again for more."),
    task_option("--blocked-by", "A task to be done before; again for more.", multiple=True),
    task_option("--parent", "The task that this one is a part of."),
    click.option("--estimate", metavar="N", type=_estimate, help="Iterations, or a time: 3, 2h."),
    click.option(
        "--completion",
        metavar="RULE",
        type=_rule,
        help="What proves it: explicit, test:COMMAND, grep:TEXT, file:PATH, validate:SCRIPT.",
    ),
    click.option("--max-iterations", metavar="N", type=whole_number, help="Most iterations."),
    click.option("--max-time", metavar="DURATION", type=duration, help="Longest time: 90s, 30m."),
    click.option("--max-cost", metavar="USD", type=dollars, help="Most money."),
)
GUARDED = {  # what an agent must not loosen for itself
    "completion": "--completion",
    "max_iterations": "--max-iterations",
    "max_time": "--max-time",
    "max_cost": "--max-cost",
}


def described(function: _Function) -> _Function:
    """Everything that says what a task is, but its title and status."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def title_of(text: str) -> str:
    """A title on one line."""
    title = " ".join(proper(text, "the title").split())
    if not title:
        raise ConfigError("the title is blank", 'Say what to do: ralph tasks add "Sort the list"')
    if len(title) > _LONGEST_TITLE:
        remedy = "Put the rest into the description: -d TEXT or -f FILE"
        raise ConfigError(f"the title is longer than {_LONGEST_TITLE} characters", remedy)
    return title


def fields_of(flags: Mapping[str, Any], file: TaskFile) -> dict[str, Any]:
    """The fields that the options say; lists and limits hold what was asked for, not more."""
    limits = {
        "maxIterations": flags["max_iterations"],
        "maxTime": _whole(flags["max_time"]),
        "maxCost": _whole(flags["max_cost"]),
    }
    fields = {
        "description": _description(flags),
        "type": _word(flags["kind"], "--type"),
        "priority": flags["priority"],
        "tags": [_tag(tag) for tag in dict.fromkeys(flags["tags"])] or None,
        "blockedBy": list(dict.fromkeys(flags["blocked_by"])) or None,
        "parent": _parent(flags["parent"], file),
        "estimate": _whole(flags["estimate"]),
        "completion": flags["completion"],
        "limits": {name: most for name, most in limits.items() if most is not None} or None,
    }
    return {name: found for name, found in fields.items() if found is not None}


def _description(flags: Mapping[str, Any]) -> str | None:
    text, path = flags["description"], flags["description_file"]
    if text is not None and path is not None:
        raise click.UsageError("--description and -f exclude each other.")
    if path is not None:
        return read_text(path, "the description", sys.stdin)
    return None if text is None else proper(text, "the description")


def _word(text: str | None, flag: str) -> str | None:
    return None if text is None else " ".join(proper(text, flag).split())


def _tag(text: str) -> str:
    tag = _word(text, "--tag")
    if not tag:
        raise ConfigError("--tag is blank", "Name a tag: --tag parser")
    return tag


def _parent(parent: str | None, file: TaskFile) -> str | None:
    if parent:
        needed(file, parent)
    return parent


def _whole(number: float | str | None) -> float | str | None:
    """A number as people write it: 5, not 5.0."""
    return int(number) if isinstance(number, float) and number == int(number) else number
