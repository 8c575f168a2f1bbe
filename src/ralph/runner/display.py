"""The readers of a run."""

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from ralph.agents.clis import Launch
from ralph.agents.providers import OWN
from ralph.files.disk_use import measure, size_note
from ralph.files.state_dir import is_inside
from ralph.journal.journal import JOURNAL, FileJournal
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact
from ralph.kernel.state import NEW, RunState
from ralph.kernel.turn import Order
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Stop
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Plan
from ralph.settings.schema import NotifySettings
from ralph.text.plain import columns
from ralph.ui.console import Console
from ralph.ui.jsonlines import JsonLines
from ralph.ui.lines import Reader
from ralph.ui.live.activity import Board, tag_of
from ralph.ui.live.region import live_width
from ralph.ui.safe_stream import Channel
from ralph.ui.style import Style, size_of, style_of

if TYPE_CHECKING:
    from ralph.runner.notices import EndNotice

_NARROWEST = 20  # columns beside a tag


@value
class Recorder:
    """The journal first, then everybody who reads along."""

    journal: FileJournal
    readers: list[Reader]

    def record(self, fact: Fact) -> None:
        self.journal.record(fact)
        for reader in self.readers:
            reader.on_fact(fact)

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        for reader in self.readers:
            reader.on_events(events)


@value
class Display:
    """The console, and with `--json` a reader for programs."""

    console: Console
    json: JsonLines | None
    readers: tuple[Reader, ...]
    board: Board | None = None
    notices: "tuple[EndNotice, ...]" = ()  # readers that come last
    lead: Plan[Any] | None = None  # the run's own, unless it is a worker

    @classmethod
    def of(
        cls,
        invocation: Invocation,
        plan: Plan[Any],
        run_dir: str,
        state: RunState = NEW,
        *,
        lock: AbstractContextManager[object] = nullcontext(),
        board: Board | None = None,
    ) -> "Display":
        """The readers that the flags ask for; `state` is where a run goes on. With a `lock`, others
        may write between its lines, and a `board` shows what they do."""
        settings, flags = plan.settings, invocation.flags
        in_json = bool(flags["in_json"])
        err_style = _style(invocation.err, invocation, plan)
        task, width = plan.task, None
        if not in_json:
            width = live_width(invocation.out, invocation.err, err_style, invocation.environ)
        briefing = replace(plan.briefing, journal=os.path.join(run_dir, JOURNAL), worker=bool(task))
        console = Console(
            invocation.out,
            invocation.err,
            _style(invocation.out, invocation, plan),
            stream=settings.stream_agent_output and not in_json and not _is_nowhere(invocation.out),
            verbose=bool(flags["verbose"]),
            briefing=briefing,
            clock=time.time,
            err_style=err_style,
            width=width and (lambda: (whole := width()) and _room(whole, task)),
            height=lambda: size_of(invocation.err)[1],
            live=not task,
            state=state,
            lock=lock,
            board=board,
        )
        also = (invocation.follow(briefing, state),) if invocation.follow else ()
        notices = _notices(invocation, plan, run_dir, state, tell=console.note, board=board)
        more = (board, notices, None if task else plan)
        if not in_json:
            return cls(console, None, (console, *also), *more)
        lost = "; the run goes on without it."
        out = Channel(invocation.out, lambda why: console.note(f"stdout {why}{lost}"))
        lines = JsonLines(
            out.write, os.path.basename(run_dir), clock=time.time, state=state, task=task
        )
        # A run has one last line, which is not a worker's.
        return cls(console, None if task else lines, (lines, console, *also), *more)

    def end(self, stop: Stop, journal: str) -> None:
        """The last line for programs; people have read how it ended already."""
        plan = self.lead
        branch = plan.branch if plan else None
        if plan and branch:
            from ralph.ui.closing import rows

            told = branch.closing(plan.workspace, plan.environ)
            if plan.destination is not None:  # it is merged where its pull request is
                told.pop("Merge", None)
            for label, text in told.items():
                for line in rows(label, [text]):
                    self.console.note(line.text)
        if self.json is not None:
            used = self.board.used() if self.board else ()
            own = asdict(branch) if branch else None
            self.json.stop(stop, log=journal, used=used, branch=own)
        if plan:
            measure(plan.state_root, time.time())

    def introduce(self, plan: Plan[Any], notes: Sequence[str]) -> None:
        """Tell people what they want to know before the first turn (ADR 13, H §Verbose Output)."""
        console = self.console
        if not plan.task:  # else its lead has said it
            for name in plan.loaded.files:
                console.debug(f"Loading settings from {name}")
            console.debug(f"Settings: {merged(plan)}")
            for line in _agent_lines(plan):
                console.note(line)
            if is_inside(plan.state_root, plan.workspace):
                console.note(
                    f"The state directory {plan.state_root} is in the workspace, where the agent "
                    "can change it; better: export RALPH_STATE_DIR=/some/where"
                )
            notes = [*notes, *filter(None, [size_note(plan.state_root)])]
            if plan.branch is not None:
                console.note(plan.branch.words())
            if plan.destination is not None:
                console.note(plan.destination.words(plan.settings))
        for note in notes:
            console.note(note)

    def on_launch(self, launch: Launch, order: Order) -> None:
        """Say how the agent is called, without the prompt, and what it is asked."""
        argv, _ = launch.shown(order.prompt)
        self.console.debug(f"Agent command: {shlex.join(argv)}")
        self.console.prompt(order.prompt)


def agent_words(plan: Plan[Any]) -> str:
    """How the agent is called; of our own the model, and why it is taken where nobody named it."""
    if plan.command[0] != OWN:
        return f"{shlex.join(plan.command)} ({plan.kind})"
    chosen = "" if plan.settings.agent.command else ", since no other agent is on PATH"
    return f"{OWN} with {plan.model}{chosen}"


def _agent_lines(plan: Plan[Any]) -> Iterator[str]:
    """The agents in the order in which they are asked; a reviewer is told by its loop."""
    step, fallbacks = plan.roster.step_down, plan.roster.fallbacks
    for place, one in enumerate(plan.agents[: 1 + fallbacks + (step is not None)]):
        label, words, environment = "Agent", agent_words(one), one.environment
        if place:
            words += f" with {one.model}" if one.model and one.command[0] != OWN else ""
            label = "Then"
            if step is not None and place > fallbacks:
                label = f"From {step.at:.0%} of the money on"
        payer = f"; paid by {environment.payer}" if environment.payer else ""
        withheld = ", ".join(environment.removed)
        tail = f"; not passed on: {withheld}" if withheld else ""
        yield f"{label}: {words}{payer}{tail}"
        if one.price_words and one.settings.stream_agent_output:
            yield f"Prices: {one.price_words}"


def _notices(
    invocation: Invocation,
    plan: Plan[Any],
    run_dir: str,
    state: RunState,
    *,
    tell: Callable[[str], None],
    board: Board | None,
) -> "tuple[EndNotice, ...]":
    """The readers that tell people of the end; none for a worker, or if nobody wants to know."""
    if plan.task or plan.settings.notify == NotifySettings():
        return ()
    from ralph.runner.notices import EndNotice, about

    known = about(plan, os.path.basename(run_dir), os.path.join(run_dir, JOURNAL))
    return (EndNotice(invocation, plan, known, state, tell=tell, board=board),)


def merged(plan: Plan[Any]) -> str:
    """The settings that somebody set, as JSON, without secrets."""
    from ralph.settings.explain import redacted

    return json.dumps(redacted(dict(plan.loaded.merged)))


def _style(file: TextIO | None, invocation: Invocation, plan: Plan[Any]) -> Style:
    display = plan.settings.display
    style = style_of(file, invocation.environ, display, invocation.flags)
    return replace(
        style,
        width=style.width and _room(style.width, plan.task),
        max_output_lines=display.max_output_lines,
        max_output_chars=display.max_output_chars,
    )


def _room(width: int, task: str) -> int:
    """The columns that are left beside the tag before a worker's lines."""
    return max(_NARROWEST, width - columns(tag_of(task))) if task else width


def _is_nowhere(file: TextIO | None) -> bool:
    """True for `/dev/null`: lines that nobody can read need not be made."""
    try:
        return file is not None and os.path.samefile(file.fileno(), os.devnull)
    except (OSError, ValueError):
        return False
