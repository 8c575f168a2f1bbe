"""Answers an agent that asks whether it may do something, by the guard (ADR 25).

What it asks for is put to the guard as a shell command: a file that it wants to write as a
redirection into that file, and so on, so that one set of rules decides about all of it.
"""

import os
import shlex
from collections.abc import Callable, Iterator

from ralph.acp.talk import Answer
from ralph.agents.streams.ndjson import as_list, as_text, field, one_line

Guard = Callable[[str], str | None]  # the reason why a command is refused, or None
_ALLOW, _REJECT = "allow_once", "reject_once"  # never for longer: the next one may be another
_COMMANDS = ("command", "cmd", "script")
_PATHS = ("file_path", "filePath", "filepath", "path", "abs_path", "notebook_path", "target")
# How a shell would do the same to a file. What an agent does not name may write.
_AS_COMMAND = {"read": "cat -- {}", "delete": "rm -rf -- {}", "search": "ls -- {}"}
_WRITES = ": > {}"
_FILES = frozenset({*_AS_COMMAND, "edit", "move"})  # where a "command" may be "create", or "view"
_HARMLESS = frozenset({"think", "fetch", "switch_mode"})
_RUNS = "execute"
_SHORTENED = ("…", "...")


def answer(params: object, call: object, workspace: str, guard: Guard | None) -> Answer:
    """The answer to a request of either version; without a guard everything is allowed. `call` is
    what was told of the tool call before: some do not repeat it."""
    asked = _Asked(params, call)
    if guard is not None and (why := asked.refusal(workspace, guard)):
        return refused(params, call, why)
    if option := _option(params, _ALLOW):
        return Answer(asked.what, allowed=True, option=option)
    return Answer(asked.what, allowed=False, why=f"its request offers no {_ALLOW}")


def refused(params: object, call: object, why: str) -> Answer:
    """The answer that refuses whatever is asked for."""
    return Answer(_Asked(params, call).what, False, _option(params, _REJECT), why)


def _option(params: object, kind: str) -> str:
    options = as_list(field(params, "options"))
    found = (
        as_text(field(option, "optionId")) for option in options if field(option, "kind") == kind
    )
    return next(found, "")


class _Asked:
    """A request, as far as it matters for an answer."""

    def __init__(self, params: object, call: object) -> None:
        subject = field(params, "subject")
        told = (field(subject, "toolCall"), field(params, "toolCall"), subject, call)
        self._told = tuple(one for one in told if isinstance(one, dict))
        self.kind = self._first("kind")
        self.title = self._first("title") or as_text(field(params, "title"))
        self._input = next((i for one in self._told if (i := field(one, "rawInput"))), None)
        self._command = self._said_command()

    @property
    def what(self) -> str:
        """What is asked for, in words."""
        return one_line(self.title) or one_line(self._command) or self.kind or "something"

    def refusal(self, workspace: str, guard: Guard) -> str:
        """The reason why it is refused; "" where it is not."""
        for command in self._commands(workspace):
            if why := guard(command):
                return why
        if self.kind == _RUNS and not self._command:
            return "guard: refused, because the request does not say what would be run"
        if self.kind in ("edit", "delete", "move") and not any(self._paths()):
            return "guard: refused, because the request names no file"
        return ""

    def _commands(self, workspace: str) -> Iterator[str]:
        """What it would do, each as a command in the workspace."""
        if self._command and not (self.kind in _FILES and any(self._paths())):
            where = as_text(field(self._input, "cwd")) or self._first("cwd")
            away = bool(where) and os.path.realpath(where) != os.path.realpath(workspace)
            yield f"cd {shlex.quote(where)} && {self._command}" if away else self._command
        if self.kind == _RUNS or self.kind in _HARMLESS:
            return
        does = _AS_COMMAND.get(self.kind, _WRITES)
        for path in dict.fromkeys(self._paths()):
            there = os.path.join(workspace, os.path.expanduser(path))
            real = os.path.realpath(there)  # a link may lead elsewhere
            yield does.format(shlex.quote(real))
            if self.kind == "move":
                yield _AS_COMMAND["delete"].format(shlex.quote(real))

    def _first(self, name: str) -> str:
        return next((text for one in self._told if (text := as_text(field(one, name)))), "")

    def _said_command(self) -> str:
        """The command, which some tell as the title alone."""
        named = (field(self._input, name) for name in _COMMANDS)
        own = (field(one, "command") for one in self._told)
        for told in (*named, *own):
            if isinstance(told, list) and told and all(isinstance(word, str) for word in told):
                return " ".join([shlex.join(told), *self._arguments()])
            if isinstance(told, str) and told.strip():
                return " ".join([told, *self._arguments()])
        title = self.title.strip() if self.kind == _RUNS else ""
        return "" if title.endswith(_SHORTENED) else title

    def _arguments(self) -> list[str]:
        """The words after the command, where they are told by themselves, quoted for a shell."""
        told = (as_list(field(place, "args")) for place in (self._input, *self._told))
        return [shlex.quote(str(word)) for word in next(filter(None, told), [])]

    def _paths(self) -> Iterator[str]:
        """The files that it names, in whatever place."""
        for one in self._told:
            yield from _named(as_list(field(one, "locations")))
            for block in as_list(field(one, "content")):
                yield from _named([block, *as_list(field(block, "changes"))])
        given = (as_text(field(self._input, name)) for name in _PATHS)
        yield from (path for path in given if path and "\0" not in path)


def _named(entries: list[object]) -> Iterator[str]:
    for entry in entries:
        for name in ("path", "oldPath", "newPath"):
            path = as_text(field(entry, name))
            if path and "\0" not in path:
                yield path
