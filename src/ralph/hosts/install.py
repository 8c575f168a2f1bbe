"""What `ralph plugin` does to a host's files, decided before anything is written."""

import os
from collections.abc import Mapping

from ralph.errors import ConfigError
from ralph.files.json_edit import JsonText, JsonTextError
from ralph.hosts.files import FileEdit, read_text
from ralph.hosts.hosts import OURS, Host
from ralph.hosts.settings_edit import found, installed, uninstalled
from ralph.hosts.stop_cap import CAP, cap_in, lifted, unlifted
from ralph.kernel.value import value


@value
class Plan:
    """Changes of files, and commands of somebody else's that are left as they are."""

    hooks: FileEdit
    commands: tuple[FileEdit, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[FileEdit, ...]:
        """All of them; the hooks last, since commands are nothing without and harmless."""
        return (*self.commands, self.hooks)


@value
class Found:
    """What a file has of ours. `trouble` says why it cannot be known."""

    path: str
    events: tuple[str, ...] = ()
    current: bool = False  # whether it is just what `install` would write now
    trouble: str = ""

    @property
    def state(self) -> str:
        """In one word."""
        if self.trouble:
            return "broken"
        if not self.events:
            return "absent"
        return "installed" if self.current else "outdated"


def hooks_file(host: Host, project: str, environ: Mapping[str, str], *, user: bool) -> str:
    """The file that is meant; a ConfigError where nobody is at home."""
    if not user:
        return os.path.join(project, host.file)
    path = host.user_file(environ)
    if not path:
        raise ConfigError("there is no HOME", "Set it: export HOME=/home/you")
    return os.path.abspath(path)


def plan_install(
    host: Host, path: str, project: str, *, user: bool, lift: bool | None = None
) -> Plan:
    """What to write, so that the hooks are there once. `lift` is what to do about the host's cap of
    held stops: lift it, leave it to the host again, or nothing."""
    text = read_text(path)
    try:
        after = installed(_parsed(host, text), host.groups())
        if lift is not None:
            again = JsonText.of(after, comments=host.comments)
            after = lifted(again) if lift else unlifted(again)
    except JsonTextError as error:
        raise _not_mergeable(path, error) from None
    commands, kept = ([], []) if user else _commands(host, project, install=True)
    return Plan(FileEdit(path, text, after), tuple(commands), tuple(kept))


def plan_uninstall(host: Host, path: str, project: str, *, user: bool) -> Plan:
    """What to write, so that nothing of ours is left and everything else is as it was."""
    text = read_text(path)
    try:
        parsed = _parsed(host, text)
    except JsonTextError as error:
        raise _not_mergeable(path, error) from None
    after = text
    if parsed is not None:
        after = uninstalled(JsonText.of(unlifted(parsed), comments=host.comments))
    commands, kept = ([], []) if user else _commands(host, project, install=False)
    return Plan(FileEdit(path, text, after), tuple(commands), tuple(kept))


def look(host: Host, path: str) -> Found:
    """What a file has of ours; whatever it is, that is an answer."""
    try:
        parsed = _parsed(host, read_text(path))
        ours = found(parsed) if parsed is not None else {}
    except JsonTextError as error:
        return Found(path, trouble=f"it is not JSON: {error}")
    except ConfigError as error:
        return Found(path, trouble=error.message)
    current = ours == {event: [group] for event, group in host.groups().items()}
    return Found(path, tuple(ours), current)


def is_lifted(host: Host, text: str | None, environ: Mapping[str, str]) -> bool:
    """Whether the host lets stops be held as often as it takes; what cannot be read says no."""
    try:
        parsed = _parsed(host, text)
    except JsonTextError:
        return False
    said = cap_in(parsed) if parsed is not None else None
    return (environ.get(CAP) if said is None else said) == "0"


def commands_there(host: Host, project: str) -> list[str]:
    """The commands of ours that lie in a project."""
    return [path for path in host.command_files() if _is_ours(_text(project, path))]


def _commands(host: Host, project: str, *, install: bool) -> tuple[list[FileEdit], list[str]]:
    changes, kept = [], []
    for path, text in host.command_files().items():
        before = read_text(os.path.join(project, path))
        if before is not None and not _is_ours(before):
            kept.append(path)
            continue
        changes.append(FileEdit(os.path.join(project, path), before, text if install else None))
    return changes, kept


def _text(project: str, path: str) -> str | None:
    try:
        return read_text(os.path.join(project, path))
    except ConfigError:
        return None


def _is_ours(text: str | None) -> bool:
    return text is not None and OURS in text


def _parsed(host: Host, text: str | None) -> JsonText | None:
    """An empty file is none: hosts take it so, and there is nothing to lose."""
    if text is None or not text.strip("\ufeff \t\r\n"):
        return None
    return JsonText.of(text, comments=host.comments)


def _not_mergeable(path: str, error: JsonTextError) -> ConfigError:
    return ConfigError(f"{path}: {error}", f"Mend it, then try again: $EDITOR {path}")
