"""`ralph logs`: a run told from its journal and its streams, and followed while it goes on."""

import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from typing import BinaryIO

import click

from ralph.cli.base import command
from ralph.cli.params import at_least, current_directory, in_directory, looks, option, the_run
from ralph.errors import StateError
from ralph.files.state_dir import state_root
from ralph.journal.merged import MergedJournal
from ralph.journal.runs import Growing, Run, find_run, look_again
from ralph.kernel.facts import Began, Ended, Launching, Resumed, Settled
from ralph.kernel.turn import Role
from ralph.kernel.verdict import Reason
from ralph.ui.live.activity import tag_of
from ralph.ui.replay import Days, JsonTeller, PeopleTeller, Teller
from ralph.ui.retelling import Retelling
from ralph.ui.style import encoding_of, leaves_within, style_here

_LOOK_EVERY = 0.25
_LONGEST_HELD = 16 * 1024 * 1024  # bytes of one line, with `-n`
Piece = bytes | list[str]


@command()
@the_run
@option("-f, --follow", "Keep showing lines until the run ends.")
@option("--events", "Include what the agent said and did.")
@option("--raw", "The journal's own lines; with --events the streams'.")
@option("--json", "What `ralph run --json` prints.", "in_json")
@option("-n, --lines N", "Only the last N lines.  [default: all]", type=at_least(0))
@option("-V, --verbose", "Say more about what happened.")
@looks
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
    """Show what a run did, line by line, each with its time.

    Without RUN: the run that is going on in this directory, else its last one.

    Examples:
      ralph logs                      what the run in this directory did
      ralph logs -f --events          follow it, with everything the agent says
      ralph logs 3f2a -n 20           the last lines of another run
      ralph logs 3f2a-003             one worker of a run on several tasks
      ralph logs --raw --events       the bytes that the agent printed
      ralph logs --json | jq -c 'select(.type == "decided")'

    RUN is a run's id or any part of it that only one run has.
    Exit codes: 0, 2 no such run or its journal was changed, 130 after Ctrl+C.
    """
    if raw and in_json:
        raise click.UsageError("--raw and --json exclude each other.")
    found = _found(run)
    style, days = style_here({"emoji": emoji, "color": color}), Days()

    def teller(run: Run, task: str) -> Teller[str]:
        if in_json:
            return JsonTeller(run.id, run.journal, task=task)
        tag = task and tag_of(task)
        return PeopleTeller(style, run.journal, verbose=verbose, tag=tag, days=days)

    told = Retelling[str](found, teller, events=events or in_json)
    source: Source = (RawStreams(found) if events else RawJournal(found)) if raw else told
    try:
        # Nowhere, if standard output was closed from the beginning.
        with nullcontext(sys.stdout.buffer) if sys.stdout else open(os.devnull, "wb") as out:
            sink = Sink(out, encoding_of(sys.stdout) or "utf-8", lines)
            _copy(source, sink, found, out, follow=follow)
    except KeyboardInterrupt:
        return Reason.INTERRUPTED.exit_code
    if not raw and not told.stopped and not look_again(found).live:
        click.echo("[ralph] Here it breaks off: the run's process is gone.", err=True)
    return 0


def _found(name: str | None) -> Run:
    """The run that is meant, unless it left nothing to tell."""
    run = find_run(state_root(os.environ), current_directory(), name, "logs", workers=True)
    try:
        os.lstat(run.journal)
    except FileNotFoundError as error:
        if not run.live:
            message = f"run {run.id} left no journal: it ended before it began"
            raise StateError(message, "Others: ralph status --all") from error
    except OSError:
        pass  # whoever reads it will say why that cannot be
    return run


def _copy(source: "Source", sink: "Sink", run: Run, out: BinaryIO, *, follow: bool) -> None:
    """Copy what is there; while following, until once after the run's process is gone."""
    try:
        while True:
            for piece in source.new():
                sink.write(piece)
            sink.flush()
            if not (follow and run.live) or leaves_within(out, _LOOK_EVERY):
                break
            run = look_again(run)
        for piece in source.end():
            sink.write(piece)
    finally:
        sink.flush()  # also what came before a line that was changed


class RawJournal:
    """The journal's lines as they are, even changed or torn ones. Workers have journals too."""

    def __init__(self, run: Run) -> None:
        self._lines = Growing(run.journal)

    def new(self) -> Iterator[Piece]:
        yield from self._lines.lines()

    def end(self) -> Iterator[Piece]:
        yield self._lines.rest


class RawStreams:
    """The output of agents, turn after turn, byte by byte; of several agents, whole turns."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._merged = MergedJournal(run)
        self._streams: dict[str, Growing] = {}  # of turns, by run

    def new(self) -> Iterator[Piece]:
        for told in self._merged.new():
            if not isinstance(told.fact, Ended | Launching | Began | Resumed | Settled):
                continue
            if (stream := self._streams.pop(told.run.id, None)) is not None:
                yield from stream.blocks()
            if isinstance(told.fact, Launching) and told.fact.role is not Role.MESSAGE:
                self._streams[told.run.id] = Growing(told.fact.stream)
        if (own := self._streams.get(self._run.id)) is not None:
            yield from own.blocks()

    def end(self) -> Iterator[Piece]:
        for stream in self._streams.values():
            yield from stream.blocks()


Source = Retelling[str] | RawJournal | RawStreams


class Sink:
    """Standard output, by lines. With `last` only so many lines of what is there already are shown,
    of a very long one its end. It does not hide that its reader has gone."""

    def __init__(self, out: BinaryIO, encoding: str, last: int | None) -> None:
        self._out = out
        self._encoding = encoding
        self._held: deque[bytes] | None = None if last is None else deque(maxlen=last)
        self._rest = bytearray()  # of a line that is not whole yet

    def write(self, piece: Piece) -> None:
        """Show this, or hold it back while it may not be among the last lines."""
        if isinstance(piece, list):
            piece = "".join(f"{line}\n" for line in piece).encode(self._encoding, "replace")
        if self._held is None:
            self._out.write(piece)
            return
        *whole, rest = piece.split(b"\n")
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
