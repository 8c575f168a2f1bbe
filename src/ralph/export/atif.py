"""A run as a trajectory in ATIF 1.7, Harbor's RFC 0001: one for the run, and in it one for each of
its workers and for the sub-agents of a turn. It is written as it is read (ADR 54)."""

from collections.abc import Callable, Iterable
from tempfile import SpooledTemporaryFile

from ralph import __version__
from ralph.export.lines import Json, iso, line
from ralph.export.parts import Closed, Gap, Opened, Paid, Part, Said, paid_by
from ralph.export.reading import Source
from ralph.export.steps import Draft, TurnSteps, metrics
from ralph.journal.codec import encode
from ralph.journal.ledger import Accounts
from ralph.journal.spending import Sum
from ralph.kernel.facts import Assigned, Fact, Launching, Resumed, Started
from ralph.kernel.state import NEW, fold
from ralph.kernel.turn import Role
from ralph.text.plain import safe
from ralph.ui.lines import Briefing
from ralph.ui.narration import narrate
from ralph.ui.replay import briefing_of

VERSION = "ATIF-v1.7"
_IN_MEMORY = 1 << 20
_NOT_TOLD = ("settings", "snapshot", "stand", "time")  # of facts: too long, or told elsewhere
_NOTES = (
    "Steps of source system are Ralph's own: what it did, checked and decided. A step has a time"
    " where the journal or the agent's stream tells one. final_metrics are the sums of the ledger"
    " with those of the workers; of a loop in a session, which has no ledger, they are what its"
    " transcript tells. Where a stream tells the tokens of a whole turn only, the turn's last step"
    " has them."
)

Write = Callable[[str], object]


def write_atif(source: Source, write: Write) -> None:
    """Write the trajectory of a run."""
    _tell(source, write, source.id)
    write("\n")


def _tell(source: Source, write: Write, session: str) -> Sum:
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8") as aside:
        return _Telling(source, write, session, aside).tell()


class _Trajectory:
    """Writes the beginning of a trajectory, then its steps."""

    def __init__(self, write: Write, head: Json) -> None:
        self._write = write
        self.count = 0
        write(f'{line({"schema_version": VERSION, **head})[:-1]},"steps":[')

    def step(self, step: Json) -> None:
        comma = "," if self.count else ""
        self.count += 1
        self._write(f"{comma}\n{line({'step_id': self.count, **step})}")


class _Telling:
    """Tells one source as a trajectory."""

    def __init__(
        self, source: Source, write: Write, session: str, aside: SpooledTemporaryFile[str]
    ) -> None:
        self._source, self._write, self._session = source, write, session
        self._state, self._briefing = NEW, Briefing(journal=source.journal)
        self._started: Started | None = None
        self._trajectory: _Trajectory | None = None  # begins with the first fact
        self._turns = 0
        self._turn: TurnSteps | None = None
        self._launch: Launching | None = None
        self._met: Fact | None = None  # whose cost the last turn has
        self._gaps: list[Json] = []
        # Trajectories of sub-agents, told while that of their agent is: they come behind it.
        self._aside, self._aside_count = aside, 0
        self._theirs: _Trajectory | None = None

    def tell(self) -> Sum:
        """Write all of it; what it has cost, with its workers."""
        own, accounts = Sum(), Accounts()
        for part in self._source.told():
            if isinstance(part, Part):
                self._part(part)
            else:
                entered = accounts.take(part)
                own = own + entered if entered else own
                self._fact(part)
        if not self._steps.count:  # there must be a step
            self._steps.step({"source": "system", "message": "Nothing is told of this run."})
        self._write("]")
        spent = own + self._embedded()
        tail = {
            "final_metrics": {
                **_sums(spent),
                "total_steps": self._steps.count,
                "extra": self._more(spent, own),
            },
            "notes": _NOTES,
            "extra": self._about(),
        }
        self._write(f",\n{line(tail)[1:]}")
        return spent

    # ------------------------------------------------------------------ facts

    @property
    def _steps(self) -> _Trajectory:
        if self._trajectory is None:
            started = self._started
            version = started.version if started else __version__
            agent = {"name": "ralph", "version": version or __version__}
            if started and started.model:
                agent["model_name"] = started.model
            about = {"agent": started.agent, "profile": started.profile} if started else {}
            head = {
                "session_id": self._session,
                "trajectory_id": self._source.id,
                "agent": {**agent, "extra": about},
            }
            self._trajectory = _Trajectory(self._write, head)
        return self._trajectory

    def _fact(self, fact: Fact) -> None:
        before, self._state = self._state, fold(self._state, fact)
        if isinstance(fact, Started):
            self._started = fact
        if isinstance(fact, Started | Resumed) and self._started is not None:
            self._briefing = briefing_of(self._started, self._source.journal, self._state)
        if (paid := paid_by(fact)) is not None and fact is not self._met:
            self._bare(paid)
        told = narrate(fact, before, self._state, self._briefing)
        words = "\n".join(safe(each.text) for each in told)
        is_worker = any(worker.sent is fact for worker in self._source.workers)
        if words or is_worker:
            self._say(fact, words, is_worker=is_worker)

    def _say(self, fact: Fact, words: str, *, is_worker: bool) -> None:
        """A step of Ralph's own. One that sends a worker refers to what that did."""
        step: Json = {"timestamp": iso(fact.time), "source": "system", "message": words}
        if is_worker and isinstance(fact, Assigned):
            ref = {"trajectory_id": fact.worker, "session_id": self._session}
            step["observation"] = {"results": [{"subagent_trajectory_ref": [ref]}]}
        self._steps.step({**step, "extra": {"fact": _without_texts(encode(fact))}})

    def _bare(self, paid: Paid) -> None:
        """A cost without a turn that is told: of one that was cut off, and accounted for later."""
        if found := metrics(paid):
            self._steps.step({"source": "agent", "message": "", "metrics": found})

    # ------------------------------------------------------------------ turns

    def _part(self, part: Part) -> None:
        match part:
            case Opened():
                self._open(part)
            case Said() if self._turn is not None:
                self._told(self._turn.take(part))
            case Gap(why=why, bytes=size) if self._turn is not None:
                self._gaps.append({"turn": self._turns, "why": why, "bytes": size})
                self._told(self._turn.gap(why, size))
            case Closed() if self._turn is not None:
                self._told(self._turn.end(), is_over=True)
                self._turn = None

    def _open(self, opened: Opened) -> None:
        launch, assignment = opened.launch, self._state.assignment
        self._turns, self._launch, self._met = self._turns + 1, launch, opened.outcome
        self._turn = TurnSteps(opened.prompt, opened.paid)
        extra: Json = {
            "turn": self._turns,
            "iteration": self._state.iteration,
            "role": launch.role.value,
            "agent": launch.agent,
            "model": launch.model,
        }
        if assignment is not None and launch.role is not Role.MESSAGE:
            extra |= {"task": assignment.task, "mode": assignment.mode.value}
        if not opened.prompt:
            extra["gap"] = "the prompt is not there"
        step = {"timestamp": iso(launch.time), "source": "user", "message": opened.prompt}
        self._steps.step({**step, "extra": {name: it for name, it in extra.items() if it != ""}})

    def _told(self, drafts: Iterable[Draft], *, is_over: bool = False) -> None:
        """Write the steps of a turn that are done, and those of its sub-agents."""
        assert self._turn is not None
        for draft in self._turn.of_subagents(all_of_them=is_over):
            self._subagents.step(self._dressed(draft.json()))
        for draft in drafts:
            self._steps.step(self._dressed(draft.json()))
        if is_over and self._theirs is not None:
            self._aside.write("]}")
            self._theirs = None

    def _dressed(self, step: Json) -> Json:
        """The step with what is known of its turn."""
        launch, started = self._launch, self._started
        usual = started.model if started else ""
        if step["source"] == "agent" and launch and launch.model not in ("", usual):
            step["model_name"] = launch.model
        for result in step.get("observation", {}).get("results", ()):
            if result.pop("subagents", False):
                ref = {"trajectory_id": self._subagents_id, "session_id": self._session}
                result["subagent_trajectory_ref"] = [ref]
        return {**step, "extra": {"turn": self._turns, **step.get("extra", {})}}

    @property
    def _subagents_id(self) -> str:
        return f"{self._source.id}/turn-{self._turns}/subagents"

    @property
    def _subagents(self) -> _Trajectory:
        """Where the sub-agents of this turn are told."""
        if self._theirs is None:
            self._aside.write(",\n" if self._aside_count else "")
            self._aside_count += 1
            name = self._launch.agent if self._launch else ""
            head = {
                "session_id": self._session,
                "trajectory_id": self._subagents_id,
                "agent": {"name": f"{name or 'agent'}: sub-agents", "version": "unknown"},
            }
            self._theirs = _Trajectory(self._aside.write, head)
        return self._theirs

    # ------------------------------------------------------------------ the end

    def _embedded(self) -> Sum:
        """Write the trajectories of workers and sub-agents; what the workers have spent."""
        spent = Sum()
        before = ',\n"subagent_trajectories":['
        for worker in self._source.workers:
            self._write(before)
            spent += _tell(worker, self._write, self._session)
            before = ",\n"
        if self._aside_count:
            self._write(before)
            self._aside.seek(0)
            while piece := self._aside.read(_IN_MEMORY):
                self._write(piece)
            before = ""
        self._write("]" if before in ("", ",\n") else "")
        return spent

    def _more(self, spent: Sum, own: Sum) -> Json:
        found: Json = {
            "cache_write_tokens": spent.usage.cache_write,
            "turns": spent.turns,
            "turns_of_unknown_cost": spent.unknown,
        }
        return {**found, "without_workers": _sums(own)} if self._source.workers else found

    def _about(self) -> Json:
        """What is known of the run as a whole, and what of it is missing here."""
        stop, started = self._state.stop, self._started
        return {
            "workspace": started.workspace if started else None,
            "ended": stop is not None,
            "reason": stop.reason.value if stop else None,
            "exit": stop.reason.exit_code if stop else None,
            "gaps": self._gaps,
            "problem": self._source.problem or None,
        }


def _sums(spent: Sum) -> Json:
    return {
        "total_prompt_tokens": spent.usage.all_input,
        "total_completion_tokens": spent.usage.output,
        "total_cached_tokens": spent.usage.cache_read,
        "total_cost_usd": spent.known_usd,
    }


def _without_texts(fact: Json) -> Json:
    """A fact without what stands in other steps already, or is too long for one."""
    kept = {name: it for name, it in fact.items() if name not in _NOT_TOLD}
    if isinstance(turn := kept.get("turn"), dict):
        left_out = ("text", "stderr", "stray")
        kept["turn"] = {name: it for name, it in turn.items() if name not in left_out}
    return kept
