"""`ralph doctor`: this machine's equipment, what is wrong with it, and what to type about it."""

import json
import os
import shlex
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO, TypeVar

from ralph.agents.clis import agent_environment
from ralph.agents.kinds import PROGRAMS, split_flags
from ralph.agents.providers import OWN, default_model
from ralph.cli.base import command
from ralph.cli.params import current_directory, the_usual
from ralph.doctor import agents
from ralph.doctor.checks import Area, Check, CheckState, KnownAgent, count, ok, problem, warning
from ralph.doctor.claude import CLAUDE
from ralph.doctor.git import GIT, git_hooks
from ralph.doctor.machine import Machine, Screen, python_check, system_check, terminal_checks
from ralph.doctor.report import Waiting, area_lines, health_dict, summary_line
from ralph.doctor.sandbox import SANDBOX, backends
from ralph.doctor.state import STATE, state_place
from ralph.errors import RalphError
from ralph.files.state_dir import state_root
from ralph.loops.prompt.loop import Prompt
from ralph.loops.prompt.loop import read as plan_run
from ralph.processes.signals import ending_by
from ralph.runner.invocation import Invocation
from ralph.runner.plan import Plan
from ralph.settings.load import Loaded, load
from ralph.settings.schema import AgentSettings
from ralph.text.redact import redacted
from ralph.text.words import counted
from ralph.ui.style import Style, encoding_of, is_terminal, size_of, style_of

_T = TypeVar("_T")
_AT_ONCE = 4  # agents start slowly; more at a time would only make each miss its time limit
_ASKING = "ask"  # how the names of the threads begin


@command(context_settings={"help_option_names": ["-h", "--help"]})
@the_usual
def doctor(*, in_json: bool) -> int:
    """Look at this machine: agents, git, credentials, state directory, settings.

    Agents are asked for their version and their flags, for five seconds at most; no agent works
    and nothing is paid for.

    Examples:
      ralph doctor                    look at everything, in this directory
      ralph doctor -C ~/my-project    in another one
      ralph doctor --json | jq '.checks[] | select(.state != "ok")'

    Exit codes: 0 nothing is wrong (there may be warnings), 1 something is.
    """
    with (
        ending_by(signal.default_int_handler),
        _Visit.begun(current_directory(), dict(os.environ)) as visit,
    ):
        areas = _report(visit, in_json=in_json)
    return 1 if count(areas, CheckState.PROBLEM) else 0


@dataclass(frozen=True)
class _Visit:
    """The things that every check may look at. The slow answers come from threads."""

    machine: Machine
    root: str | RalphError  # of the state
    loaded: Loaded | RalphError
    plan: Plan[Prompt] | RalphError  # what `ralph run` would do here
    candidates: tuple[agents.Candidate, ...]
    asked: tuple[Future[KnownAgent], ...]  # one for each candidate
    sandbox: Future[tuple[Check, ...]]

    @classmethod
    @contextmanager
    def begun(cls, workspace: str, environ: Mapping[str, str]) -> Iterator["_Visit"]:
        """Start asking; at the end nobody is waited for any more."""
        given_up = threading.Event()
        machine = Machine(workspace, environ, given_up.is_set)
        root, loaded = _outcome(lambda: state_root(environ)), _outcome(lambda: load(workspace))
        plan = _outcome(lambda: _plan(machine, root))
        candidates = _candidates(machine, loaded, plan)
        cache = os.path.join(root, "probes.json") if isinstance(root, str) else ""
        ask = agents.Examiner(machine, cache, may_ask=_agent_settings(loaded).probe)
        pool = ThreadPoolExecutor(_AT_ONCE, _ASKING)
        try:
            asked = tuple(pool.submit(ask, candidate) for candidate in candidates)
            sandbox = pool.submit(
                lambda: (*backends(machine), *(check(machine) for check in SANDBOX))
            )
            yield cls(machine, root, loaded, plan, candidates, asked, sandbox)
        finally:
            given_up.set()
            pool.shutdown(cancel_futures=True)
            # A Ctrl+C while the pool starts a thread makes it forget that one.
            for thread in threading.enumerate():
                if thread.name.startswith(_ASKING):
                    thread.join()

    @property
    def agents(self) -> tuple[KnownAgent, ...]:
        """The answers of the agents; waits for the slowest."""
        return tuple(future.result() for future in self.asked)

    def style(self, stream: TextIO | None) -> Style:
        """The look of that stream, as the settings wish."""
        display = self.loaded.settings.display if isinstance(self.loaded, Loaded) else None
        return style_of(stream, self.machine.environ, display)


def _python(visit: _Visit) -> Iterable[Check | None]:
    import platform

    import ralph

    yield python_check(platform.python_version(), sys.executable)
    yield ok("ralph", f"{ralph.__version__} in {os.path.dirname(ralph.__file__)}")
    yield system_check(platform.system(), platform.release(), platform.machine())


def _agents(visit: _Visit) -> Iterable[Check | None]:
    yield from agents.agent_checks(visit.agents)
    if isinstance(visit.loaded, RalphError):
        yield warning("ralph run", "cannot start: see Settings", "Fix the settings first.")
    elif isinstance(visit.plan, RalphError):
        yield problem("ralph run", f"cannot start: {visit.plan.message}", visit.plan.remedy)
    else:
        named = visit.plan.settings.agent.command
        why = f"agent.command in {visit.loaded.origins.get('agent.command')}"
        found = "no other is on PATH" if visit.plan.kind == OWN else "first on PATH"
        taken = f"takes {' '.join(visit.plan.command)} ({why if named else found})"
        yield ok("ralph run", taken)
    chosen = next((c for c in visit.candidates if c.chosen), None)
    flags = split_flags(_agent_settings(visit.loaded).flags)
    yield agents.user_check(os.geteuid(), chosen, flags)
    yield agents.repository_check(visit.machine.workspace, chosen, flags)


def _money(visit: _Visit) -> Iterable[Check | None]:
    priced = isinstance(visit.plan, Plan) and visit.plan.prices is not None
    return agents.money_checks(visit.agents, priced=priced)


def _terminal(visit: _Visit) -> Iterable[Check | None]:
    out, err = (
        Screen(is_terminal(stream), *size_of(stream), encoding_of(stream))
        for stream in (sys.stdout, sys.stderr)
    )
    color = visit.style(sys.stdout).color
    return terminal_checks(out, err, visit.machine.environ, color=color)


def _state(visit: _Visit) -> Iterable[Check | None]:
    root = visit.root
    if isinstance(root, RalphError):
        return (problem("writable", root.message, root.remedy),)
    return (*(check(root) for check in STATE), state_place(root, visit.machine.workspace))


def _settings(visit: _Visit) -> Iterable[Check | None]:
    loaded, workspace = visit.loaded, visit.machine.workspace
    paths = (workspace, os.path.join(workspace, ".ralph"))
    shut = [path for path in paths if os.path.lexists(path) and not os.access(path, os.W_OK)]
    if shut:
        remedy = f"See who may: ls -ld {shlex.quote(shut[0])}"
        yield warning("workspace", f"{shut[0]} cannot be written by you", remedy)
    else:
        yield ok("workspace", workspace)
    if isinstance(loaded, RalphError):
        yield problem("settings", loaded.message, loaded.remedy)
        return
    yield ok("settings", " and ".join(loaded.files) or "no file, all defaults")
    guardrails = len(loaded.settings.guardrails)
    if guardrails:
        yield ok("guardrails", counted(guardrails, "command"))
    else:
        text = "none: only the agent's word will count"
        yield warning("guardrails", text, "Name the commands that must pass: ralph init")
    scm = loaded.settings.scm
    if scm and scm.tasks and visit.machine.which(scm.command) is None:
        yield warning("scm", f"{scm.command} is not on PATH", "Install it, or fix scm.command.")


_AREAS: tuple[tuple[str, Callable[[_Visit], Iterable[Check | None]]], ...] = (
    ("Python and Ralph", _python),
    ("Git", lambda visit: (check(visit.machine) for check in GIT)),
    ("Agents", _agents),
    ("Money and credential", _money),
    ("Sandbox", lambda visit: visit.sandbox.result()),
    ("Hooks and plugin", lambda visit: (check(visit.machine) for check in (*CLAUDE, git_hooks))),
    ("Terminal", _terminal),
    ("State directory", _state),
    ("Settings", _settings),
)


def _report(visit: _Visit, *, in_json: bool) -> tuple[Area, ...]:
    """Look at each area in order; people read the first while the agents are still asked."""
    out, err = sys.stdout, sys.stderr
    style = visit.style(out)
    fancy = visit.style(err).color and not in_json
    waiting = Waiting(err if fancy else None, size_of(err)[0])
    areas: list[Area] = []
    for title, look in _AREAS:
        if look is _agents:
            _await(visit, waiting)
        areas.append(Area(title, tuple(check for check in look(visit) if check)))
        if not in_json:
            print(*area_lines(areas[-1], style), sep="\n", file=out, flush=True)
    if in_json:
        print(json.dumps(redacted(health_dict(areas, visit.agents)), indent=2), file=out)
    else:
        print(summary_line(areas, style), file=out)
    return tuple(areas)


def _await(visit: _Visit, waiting: Waiting) -> None:
    """Say who has not answered yet, until all have."""
    names = {f: c.kind for f, c in zip(visit.asked, visit.candidates, strict=True)}
    try:
        while missing := [future for future in names if not future.done()]:
            waiting.show(f"Asking {', '.join(names[future] for future in missing)} ...")
            wait(missing, return_when=FIRST_COMPLETED)
    finally:
        waiting.show("")


def _plan(machine: Machine, root: str | RalphError) -> Plan[Prompt]:
    """The plan of `ralph run -p …`; nothing is started."""
    flags: dict[str, object] = defaultdict(lambda: None, prompt="x")  # every other is not given
    somewhere = root if isinstance(root, str) else os.devnull  # a missing HOME is told by itself
    environ = {**machine.environ, "RALPH_STATE_DIR": somewhere}
    return plan_run(Invocation(machine.workspace, environ, flags, None, None, None))


def _candidates(
    machine: Machine, loaded: Loaded | RalphError, plan: Plan[Prompt] | RalphError
) -> tuple[agents.Candidate, ...]:
    """Every known agent on PATH, and the one that `ralph run` would take."""
    env = _agent_settings(loaded).env
    known = {}
    for kind in PROGRAMS:
        own = OWN if kind == OWN and default_model(machine.environ) else None
        if path := own or machine.which(kind):
            gets = agent_environment(
                machine.environ, kind, keep=env.keep, unset=env.unset, put=env.set
            )
            known[path] = agents.Candidate(kind, (kind,), path, gets)
    if isinstance(plan, Plan):
        path = plan.command[0] if plan.command[0] == OWN else machine.which(plan.command[0])
        path = path or plan.command[0]
        known[path] = agents.Candidate(plan.kind, plan.command, path, plan.environment, chosen=True)
    return tuple(known.values())


def _agent_settings(loaded: Loaded | RalphError) -> AgentSettings:
    return loaded.settings.agent if isinstance(loaded, Loaded) else AgentSettings()


def _outcome(make: Callable[[], _T]) -> _T | RalphError:
    try:
        return make()
    except RalphError as error:
        return error
