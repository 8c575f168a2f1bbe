"""A run for another program, whatever its loop: what the libraries of the loops share.

It is the command without a terminal: the same lock, journal and records. It prints nothing, takes
no signal unless asked, and adopts none of the host program's processes.
"""

import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TextIO, TypedDict, cast

from ralph.errors import ConfigError
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact
from ralph.kernel.state import RunState, fold
from ralph.kernel.value import value
from ralph.kernel.world import Signals, together
from ralph.processes.signals import SignalCounter
from ralph.runner.arguments import BRANCH_OF_RUN
from ralph.runner.carry_out import execute
from ralph.runner.invocation import Invocation
from ralph.runner.plan import DIRECT
from ralph.text.plain import plain
from ralph.text.redact import redact
from ralph.ui.closing import ending_words
from ralph.ui.lines import Briefing

_NAME = "[ralph] "  # before each line for people
_NO_FLAGS = ("on_fact", "on_note", "signals", "environ")  # of the command


class RunOptions(TypedDict, total=False):
    """What any run may be given. None is what the settings say."""

    on_fact: Callable[[dict[str, Any]], object] | None  # hears the objects of `--json`
    on_note: Callable[[str], object] | None  # hears the lines that people would read on stderr
    signals: bool  # whether Ctrl+C, TERM and HUP end the run; in the main thread only
    environ: Mapping[str, str] | None  # in place of os.environ
    agent: str | None
    model: str | None
    sandbox: str | bool | None  # False: in place; True: the best there is; or a backend's name
    network: str | None
    sandbox_show: Sequence[str] | None
    guard: bool | None
    branch: str | bool | None  # True: named after the run
    pr: str | None  # per-task, per-run or stacked
    base: str | None
    draft: bool | None
    merge: bool | None
    ci: bool | None
    max_iterations: int | None
    max_time: float | str | None  # seconds, or such as "8h"; so are the others
    max_cost: float | None
    max_wait: float | str | None
    timeout: float | str | None
    idle_timeout: float | str | None
    stop_grace: float | str | None
    notify: Mapping[str, object] | None


@value
class TaskResult:
    """What became of a task or a story."""

    id: str
    done: bool
    title: str = ""
    why: str = ""  # it is left to a person
    commit: str = ""


@value
class RunResult:
    """How a run ended."""

    reason: str  # completed, limit, config, blocked, stalled, failing or interrupted
    exit_code: int  # of the command
    why: str
    outcome: str  # one sentence for people
    run_id: str  # for `ralph report`, `ralph resume` and the like
    journal: str
    iterations: int
    seconds: float
    cost_usd: float | None  # None: no turn said what it cost
    commit: str = ""  # the last one, which holds what was proven
    branch: str = ""  # that was made for the work
    pulls: tuple[str, ...] = ()  # the addresses of its pull requests
    evidence: tuple[str, ...] = ()
    tasks: tuple[TaskResult, ...] = ()  # those that it has ended; of stories all that there are

    @property
    def completed(self) -> bool:
        """True if the work is done, and proven."""
        return self.reason == "completed"


class LoopRun:
    """A run of one loop. What a callback raises never ends it: `on_note` hears of it."""

    loop: ClassVar[str]
    options: ClassVar[frozenset[str]]  # the names of all that it may be given

    def __init__(
        self, project: str | os.PathLike[str], options: Mapping[str, Any], **flags: object
    ) -> None:
        """`options` as the caller gave them; `flags` are those that none of them is."""
        _refuse_unknown(type(self), options)
        self.project = os.path.abspath(os.fspath(project))
        given: dict[str, Any] = {**dict.fromkeys(_NO_FLAGS), **options, **flags}
        if isinstance(given.get("sandbox_show"), tuple):
            given["sandbox_show"] = list(given["sandbox_show"])  # as JSON has it
        self._on_fact, self._on_note, signals, environ = map(given.pop, _NO_FLAGS)
        self._takes_signals = bool(signals)
        self._environ = dict(os.environ if environ is None else environ)
        for name, yes, no in (("sandbox", "auto", DIRECT), ("branch", BRANCH_OF_RUN, None)):
            if isinstance(given.get(name), bool):
                given[name] = yes if given[name] else no
        self._flags = _Flags({**given, "in_json": self._on_fact is not None})
        self._cancels: list[float] = []
        self._under_way = threading.Lock()

    def run(self) -> RunResult:
        """Work until nothing is left, or a limit or a person ends it. RalphError, with `message`
        and `remedy`, for what the command would refuse, or if it was cancelled twice within a
        commit; RuntimeError while another thread is in here."""
        if not self._under_way.acquire(blocking=False):
            raise RuntimeError(f"this {type(self).__name__} is running already")
        try:
            if not os.path.isdir(self.project):
                raise ConfigError(f"{self.project} is no directory", "Name the project's.")
            along = _Along()
            with self._asked() as asked, open(os.devnull, "w", encoding="utf-8") as nowhere:
                invocation = self._invocation(asked, along, nowhere)
                execute(self.loop, invocation)
                return self._result(along, invocation)
        finally:
            _close_launcher()
            self._cancels.clear()
            self._under_way.release()

    def cancel(self) -> None:
        """End the run after its current operation; called twice, at once. From any thread."""
        self._cancels.append(time.time())

    def _tasks(self, _: RunState) -> Iterable[TaskResult]:
        """What became of each task; none where the loop has no list."""
        return ()

    def _invocation(
        self, asked: Callable[[], Signals], along: "_Along", nowhere: TextIO
    ) -> Invocation:
        on_fact, on_note = self._on_fact, self._on_note
        note = _Lines(lambda line: on_note(line.removeprefix(_NAME))) if on_note else None
        tell = note.write if note else lambda _: 0
        facts = _Lines(lambda line: on_fact(json.loads(line)), tell) if on_fact else None
        streams = (None, cast("TextIO", facts or nowhere), cast("TextIO | None", note))
        where = (self.project, self._environ, self._flags)
        return Invocation(*where, *streams, asked=asked, follow=along.follow)

    @contextmanager
    def _asked(self) -> Iterator[Callable[[], Signals]]:
        """What is asked of the run: by cancel(), and where that is wanted by signals."""

        def cancelled() -> Signals:
            times = self._cancels
            return Signals(len(times), times[0] if times else None)

        if not self._takes_signals:
            yield cancelled
            return
        if threading.current_thread() is not threading.main_thread():
            raise ConfigError(
                "signals=True: only the main thread can take signals",
                "Leave it out, and call cancel() from wherever you take them.",
            )
        with SignalCounter() as counter:
            yield lambda: together(cancelled(), counter.signals())

    def _result(self, along: "_Along", invocation: Invocation) -> RunResult:
        state, briefing = along.state, along.briefing
        stop, spent = state.stop, state.spent
        assert stop is not None, "a run that goes on is still in there"
        run_id = os.path.basename(os.path.dirname(briefing.journal))
        return RunResult(
            reason=stop.reason.value,
            exit_code=stop.reason.exit_code,
            why=redact(stop.why),
            outcome=redact(ending_words(stop, state, briefing)),
            run_id=run_id,
            journal=briefing.journal,
            iterations=spent.iterations,
            seconds=round(spent.seconds, 3),
            cost_usd=spent.dollars or None,
            commit=state.commit,
            branch=invocation.branch(run_id) or "",
            pulls=tuple(pull.url for pull in state.pulls),
            evidence=tuple(map(redact, stop.evidence or state.evidence)),
            tasks=tuple(self._tasks(state)),
        )


class _Along:
    """A reader that keeps the state of the run."""

    briefing: Briefing
    state: RunState

    def follow(self, briefing: Briefing, state: RunState) -> "_Along":
        """Begin at that state: a run that is let go on after a pause is told anew."""
        self.briefing, self.state = briefing, state
        return self

    def on_fact(self, fact: Fact) -> None:
        self.state = fold(self.state, fact)

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Nothing: facts say all that is asked at the end."""


class _Flags(dict[str, Any]):
    """The flags of a command: those that nobody gave are None."""

    def __missing__(self, name: str) -> None:
        return None


class _Lines(io.TextIOBase):
    """Stands in for a stream: hands each line to a callback, and tells once that it failed."""

    def __init__(
        self, hear: Callable[[str], object], tell: Callable[[str], object] = lambda _: None
    ) -> None:
        super().__init__()
        self._hear, self._tell, self._has_failed = hear, tell, False

    def write(self, text: str) -> int:
        for line in filter(None, text.split("\n")):
            try:
                self._hear(line)
            except Exception as error:  # noqa: BLE001  a program's fault must not end the run
                if not self._has_failed:
                    self._has_failed = True
                    why = plain(f"{type(error).__name__}: {error}")
                    self._tell(f"The callback on_fact failed: {why}. The run goes on.")
        return len(text)


def _close_launcher() -> None:
    """Let the process go that makes sandboxes, unless another run here has one open. The command
    needs no such thing, since it ends with its run."""
    if overlay := sys.modules.get("ralph.sandbox.backends.overlay"):
        overlay.LAUNCHER.close()


def _refuse_unknown(kind: type[LoopRun], options: Mapping[str, Any]) -> None:
    """TypeError, as for any function, but with the name that may be meant."""
    for name in sorted(options.keys() - kind.options):
        import difflib

        near = difflib.get_close_matches(name, kind.options, 1)
        hint = f". Did you mean {near[0]!r}?" if near else ""
        words = f"{kind.__name__}() got an unexpected keyword argument {name!r}"
        raise TypeError(f"{words}{hint}")
