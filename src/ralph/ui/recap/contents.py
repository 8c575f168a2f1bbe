"""Reads the files beside a journal: prompts, what agents printed, the output of checks."""

import os
from collections.abc import Iterable
from contextlib import suppress

from ralph.agents.streams.dialects import parser_for
from ralph.errors import StateError
from ralph.files.safe_open import regular
from ralph.journal.runs import Growing, prompt_of
from ralph.kernel.facts import Checked, Launching
from ralph.kernel.value import replace
from ralph.ui.recap.chapter import Draft
from ralph.ui.recap.items import Items
from ralph.ui.recap.values import Check, Iteration
from ralph.ui.recap.words import shown

_MOST_PROMPT = 20_000  # characters
_READ = 64 * 1024  # bytes of each end of a log
_MOST_OUTPUT = 8_000  # characters of it
_OUTPUT = "Output (truncated):\n"  # how a guardrail's finding introduces what is beside it
_SLACK = 2.0  # seconds by which the clock of a file system may differ
_PAPERS = "papers"  # in a worker's directory: the logs of its work tree, which is gone


def with_contents(iteration: Iteration, draft: Draft, workspace: str, run_dir: str) -> Iteration:
    """The iteration with what was said and printed in it."""
    items, prompt = Items(), ""
    for launch in draft.launches:
        prompt = prompt_of(launch)
        _read(launch, prompt, items)
    told, left_out = items.items()
    places = (workspace, os.path.join(run_dir, _PAPERS))
    checks = zip(iteration.checks, draft.checks, strict=True)
    return replace(
        iteration,
        prompt=shown(prompt, _MOST_PROMPT),
        items=told,
        items_left_out=left_out,
        tools=items.tools,
        checks=tuple(_with_output(check, fact, places) for check, fact in checks),
    )


def _read(launch: Launching, prompt: str, items: Items) -> None:
    """Parse a stream; one that cannot be read has said nothing more."""
    parser = parser_for(launch.dialect, prompt)
    with suppress(StateError):
        for block in Growing(launch.stream).blocks():
            items.add(parser.feed(block))
    items.add(parser.end())


def _with_output(check: Check, fact: Checked, places: Iterable[str]) -> Check:
    """The check with the ends of its log, or of the beginning that its finding quotes."""
    logs = [found.log for found in fact.findings if found.log]
    paths = (os.path.join(place, log) for place in places for log in logs)
    names = (os.path.join(place, os.path.basename(log)) for place in places for log in logs)
    read = (_ends(path, fact) for path in (*paths, *names))
    said = [found.text.partition(_OUTPUT)[2] for found in fact.findings]
    output = next((ends for ends in read if ends is not None), "\n".join(filter(None, said)))
    return replace(check, output=shown(output, _MOST_OUTPUT))


def _ends(path: str, fact: Checked) -> str | None:
    """The ends of a log; None if it was not written while the check ran: another run has logs of
    the same names. What checks run may put a link there, to what nobody else shall read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(regular(descriptor, path), "rb") as file:
            seen = os.fstat(descriptor)
            since = seen.st_mtime - fact.time + fact.seconds
            if not -_SLACK <= since <= fact.seconds + _SLACK:
                return None
            data = file.read(_READ)
            if seen.st_size > 2 * _READ:
                file.seek(seen.st_size - _READ)
                data += b"\n...\n"
            return (data + file.read(_READ)).decode("utf-8", "replace")
    except OSError:
        return None
