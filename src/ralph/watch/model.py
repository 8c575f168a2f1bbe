"""The model of a run that is watched: its facts, its agents' events and what is seen of it from
outside go in, a `View` comes out. Nothing here reads a file or a clock."""

from collections.abc import Sequence

from ralph.journal.forecast import Forecast
from ralph.journal.life import note_question
from ralph.journal.runs import Run
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import (
    Began,
    Checked,
    Checking,
    Fact,
    Launching,
    Resumed,
    Started,
)
from ralph.kernel.limits import Spent
from ralph.kernel.state import RunState
from ralph.kernel.value import replace, value
from ralph.kernel.world import Signals
from ralph.text.plain import clean, one_line
from ralph.ui.lines import Briefing
from ralph.ui.live.activity import Activity, Doing
from ralph.ui.replay import Days, LineTeller, LogLine
from ralph.ui.status.listing import command_of, state_word
from ralph.ui.status.report import Report, waiting_notes
from ralph.ui.style import Style


@value
class Seen:
    """A run as it is seen from outside at one moment."""

    now: float
    pid: int | None = None  # None: its process is gone
    asked: Signals = Signals()
    ahead: frozenset[str] | None = None  # tasks of its list that are not done, where known
    problem: str = ""  # what cannot be read


@value
class GateView:
    """The last that is known of a gate; it runs since `since`, or it took `seconds`."""

    name: str
    since: float | None = None
    seconds: float = 0.0
    ok: bool = True


@value
class OpenQuestion:
    """A task's question, which a person can answer."""

    task: str
    text: str


@value
class View:
    """Everything that is shown of a run at one moment, but for its log. `report` is what `ralph
    status` knows of it, `moments` what it or each of its workers does right now."""

    report: Report
    spent: Spent = Spent()  # with what the turns under way have told
    moments: tuple[Doing, ...] = ()
    gates: tuple[GateView, ...] = ()
    asks: tuple[OpenQuestion, ...] = ()
    briefing: Briefing = Briefing()
    caught_up: bool = True  # all that was there has been read
    forecast: Forecast | None = None  # what is likely left

    @property
    def state(self) -> str:
        """The state as `ralph list` has it."""
        stop = self.report.state.stop
        if stop is not None:
            return stop.reason.value
        return state_word(self.report, tuple(each.task for each in self.asks))

    @property
    def command(self) -> str:
        started = self.report.started
        return command_of(started.profile) if started else ""

    @property
    def notes(self) -> int:
        """The notes that no prompt holds yet."""
        return len(waiting_notes(self.report))


@value
class Left:
    """The end of a watch: the last view of the run, whether it was left by Ctrl+C, and whether the
    run's end was told."""

    view: View | None = None
    interrupted: bool = False
    told: bool = False


@value
class TrackLine:
    """A line of the log, and the task of the worker that it is about."""

    line: LogLine
    task: str = ""


class Track:
    """Follows a run, or one of its workers, and tells its log; it remembers what goes on."""

    def __init__(self, model: "Model", run: Run, task: str) -> None:
        self._model, self._run, self._task = model, run, task
        self._lines = LineTeller(model.style, run.journal, worker=bool(task), days=model.days)
        self.started: Started | None = None
        self._doing: Launching | Checking | None = None
        self._heard_at: float | None = None
        self.gates: dict[str, GateView] = {}
        self.activity: Activity | None = None

    @property
    def state(self) -> RunState:
        return self._lines.state

    @property
    def briefing(self) -> Briefing:
        return self._lines.briefing

    def fact(self, fact: Fact, used: Sequence[Spent] = ()) -> list[TrackLine]:
        before = self.state
        lines = self._lines.fact(fact, used)
        self._model.now = fact.time
        self.started = fact if isinstance(fact, Started) else self.started
        if isinstance(fact, Started | Resumed):  # its limits may be others now
            self.activity = Activity(self.briefing, lambda: self._model.now, before)
        if self.activity is not None:
            self.activity.on_fact(fact)
        self._doing = fact if isinstance(fact, Launching | Checking) else None
        if isinstance(fact, Launching):
            self._heard_at = None
        self._see_gate(fact, before.task)
        if not self._task:
            note_question(self._model.asking, fact, self.state.task)
        return [TrackLine(line, self._task) for line in lines]

    def event(self, event: AgentEvent, now: float) -> list[TrackLine]:
        self._model.now = self._heard_at = now
        if self.activity is not None:
            self.activity.on_events([event])
        return [TrackLine(line, self._task) for line in self._lines.event(event, now)]

    def _see_gate(self, fact: Fact, task: str) -> None:
        """A new turn does not forget what gates have found: the agent works on that."""
        match fact:
            case Began() if fact.assignment.task != task:
                self.gates.clear()
            case Checking(gate=gate) if self.briefing.announces(gate):
                self.gates[gate] = GateView(gate, since=fact.time)
            case Checked(gate=gate):
                self.gates.pop(gate, None)
                if fact.findings or self.briefing.announces(gate):
                    ok = not fact.findings
                    self.gates[gate] = GateView(gate, seconds=fact.seconds, ok=ok)

    def report(self, seen: Seen, workers: "tuple[Report, ...]" = ()) -> Report:
        """The report of it, as `ralph status` has it."""
        return Report(
            run=self._run.id,
            directory=self._run.directory,
            journal=self._run.journal,
            now=seen.now,
            state=self.state,
            started=self.started,
            doing=self._doing,
            heard_at=self._heard_at,
            pid=seen.pid,
            asked=seen.asked,
            problem=seen.problem,
            workers=workers,
            ahead=seen.ahead,
        )


class Model:
    """A run with its workers, followed by what they journal and what their agents say."""

    def __init__(self, run: Run, style: Style) -> None:
        self.style, self.days = style, Days()
        self.now = 0.0  # the clock of all, which goes by what was told last
        self._lead = Track(self, run, "")
        self._workers: dict[str, Track] = {}  # those who are not back, and of the end
        self.asking: dict[str, str] = {}

    @property
    def started(self) -> Started | None:
        return self._lead.started

    def track(self, run: Run, task: str) -> Track:
        """Follow the run itself, or with a task one of its workers."""
        if not task:
            return self._lead
        self._workers[run.id] = Track(self, run, task)
        return self._workers[run.id]

    def answered(self, task: str) -> None:
        """Forget a question that a person has answered."""
        self.asking.pop(task, None)

    def view(self, seen: Seen, *, caught_up: bool = True) -> View:
        """The run at that moment."""
        self.now = max(self.now, seen.now)
        lead = self._lead
        crew = [(sent.worker, sent.assignment.task) for sent in lead.state.crew]
        self._workers = {name: self._workers[name] for name, _ in crew if name in self._workers}
        workers = [(self._workers[name], task) for name, task in crew if name in self._workers]
        reports = tuple(worker.report(replace(seen, ahead=None)) for worker, _ in workers)
        report = lead.report(seen, reports)
        moments: list[Doing] = []
        if report.live and report.is_crew:
            for worker, task in workers:
                if worker.activity and (found := worker.activity.moment()):
                    moments.append(replace(found, which=found.which or one_line(clean(task))))
        elif report.live and lead.activity and (found := lead.activity.moment(asked=seen.asked)):
            moments.append(found)
        gates = [
            replace(gate, name=f"{one_line(clean(task))} {gate.name}" if task else gate.name)
            for track, task in [(lead, ""), *workers]
            for gate in track.gates.values()
        ]
        asks = tuple(OpenQuestion(task, why) for task, why in self.asking.items())
        tracks = [lead, *(worker for worker, _ in workers)]
        under_way = sum(
            t.activity.spent.dollars - t.state.spent.dollars for t in tracks if t.activity
        )
        spent = replace(report.spent, dollars=report.spent.dollars + under_way)
        return View(report, spent, tuple(moments), tuple(gates), asks, lead.briefing, caught_up)
