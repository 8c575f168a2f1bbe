"""One run from beginning to end: lock, journal, readers, engine, and the last word."""

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from ralph import __version__
from ralph.adapters.agents import Launch
from ralph.adapters.clock import SystemClock
from ralph.adapters.files import (
    ensure_state_root,
    is_inside,
    make_run_dir,
    new_run_id,
    ralph_dir_problem,
)
from ralph.adapters.journal import FileJournal
from ralph.adapters.ledger import Ledger
from ralph.adapters.lock import NAME as LOCK_NAME
from ralph.adapters.lock import Lock, Owner, read_owner
from ralph.adapters.process import Starter, start
from ralph.adapters.signals import SignalCounter, SignalFiles
from ralph.cli.terminal import style_of
from ralph.cli.wiring import (
    Invocation,
    Plan,
    build_agent,
    build_policy,
    build_protector,
    build_world,
    limits_of,
    patience_of,
    plan_run,
    wording_of,
)
from ralph.core.events import AgentEvent
from ralph.core.facts import Fact, Started
from ralph.core.prompt import completion_sentence
from ralph.core.redact import redact
from ralph.core.state import NEW, fold
from ralph.core.turn import Order
from ralph.core.value import replace, value
from ralph.core.verdict import Reason, Stop
from ralph.core.world import Signals, together
from ralph.engine import run
from ralph.errors import RalphError, StateError
from ralph.ports import Ports
from ralph.ui import Reader
from ralph.ui.console import Console
from ralph.ui.jsonlines import JsonLines, stop_line
from ralph.ui.lines import Briefing
from ralph.ui.live import live_width
from ralph.ui.style import Style, Wishes

if TYPE_CHECKING:
    from ralph.adapters.keeper import Keeper
    from ralph.adapters.keeper_process import Launched


def execute(invocation: Invocation) -> int:
    """Plan the run and carry it out, or only show it (`--dry-run`)."""
    plan = plan_run(invocation)
    if invocation.flags["dry_run"]:
        return show_plan(invocation, plan)
    ensure_state_root(plan.state_root)
    now = time.time()
    run_id = new_run_id(now)
    path = os.path.join(plan.project, LOCK_NAME)
    dead = read_owner(path)  # who it names holds it, or never gave it back
    lock = Lock(path)
    lock.acquire(run_id, now)
    try:
        _take_over(dead)
        return _carry_out(invocation, plan, make_run_dir(plan.project, run_id)).exit_code
    finally:
        lock.release()


def _take_over(dead: Owner | None) -> None:
    """End what a run left behind whose Ralph and keeper were both killed (ADR 10)."""
    if dead is not None and sys.platform == "linux":
        from ralph.adapters.orphans import end_orphans

        end_orphans(dead.run)


def _carry_out(invocation: Invocation, plan: Plan, run_dir: str) -> Reason:
    display = Display.of(invocation, plan, run_dir)
    journal = FileJournal(os.path.join(run_dir, "journal.jsonl"))
    try:
        with (
            SignalCounter() as counter,
            display.console.live(),
            keeping(invocation.keeper) as start,
        ):
            ledger = Ledger(plan.project, display.console.note)
            recorder = Recorder(journal, (*display.readers, ledger))
            attention = Attention(counter, SignalFiles(run_dir), display.console)
            stop = _loop(plan, run_dir, recorder, display, attention, start=start)
    except RalphError as error:
        display.end(Stop(Reason(error.reason), error.message), journal.path)
        error.told = True
        raise
    finally:
        journal.close()
    display.end(stop, journal.path)
    return stop.reason


@contextmanager
def keeping(begun: "Launched | None") -> Iterator[Starter]:
    """What starts the run's children: a keeper, where the system can have one."""
    keeper = _keeper(begun)
    if keeper is None:
        yield start
        return
    try:
        keeper.begin()
    except OSError as error:
        raise StateError(
            f"the machine cannot start a process now: {error.strerror}", "Try again later."
        ) from error
    try:
        yield keeper
    finally:
        keeper.close()


def _keeper(begun: "Launched | None") -> "Keeper | None":
    if sys.platform != "linux":
        return None
    from ralph.adapters.keeper import Keeper
    from ralph.adapters.keeper_process import is_possible

    return Keeper(adopts=True, begun=begun) if is_possible() else None


def _loop(
    plan: Plan,
    run_dir: str,
    recorder: "Recorder",
    display: "Display",
    attention: "Attention",
    *,
    start: Starter,
) -> Stop:
    protector = build_protector(plan, run_dir)
    ports = Ports(
        agent=build_agent(
            plan, run_dir, recorder.on_events, display.on_launch, recorder.record, start=start
        ),
        world=build_world(plan, protector, attention),
        journal=recorder,
        clock=SystemClock(),
    )
    display.introduce(plan)
    policy = build_policy(plan, run_dir, protector, attention, start)
    started = _started(plan, run_dir, policy.name)
    recorder.record(started)
    return run(policy, ports, fold(NEW, started))


def _started(plan: Plan, run_dir: str, profile: str) -> Started:
    return Started(
        time=time.time(),
        run=os.path.basename(run_dir),
        profile=profile,
        workspace=plan.workspace,
        pid=os.getpid(),
        version=__version__,
        settings=_merged(plan),
        limits=limits_of(plan.settings),
        agent=plan.kind,
        model=plan.model,
    )


@value
class Attention:
    """What a run hears: its own signals, and what other terminals ask by files.

    Whatever waits asks at least four times a second, so this is the display's heartbeat too.
    """

    counter: SignalCounter
    files: SignalFiles
    console: Console

    def __call__(self) -> Signals:
        own, asked = self.counter.signals(), self.files.signals()
        self.console.beat(asked, own)
        return together(own, asked)


@value
class Recorder:
    """The journal first, then everybody who reads along."""

    journal: FileJournal
    readers: tuple[Reader, ...]

    def record(self, fact: Fact) -> None:
        """Keep a fact, then tell it."""
        self.journal.record(fact)
        for reader in self.readers:
            reader.on_fact(fact)

    def on_events(self, events: Sequence[AgentEvent]) -> None:
        """Tell what the agent's stream says."""
        for reader in self.readers:
            reader.on_events(events)


@value
class Display:
    """Who shows the run: the console, and with `--json` a reader for programs."""

    console: Console
    json: JsonLines | None
    readers: tuple[Reader, ...]

    @classmethod
    def of(cls, invocation: Invocation, plan: Plan, run_dir: str) -> "Display":
        """The readers that the flags ask for."""
        settings, flags = plan.settings, invocation.flags
        in_json = bool(flags["in_json"])
        err_style = _style(invocation, plan, "err")
        width = live_width(invocation.out, invocation.err, err_style, invocation.environ)
        console = Console(
            invocation.out,
            invocation.err,
            _style(invocation, plan, "out"),
            stream=settings.stream_agent_output and not in_json and not _is_nowhere(invocation.out),
            verbose=bool(flags["verbose"]),
            briefing=_briefing(plan, run_dir),
            clock=time.time,
            redact=redact,
            err_style=err_style,
            width=None if in_json else width,
        )
        if not in_json:
            return cls(console, None, (console,))
        lines = JsonLines(
            invocation.out,
            os.path.basename(run_dir),
            clock=time.time,
            on_loss=lambda why: console.note(f"stdout {why}; the run goes on without it."),
        )
        return cls(console, lines, (lines, console))

    def end(self, stop: Stop, journal: str) -> None:
        """The last line for programs; people have read how it ended already."""
        if self.json is not None:
            self.json.stop(stop, log=journal)

    def introduce(self, plan: Plan) -> None:
        """What people want to know before the first turn (ADR 13, H §Verbose Output)."""
        console, environment = self.console, plan.environment
        for name in plan.loaded.files:
            console.debug(f"Loading settings from {name}")
        console.debug(f"Settings: {_merged(plan)}")
        payer = f"; paid by {environment.payer}" if environment.payer else ""
        withheld = ", ".join(environment.removed)
        tail = f"; not passed on: {withheld}" if withheld else ""
        console.note(f"Agent: {shlex.join(plan.command)} ({plan.kind}){payer}{tail}")
        if plan.price_words and plan.settings.stream_agent_output:
            console.note(f"Prices: {plan.price_words}")
        if is_inside(plan.state_root, plan.workspace):
            console.note(
                f"The state directory {plan.state_root} is in the workspace, where the agent can "
                "change it; better: export RALPH_STATE_DIR=/some/where"
            )
        if not plan.settings.guardrails:
            console.note("No guardrail is configured: only the agent's word will count.")
        elif problem := ralph_dir_problem(plan.workspace):
            console.note(f"{problem}. The guardrails' logs go beside the journal instead.")

    def on_launch(self, launch: Launch, order: Order) -> None:
        """Say how the agent is called, without the prompt, and what it is asked."""
        argv, _ = launch.shown(order.prompt)
        self.console.debug(f"Agent command: {shlex.join(argv)}")
        self.console.prompt(order.prompt)


def _merged(plan: Plan) -> str:
    from ralph.settings.explain import redacted

    return json.dumps(redacted(dict(plan.loaded.merged)))


def _briefing(plan: Plan, run_dir: str) -> Briefing:
    settings, marker = plan.settings, wording_of(plan.settings).contract.marker
    return Briefing(
        iterations=settings.maximum_iterations,
        guardrails=frozenset(g.command for g in settings.guardrails),
        journal=os.path.join(run_dir, "journal.jsonl"),
        permission_hint=plan.module.PERMISSION_HINT,
        marker=marker,
        completion_sentence="" if settings.tell_completion else completion_sentence(marker),
    )


def _style(invocation: Invocation, plan: Plan, stream: str) -> Style:
    flags, display = invocation.flags, plan.settings.display
    file = invocation.out if stream == "out" else invocation.err
    style = style_of(
        file,
        invocation.environ,
        Wishes(display.emoji, display.color, display.timestamps),
        Wishes(flags["emoji"], flags["color"], flags["timestamps"]),
    )
    return replace(
        style,
        max_output_lines=display.max_output_lines,
        max_output_chars=display.max_output_chars,
    )


def _is_nowhere(file: TextIO | None) -> bool:
    """Whether nobody can ever read it (`> /dev/null`): lines for it need not even be made."""
    try:
        return file is not None and os.path.samefile(file.fileno(), os.devnull)
    except (OSError, ValueError):
        return False


def show_plan(invocation: Invocation, plan: Plan) -> int:
    """`--dry-run`: the prompt and the command of the first turn."""
    from ralph.core.case import Case
    from ralph.core.task import Assignment
    from ralph.core.verdict import Boundary
    from ralph.profiles.harness import Compose
    from ralph.profiles.shared import allowance

    state = replace(NEW, iteration=1, assignment=Assignment("prompt"))
    case = Case(Boundary.WATCHING, state, time.time(), backlog=plan.backlog())
    allow = allowance(limits_of(plan.settings), patience_of(plan.settings))
    order = Order(Compose(wording_of(plan.settings))(case), 1, allowance=allow(case))
    launch = build_agent(plan, plan.project, lambda _: None, may_probe=False).launch(order)
    if invocation.flags["in_json"]:
        shown = {"type": "dry_run", "time": time.time(), "run": None}
        first = json.dumps({**shown, "command": launch.argv, "prompt": order.prompt})
        lines = [first, stop_line(Reason.COMPLETED, time=time.time())]
    else:
        argv, how = launch.shown(order.prompt)
        lines = [f"Command: {shlex.join(argv)}", f"Prompt, {how}:", "", order.prompt]
    print(*lines, sep="\n", file=invocation.out)
    return 0
