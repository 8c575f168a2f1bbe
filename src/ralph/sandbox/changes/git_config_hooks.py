"""Finds project paths that the host's git config would execute or include."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress

from ralph.git.digest import git_output

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


def config_hooks(project: str, environ: Mapping[str, str]) -> frozenset[str]:
    """Paths of the project, and all below them, that git would obey after the next change. Git is
    asked on the host, before anything is applied: what it says, somebody trusted."""
    settings = git_output(project, environ, "config", "--list", "--show-origin", "-z")
    where = git_output(project, environ, *_WHERE) or b""
    hooks, top, *_ = [*map(os.fsdecode, where.split(b"\n")), "", ""]
    words = _words(settings or b"", environ.get("HOME", ""))
    found = [os.path.join(top or project, word) for word in words]
    found += [hooks] if hooks else []
    for directory in tuple(found):  # links in a directory of hooks
        with suppress(OSError), os.scandir(directory) as entries:
            found += [entry.path for entry in entries if entry.is_symlink()]
    inside = os.path.join(project, "")
    names = (name for path in found for name in (os.path.normpath(path), *_on_the_way(path)))
    return frozenset(name.removeprefix(inside) for name in names if name.startswith(inside))


def _words(settings: bytes, home: str) -> Iterator[str]:
    """Files with settings, directories of hooks, and the words of commands."""

    def expanded(text: str) -> str:
        return home + text[1:] if text.startswith("~/") else text

    fields = list(map(os.fsdecode, settings.split(b"\0")))
    for origin, setting in zip(fields[::2], fields[1::2], strict=False):
        name, _, text = setting.partition("\n")
        file = origin.removeprefix("file:")
        if file != origin:
            yield file
        if _INCLUDES.fullmatch(name):  # it need not be there, or say anything yet
            yield os.path.join(os.path.dirname(file), expanded(text))
        elif name == _HOOKS:
            yield expanded(text)
        elif _COMMANDS.fullmatch(name):
            command = text.removeprefix("!")
            try:
                words = shlex.split(command)
            except ValueError:
                words = command.split()
            yield from map(expanded, words)


def _on_the_way(path: str) -> Iterator[str]:
    """Names that the way to a path hangs on: each link, what is behind it, and the end. A directory
    left by `..` is named with it: nothing in it matters, but it must not become a link."""
    here, steps = "/", path.split("/")
    links = 0
    while steps and links < _MOST_LINKS:
        step = steps.pop(0)
        if step == "..":
            yield os.path.join(here, step)
            here = os.path.dirname(here)
        elif step not in ("", "."):
            above, here = here, os.path.join(here, step)
            with suppress(OSError):  # it is no link
                target = os.readlink(here)
                links += 1
                yield here
                yield os.path.normpath(os.path.join(here, *steps))
                here, steps = "/" if target.startswith("/") else above, target.split("/") + steps
    yield here
