"""Values as JSON that any program can read, without secrets."""

import json
from datetime import UTC, datetime
from typing import Any

from ralph.text.redact import redacted_json

Json = dict[str, Any]


def line(value: object) -> str:
    """The value as one line of JSON, redacted. Bytes of a prompt that never were text, and half a
    pair of surrogates, become question marks."""
    text = redacted_json(value)
    if "\\ud" not in text:
        return text
    whole = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    return json.dumps(json.loads(whole.encode("utf-8", "replace")), separators=(",", ":"))


def iso(time: float) -> str:
    """A time as ISO 8601 has it."""
    moment = datetime.fromtimestamp(time, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
