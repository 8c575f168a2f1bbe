"""The display of a run for programs (`--json`): one JSON object a line, and nothing else."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ralph.journal.codec import encode
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact
from ralph.kernel.limits import Spent
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.verdict import Reason, Stop
from ralph.text.redact import redact, redacted_json
from ralph.ui.live.activity import with_workers


def stop_line(
    reason: Reason,
    *,
    time: float,
    run: str | None = None,
    spent: Spent = Spent(),
    evidence: tuple[str, ...] = (),
    log: str | None = None,
    branch: Mapping[str, str] | None = None,
) -> str:
    """The last line of every run, also of one that never began (`run` is null).

    `cost_usd` is null when no turn reported a cost; `log` is where the journal is; `branch` is
    there where one was made for the work.
    """
    return json.dumps(
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
            **({"branch": branch} if branch else {}),
        },
        separators=(",", ":"),
    )


def error_line(reason: Reason, *, error: str, remedy: str) -> str:
    """The last line of a command that is no run when it fails."""
    fields = {"type": "error", "reason": reason.value, "exit": reason.exit_code}
    return json.dumps({**fields, "error": error, "remedy": remedy})


class JsonLines:
    """A reader for programs. Every object has `type`, `time` and `run`, a worker's also the `task`
    that it is at; the last is `stop`. `write` takes whole lines."""

    def __init__(
        self,
        write: Callable[[list[str]], None],
        run: str,
        *,
        clock: Callable[[], float],
        state: RunState = NEW,
        task: str = "",
    ) -> None:
        self._write = write
        self._run = run
        self._clock = clock
        self._state = state
        self._of_whom = {"run": run, "task": task} if task else {"run": run}

    def on_fact(self, fact: Fact) -> None:
        """Write a fact: `{"type": "decided", ...}`."""
        self._state = fold(self._state, fact)
        self._write([self._line(encode(fact))])

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Write events: `{"type": "event", "event": "tool_start", ...}`; all in one write."""
        now = self._clock()
        lines = []
        for event in events:
            fields = encode(event)
            fields.pop("arguments", None)  # of a tool call: its summary is there
            name = fields.pop("type")
            lines.append(self._line({"type": "event", "time": now, "event": name, **fields}))
        self._write(lines)

    def stop(
        self,
        stop: Stop,
        log: str | None = None,
        used: Sequence[Spent] = (),
        branch: Mapping[str, str] | None = None,
    ) -> None:
        """Write the last line; `used` is what workers have who were left in the middle."""
        line = stop_line(
            stop.reason,
            time=self._clock(),
            run=self._run,
            spent=with_workers(self._state.spent, used),
            evidence=tuple(map(redact, stop.evidence)),
            log=log,
            branch=branch,
        )
        self._write([line])

    def _line(self, fields: dict[str, Any]) -> str:
        first = {"type": fields["type"], "time": fields["time"], **self._of_whom}
        return redacted_json({**first, **fields, **self._of_whom})
