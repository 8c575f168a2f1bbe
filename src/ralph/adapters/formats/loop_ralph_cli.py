"""`.ralph/settings.json` of ralph-cli, or of Ralph in another project: nearly all of it is ours."""

import json
from typing import Any

from ralph.adapters.formats.loop_draft import SECRET, Draft, Json

_REVIEWS = "reviews between turns are what ralph prd run does; guardrails are commands"


def load(words: str) -> Any:  # noqa: ANN401  whatever the file holds
    """What a text of JSON holds; ValueError, with the line, if it is none."""
    try:
        return json.loads(words)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def fill(draft: Draft, document: Json) -> None:
    """All of it; what is unknown to Ralph is found when the settings are checked."""
    for key, value in document.items():
        if key == "reviews":
            draft.lose(key, _REVIEWS)
        elif key == "$schema" or value is None:
            continue
        elif isinstance(value, dict) and key in ("agent", "notify"):
            _group(draft, key, value)
        else:
            draft.put(key, key, _in_capitals(value) if key == "guardrails" else value)


def _in_capitals(guardrails: Any) -> Any:  # noqa: ANN401  JSON
    """They take `failAction` in any case."""
    for guardrail in guardrails if isinstance(guardrails, list) else ():
        if isinstance(guardrail, dict) and isinstance(guardrail.get("failAction"), str):
            guardrail["failAction"] = guardrail["failAction"].upper()
    return guardrails


def _group(draft: Draft, above: str, group: Json) -> None:
    for key, value in group.items():
        path = f"{above}.{key}"
        if path == "notify.urls":
            draft.lose(path, SECRET)
        elif path == "agent.env" and isinstance(value, dict):
            _environment(draft, value)
        elif value is not None:
            draft.put(path, path, value)


def _environment(draft: Draft, said: Json) -> None:
    for key, value in said.items():
        if key == "set":
            draft.lose("agent.env.set", SECRET)
        else:
            draft.put(f"agent.env.{key}", f"agent.env.{key}", value)
