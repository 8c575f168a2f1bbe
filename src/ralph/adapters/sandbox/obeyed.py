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
_MOST_LINKS = 40  # as many as the kernel follows


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
    """Those in the project, by every name that leads to them."""
    inside = os.path.join(project, "")
    for path in paths:
        for name in (os.path.normpath(path), *_on_the_way(path)):
            if name.startswith(inside):
                yield name.removeprefix(inside)


def _on_the_way(path: str) -> Iterator[str]:
    """What the way to a path hangs on: each link, what is behind it, and the end.

    A directory that is left by `..` is named with it: nothing in it matters, but it must not
    become a link.
    """
    here, steps = "/", path.split("/")
    links = 0
    while steps and links < _MOST_LINKS:
        step = steps.pop(0)
        if step == "..":
            yield os.path.join(here, step)
            here = os.path.dirname(here)
        elif step not in ("", "."):
            above, here = here, os.path.join(here, step)
            if target := _link(here):
                links += 1
                yield here
                yield os.path.normpath(os.path.join(here, *steps))
                here, steps = "/" if target.startswith("/") else above, target.split("/") + steps
    yield here


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""  # it is none
