"""`.ralphy/config.yaml` of ralphy."""

import os
from typing import Any

from ralph.settings.from_others.draft import (
    FOR_PROMPT,
    SECRET,
    Draft,
    Json,
    Rule,
    lost,
    text,
    texts,
    to,
    walk,
)


def _paths(value: object) -> list[str]:
    found = texts(value)
    for path in found:
        if os.path.isabs(path) or ".." in path.split("/"):
            raise ValueError("only what is in the workspace can be protected")
    return found


def _guardrails(draft: Draft, key: str, value: Any) -> None:  # noqa: ANN401  YAML
    """Their commands are for the agent to run; with us they must succeed after every turn."""
    if not isinstance(value, dict):
        draft.lose(key, "commands with their names are expected")
        return
    commands = []
    for name, command in value.items():
        try:
            commands += [{"command": text(command)}] if command else []
        except ValueError as error:
            draft.lose(f"{key}.{name}", str(error))
    if commands:
        draft.put(key, "guardrails", commands)


RULES: dict[str, Rule] = {
    "project": lost(FOR_PROMPT),
    "commands": _guardrails,
    "rules": lost(FOR_PROMPT),
    "boundaries.never_touch": to("protect", _paths),
    "notifications": lost(f"{SECRET}; see notify"),
}


def fill(draft: Draft, document: Json) -> None:
    walk(draft, document, RULES)
