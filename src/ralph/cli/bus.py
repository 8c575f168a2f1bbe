"""`ralph bus`: post to the message bus of a supervised task, read it, follow it (S)."""

import json
import os
import re
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, TextIO, TypeVar

import click

from ralph.cli.params import (
    completed_by,
    current_directory,
    in_directory,
    not_negative,
    whole_number,
)
from ralph.errors import ConfigError, StateError
from ralph.kernel.verdict import Reason
from ralph.loops.supervise.bus import Bus, Follower, new_message
from ralph.loops.supervise.bus_format import HEADER, LARGEST, Message
from ralph.loops.supervise.folder import TaskFolder, folder_at
from ralph.text.clean import clean, one_line
from ralph.text.redact import redact
from ralph.ui.style import Style, Tone
from ralph.ui.terminal import Audience, is_terminal, style_here

_LOOK_EVERY = 0.25
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_WHICH = """\b
The task is --task-dir, else $TASK_FOLDER, which `ralph supervise` sets for
its agent."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
Show = Callable[[Message], str]


@click.group(
    invoke_without_command=True,
    epilog=f"""\b
Examples:
  ralph bus post --type FACT "the parser is done"
  ralph bus read --task-dir work/shop/checkout
  ralph bus follow --json | jq -r .body
{_WHICH}
""",
)
@click.pass_context
@in_directory
def bus(context: click.Context) -> None:
    """Post, read and follow the messages of a supervised task.

    They stand in TASK-MESSAGE-BUS.md in the task's directory, those for all tasks of a project in
    PROJECT-MESSAGE-BUS.md above it. Many processes may post at the same time.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(Reason.CONFIG.exit_code)


def _of_a_task(function: _Function) -> _Function:
    """What the three commands have in common."""
    for option in (
        in_directory,
        click.option("--json", "in_json", is_flag=True, help="Print JSON objects, one a line."),
        click.option("--project", is_flag=True, help="The bus of the task's project instead."),
        click.option(
            "--task-dir",
            metavar="DIR",
            shell_complete=completed_by("directories"),
            help="The task's directory. Default: $TASK_FOLDER.",
        ),
    ):
        function = option(function)
    return function


def _chosen(function: _Function) -> _Function:
    """Which messages to show."""
    for option in (
        click.option(
            "-n",
            "--last",
            metavar="N",
            type=not_negative(whole_number),
            help="Only the last N of those that are there.",
        ),
        click.option("--type", "kinds", metavar="T", multiple=True, help="Only this type; again."),
        click.option("--since", metavar="ID", help="Only those after this message."),
    ):
        function = option(function)
    return _of_a_task(function)


def _kind(value: str) -> str:
    if not _TYPE.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is no type: a letter, then letters, digits, _ . or -, 64 in all at most."
        )
    return value


# ------------------------------------------------------------------ the commands


@bus.command(
    epilog=f"""\b
Examples:
  ralph bus post --type FACT "the parser is done"
  make test 2>&1 | ralph bus post --type PROGRESS
  ralph bus post --type wait_without_restart "which database?"
  ralph bus post --project --type DECISION --json "we use SQLite"
{_WHICH}
\b
Exit codes: 0, or 2 when the message cannot be posted.
"""
)
@click.argument("body", required=False)
@click.option(
    "--type",
    "kind",
    metavar="T",
    required=True,
    type=_kind,
    help="What it is: FACT, QUESTION, anything.",
)
@_of_a_task
def post(
    body: str | None, *, kind: str, task_dir: str | None, project: bool, in_json: bool
) -> None:
    """Post a message, and print its id.

    Without BODY the message is read from standard input, up to the last byte.
    """
    folder = _folder(task_dir)
    text = _input(sys.stdin) if body is None else _utf8(os.fsencode(body), "the message")
    message = new_message(
        kind,
        text,
        project=folder.project,
        task=folder.task,
        run=os.environ.get("RALPH_RUN", ""),
        now=time.time(),
    )
    path = _path(folder, project=project)
    try:
        Bus(path).post(message)
    except OSError as error:
        raise _trouble("write", path, error) from error
    click.echo(_as_json(message) if in_json else message.msg_id)


@bus.command(
    epilog=f"""\b
Examples:
  ralph bus read                        all messages, oldest first
  ralph bus read -n 5 --type QUESTION   the last five questions
  ralph bus read --json --since "$LAST" those after a message, by its id
{_WHICH}
\b
Exit codes: 0, also without messages; 2 when there is no such task or message.
"""
)
@_chosen
def read(last: int | None, *, in_json: bool, **which: Any) -> None:  # noqa: ANN401  see _reader
    """Show the messages of a task, oldest first.

    --json prints `msg_id, ts, type, project_id, task_id, run_id, body` of each, the body byte for
    byte.
    """
    reader = _reader(**which)
    _tell(reader.first(last), _show(in_json=in_json))


@bus.command(
    short_help="Show them, then each new one as it comes.",
    epilog=f"""\b
Examples:
  ralph bus follow --task-dir work/shop/checkout
  ralph bus follow -n 0 --type QUESTION   only new ones
  ralph bus follow --json | jq -r .body
{_WHICH}
\b
Exit codes: 2 when there is no such task or message, 130 after Ctrl+C.
""",
)
@_chosen
def follow(last: int | None, *, in_json: bool, **which: Any) -> int:  # noqa: ANN401
    """Show the messages of a task, then each new one as it comes, until Ctrl+C."""
    reader = _reader(**which)
    show = _show(in_json=in_json)
    try:
        _tell(reader.first(last), show)
        while sys.stdout is not None and not Audience(sys.stdout).leaves_within(_LOOK_EVERY):
            _tell(reader.new(), show)
    except KeyboardInterrupt:
        return Reason.INTERRUPTED.exit_code
    return 0


# ------------------------------------------------------------------ which bus


def _folder(task_dir: str | None) -> TaskFolder:
    given = os.environ.get("TASK_FOLDER") if task_dir is None else task_dir
    remedy = "Name its directory: --task-dir DIR, or export TASK_FOLDER=DIR"
    if not given:
        raise ConfigError("which task is meant?", remedy)
    path = given if os.path.isabs(given) else os.path.join(current_directory(), given)
    try:
        os.stat(os.path.join(path, os.curdir))  # the dot makes sure that it is a directory
    except OSError as error:
        where = "$TASK_FOLDER" if task_dir is None else "--task-dir"
        message = f"{where}: the task directory {given} cannot be used: {error.strerror}"
        raise ConfigError(message, remedy) from error
    return folder_at(path)


def _path(folder: TaskFolder, *, project: bool) -> str:
    return folder.project_bus if project else folder.bus


def _trouble(verb: str, path: str, error: OSError) -> StateError:
    remedy = f"Look at it: ls -ld {shlex.quote(path)}"
    return StateError(f"cannot {verb} the message bus {path}: {error.strerror}", remedy)


# ------------------------------------------------------------------ the body


def _input(stream: TextIO | None) -> str:
    remedy = "Give the message as an argument: ralph bus post --type T 'the message'"
    if stream is None:
        raise ConfigError("there is no message: standard input is closed", remedy)
    if is_terminal(stream):
        click.echo("[ralph] Reading the message from standard input; Ctrl+D ends it.", err=True)
    try:
        data = stream.buffer.read()
    except OSError as error:
        raise ConfigError(f"cannot read standard input: {error.strerror}", remedy) from error
    return _utf8(data, "the message on standard input")


def _utf8(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        remedy = "Convert it first, for example with: iconv -f latin1 -t utf-8, or base64"
        raise ConfigError(f"{what} is not UTF-8 text (byte {error.start})", remedy) from error


# ------------------------------------------------------------------ reading


def _reader(
    *, task_dir: str | None, project: bool, since: str | None, kinds: tuple[str, ...]
) -> "_Reader":
    return _Reader(_path(_folder(task_dir), project=project), since, kinds)


class _Reader:
    """The messages of a bus that are asked for."""

    def __init__(self, path: str, since: str | None, kinds: Iterable[str]) -> None:
        self._path = path
        self._follower = Follower(path, most=LARGEST)
        self._since = since  # the message behind which to begin, until it is found
        self._kinds = frozenset(kinds)

    def first(self, last: int | None) -> Iterator[Message]:
        """What is there, or the last of it."""
        yield from self.new() if last is None else deque(self.new(), last)
        if self._since is not None:
            raise ConfigError(
                f"there is no message {self._since!r} in {self._path}",
                "The ids of all there are: ralph bus read --json",
            )

    def new(self) -> Iterator[Message]:
        """What came since."""
        try:
            for message in self._follower.each():
                if self._since is not None:
                    self._since = None if message.msg_id == self._since else self._since
                elif not self._kinds or message.type in self._kinds:
                    yield message
        except OSError as error:
            raise _trouble("read", self._path, error) from error


# ------------------------------------------------------------------ showing


def _tell(messages: Iterable[Message], show: Show) -> None:
    for message in messages:
        click.echo(show(message), color=True)  # as its style is, in a pipe too


def _show(*, in_json: bool) -> Show:
    style = style_here()
    return _as_json if in_json else lambda message: _for_people(message, style)


def _as_json(message: Message) -> str:
    return json.dumps({name: getattr(message, name) for name in (*HEADER, "body")})


def _for_people(message: Message, style: Style) -> str:
    """A heading, and the body in from the margin."""
    words = filter(None, (_local_time(message.ts), message.type, message.run_id))
    heading = one_line(redact(clean(" ".join(words))))
    body = redact(clean(message.body)).rstrip("\n")
    lines = [f"  {line}".rstrip() for line in body.split("\n")] if body else []
    return "\n".join((style.paint(heading, Tone.HEAD), *lines))


def _local_time(moment: str) -> str:
    """The time on this clock; others may write what they like."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return moment
