"""Tells people how a run ended, whatever its loop, and gives its tasks the means to do the same."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact, Settled
from ralph.kernel.state import RunState, fold
from ralph.kernel.verdict import Cut, Stop
from ralph.notify.message import About
from ralph.notify.notifier import Channels, Notify
from ralph.processes.child import Starter, start
from ralph.runner.invocation import Invocation
from ralph.runner.keeping import hearing
from ralph.runner.loops import LOOPS
from ralph.settings.schema import NotifySettings
from ralph.ui.closing import ending_words
from ralph.ui.live.activity import Board

if TYPE_CHECKING:
    from ralph.runner.plan import Plan


def channels_of(settings: NotifySettings) -> Channels:
    return Channels(settings.command, settings.urls, settings.bell)


def about(plan: "Plan[Any]", run: str, journal: str | None = None) -> About:
    """The run that people started: a worker's is its lead."""
    return About(plan.home, plan.lead or run, LOOPS[plan.loop_name][1], journal)


def notifier_of(
    plan: "Plan[Any]",
    tell: Callable[[str], None],
    *,
    start: Starter = start,
    hurry: Callable[[], Cut | None] = lambda: None,
) -> Notify:
    """The channels of a run's settings."""
    channels = channels_of(plan.settings.notify)
    return Notify(channels, plan.home, plan.environ, tell, start=start, hurry=hurry)


class EndNotice:
    """A reader of facts that tells people once how the run ended. Its commands are a person's, with
    which no keeper has to do; one more Ctrl+C ends them."""

    def __init__(
        self,
        invocation: Invocation,
        plan: "Plan[Any]",
        about: About,
        state: RunState,
        *,
        tell: Callable[[str], None],
        board: Board | None,
    ) -> None:
        self._invocation, self._plan, self._about = invocation, plan, about
        self._state, self._tell, self._board = state, tell, board
        self._told = False

    def on_fact(self, fact: Fact) -> None:
        self._state = fold(self._state, fact)
        if isinstance(fact, Settled) and isinstance(fact.verdict, Stop):
            self.ended(fact.verdict)

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Nothing: only the end counts."""

    def ended(self, stop: Stop) -> None:
        """Tell how it ended, unless that was told."""
        if self._told:
            return
        self._told = True
        briefing, board = self._plan.briefing, self._board
        state = board.with_workers(self._state) if board else self._state
        text = ending_words(stop, state, briefing)
        message = self._about.ended(stop, state, text, tasks=briefing.tasks)
        with hearing(self._invocation) as heard:
            before = heard().cancels

            def hurry() -> Cut | None:
                return Cut("asked not to wait", grace=0.3) if heard().cancels > before else None

            notifier_of(self._plan, self._tell, hurry=hurry).send(message)
