"""A stored run judged again: its journals, the settings that were in force, and its streams."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ralph.agents.streams.reread import READ, read_otherwise, reread
from ralph.agents.turn_files import is_shortened
from ralph.errors import ConfigError, StateError
from ralph.journal.merged import JournaledFact, MergedJournal
from ralph.journal.runs import CopiedRun, Growing, Run, folding, prompt_of
from ralph.kernel.facts import Ended, Fact, Launching, Resumed, Started
from ralph.kernel.judging import Judge, Rejudged
from ralph.kernel.ports import TodaysRules
from ralph.kernel.state import RunState
from ralph.kernel.turn import Role, Turn
from ralph.kernel.value import replace, value
from ralph.runner.kept import PLAN, kept_plan
from ralph.runner.loops import LOOPS
from ralph.runner.plan import InForce, Loop, loop_named
from ralph.settings.load import Loaded, combine
from ralph.settings.paths import nested
from ralph.settings.source import Layer
from ralph.text.redact import MARK

_RAISED = "ralph resume"
_PRIVATE = ("notify",)  # settings that the journal does not tell, and no rule reads


@value
class Reading:
    """A stream that was read again, and what of its turn is read otherwise: name, then and now."""

    iteration: int
    task: str
    stream: str  # its file's name
    differences: tuple[tuple[str, Any, Any], ...] = ()
    unread: str = ""  # why it was not read again
    events: int = 0


@value
class Retold:
    """A fact of a run, or of one of its workers, with what became of judging it again."""

    run: str
    worker: bool = False
    fact: Fact | None = None  # None: of a session, which has no journal
    rejudged: Rejudged | None = None
    reading: Reading | None = None


def judged_again(run: Run) -> Iterator[Retold]:
    """Every fact of the run and its workers, in order. StateError where a journal was changed, or
    the run's plan or settings cannot be read."""
    merged, journals = MergedJournal(run), dict[str, _Journal]()
    lead = run.lead or run
    loop, kept = _loop_of(lead)
    for told in merged.new():
        if told.run.id not in journals:
            name = run.lead.id if run.lead else (run.id if told.sent else "")
            journals[told.run.id] = _Journal(told.run, loop, kept, lead=name)
        with folding(told.run.journal):
            yield journals[told.run.id].take(told)


def _loop_of(run: Run) -> tuple[Loop, Mapping[str, Any]]:
    kept = kept_plan(run.directory)
    if kept is None or kept["loop"] not in LOOPS:
        raise _unknown(run, f"{os.path.join(run.directory, PLAN)} cannot be read")
    return loop_named(kept["loop"]), kept["work"]


def _unknown(run: Run, why: str) -> StateError:
    message = f"nobody knows how run {run.id} was started: {why}"
    return StateError(message, "Others: ralph status --all")


class _Journal:
    """One journal on its way: its judge, and the launch of the turn under way."""

    def __init__(self, run: Run, loop: Loop, kept: Mapping[str, Any], lead: str) -> None:
        self._run, self._loop, self._kept, self._lead = run, loop, kept, lead
        self._judge = Judge(self._rules)
        self._layers: list[Layer] = []
        self._launching: Launching | None = None
        self._iteration, self._task = 0, ""

    def take(self, told: JournaledFact) -> Retold:
        fact, reading, turn = told.fact, None, None
        if isinstance(fact, Launching) and fact.role is not Role.MESSAGE:
            self._launching = fact
        elif isinstance(fact, Ended) and fact.turn.stream:
            reading, turn = self._read(fact.turn)
        rejudged = self._judge.take(fact, turn)
        self._iteration, self._task = self._judge.at
        return Retold(told.run.id, told.sent is not None, fact, rejudged, reading)

    def _read(self, turn: Turn) -> tuple[Reading, Turn | None]:
        """The stream of a turn, and the turn if that is read otherwise."""
        launching, self._launching = self._launching, None
        found = Reading(self._iteration, self._task, os.path.basename(turn.stream))
        if launching is None or launching.stream != turn.stream:
            return replace(found, unread="its journal does not tell how it was begun"), None
        launching = replace(launching, stream=stream_of(self._run, launching))
        try:
            if not os.path.isfile(launching.stream) or os.path.islink(launching.stream):
                return replace(found, unread="it is not there any more"), None
            if is_shortened(launching.stream):
                return replace(found, unread="its middle is left out"), None
            blocks, prompt = Growing(launching.stream).blocks(), prompt_of(launching)
            now, events = reread(turn, launching.dialect, prompt, blocks)
        except (OSError, StateError) as error:
            return replace(found, unread=str(error)), None
        if launching.dialect == "text" and launching.agent == "codex":  # it answered in a file
            now = replace(now, text=turn.text, claims=turn.claims)
        # A secret may be hidden in a stream as another stretch of text than in its turn.
        told = [each for each in read_otherwise(turn, now) if MARK not in repr(each)]
        same = {name: getattr(turn, name) for name in READ if name not in {n for n, *_ in told}}
        found = replace(found, differences=tuple(told), events=events)
        return found, replace(now, **same) if told else None

    def _rules(self, fact: Started | Resumed, state: RunState) -> TodaysRules:
        """Today's rules, by the settings that were in force from that fact on."""
        loaded = self._settings(fact)
        if self._loop.rejudges is None:
            return TodaysRules(self._loop.policy(loaded))
        leads = fact.ladders is not None and not fact.ladders.closing
        terms = InForce(loaded, self._kept, state.limits, leads, self._lead)
        try:
            return self._loop.rejudges(terms)
        except (KeyError, TypeError) as error:  # another Ralph has kept other things
            raise _unknown(self._run, f"its {PLAN} tells too little ({error})") from error

    def _settings(self, fact: Started | Resumed) -> Loaded:
        if isinstance(fact, Started):
            data = json.loads(fact.settings)
            data = {name: each for name, each in data.items() if name not in _PRIVATE}
            self._layers = [Layer(f"run {self._run.id}", data)]
        else:
            changed = [(name, json.loads(after)) for name, _, after in fact.changed]
            self._layers += [
                Layer(_RAISED, nested(name.split("."), after), is_flag=True)
                for name, after in (*changed, *fact.raised)
                if "[" not in name and name.split(".")[0] not in _PRIVATE
            ]
        try:
            return combine(self._layers)
        except ConfigError as error:
            message = f"the settings of run {self._run.id} are none of today's: {error.message}"
            raise StateError(message) from error


def stream_of(run: Run, launching: Launching) -> str:
    """The stream's file: beside the journal, also where that was moved to, else as it was told. Of
    a copy, which may come from anybody, nothing is read that lies elsewhere."""
    home, parts = os.path.realpath(run.directory), launching.stream.split("/")
    places = [os.path.join(home, *parts[-length:]) for length in (1, 2)]
    for place in places:
        if os.path.isfile(place) and os.path.realpath(place) == place:
            return place
    return places[0] if isinstance(run.lead or run, CopiedRun) else launching.stream
