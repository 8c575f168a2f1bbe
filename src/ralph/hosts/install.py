"""Plans the changes of `ralph plugin` to a host's files, before anything is written."""

import os
from collections.abc import Mapping
from contextlib import suppress

from ralph.errors import ConfigError
from ralph.files.json_edit import JsonText, JsonTextError
from ralph.hosts import mcp_servers
from ralph.hosts.files import FileEdit, read_text
from ralph.hosts.hosts import OURS, Host
from ralph.hosts.settings_edit import found, installed, uninstalled
from ralph.hosts.stop_cap import CAP, cap_in, lifted, unlifted
from ralph.kernel.value import value


@value
class FileChanges:
    """Changes of files, and commands of somebody else's that are left as they are."""

    hooks: FileEdit
    commands: tuple[FileEdit, ...] = ()
    kept: tuple[str, ...] = ()
    servers: FileEdit | None = None  # the MCP servers, where they have a file of their own

    @property
    def changes(self) -> tuple[FileEdit, ...]:
        """All of them; the hooks last, since commands without them are harmless."""
        return (*self.commands, *filter(None, [self.servers]), self.hooks)


@value
class HooksThere:
    """The hooks of ours in a file. `trouble` says why they cannot be known."""

    path: str
    state: str  # "installed", "outdated", "absent" or "broken"
    events: tuple[str, ...] = ()
    trouble: str = ""


def hooks_file(host: Host, project: str, environ: Mapping[str, str], scope: str) -> str:
    """The file that is meant; a ConfigError where nobody is at home."""
    if scope != "user":
        return os.path.join(project, host.file_of(scope))
    path = host.user_file(environ)
    if not path:
        raise ConfigError("there is no HOME", "Set it: export HOME=/home/you")
    return os.path.abspath(path)


def planned(
    host: Host,
    path: str,
    scope: str,
    *,
    install: bool,
    lift: bool | None = None,
    mcp: bool = False,
) -> FileChanges:
    """The changes after which the hooks are there once, or nothing of ours is left. `lift`: lift
    the host's cap of held stops, leave it to the host again, or neither. `mcp`: register `ralph
    mcp` too."""
    text, others = read_text(path), mcp_servers.file_of(host, path, scope)
    with_server = mcp if install else True
    try:
        parsed, after = _parsed(host, text), text
        if install:
            after = installed(parsed, host.groups(scope))
            if lift is not None:
                again = JsonText.of(after, comments=host.comments)
                after = lifted(again) if lift else unlifted(again)
        elif parsed is not None:
            after = uninstalled(JsonText.of(unlifted(parsed), comments=host.comments))
        if others == path and with_server:
            after = _with_server(host, after, scope, install=install)
    except JsonTextError as error:
        raise _unusable(path, error) from None
    apart = others if with_server and others != path else ""
    servers = _servers(host, apart, scope, install=install)
    commands, kept = [], []
    for file, words in host.command_files().items() if scope != "user" or host.shared else ():
        where = os.path.join(os.path.dirname(path), file)
        before = read_text(where)
        if before is not None and OURS not in before:
            kept.append(where)
        else:
            commands.append(FileEdit(where, before, words if install else None))
    return FileChanges(FileEdit(path, text, after), tuple(commands), tuple(kept), servers)


def _servers(host: Host, path: str, scope: str, *, install: bool) -> FileEdit | None:
    """The change of a host's file of MCP servers, if it has one that is ours to write."""
    if not path:
        return None
    text = read_text(path)
    try:
        return FileEdit(path, text, _with_server(host, text, scope, install=install))
    except JsonTextError as error:
        if not install:
            return None  # it is somebody else's: nothing of ours is in what cannot be read
        raise _unusable(path, error) from None


def _with_server(host: Host, text: str | None, scope: str, *, install: bool) -> str | None:
    """The text with `ralph mcp` as a server, or without."""
    parsed = _parsed(host, text)
    if install:
        server = mcp_servers.entry(portable=host.is_portable(scope))
        return mcp_servers.registered(parsed, server)
    return text if parsed is None else mcp_servers.unregistered(parsed)


def server_there(host: Host, path: str, scope: str) -> str:
    """The file in which `ralph mcp` is registered; empty if it is in none."""
    where = mcp_servers.file_of(host, path, scope) if path else ""
    with suppress(ConfigError, JsonTextError):
        parsed = _parsed(host, read_text(where)) if where else None
        if parsed is not None and mcp_servers.is_registered(parsed):
            return where
    return ""


def _unusable(path: str, error: JsonTextError) -> ConfigError:
    return ConfigError(f"{path}: {error}", f"Fix it and run again: $EDITOR {path}")


def look(host: Host, path: str, scope: str) -> HooksThere:
    """The hooks of ours in a file; whatever is wrong with it is part of the answer."""
    try:
        parsed = _parsed(host, read_text(path))
        ours = found(parsed) if parsed is not None else {}
    except JsonTextError as error:
        return HooksThere(path, "broken", trouble=f"it is not JSON: {error}")
    except ConfigError as error:
        return HooksThere(path, "broken", trouble=error.message)
    current = ours == {event: [group] for event, group in host.groups(scope).items()}
    state = "absent" if not ours else "installed" if current else "outdated"
    return HooksThere(path, state, tuple(ours))


def is_lifted(host: Host, text: str | None, environ: Mapping[str, str]) -> bool:
    """True if the host lets stops be held as often as it takes; False if it cannot be read."""
    try:
        parsed = _parsed(host, text)
    except JsonTextError:
        return False
    said = cap_in(parsed) if parsed is not None else None
    return (environ.get(CAP) if said is None else said) == "0"


def commands_there(host: Host, project: str) -> list[str]:
    """The commands of ours that lie in a project."""
    there, folder = [], os.path.dirname(host.file)
    for path in (os.path.join(folder, name) for name in host.command_files()):
        with suppress(ConfigError):
            if OURS in (read_text(os.path.join(project, path)) or ""):
                there.append(path)
    return there


def _parsed(host: Host, text: str | None) -> JsonText | None:
    """An empty file is none: hosts take it so, and there is nothing to lose."""
    if text is None or not text.strip("\ufeff \t\r\n"):
        return None
    return JsonText.of(text, comments=host.comments)
