"""`.ralph/settings.json` of ralph-cli, or of Ralph in another project: nearly all of it is ours."""

import json
from typing import Any

from ralph.settings.from_others.draft import SECRET, Draft, Json

_REVIEWS = "reviews between turns are what ralph prd run does; guardrails are commands"


def load(words: str) -> Any:  # noqa: ANN401  whatever the file holds
    """The content of a text of JSON; ValueError, with the line, if it is none."""
    try:
        return json.loads(words)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def fill(draft: Draft, document: Json) -> None:
    """Take over all of it; what is unknown to Ralph is found when the settings are checked."""
    for key, value in document.items():
        if key == "reviews":
            draft.lose(key, _REVIEWS)
        elif key == "$schema" or value is None:
            continue
        elif isinstance(value, dict) and key in ("agent", "notify"):
            _group(draft, key, value)
        else:
            if key == "guardrails" and isinstance(value, list):
                for guardrail in value:  # they take `failAction` in any case
                    if isinstance(guardrail, dict) and isinstance(guardrail.get("failAction"), str):
                        guardrail["failAction"] = guardrail["failAction"].upper()
            draft.put(key, key, value)


def _group(draft: Draft, above: str, group: Json) -> None:
    for key, value in group.items():
        path = f"{above}.{key}"
        if path in ("notify.urls", "agent.env.set"):
            draft.lose(path, SECRET)
        elif path == "agent.env" and isinstance(value, dict):
            _group(draft, path, value)
        elif value is not None or above == "agent.env":
            draft.put(path, path, value)
