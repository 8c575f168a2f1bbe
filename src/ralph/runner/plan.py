"""A run that could start, and the loop that carries it out."""

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ralph.agents.acp import ACP
from ralph.agents.clis import Cli, Environment
from ralph.agents.kinds import account_of
from ralph.agents.providers import OWN
from ralph.kernel.limits import Limits, Prices
from ralph.kernel.ports import Policy, TodaysRules
from ralph.kernel.roster import Roster
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.value import replace, value
from ralph.kernel.world import Signals
from ralph.runner.invocation import Invocation
from ralph.runner.loops import LOOPS
from ralph.runner.money import asked_model
from ralph.runner.wired import RunContext, Wired
from ralph.settings.load import ASSUMED, Loaded
from ralph.settings.schema import Settings
from ralph.ui.lines import Briefing

if TYPE_CHECKING:
    from ralph.git.branch import WorkBranch
    from ralph.journal.forecast import Effort
    from ralph.journal.recovery import History
    from ralph.kernel.verdict import Reason
    from ralph.runner.publishing.outlet import Destination
    from ralph.sandbox.credentials import Secrets
    from ralph.sandbox.interface import Capabilities, Network

DIRECT = "direct"  # in place, because someone said so
IN_PLACE = "Sandbox: none (in place)."  # the first line about it


class LoopWork(Protocol):
    """The part of a plan that only its own loop knows."""

    def kept(self) -> dict[str, Any]:
        """As JSON, for `ralph resume`; the settings are kept beside it."""


_Work_co = TypeVar("_Work_co", bound=LoopWork, covariant=True)
Work = TypeVar("Work", bound=LoopWork)


RUN_LIMITS = {  # by the flag of `ralph resume`: the settings that hold the limit
    "-m": ("maximumIterations",),
    "--max-time": ("maxTime",),
    "--max-cost": ("maxCost",),
}


@value
class Past:
    """A run that goes on: where it is kept, and how far it has come."""

    directory: str
    state: RunState


@value
class Loop:
    read: Callable[[Invocation], "Plan[Any]"]  # the command, into a plan; nothing is made
    again: Callable[[Invocation, Loaded, Mapping[str, Any], "Past"], "Plan[Any]"]  # to resume a run
    wire: Callable[["Plan[Any]", RunContext], Wired]
    policy: Callable[[Loaded], Policy]  # with its ladders as these settings have them, to look at
    first: Callable[["Plan[Any]"], Policy] | None = (
        None  # to look at what comes: it settles nothing
    )
    none_first: tuple[str, str] = ("nothing can be started", "")  # that, and what to type
    about: Callable[[Mapping[str, Any]], str] = lambda _: ""  # what it is to do, of what was kept
    tasks: Callable[[Mapping[str, Any], str], tuple[Task, ...]] = (
        lambda _kept, _workspace: ()
    )  # its list as it is now, of what was kept and where that was; none where it has no list
    efforts: "Callable[[str], Sequence[Effort]] | None" = (
        None  # what earlier tasks took, by the file of their records; None: runs tell it
    )
    answer: Callable[[str, str, str, str], object] | None = (
        None  # what a task has asked: workspace, its place in the state directory, task, text
    )
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: RUN_LIMITS)
    unattended: bool = True  # a sandbox is permission enough for the agent
    commits: bool = False  # the work itself, where a sandbox keeps the agent from it
    guarded: bool = True  # where nothing contains the agent
    hooks: tuple[str, ...] = ()  # that it brings along for the agent, beside the guard's
    begin: Callable[["Plan[Any]"], None] = lambda _: None  # once a new run has the lock
    ready: Callable[["Plan[Any]", RunContext], "Plan[Any]"] = lambda plan, _: plan  # to be wired
    supersedes: bool = False  # a run leaves nothing for an earlier one to go on with
    claims: bool = False  # its scope may be shared by people who share no state directory
    marks: Callable[["Plan[Any]"], Callable[[], Signals]] = lambda _: Signals
    jobs: Callable[["Plan[Any]", str, int], tuple[int, ...]] = lambda _plan, _run, _keeper: ()
    carry_out: "Callable[[Invocation, Plan[Any], str, History], Reason] | None" = None
    rejudges: Callable[["InForce"], TodaysRules] | None = (
        None  # the rules that judge a run again; None: as `policy` has them
    )


@value
class InForce:
    """The terms of a run that was: by its facts, and by the plan that was kept."""

    loaded: Loaded
    kept: Mapping[str, Any]  # of its work
    limits: Limits
    leads: bool = False  # it has workers
    lead: str = ""  # the run that it works for


def loop_named(name: str) -> Loop:
    """A loop of the table; ValueError for a name that is not in it."""
    if name not in LOOPS:
        raise ValueError(f"there is no loop {name!r}")
    loop = importlib.import_module(LOOPS[name][0]).LOOP
    assert isinstance(loop, Loop)
    return loop


@value
class Sandboxing:
    """The sandbox of a run, tried on this machine."""

    backend: str
    can: "Capabilities"
    network: "Network"
    secrets: "Secrets"
    guard: str = ""  # what is to be said of it, where nothing contains
    hides: str = ""  # the secrets in words

    def environment(self) -> dict[str, str]:
        """Variables for the agent beside the usual ones."""
        return {"IS_SANDBOX": "1"} if self.can.contain and os.geteuid() == 0 else {}

    def words(self) -> str:
        """The first line of a run about it."""
        if self.backend == DIRECT:
            return f"{IN_PLACE} {self.guard}"
        names = ("contain", "rollback", "egress")
        can = ", ".join(name for name in names if getattr(self.can, name)) or "nothing"
        network = f"; network: {self.network}" if self.can.egress else ""
        guard = f". {self.guard}" if self.guard else ""
        hides = f"; hidden: {self.hides}" if self.hides else ""
        return f"Sandbox: {self.backend} ({can}){network}{hides}{guard}"


@value
class Plan(Generic[_Work_co]):
    """A run that could start: everything checked, nothing begun."""

    loop_name: str
    work: _Work_co
    workspace: str
    environ: Mapping[str, str]
    loaded: Loaded
    backlog: Callable[[], Backlog]
    limits: Limits
    briefing: Briefing
    command: tuple[str, ...]
    kind: str
    cli: Cli
    environment: Environment
    state_root: str
    scope: str  # the directory in which there may be one such run at a time (ADR 10)
    project: str  # that directory's place in the state directory; a worker has its lead's
    home: str  # where the backlog and its records are: a worker works elsewhere
    layer_root: str  # the state directory in which sandboxes keep their layers
    hidden: tuple[str, ...] = ()  # directories that no sandbox shows, beside the state directory
    prices: Prices | None = None  # what tokens cost, where the agent does not tell
    price_words: str = ""  # where they come from, if not from the settings
    sandbox: Sandboxing | None = None  # None: in place
    others: tuple["Plan[Any]", ...] = ()  # the same, as other agents take turns in it
    roster: Roster = Roster()  # which of them takes a turn
    paid: Callable[[], float] | None = None  # what all workers have spent, where it is one of them
    workers: int = 1  # how many tasks are worked on at once
    branch: "WorkBranch | None" = None  # that it has made for its work
    destination: "Destination | None" = None  # of its pull requests, or whose CI is asked
    lead: str = ""  # the run that a worker belongs to
    task: str = ""  # the worker's
    raised: tuple[tuple[str, float], ...] = ()  # limits that a person gives the run to go on
    changed: tuple[tuple[str, str, str], ...] = ()  # settings that were read again, as in Resumed

    def on_branch(self, name: str | None, own: str) -> "Plan[_Work_co]":
        """The plan with a new branch for its work, if one is named, or its `own` if it would else
        be on the base of its pull requests; it is not made yet."""
        to, apart = self.destination, self.settings.pr.mode in (None, "per-task")
        if name is None and (to is None or apart):
            return self
        from ralph.git.branch import current_branch, planned_branch

        if name is None and to is not None:
            if current_branch(self.workspace, self.environ) not in ("", to.base):
                return self
            name = own
        assert name is not None
        return replace(self, branch=planned_branch(name, self.workspace, self.environ))

    @property
    def loop(self) -> Loop:
        """The loop that reads, wires and shows it."""
        return loop_named(self.loop_name)

    @property
    def agent(self) -> str:
        """Its agent, for people: the kind, or the command where that says more."""
        return os.path.basename(self.command[0]) if self.kind in ("text", ACP) else self.kind

    @property
    def runs_ralph(self) -> bool:
        """True if a program of ours takes its turns, and asks the guard by itself."""
        return self.kind in (OWN, ACP)

    @property
    def account(self) -> str:
        """The kind whose login, keys and hosts its agent uses."""
        return account_of(self.kind, self.command)

    @property
    def model(self) -> str:
        """The model that is asked for, by Ralph's setting or the agent's own flag."""
        return asked_model(self.settings, self.cli, self.command) or ""

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def untried(self) -> bool:
        """True if its guardrails are guessed, and none of them has run yet."""
        return self.loaded.origins.get("guardrails") == ASSUMED

    @property
    def is_contained(self) -> bool:
        """True if the agent works in a sandbox that it cannot leave."""
        return self.sandbox is not None and self.sandbox.can.contain

    @property
    def agents(self) -> "tuple[Plan[Any], ...]":
        """The plan as each of its agents takes turns in it, by their places on the roster."""
        return (self, *self.others)

    @property
    def prices_of_all(self) -> tuple[Prices | None, ...]:
        """The prices of each of its agents."""
        return tuple(one.prices for one in self.agents)
