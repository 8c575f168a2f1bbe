"""What git's configuration on the host has git run or read in a project, wherever that lies."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from ralph.adapters.git import git_output

# Settings whose value is a command, or a file with more settings.
_COMMANDS = re.compile(
    r"core\.(fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)"
    r"|(filter|diff|merge|mergetool|difftool)\..*"
    r"|(pager|alias|browser|man)\..*|(credential|gpg|remote|trailer|guitool|hook)\..*"
    r"|diff\.external|sequence\.editor|interactive\.difffilter|uploadpack\.packobjectshook"
    r"|(sendemail|instaweb|help|init)\..*|submodule\..*\.update",
    re.DOTALL,
)
_HOOKS = "core.hookspath"
_INCLUDES = re.compile(r"include\.path|includeif\..*\.path", re.DOTALL)
_WHERE = ("rev-parse", "--path-format=absolute", "--git-path", "hooks", "--show-toplevel")


def obeyed_paths(project: str, environ: Mapping[str, str]) -> frozenset[str]:
    """Paths of the project, and all below them, that git would obey after the next change.

    Git is asked on the host, before anything is applied: what it says, somebody trusted.
    """
    settings = git_output(project, environ, "config", "--list", "--show-origin", "-z")
    where = git_output(project, environ, *_WHERE) or b""
    hooks, top, *_ = [*map(os.fsdecode, where.split(b"\n")), "", ""]
    top = top or project
    home = environ.get("HOME", "")
    words = [os.path.join(top, word) for word in _words(settings or b"", home)]
    found = [*words, *([hooks] if hooks else [])]
    found += [path for directory in tuple(found) for path in _linked(directory)]
    return frozenset(_within(project, found))


def _words(settings: bytes, home: str) -> Iterator[str]:
    """Files with settings, directories of hooks, and the words of commands."""
    fields = list(map(os.fsdecode, settings.split(b"\0")))
    for origin, setting in zip(fields[::2], fields[1::2], strict=False):
        name, _, text = setting.partition("\n")
        file = origin.removeprefix("file:")
        if file != origin:
            yield file
        if _INCLUDES.fullmatch(name):  # it need not be there, or say anything yet
            yield os.path.join(os.path.dirname(file), _expanded(text, home))
        elif name == _HOOKS:
            yield _expanded(text, home)
        elif _COMMANDS.fullmatch(name):
            yield from (_expanded(word, home) for word in _split(text.removeprefix("!")))


def _expanded(text: str, home: str) -> str:
    return home + text[1:] if text.startswith("~/") else text


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _linked(directory: str) -> Iterator[str]:
    """Where links in a directory of hooks lead."""
    try:
        with os.scandir(directory) as found:
            yield from (entry.path for entry in found if entry.is_symlink())
    except OSError:
        return  # a file, or nothing


def _within(project: str, paths: Iterable[str]) -> Iterator[str]:
    """Those in the project, by the names they have and by those of what they lead to."""
    for path in paths:
        for place in {os.path.normpath(path), os.path.realpath(path)}:
            if place.startswith(os.path.join(project, "")):
                yield os.path.relpath(place, project)
