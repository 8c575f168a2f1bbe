"""`ralph mcp` among the MCP servers of a host: there once, beside others, and gone again."""

import json
from typing import Any

import pytest

from ralph.files.json_edit import JsonText, JsonTextError
from ralph.hosts.hosts import HOSTS
from ralph.hosts.mcp_servers import entry, file_of, is_registered, registered, to_type, unregistered

OURS = entry(portable=True)
THEIRS: dict[str, Any] = {"command": "npx", "args": ["-y", "some-server"]}
FILES = [
    "{}",
    "{ }",
    '{"mcpServers": {}}',
    '{"mcpServers":{"other":{"command":"x"}}}',
    json.dumps({"z": 1, "mcpServers": {"a": THEIRS, "b": THEIRS}, "y": [2]}, indent=4) + "\n",
    json.dumps({"hooks": {"Stop": []}}, indent="\t") + "\n",
]


@pytest.mark.parametrize("raw", FILES)
def test_in_and_out_again_to_the_byte(raw: str) -> None:
    after = JsonText.of(registered(JsonText.of(raw), OURS))
    there = json.loads(after.raw)
    assert there["mcpServers"].pop("ralph") == OURS
    was = json.loads(raw)
    assert there == {**was, "mcpServers": was.get("mcpServers", {})}
    assert registered(after, OURS) == after.raw
    assert unregistered(after) == raw


def test_a_file_that_is_not_there_is_not_there_afterwards() -> None:
    after = registered(None, OURS)
    assert json.loads(after) == {"mcpServers": {"ralph": OURS}}
    assert unregistered(JsonText.of(after)) is None


def test_an_older_registration_is_replaced() -> None:
    older = entry(portable=False)
    assert older["args"][-1] == "mcp"
    text = JsonText.of(registered(JsonText.of(FILES[4]), older))
    assert registered(text, OURS) == registered(JsonText.of(FILES[4]), OURS)


def test_somebody_elses_server_of_that_name_stays() -> None:
    text = JsonText.of(json.dumps({"mcpServers": {"ralph": THEIRS}}))
    assert not is_registered(text)
    assert unregistered(text) == text.raw
    with pytest.raises(JsonTextError, match="somebody else's"):
        registered(text, OURS)


@pytest.mark.parametrize(
    "more", [{"args": ["mcp", "--root", "/x"]}, {"env": {"A": "b"}}, {"type": "stdio"}]
)
def test_what_a_person_has_registered_stays(more: dict[str, Any]) -> None:
    text = JsonText.of(json.dumps({"mcpServers": {"ralph": {**OURS, **more}}}))
    assert is_registered(text)
    assert registered(text, OURS) == text.raw
    assert unregistered(text) == text.raw


def test_servers_that_are_no_object_are_refused() -> None:
    with pytest.raises(JsonTextError, match="not an object"):
        registered(JsonText.of('{"mcpServers": []}'), OURS)


@pytest.mark.parametrize(
    ("agent", "scope", "file"),
    [
        ("claude", "project", "/p/.mcp.json"),
        ("claude", "shared", "/p/.mcp.json"),
        ("claude", "user", ""),
        ("gemini", "project", "/p/.gemini/settings.json"),
        ("codex", "project", ""),
    ],
)
def test_each_host_has_a_file_of_its_own_or_a_command(agent: str, scope: str, file: str) -> None:
    host = HOSTS[agent]
    assert file_of(host, f"/p/{host.file_of(scope)}", scope) == file
    assert to_type(host).startswith(f"{agent} mcp add ")
