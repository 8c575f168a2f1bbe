"""Durations in settings: "8h" wherever a flag takes it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.errors import ConfigError
from ralph.settings.load import load
from ralph.settings.schema import AS_TEXT, Settings


def written(workspace: Path, document: dict[str, Any]) -> str:
    (workspace / ".ralph").mkdir(exist_ok=True)
    (workspace / ".ralph" / "settings.json").write_text(json.dumps(document))
    return str(workspace)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("8h", 28_800), ("1.5h", 5400), ("90", 90)]
)
def test_text_beside_numbers(tmp_path: Path, text: str, seconds: float) -> None:
    """ "Durations like `8h` are accepted in settings wherever flags take them"."""
    document = {
        "maxTime": text,
        "agent": {"model": text, "env": {"set": {"A": text}}},
        "guardrails": [{"command": text, "timeout": text}],
        "loop": {"maxTimePerTask": text, "maxTimePerRun": 7},
    }
    settings = load(written(tmp_path, document)).settings
    assert (settings.max_time, settings.guardrails[0].timeout) == (seconds, seconds)
    assert (settings.loop.max_time_per_task, settings.loop.max_time_per_run) == (seconds, 7)
    assert (settings.agent.model, settings.guardrails[0].command) == (text, text)
    assert settings.agent.env.set == {"A": text}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *(("8 hours", '"8 hours"'), ("", '""'), ("1e3", '"1e3"'), ("-5m", '"-5m"'), ("h", '"h"')),
        *(("0s", "0"), ("99999d", "8639913600")),
    ],
)
def test_what_is_none_is_told_what_is_allowed(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, {"maxTime": text, "network": "8h"}))
    words = 'allowed: seconds, more than 0, at most 1,000,000,000, or text such as "90s", "30m"'
    assert f"maxTime: found {found}; {words}" in caught.value.message


def test_every_setting_of_seconds_takes_text() -> None:
    """Whoever adds one by another type is found here."""
    schema = msgspec.json.schema(Settings)
    texts = json.dumps(schema).count(json.dumps(AS_TEXT))
    groups = schema["$defs"].values()
    described = [
        field["description"]
        for group in groups
        for field in group.get("properties", {}).values()
        if "Seconds" in field.get("description", "")
    ]
    assert texts == len(described) > 10
