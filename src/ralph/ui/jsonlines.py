"""The display of a run for programs (`--json`): one JSON object a line, and nothing else."""

import json
from collections.abc import Callable
from typing import Any, TextIO

from ralph.core.codec import encode
from ralph.core.events import AgentEvent
from ralph.core.facts import Fact
from ralph.core.limits import Spent
from ralph.core.redact import redacted
from ralph.core.state import NEW, RunState, fold
from ralph.core.verdict import Reason, Stop
from ralph.ui.channel import Channel
from ralph.ui.clean import Redact


def stop_line(
    reason: Reason,
    *,
    time: float,
    run: str | None = None,
    spent: Spent = Spent(),
    evidence: tuple[str, ...] = (),
    log: str | None = None,
) -> str:
    """The last line of every run, also of one that never began (`run` is null).

    `cost_usd` is null when no turn reported a cost; `log` is where the journal is.
    """
    return _line(
        {
            "type": "stop",
            "time": time,
            "run": run,
            "reason": reason.value,
            "exit": reason.exit_code,
            "iterations": spent.iterations,
            "seconds": round(spent.seconds, 3),
            "cost_usd": spent.dollars or None,
            "evidence": list(evidence),
            "log": log,
        }
    )


def error_line(reason: Reason, *, error: str, remedy: str) -> str:
    """What a command that is no run prints when it fails."""
    fields = {"type": "error", "reason": reason.value, "exit": reason.exit_code}
    return json.dumps({**fields, "error": error, "remedy": remedy})


class JsonLines:
    """A reader for programs. Every object has `type`, `time` and `run`; the last is `stop`.

    `on_loss` hears once, in words, when stdout can no longer be written.
    """

    def __init__(
        self,
        out: TextIO | None,
        run: str,
        *,
        clock: Callable[[], float],
        redact: Redact,
        on_loss: Callable[[str], None] = lambda _: None,
        state: RunState = NEW,
    ) -> None:
        self._out = Channel(out, on_loss)
        self._run = run
        self._clock = clock
        self._redact = redact
        self._state = state

    def on_fact(self, fact: Fact) -> None:
        """Write a fact: `{"type": "decided", ...}`."""
        self._state = fold(self._state, fact)
        self._write(encode(fact))

    def on_event(self, event: AgentEvent) -> None:
        """Write an event: `{"type": "event", "event": "tool_start", ...}`."""
        fields = encode(event)
        name = fields.pop("type")
        self._write({"type": "event", "time": self._clock(), "event": name, **fields})

    def stop(self, stop: Stop, log: str | None = None) -> None:
        """Write the last line."""
        line = stop_line(
            stop.reason,
            time=self._clock(),
            run=self._run,
            spent=self._state.spent,
            evidence=tuple(map(self._redact, stop.evidence)),
            log=log,
        )
        self._out.write([line])

    def _write(self, fields: dict[str, Any]) -> None:
        self._out.write([_line({**redacted(fields, self._redact), "run": self._run})])


def _line(fields: dict[str, Any]) -> str:
    first = {key: fields[key] for key in ("type", "time", "run")}
    return json.dumps({**first, **fields}, separators=(",", ":"))
