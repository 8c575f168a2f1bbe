"""Plans the changes of `ralph plugin` to a host's files, before anything is written."""

import os
from collections.abc import Mapping
from contextlib import suppress

from ralph.errors import ConfigError
from ralph.files.json_edit import JsonText, JsonTextError
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

    @property
    def changes(self) -> tuple[FileEdit, ...]:
        """All of them; the hooks last, since commands without them are harmless."""
        return (*self.commands, self.hooks)


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
    host: Host, path: str, scope: str, *, install: bool, lift: bool | None = None
) -> FileChanges:
    """The changes after which the hooks are there once, or nothing of ours is left. `lift`: lift
    the host's cap of held stops, leave it to the host again, or neither."""
    text = read_text(path)
    try:
        parsed, after = _parsed(host, text), text
        if install:
            after = installed(parsed, host.groups(scope))
            if lift is not None:
                again = JsonText.of(after, comments=host.comments)
                after = lifted(again) if lift else unlifted(again)
        elif parsed is not None:
            after = uninstalled(JsonText.of(unlifted(parsed), comments=host.comments))
    except JsonTextError as error:
        remedy = f"Fix it and run again: $EDITOR {path}"
        raise ConfigError(f"{path}: {error}", remedy) from None
    commands, kept = [], []
    for file, words in host.command_files().items() if scope != "user" or host.shared else ():
        where = os.path.join(os.path.dirname(path), file)
        before = read_text(where)
        if before is not None and OURS not in before:
            kept.append(where)
        else:
            commands.append(FileEdit(where, before, words if install else None))
    return FileChanges(FileEdit(path, text, after), tuple(commands), tuple(kept))


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
