"""`ralph explain`: settings in force with their origins, and the JSON Schema."""

import json
import re
from pathlib import Path

import pytest
from json_schema_subset import valid
from settings_files import BASE, H_EXAMPLE, LOCAL, lay

from ralph.errors import ConfigError
from ralph.settings import explain
from ralph.settings.load import load
from ralph.settings.paths import Json
from ralph.settings.problems import known_keys

SECRETS: Json = {
    "agent": {
        "env": {"set": {"API_KEY": "hunter22hunter22"}},
        "flags": ["--key", "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"],
    },
    "notify": {"urls": ["mailto://me:hunter22@mail.invalid"]},
}


def test_every_setting_has_a_line_with_its_origin(tmp_path: Path) -> None:
    """ "prints the effective settings with the file each came from"."""
    local = {"agent": {"model": "opus"}, "scm": None}
    workspace = lay(tmp_path, H_EXAMPLE, local)
    lines = explain.lines(load(workspace, {"maximumIterations": (7, "-m")}))
    told = {tuple(re.split(r" {2,}", line)) for line in lines}
    assert told >= {
        ("maximumIterations", "7", "-m"),
        ("completionResponse", '"DONE"', BASE),
        ("agent.model", '"opus"', LOCAL),
        ("agent.flags", '["--model opus", "--no-auto-compact"]', BASE),
        ("guardrails[1].command", '"make test"', BASE),
        ("guardrails[1].hint", "null", BASE),
        ("scm", "null", LOCAL),
        ("failAfter", "3", "default"),
        ("agent.env.set", "{}", "default"),
    }


def test_the_columns_are_aligned(tmp_path: Path) -> None:
    """All origins begin in one column; only a very long value pushes its own out."""
    lines = explain.lines(load(str(tmp_path)))
    columns = {line.rindex("default") for line in lines if "protect" not in line}
    assert len(columns) == 1


def test_the_same_for_programs(tmp_path: Path) -> None:
    """Every command that prints for people has --json for programs."""
    told = explain.as_dict(load(lay(tmp_path, {"guardrails": [{"command": "x"}]})))
    assert json.loads(json.dumps(told)) == told
    assert told["files"] == [BASE]
    assert told["settings"]["maximumIterations"] == 10
    assert told["origins"]["maximumIterations"] == "default"
    assert told["origins"]["guardrails[0].command"] == BASE


def test_secrets_are_not_told(tmp_path: Path) -> None:
    """H §Verbose Output: "Merged configuration (redacted if sensitive)"."""
    loaded = load(lay(tmp_path, SECRETS))
    told = "\n".join(explain.lines(loaded)) + json.dumps(explain.as_dict(loaded))
    assert "hunter22" not in told
    assert "sk-ant-api03" not in told
    assert "agent.env.set.API_KEY" in told
    assert loaded.settings.agent.env.set == {"API_KEY": "hunter22hunter22"}


def test_the_schema_describes_every_key() -> None:
    """Titles, descriptions and defaults are there for editors and for the docs."""
    schema = explain.json_schema()
    assert schema["title"] == "Ralph settings"
    for definition in schema["$defs"].values():
        for name, key in definition.get("properties", {}).items():
            assert key.get("description"), name
            assert "default" in key or name in definition["required"], name
    assert schema["$defs"]["Settings"]["properties"]["maximumIterations"]["default"] == 10


def test_known_keys_are_told_with_their_places() -> None:
    """They are what errors suggest, at any level."""
    keys = set(known_keys())
    assert keys >= {"agent", "agent.env.set", "agent.prices.cacheRead", "guardrails[].hint"}
    assert keys >= {"scm.tasks", "display.maxOutputLines", "maxCost"}


DOCUMENTS: list[tuple[Json, bool]] = [
    (json.loads(H_EXAMPLE), True),
    ({}, True),
    (SECRETS, True),
    ({"scm": None, "maxTime": 1.5, "agent": {"promptVia": "stdin"}}, True),
    ({"agent": {"prices": {"input": 1, "output": 2, "cached": 0.1}}}, True),
    ({"agent": {"prices": {"input": 1}}}, False),
    ({"maximumIterations": 0}, False),
    ({"maximumIterations": True}, False),
    ({"maxTime": 0}, False),
    ({"completionResponse": " "}, False),
    ({"agent": {"flags": [1]}}, False),
    ({"agent": {"promptVia": "pipe"}}, False),
    ({"agent": {"env": {"set": {"A": 1}}}}, False),
    ({"guardrails": [{"command": "x", "failAction": "SKIP"}]}, False),
    ({"guardrails": [{}]}, False),
    ({"loop": {"maxCostPerDay": 0.5, "onFailure": "retry", "parallelism": 4}}, True),
    ({"hooks": {"onTaskEnd": "notify-send done", "onAction": None}}, True),
    ({"notify": {"command": "cat", "urls": ["json://127.0.0.1"]}}, True),
    ({"loop": {"onFailure": "panic"}}, False),
    ({"loop": {"maxCostPerRun": 0}}, False),
    ({"hooks": {"onTask": "x"}}, False),
    ({"notify": {"urls": [""]}}, False),
    ({"unknown": 1}, False),
]


@pytest.mark.parametrize(("document", "sound"), DOCUMENTS)
def test_schema_and_loader_agree(tmp_path: Path, document: Json, sound: bool) -> None:
    """H's example is valid; what the loader refuses, an editor with the schema marks too."""
    schema = explain.json_schema()
    assert valid(document, schema, schema) is sound
    workspace = lay(tmp_path, document)
    if sound:
        load(workspace)
    else:
        with pytest.raises(ConfigError):
            load(workspace)


def test_what_has_changed_between_two_readings(tmp_path: Path) -> None:
    """ADR 38: by dotted names, what is in force; what was only written in another way is the
    same, and no secret is told."""
    before = load(lay(tmp_path, {**SECRETS, "maximumIterations": 10, "timeout": "90s"}))
    env = {"set": {"API_KEY": "hunter23hunter23"}}
    rails = [{"command": "make test"}]
    after = load(
        lay(tmp_path, {"agent": {"env": env}, "guardrails": rails, "timeout": 90, "maxCost": 2})
    )
    assert explain.changes(before, before) == ()
    changed = {name: (was, now) for name, was, now in explain.changes(before, after)}
    assert changed == {
        "agent.env.set.API_KEY": ('"[redacted]"', '"[redacted]"'),
        "agent.flags": ('["--key", "[redacted]"]', "[]"),
        "guardrails": ("[]", '[{"command": "make test"}]'),
        "maxCost": ("null", "2"),
        "notify.urls": ('["[redacted]"]', "[]"),
    }
