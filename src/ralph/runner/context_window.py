"""The context window that claude states when a turn ends, for the hooks of the next turns."""

import json
import re

from ralph.agents.turn_files import Filing, TurnFiles
from ralph.journal.runs import read_tail
from ralph.kernel.turn import Order, Role
from ralph.kernel.value import replace

VARIABLE = "CLAUDE_CONTEXT_WINDOW"
_TAIL = 1 << 18  # bytes of a stream in which its result stands
_RESULT = re.compile(rb'^\{"type": ?"result".*$', re.MULTILINE)


class WindowFiling:
    """Files of turns, whose agent is told the window that the turn before has stated."""

    def __init__(self, filing: Filing) -> None:
        self._filing = filing
        self._last, self._window = "", 0

    def begin(self, order: Order) -> TurnFiles:
        files = self._filing.begin(order)
        self._window = stated(self._last) or self._window
        if order.role is not Role.MESSAGE:
            self._last = files.stream
        if not self._window:
            return files
        return replace(files, env={**files.env, VARIABLE: str(self._window)})

    def started(self, pid: int) -> None:
        self._filing.started(pid)


def stated(stream: str) -> int:
    """The window of the model that has read most in a saved stream; 0 where it says nothing."""
    results = _RESULT.findall(read_tail(stream, _TAIL)) if stream else []
    try:
        models = json.loads(results[-1])["modelUsage"].values()
        most = max(models, key=lambda used: used["inputTokens"] + used["cacheReadInputTokens"])
        window = most["contextWindow"]
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return 0
    return window if type(window) is int and window > 0 else 0
