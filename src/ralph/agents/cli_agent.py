"""An agent that is a command: launched, read, watched and summed up, one turn at a time."""

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO

from ralph.agents.clis import Cli, Launch, Request
from ralph.agents.kinds import as_bytes, unusable
from ralph.agents.login import login_words
from ralph.agents.streams.collect import Collector, Tail
from ralph.agents.streams.dialects import Parser, parser_for
from ralph.agents.turn_files import MOST_SAVED, Filing, SavedStream, TurnFiles, private
from ralph.errors import ConfigError, RalphError
from ralph.files.safe_open import create
from ralph.files.state_dir import ensure_ralph_dir
from ralph.files.touched import touched
from ralph.kernel.claims import find_claims
from ralph.kernel.events import AgentEvent, Failure, Progress, ToolStart
from ralph.kernel.facts import Launching, with_model
from ralph.kernel.limits import Prices, priced
from ralph.kernel.ports import Watch
from ralph.kernel.turn import Ending, Order, Pulse, Role, Turn, ended_by
from ralph.kernel.value import replace, value
from ralph.processes.child import Command, Exit, Starter, start
from ralph.processes.which import which
from ralph.text.redact import redact

_MANY_FLAGS = 50_000  # characters
_TOO_LONG = "the agent printed more than"
_PASSING = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT)


def take_file(path: str) -> str:
    """The content of a file, which is then gone; "" if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        os.unlink(path)
    except OSError:
        return ""
    return text


@value
class Setup:
    """The parts of a call to an agent that are the same in every turn."""

    cli: Cli
    command: tuple[str, ...]
    flags: tuple[str, ...]
    model: str | None
    stream: bool
    prompt_via: str | None
    help_text: Callable[[], str | None]
    prices: Prices | None
    workspace: str
    env: Mapping[str, str]
    filing: Filing
    start: Starter = start
    take_file: Callable[[str], str] = take_file  # reads what the agent has written for us
    name: str = ""  # for people
    asked: str = ""  # the model, also where a flag names it

    @property
    def who(self) -> str:
        return with_model(self.name, self.asked)


@value
class CliAgent:
    """Takes turns with a command-line agent."""

    setup: Setup
    on_events: Callable[[Sequence[AgentEvent]], None]
    on_launch: Callable[[Launch, Order], None] = lambda _launch, _order: None
    record: Callable[[Launching], None] = lambda _: None

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        """Run the command once; everything that can happen to it is a Turn."""
        return replace(self._taken(order, watch), place=order.place, agent=self.setup.who)

    def _taken(self, order: Order, watch: Watch) -> Turn:
        with ExitStack() as open_files:
            try:
                files = self.setup.filing.begin(order)
                if self.setup.prompt_via == "file":
                    open_files.enter_context(self._prompt_on_disk(order))
                launch = self.launch(order, files)
                output = open_files.enter_context(_opened(files.stream))
            except (RalphError, OSError, ValueError) as error:
                return self._unstartable(error)
            self.on_launch(launch, order)
            # Before it starts: what goes wrong with the journal must not leave a process behind.
            setup, dialect = self.setup, launch.dialect
            who = order.place, setup.name, setup.asked
            self.record(Launching(time.time(), order.role, dialect, files.stream, *who))
            answer = LastWords() if order.role is Role.MESSAGE else None
            errors = SavedStream(lambda: _opened(files.errors))
            open_files.callback(errors.close)
            reader = TurnReader(
                parser_for(launch.dialect, order.prompt),
                SavedStream(lambda: output),
                errors,
                answer.hear if answer else self.on_events,
                self.setup.prices,
            )
            since = os.fstat(output.fileno()).st_ctime_ns
            turn = self._run(launch, files, reader, watch)
            turn = answer.of(turn) if answer and launch.answer_file is None else turn
            return self._helped(turn, since)

    def launch(self, order: Order, files: TurnFiles | None = None) -> Launch:
        """The call for this turn; nothing is started."""
        setup = self.setup
        return setup.cli.launch(
            Request(
                command=setup.command,
                prompt=order.prompt,
                flags=setup.flags,
                model=setup.model,
                # Nobody sees a message turn, and only the stream tells what it costs (ADR 8).
                stream=setup.stream or order.role is Role.MESSAGE,
                dollars=order.dollars,
                prompt_via=setup.prompt_via,
                prompt_file=self._prompt_file(order),
                answer_file=files.answer if files else "",
                help_text=setup.help_text,
                tools=order.role is not Role.MESSAGE,
                variable=setup.env.get,
            )
        )

    def _run(self, launch: Launch, files: TurnFiles, reader: "TurnReader", watch: Watch) -> Turn:
        setup = self.setup
        more = {**files.env, **launch.env}
        env = {**setup.env, **more} if more else setup.env
        command = Command(launch.argv, setup.workspace, env, launch.stdin)
        try:
            child = setup.start(command, reader.output, reader.error)
        except (OSError, ValueError) as error:
            return self._unstartable(error)
        setup.filing.started(child.handle.pid)
        turn = reader.finish(child.wait(lambda: watch(reader.pulse())))
        if launch.answer_file is not None:
            # Its standard output may show more than the agent's own words.
            answer = setup.take_file(launch.answer_file)
            turn = replace(turn, text=answer, claims=find_claims(answer))
        return replace(turn, stream=files.stream)

    def _helped(self, turn: Turn, since: int) -> Turn:
        """The turn with what a person can do about it, where its agent may not work at all. Where a
        permission was denied, files tell whether something was written all the same."""
        cli, login = self.setup.cli, login_words(turn)
        if login:
            turn = replace(turn, failure=Failure(login, 401))
        if turn.failure is not None and turn.failure.refused:
            return replace(turn, remedy=cli.login_hint)
        if turn.barred:
            turn = replace(turn, wrote=touched(self.setup.workspace, since))
        return replace(turn, remedy=cli.permission_hint) if turn.barred else turn

    def _unstartable(self, error: Exception) -> Turn:
        """A shortage of the machine may pass: such a turn has failed, and another may not."""
        if isinstance(error, OSError):
            if error.errno in _PASSING:
                short = Failure(f"the machine cannot start the agent now: {error.strerror}")
                return Turn(exit_code=None, failure=short)
            error = _explained(error, self.setup)
        why = f"agent command {self.setup.command[0]!r}: {error}"
        if isinstance(error, RalphError):
            why = error.words
        return Turn(Ending.UNSTARTABLE, exit_code=None, why=why)

    @contextmanager
    def _prompt_on_disk(self, order: Order) -> Iterator[None]:
        """The agent reads it as it is; what stays is redacted."""
        ensure_ralph_dir(self.setup.workspace)
        path, shown = self._prompt_file(order), redact(order.prompt)
        with open(path, "wb") as file:
            file.write(as_bytes(order.prompt))
        try:
            yield
        finally:
            if shown != order.prompt:
                # The agent may have put anything there.
                with suppress(OSError), os.fdopen(create(path, 0o644), "wb") as file:
                    file.write(as_bytes(shown))

    def _prompt_file(self, order: Order) -> str:
        """In the workspace, where an agent in a sandbox can read it (H: `prompt_###.txt`)."""
        name = f"prompt_{order.iteration:03d}.txt"
        return os.path.join(self.setup.workspace, ".ralph", name)


class TurnReader:
    """One turn's output on its way: saved, framed, parsed, shown and collected."""

    def __init__(
        self,
        parser: Parser,
        saved: SavedStream,
        saved_errors: SavedStream,
        show: Callable[[Sequence[AgentEvent]], None],
        prices: Prices | None,
    ) -> None:
        self._parser = parser
        self._saved = saved
        self._saved_errors = saved_errors
        self._show = show
        self._prices = prices
        self._collector = Collector()
        self._stderr = Tail(4096)
        self._began = self._heard = time.monotonic()
        self._result_at: float | None = None

    def output(self, chunk: bytes) -> None:
        self._heard = time.monotonic()
        self._saved.write(chunk)
        if events := self._parser.feed(chunk):
            self._take(events)

    def error(self, chunk: bytes) -> None:
        self._heard = time.monotonic()
        self._stderr.add(chunk.decode("utf-8", "replace"))
        self._saved_errors.write(chunk)

    def pulse(self) -> Pulse:
        now = time.monotonic()
        since = None if self._result_at is None else now - self._result_at
        return Pulse(now - self._began, now - self._heard, since, self._cost() or 0.0)

    def finish(self, ended: Exit) -> Turn:
        """The turn, now that the process is gone."""
        self._take(self._parser.end())
        self._saved.end()
        self._saved_errors.end()
        notes = []
        if ended.stubborn:
            numbers = ", ".join(map(str, ended.stubborn))
            notes.append(f"these processes could not be ended: {numbers}")
        if self._saved.problem:
            notes.append(self._saved.problem)
        if self._saved.is_short or self._saved_errors.is_short:
            most = MOST_SAVED // 1024 // 1024
            notes.append(f"{_TOO_LONG} {most} MB: only the beginning and the end are kept")
        for note in notes:
            self._show([Progress(note)])
        turn = self._collector.turn(has_result=self._parser.has_result)
        return replace(
            ended_by(turn, ended.code, ended.cut),
            cost_usd=self._cost(),
            unknown=turn.unknown + self._parser.lines.dropped,
            stderr=self._stderr.text,
            seconds=round(ended.seconds, 3),
        )

    def _cost(self) -> float | None:
        return priced(self._collector.used, self._prices)

    def _take(self, events: list[AgentEvent]) -> None:
        self._collector.add(events)
        self._show(events)
        if not self._collector.finished:
            self._result_at = None
        elif self._result_at is None:
            self._result_at = time.monotonic()


class LastWords:
    """An agent's last words, as its text mode prints them; not what it said between calls."""

    def __init__(self) -> None:
        self._words = Collector()

    def hear(self, events: Sequence[AgentEvent]) -> None:
        """Take events in place of the display: a message turn is not for it."""
        for event in events:
            if isinstance(event, ToolStart) and not event.subagent:
                self._words = Collector()
            self._words.add((event,))

    def of(self, turn: Turn) -> Turn:
        """The turn with its answer: that of its result, else what came after its last call."""
        said = self._words.turn(has_result=False)
        result = self._words.result
        if result is None or not result.text:
            return replace(turn, text=said.text, claims=said.claims)
        return replace(turn, text=result.text, claims=find_claims(result.text))


def _opened(path: str) -> FileIO:
    return open(path, "w+b", 0, opener=private)


def _explained(error: OSError, setup: Setup) -> RalphError:
    """The system's few words, and what they mean here."""
    command = setup.command[0]
    if error.errno == errno.E2BIG and sum(map(len, setup.flags)) > _MANY_FLAGS:
        return ConfigError("the agent's arguments are too long", "Shorten agent.flags.")
    if error.errno == errno.E2BIG:
        remedy = 'Set agent.promptVia to "stdin", or leave it out.'
        return ConfigError("the prompt is too long for an argument", remedy)
    if error.filename == command:
        return unusable(which(command, setup.env.get("PATH")) or command)
    what = error.filename or command
    return ConfigError(f"cannot use {what}: {error.strerror}", "Fix that and run again.")
