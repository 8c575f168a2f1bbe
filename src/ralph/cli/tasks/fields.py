"""The options of `ralph tasks add` and `edit` that say what a task is, and the fields they make."""

import re
import sys
from collections.abc import Mapping
from typing import Any

import click

from ralph.cli.params import option, together
from ralph.cli.tasks.common import needed, read_text, task_option
from ralph.errors import ConfigError
from ralph.kernel.tasks.completion import spelled
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.arguments import proper

_LONGEST_TITLE = 500


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


described = together(  # everything that says what a task is, but its title and status
    option("-d, --description TEXT", "What the agent is told."),
    option("-f FILE", "The description from a file; - is standard input.", "description_file"),
    option("--type T", "feature, bug, docs, anything.", "kind"),
    option("--priority N", "Higher comes first."),
    option("--tag T", "A tag; repeat for more.", "tags", multiple=True),
    task_option("--blocked-by", "A task that must be done first; repeat for more.", multiple=True),
    task_option("--parent", "The task that this one is a part of."),
    option("--estimate N", "Iterations, or a time: 3, 2h.", type=_estimate),
    option(
        "--completion RULE",
        "What proves it: explicit, test:COMMAND, grep:TEXT, file:PATH, validate:SCRIPT.",
        type=_rule,
    ),
    option("--max-iterations N", "Maximum number of iterations."),
    option("--max-time DURATION", "Maximum time, such as 90s or 30m."),
    option("--max-cost USD", "Maximum cost."),
)
# What an agent must not loosen for itself.
GUARDED = ("completion", "max_iterations", "max_time", "max_cost")


def title_of(text: str) -> str:
    """A title on one line."""
    title = _one_line(text, "the title")
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
        "type": None if flags["kind"] is None else _one_line(flags["kind"], "--type"),
        "priority": flags["priority"],
        "tags": [_one_line(tag, "--tag") for tag in dict.fromkeys(flags["tags"])] or None,
        "blockedBy": list(dict.fromkeys(flags["blocked_by"])) or None,
        "parent": flags["parent"],
        "estimate": _whole(flags["estimate"]),
        "completion": flags["completion"],
        "limits": {name: most for name, most in limits.items() if most is not None} or None,
    }
    if "" in (fields["tags"] or ()):
        raise ConfigError("--tag is blank", "Name a tag: --tag parser")
    if flags["parent"]:
        needed(file, flags["parent"])
    return {name: found for name, found in fields.items() if found is not None}


def _description(flags: Mapping[str, Any]) -> str | None:
    text, path = flags["description"], flags["description_file"]
    if text is not None and path is not None:
        raise click.UsageError("--description and -f exclude each other.")
    if path is not None:
        return read_text(path, "the description", sys.stdin)
    return None if text is None else proper(text, "the description")


def _one_line(text: str, what: str) -> str:
    return " ".join(proper(text, what).split())


def _whole(number: float | str | None) -> float | str | None:
    """A number as people write it: 5, not 5.0."""
    return int(number) if isinstance(number, float) and number == int(number) else number
