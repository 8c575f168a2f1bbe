"""`ralph export`: a run for other tools, as a trajectory, a trace, or everything as JSON."""

import errno
import os
import stat
import sys
import time
from collections.abc import Callable

import click

from ralph.cli.base import command
from ralph.cli.params import current_directory, in_directory, option, the_run
from ralph.cli.runs.sessions import session_meant
from ralph.errors import StateError, failing
from ralph.export.reading import Journal, Source
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import replacing, state_root
from ralph.journal.runs import Run, find_run
from ralph.loops.session.state import aged
from ralph.runner.showing.recaps import beside_of
from ralph.text.words import counted

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_INCOMPLETE = 1  # the exit code where not all of it could be told, or was taken

Write = Callable[[str], object]


@command()
@the_run
@option(
    "--format [atif|otlp|json]",
    "A trajectory for Harbor, a trace for OpenTelemetry, or all of it."
    "  [default: otlp for FILE.otlp.json, else atif]",
    "kind",
)
@option("-o, --output FILE", "Write it there; - is stdout.  [default: see above]")
@option("--content", "With otlp: also what was asked, said and answered.")
@in_directory
def export(run: str | None, *, kind: str | None, output: str | None, content: bool) -> int:
    """Give a run to other tools.

    atif is a trajectory (ATIF 1.7) as Harbor reads it, otlp a trace of OpenTelemetry with GenAI
    spans, json all facts and events. Sums of tokens and dollars are those of the run's ledger; a
    loop in a session has none, and its tokens are those that its transcript tells.

    Without -o it goes to stdout; a trace goes to OTEL_EXPORTER_OTLP_ENDPOINT, if that is set. A
    trace has names, times, numbers and verdicts; --content, or
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, adds prompts, answers and what tools
    were given and gave. Secrets are redacted.

    Without RUN: the run that is going on in this directory, else its last one; where none was
    started, the last loop in a session.

    Examples:
      ralph export -o run.json                    the last run here, as a trajectory
      ralph export 3f2a --format otlp -o t.json   a trace in a file
      OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 ralph export --format otlp
      ralph export --format json | jq '.entries[].fact.type'

    RUN is a run's id or any part of it that only one run has, a worker's too,
    or the id of a session with a loop, or a part of that, or its .loop file.
    Exit codes: 0; 1 the journal was changed, or a collector rejected spans;
    2 no such run, or it cannot be read, written or sent.
    """
    chosen = kind or ("otlp" if (output or "").endswith((".otlp", ".otlp.json")) else "atif")
    if content and chosen != "otlp":
        raise click.UsageError(f"--content is for --format otlp: {chosen} has it all.")
    source = _meant(run)
    words = content or os.environ.get(_CONTENT, "").strip().lower() == "true"
    if chosen == "otlp" and output is None and (rejected := _sent(source, words)) is not None:
        return _INCOMPLETE if rejected or _is_broken(source) else 0
    _written(lambda write: _write(chosen, source, write, content=words), output)
    return _INCOMPLETE if _is_broken(source) else 0


def _meant(part: str | None) -> Source:
    """The run that is meant, or the loop in a session."""
    if (loop := session_meant(part)) is not None:
        from ralph.loops.exported import SessionSource

        return SessionSource(aged(loop, time.time()))
    found = find_run(state_root(os.environ), current_directory(), part, "export", workers=True)
    _refuse_unreadable(found)
    beside_of(found, os.environ)  # the secrets in its settings are known from here on
    return Journal(found)


def _write(kind: str, source: Source, write: Write, *, content: bool) -> None:
    if kind == "otlp":
        from ralph.export.otlp import spans_of
        from ralph.export.sending import write_trace

        write_trace(spans_of(source, content=content), os.environ, write)
    elif kind == "json":
        from ralph.export.whole import write_whole

        write_whole(source, write)
    else:
        from ralph.export.atif import write_atif

        write_atif(source, write)


def _refuse_unreadable(run: Run) -> None:
    """Refuse a run of which nothing can be told, before a file is replaced by that."""
    remedy = "Others: ralph status --all"
    try:
        open_regular(run.journal).close()
    except FileNotFoundError as error:
        message = f"run {run.id} has no journal: it has not begun, or ended before"
        raise StateError(message, remedy) from error
    except OSError as error:
        raise StateError(f"cannot read {run.journal}: {error.strerror}", remedy) from error


def _written(tell: Callable[[Write], None], output: str | None) -> None:
    """Write to stdout, or to a file, which is replaced when all of it is there."""
    if output in (None, "-"):
        # Nowhere, if standard output was closed from the beginning.
        tell(sys.stdout.write if sys.stdout is not None else len)
        return
    with failing(f"cannot write {output}", "Name another file: -o FILE"):
        if output.endswith("/"):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        mode = os.stat(output).st_mode if os.path.exists(output) else stat.S_IFREG
        regular = stat.S_ISREG(mode)
        with replacing(output, 0o600) if regular else open(output, "w", encoding="utf-8") as file:
            tell(file.write)
    size = f"  ({os.path.getsize(output) / 1000:,.0f} KB)" if regular else ""
    click.echo(f"{output}{size}")


def _sent(source: Source, content: bool) -> int | None:
    """Send the trace to the collector that the environment names; how many spans that rejected.
    None if it names none."""
    from ralph.export.otlp import spans_of
    from ralph.export.sending import collector_of, send

    collector = collector_of(os.environ)
    if collector is None:
        return None
    sent = send(spans_of(source, content=content), collector, os.environ)
    how_many = f"{counted(sent.spans, 'span')} in {counted(sent.requests, 'request')}"
    click.echo(f"{how_many} to {collector.shown}")
    if sent.rejected or sent.said:
        said = f": {sent.said}" if sent.said else ""
        click.echo(
            f"[ralph] The collector rejected {counted(sent.rejected, 'span')}{said}", err=True
        )
    return sent.rejected


def _is_broken(source: Source) -> bool:
    """True if a journal could not be read to its end; that is said."""
    problems = [each.problem for each in (source, *source.workers) if each.problem]
    for problem in problems:
        click.echo(f"[ralph] {problem}", err=True)
    return bool(problems)
