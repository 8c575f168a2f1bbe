"""Readers of a run, the lines they say, and what these must be told about it."""

import time
from collections.abc import Sequence
from typing import Protocol

from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact
from ralph.kernel.state import RunState
from ralph.kernel.turn import Turn
from ralph.kernel.value import value
from ralph.text.plain import one_line
from ralph.ui.style import Tone

SHORT_ID = 12  # characters
MOST_PATHS = 5  # that are named


class Reader(Protocol):
    """Is told facts and events as they come, and shows them; it never acts on the run or raises."""

    def on_fact(self, fact: Fact) -> None: ...

    def on_events(self, events: Sequence[AgentEvent]) -> None: ...


@value
class Line:
    """One thing to say. `verbose` lines are for those who asked for more."""

    text: str
    tone: Tone = Tone.PLAIN
    verbose: bool = False


@value
class Briefing:
    """Everything that a reader's sentences need and facts do not say."""

    iterations: int | None = None  # the limit
    guardrails: frozenset[str] = frozenset()  # the gates that are commands, by name
    journal: str = ""  # where it is
    permission_hint: str = ""  # which flag to add when the agent was denied a tool
    marker: str = ""  # what completes the run: `<response>DONE</response>`
    attempts: bool = False  # turns are attempts at one task, which are restarted (S)
    tasks: bool = False  # turns are iterations of the tasks of a backlog, each counted anew (B)
    stories: bool = False  # turns implement or review stories (R)
    planning: bool = False  # a goal is split into tasks
    worker: bool = False  # one of several: the end of its run is not the end
    untold: bool = False  # nobody tells the agent of the marker

    @property
    def turn(self) -> str:
        return "attempt" if self.attempts else "iteration"

    def announces(self, gate: str) -> bool:
        """True if this gate is a command people wait for, and want to see start and end."""
        return gate in self.guardrails

    def where(self, state: RunState) -> str:
        """The iteration, and of a backlog, its task: `T-3 1/10`."""
        if not self.tasks:
            return self.which(state.iteration) if state.iteration else ""
        if state.assignment is None or not state.task_iteration:
            return ""
        return f"{one_line(state.assignment.task)} {self.number(state)}"

    def number(self, state: RunState) -> str:
        """The iteration: of a backlog, of the task, with those of runs before."""
        task = state.assignment
        if not self.tasks or task is None:
            return self.which(state.iteration)
        return self.which(task.before + state.task_iteration, task.most)

    def which(self, iteration: int, most: int | None = None) -> str:
        """H §Verbose Output: `1/10`; a task may have a limit of its own."""
        limit = self.iterations if most is None else most
        return str(iteration) if limit is None else f"{iteration}/{limit}"


def clock_time(moment: float) -> str:
    """The local time of day, as HH:MM:SS."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def coming_time(moment: float, now: float) -> str:
    """The local time of a moment to come, with the day of the week if that is not today."""
    there = time.localtime(moment)
    today = time.localtime(now)
    same_day = (there.tm_year, there.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M:%S" if same_day else "%a %H:%M:%S", there)


def service_words(turn: Turn | None) -> str:
    """The provider's fault at a turn that is taken again; "" where it has none."""
    failure = turn.failure if turn else None
    if failure is None or not failure.passes:
        return ""
    return "rate limited" if failure.limited else "provider not available"
