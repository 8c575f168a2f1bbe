"""`ralph bus`: post to the message bus of a supervised task, read it, follow it (S)."""

import json
import os
import re
import shlex
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from typing import Any, TextIO

import click

from ralph.cli.base import Group
from ralph.cli.params import at_least, current_directory, in_directory, json_lines, option, together
from ralph.errors import ConfigError, StateError, failing
from ralph.kernel.verdict import Reason
from ralph.loops.supervise.bus import Bus, Follower, new_message
from ralph.loops.supervise.bus_format import HEADER, LARGEST, Message
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.runner.arguments import shown
from ralph.text.plain import safe
from ralph.ui.style import Style, Tone, is_terminal, leaves_within, style_here

_LOOK_EVERY = 0.25
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_of_a_task = together(
    option("--task-dir DIR", "The task's directory.  [default: $TASK_FOLDER]"),
    option("--project", "Use the bus of the task's project instead."),
    json_lines,
    in_directory,
)
_chosen = together(
    option("--since ID", "Only messages after this one.  [default: all]"),
    option("--type T", "Only this type; repeat for more.", "kinds", multiple=True),
    option("-n, --last N", "Only the last N messages.  [default: all]", type=at_least(0)),
    _of_a_task,
)


@click.group(cls=Group)
@in_directory
def bus() -> None:
    """Post, read and follow the messages of a supervised task.

    They are in TASK-MESSAGE-BUS.md in the task's directory, those for all tasks of a project in
    PROJECT-MESSAGE-BUS.md above it. Many processes may post at the same time. The task is
    --task-dir, else $TASK_FOLDER, which `ralph supervise` sets for its agent.

    Examples:
      ralph bus post --type FACT "the parser is done"
      ralph bus read --task-dir work/shop/checkout
      ralph bus follow --json | jq -r .body
    """


def _kind(value: str) -> str:
    if not _TYPE.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is no type: a letter, then letters, digits, _ . or -, 64 in all at most."
        )
    return value


@bus.command()
@click.argument("body", required=False)
@option("--type T", "The type: FACT, QUESTION, anything.", "kind", required=True, type=_kind)
@_of_a_task
def post(
    body: str | None, *, kind: str, task_dir: str | None, project: bool, in_json: bool
) -> None:
    """Post a message, and print its id.

    Without BODY the message is read from standard input, up to the last byte.

    Examples:
      ralph bus post --type FACT "the parser is done"
      make test 2>&1 | ralph bus post --type PROGRESS
      ralph bus post --type wait_without_restart "which database?"
      ralph bus post --project --type DECISION --json "we use SQLite"

    Exit codes: 0, or 2 when the message cannot be posted.
    """
    folder = _folder(task_dir)
    text = _input(sys.stdin) if body is None else _utf8(os.fsencode(body), "the message")
    ids = {"project": folder.project, "task": folder.task, "run": os.environ.get("RALPH_RUN", "")}
    message = new_message(kind, text, **ids, now=time.time())
    path = folder.project_bus if project else folder.bus
    with _using("write", path):
        Bus(path).post(message)
    click.echo(_as_json(message) if in_json else message.msg_id)


@bus.command()
@_chosen
def read(last: int | None, *, in_json: bool, **which: Any) -> None:  # noqa: ANN401  see _Reader
    """Show the messages of a task, oldest first.

    --json prints `msg_id, ts, type, project_id, task_id, run_id, body` of each, the body byte for
    byte.

    Examples:
      ralph bus read                        all messages, oldest first
      ralph bus read -n 5 --type QUESTION   the last five questions
      ralph bus read --json --since "$LAST" those after a message, by its id

    Exit codes: 0, also without messages; 2 when there is no such task or message.
    """
    _tell(_Reader(**which).first(last), style_here(), in_json=in_json)


@bus.command(short_help="Show them, then each new one as it comes.")
@_chosen
def follow(last: int | None, *, in_json: bool, **which: Any) -> int:  # noqa: ANN401
    """Show the messages of a task, then each new one as it comes, until Ctrl+C.

    Examples:
      ralph bus follow --task-dir work/shop/checkout
      ralph bus follow -n 0 --type QUESTION   only new ones
      ralph bus follow --json | jq -r .body

    Exit codes: 2 when there is no such task or message, 130 after Ctrl+C.
    """
    reader, style = _Reader(**which), style_here()
    try:
        _tell(reader.first(last), style, in_json=in_json)
        while sys.stdout is not None and not leaves_within(sys.stdout, _LOOK_EVERY):
            _tell(reader.new(), style, in_json=in_json)
    except KeyboardInterrupt:
        return Reason.INTERRUPTED.exit_code
    return 0


def _folder(task_dir: str | None) -> TaskFolder:
    given = os.environ.get("TASK_FOLDER") if task_dir is None else task_dir
    remedy = "Name its directory: --task-dir DIR, or export TASK_FOLDER=DIR"
    if not given:
        raise ConfigError("which task is meant?", remedy)
    path = given if os.path.isabs(given) else os.path.join(current_directory(), given)
    where = "$TASK_FOLDER" if task_dir is None else "--task-dir"
    with failing(f"{where}: the task directory {given} cannot be used", remedy):
        os.stat(os.path.join(path, os.curdir))  # the dot makes sure that it is a directory
    return folder_at(path)


def _using(verb: str, path: str) -> AbstractContextManager[None]:
    remedy = f"Look at it: ls -ld {shlex.quote(path)}"
    return failing(f"cannot {verb} the message bus {path}", remedy, StateError)


def _input(stream: TextIO | None) -> str:
    remedy = "Give the message as an argument: ralph bus post --type T 'the message'"
    if stream is None:
        raise ConfigError("there is no message: standard input is closed", remedy)
    if is_terminal(stream):
        click.echo("[ralph] Reading the message from standard input; Ctrl+D ends it.", err=True)
    with failing("cannot read standard input", remedy):
        data = stream.buffer.read()
    return _utf8(data, "the message on standard input")


def _utf8(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        remedy = "Convert it first, for example with: iconv -f latin1 -t utf-8, or base64"
        raise ConfigError(f"{what} is not UTF-8 text (byte {error.start})", remedy) from error


class _Reader:
    """The messages of a bus that are asked for."""

    def __init__(
        self, *, task_dir: str | None, project: bool, since: str | None, kinds: Iterable[str]
    ) -> None:
        folder = _folder(task_dir)
        self._path = folder.project_bus if project else folder.bus
        self._follower = Follower(self._path, most=LARGEST)
        self._since = since  # the message behind which to begin, until it is found
        self._kinds = frozenset(kinds)

    def first(self, last: int | None) -> Iterator[Message]:
        """The messages that are there, or the last of them."""
        yield from self.new() if last is None else deque(self.new(), last)
        if self._since is not None:
            raise ConfigError(
                f"there is no message {self._since!r} in {self._path}",
                "The ids of all there are: ralph bus read --json",
            )

    def new(self) -> Iterator[Message]:
        """The messages since."""
        with _using("read", self._path):
            for message in self._follower.each():
                if self._since is not None:
                    self._since = None if message.msg_id == self._since else self._since
                elif not self._kinds or message.type in self._kinds:
                    yield message


def _as_json(message: Message) -> str:
    return json.dumps({name: getattr(message, name) for name in (*HEADER, "body")})


def _tell(messages: Iterable[Message], style: Style, *, in_json: bool) -> None:
    for message in messages:
        text = _as_json(message) if in_json else _for_people(message, style)
        click.echo(text, color=True)  # as its style is, in a pipe too


def _for_people(message: Message, style: Style) -> str:
    """A heading, and the body in from the margin."""
    moment = message.ts  # others may write what they like
    with suppress(ValueError, OverflowError, OSError):
        moment = datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    heading = shown(" ".join(filter(None, (moment, message.type, message.run_id))))
    body = safe(message.body).rstrip("\n")
    lines = [f"  {line}".rstrip() for line in body.split("\n")] if body else []
    return "\n".join((style.paint(heading, Tone.HEAD), *lines))
