"""`ralph logs`: a run told from its journal and its streams, and followed while it goes on."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from ralph.cli.params import (
    completed_by,
    current_directory,
    in_directory,
    not_negative,
    whole_number,
)
from ralph.cli.runs.log_sources import Piece, RawJournal, RawStreams, Source, Told
from ralph.errors import StateError
from ralph.files.state_dir import state_root
from ralph.journal.runs import Run, find_run, look_again
from ralph.kernel.verdict import Reason
from ralph.ui.replay import Days, JsonTeller, PeopleTeller, Teller
from ralph.ui.style import Style, Wishes
from ralph.ui.terminal import Audience, encoding_of, style_here
from ralph.ui.workers import tag_of

_LOOK_EVERY = 0.25
_LONGEST_HELD = 16 * 1024 * 1024  # bytes of one line, with `-n`
_EPILOG = """\b
Examples:
  ralph logs                      what the run in this directory did
  ralph logs -f --events          follow it, with everything the agent says
  ralph logs 3f2a -n 20           the last lines of another run
  ralph logs 3f2a-003             one worker of a run on several tasks
  ralph logs --raw --events       the bytes that the agent printed
  ralph logs --json | jq -c 'select(.type == "decided")'
\b
RUN is a run's id or any part of it that only one run has.
Exit codes: 0, 2 when there is no such run or its journal was changed,
130 after Ctrl+C.
"""


@click.command(epilog=_EPILOG)
@click.argument("run", required=False, shell_complete=completed_by("run_ids"))
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--events", is_flag=True, help="Also what the agent said and did.")
@click.option("--raw", is_flag=True, help="The journal's own lines; with --events the streams'.")
@click.option("--json", "in_json", is_flag=True, help="What `ralph run --json` prints.")
@click.option(
    "-n", "--lines", metavar="N", type=not_negative(whole_number), help="Only the last N lines."
)
@click.option("-V", "--verbose", is_flag=True, help="Say more about what happened.")
@click.option("--emoji/--no-emoji", default=None, help="Emoji as markers.")
@click.option("--color/--no-color", default=None, help="Colours.")
@in_directory
def logs(
    run: str | None,
    *,
    follow: bool,
    events: bool,
    raw: bool,
    in_json: bool,
    lines: int | None,
    verbose: bool,
    emoji: bool | None,
    color: bool | None,
) -> int:
    """Tell what a run did, line by line, each with its time.

    Without RUN: the run that is going on in this directory, else its last one.
    """
    if raw and in_json:
        raise click.UsageError("--raw and --json exclude each other.")
    found = find_run(state_root(os.environ), current_directory(), run, "logs", workers=True)
    _refuse_without_journal(found)
    source: Source
    if raw:
        source = RawStreams(found) if events else RawJournal(found)
    elif in_json:
        source = Told(found, _for_programs, events=True)
    else:
        style = style_here(Wishes(emoji, color))
        source = Told(found, _for_people(style, verbose=verbose), events=events)
    try:
        with _standard_output() as out:
            sink = Sink(out, encoding_of(sys.stdout) or "utf-8", lines)
            _copy(source, sink, _polls(found, out, follow=follow))
    except KeyboardInterrupt:
        return Reason.INTERRUPTED.exit_code
    _say_if_crashed(found, source)
    return 0


def _for_programs(run: Run, task: str) -> Teller:
    return JsonTeller(run.id, run.journal, task=task)


def _for_people(style: Style, *, verbose: bool) -> Callable[[Run, str], Teller]:
    days = Days()

    def teller(run: Run, task: str) -> Teller:
        tag = tag_of(task) if task else ""
        return PeopleTeller(style, run.journal, verbose=verbose, tag=tag, days=days)

    return teller


def _refuse_without_journal(run: Run) -> None:
    try:
        os.lstat(run.journal)
    except FileNotFoundError as error:
        if not run.live:
            message = f"run {run.id} left no journal: it ended before it began"
            raise StateError(message, "Others: ralph status --all") from error
    except OSError:
        pass  # whoever reads it will say why that cannot be


def _say_if_crashed(run: Run, source: Source) -> None:
    if isinstance(source, Told) and not source.stopped and not look_again(run).live:
        click.echo("[ralph] Here it breaks off: the run's process is gone.", err=True)


def _polls(run: Run, out: BinaryIO, *, follow: bool) -> Iterator[None]:
    """When to read: now; and while following, until once after the run's process is gone."""
    yield
    audience = Audience(out)
    while follow and run.live:
        if audience.leaves_within(_LOOK_EVERY):
            return
        run = look_again(run)
        yield


def _copy(source: Source, sink: "Sink", polls: Iterator[None]) -> None:
    try:
        for _ in polls:
            for piece in source.new():
                sink.write(piece)
            sink.flush()
        for piece in source.end():
            sink.write(piece)
    finally:
        sink.flush()  # also what came before a line that was changed


# ------------------------------------------------------------------ the sink


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """Standard output; nowhere, if that was closed from the beginning."""
    if sys.stdout is not None:
        yield sys.stdout.buffer
        return
    with open(os.devnull, "wb") as nowhere:
        yield nowhere


class Sink:
    """Where the lines go.

    With `last` only so many lines of what is there already are shown, of a very long one its end.
    It does not hide that its reader has gone: the command line's one catch knows what to do.
    """

    def __init__(self, out: BinaryIO, encoding: str, last: int | None) -> None:
        self._out = out
        self._encoding = encoding
        self._held: deque[bytes] | None = None if last is None else deque(maxlen=last)
        self._rest = bytearray()  # of a line that is not whole yet

    def write(self, piece: Piece) -> None:
        """Show this, or hold it back while it may not be among the last lines."""
        data = piece if isinstance(piece, bytes) else self._encoded(piece)
        if self._held is None:
            self._out.write(data)
            return
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._keep(line)
            self._held.append(bytes(self._rest) + b"\n")
            self._rest.clear()
        self._keep(rest)

    def flush(self) -> None:
        """Show everything up to now; what comes later is new and not held back."""
        if self._held is not None:
            if self._rest:
                self._held.append(bytes(self._rest))
            self._out.writelines(self._held)
            self._held = None
            self._rest.clear()
        self._out.flush()

    def _keep(self, piece: bytes) -> None:
        """A stream may have no newline at all: memory stays flat, and no byte is copied twice."""
        self._rest += piece
        del self._rest[:-_LONGEST_HELD]

    def _encoded(self, lines: list[str]) -> bytes:
        return "".join(f"{line}\n" for line in lines).encode(self._encoding, "replace")
