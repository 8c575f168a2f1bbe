"""Registers `ralph mcp` in the text of a host's settings: `{"mcpServers": {"ralph": {...}}}`."""

import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from ralph.files.json_edit import Item, JsonText, JsonTextError, fresh
from ralph.hosts.hosts import Host

CLAUDES = ".mcp.json"  # in a project
_KEY, _NAME, _COMMAND = "mcpServers", "ralph", "mcp"
_OWN = ("-P", "-m", "ralph", _COMMAND)
_OTHERS = f'"{_NAME}" in "{_KEY}" is somebody else\'s'


def file_of(host: Host, path: str, scope: str) -> str:
    """The file with a host's MCP servers, by that of its hooks; empty where Ralph writes none:
    Codex has them in TOML, and Claude those of a person among much else."""
    if host.agent == "gemini":
        return path
    if host.agent == "claude" and scope != "user":
        return os.path.join(os.path.dirname(os.path.dirname(path)), CLAUDES)
    return ""


def to_type(host: Host) -> str:
    """What registers it where Ralph writes no file."""
    scope = " --scope user" if host.agent == "claude" else ""
    server = entry(portable=False)
    words = shlex.join([server["command"], *server["args"]])
    return f"{host.agent} mcp add{scope} {_NAME} -- {words}"


def entry(*, portable: bool) -> dict[str, Any]:
    """The server; in a file that others share by the `ralph` on PATH."""
    if portable:
        return {"command": "ralph", "args": [_COMMAND]}
    return {"command": sys.executable, "args": list(_OWN)}


def registered(text: JsonText | None, server: Mapping[str, Any]) -> str:
    """The text with this server, and no other of ours. One that a person has registered stays as it
    is. JsonTextError where the name is taken by something else."""
    if text is None:
        return fresh([(_KEY, {_NAME: server})])
    ours = _ours(text)
    if is_registered(text) and (ours is None or ours.content == server):
        return text.raw
    if _named(text) is not None and ours is None:
        raise JsonTextError(_OTHERS)
    text = _removed(text)
    if text.is_hollow(text.top):
        return fresh([(_KEY, {_NAME: server})])
    servers = text.member(text.top, _KEY)
    if servers is None:
        return text.appended(text.top, 0, {_NAME: server}, _KEY).raw
    if not isinstance(servers.content, dict):
        raise JsonTextError(f'"{_KEY}" is not an object')
    return text.appended(servers.at, 1, server, _NAME).raw


def unregistered(text: JsonText) -> str | None:
    """The text without our server; None where nothing else was ever in it."""
    left = _removed(text)
    return None if left.is_hollow(left.top) else left.raw


def is_registered(text: JsonText) -> bool:
    """True if `ralph mcp` is a server there, by whatever words."""
    item = _named(text)
    args = item.content.get("args") if item and isinstance(item.content, dict) else None
    return isinstance(args, list) and _COMMAND in args


def _ours(text: JsonText) -> Item | None:
    """The server that `ralph plugin install` wrote."""
    item = _named(text)
    if item is None or not isinstance(item.content, dict):
        return None
    is_own = item.content.keys() == {"command", "args"} and item.content["args"] == list(_OWN)
    return item if is_own or item.content == entry(portable=True) else None


def _named(text: JsonText) -> Item | None:
    servers = text.member(text.top, _KEY)
    if servers is None or not isinstance(servers.content, dict):
        return None
    return text.member(servers.at, _NAME)


def _removed(text: JsonText) -> JsonText:
    """Remove our server, and what that leaves empty."""
    ours, servers = _ours(text), text.member(text.top, _KEY)
    if ours is None or servers is None:
        return text
    text = text.removed(servers.at, ours.start)
    left = text.member(text.top, _KEY)
    assert left is not None
    return text.removed(text.top, left.start) if text.is_hollow(left.at) else text
