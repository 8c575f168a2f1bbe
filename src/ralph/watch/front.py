"""The front end that a terminal gets: the whole screen, or a plain redraw; and the exit code."""

import os
import sys
import time
from collections.abc import Mapping

from ralph.errors import ConfigError
from ralph.files.state_dir import state_root
from ralph.journal.runs import Run
from ralph.kernel.verdict import Reason
from ralph.ui.status.known import KnownRuns
from ralph.ui.status.listing import listing
from ralph.ui.style import Style, is_terminal, style_here
from ralph.watch.draw import short_lines
from ralph.watch.model import Left

_HINT = "[ralph] For the whole screen: pip install 'ralph-engine[watch]'"
_LISTED = 20  # runs


def refuse_no_terminal(remedy: str) -> None:
    """Nothing can be redrawn in a pipe, nor by a terminal that only knows lines."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(map(is_terminal, streams)) or os.environ.get("TERM", "dumb") == "dumb":
        raise ConfigError("this is no terminal that can be redrawn", remedy)


def watch(
    run: Run | None, looks: Mapping[str, bool | None], *, plainly: bool = False, begun: bool = False
) -> int:
    """Watch a run, or choose one, until somebody leaves; the exit code. For whoever has begun the
    run it is that of the run, if that is over."""
    style, root = style_here(looks), state_root(os.environ)
    left = _in_lines(run, root, style) if plainly else _on_screen(run, root, style)
    if left.view is not None and not left.told:
        print("\n".join(short_lines(left.view, style)), flush=True)
    if left.interrupted:
        return Reason.INTERRUPTED.exit_code
    stop = left.view.report.state.stop if left.view else None
    return stop.reason.exit_code if begun and stop is not None else 0


def _on_screen(run: Run | None, root: str, style: Style) -> Left:
    try:
        from ralph.watch.app.main import watch as in_textual
    except ImportError:
        print(_HINT, file=sys.stderr)
        return _in_lines(run, root, style)
    return in_textual(root, run, style)


def _in_lines(run: Run | None, root: str, style: Style) -> Left:
    if run is not None:
        from ralph.watch.plain import watch as plainly

        return plainly(run, style)
    entries, _ = KnownRuns(root, lambda entry: entry).newest(_LISTED)
    print("\n".join([*listing(entries, time.time(), style), "Watch one: ralph watch RUN"]))
    return Left()
