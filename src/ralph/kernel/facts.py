"""Facts: the events of a run. Its journal is a list of these, and nothing else is stored."""

from ralph.kernel.events import Usage
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.sight import Sight
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.value import value
from ralph.kernel.verdict import Boundary, Verdict
from ralph.kernel.world import Request, Snapshot, Stand


@value
class Ladders:
    """The rules of a policy by name, with their parameters, in order."""

    opening: tuple[str, ...] = ()
    retaking: tuple[str, ...] = ()
    stopping: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()


@value
class Started:
    """A run began. `settings` are those in force, read once (ADR 12)."""

    time: float
    run: str
    profile: str
    workspace: str
    pid: int
    version: str
    settings: str = "{}"
    limits: Limits = Limits()
    agent: str = ""  # its kind
    model: str = ""  # as asked for; "" is the agent's own choice
    workers: int = 1  # how many tasks it works on at once
    ladders: Ladders | None = None  # by which it decides


@value
class Resumed:
    """A run that was cut off, or had ended, goes on in another process, or one that was paused goes
    on with its settings as they are now; a stop is taken back (ADR 35, 38). The time between does
    not count."""

    time: float
    pid: int
    limits: Limits | None = None  # from here on; None: as before
    raised: tuple[tuple[str, float], ...] = ()  # settings that a person gave the run for it
    # Settings that were read again and are others now: name, before, after; as JSON, no secrets.
    changed: tuple[tuple[str, str, str], ...] = ()
    ladders: Ladders | None = None  # from here on


@value
class Asked:
    """The run has heard a request of a person's."""

    time: float
    request: Request


@value
class Began:
    """A turn is about to start."""

    time: float
    iteration: int
    assignment: Assignment
    snapshot: Snapshot = Snapshot()
    checkpoint: str = ""


@value
class Launching:
    """An agent's process is about to start. Its stream will be saved there, in that dialect."""

    time: float
    role: Role
    dialect: str
    stream: str
    place: int = 0  # the agent's, on the roster
    agent: str = ""  # its kind, or the command where that says more
    model: str = ""  # as asked for; "" is the agent's own choice

    @property
    def who(self) -> str:
        """`claude with haiku`: the agent in words; "" where an older journal does not say."""
        return with_model(self.agent, self.model)


@value
class Sent:
    """A turn is about to be tried on another machine. Only the newest attempt is believed."""

    time: float
    attempt: int  # of this task
    ref: str  # where its order is, on the remote
    order: str  # the commit of it; a result goes on from there
    lease: float = 0.0  # seconds for which it may be lent to a machine; 0.0: as the settings say


@value
class Fared:
    """What became of an attempt: placed, done, failed, lost, or ignored as one that came late."""

    time: float
    attempt: int
    how: str
    host: str = ""
    detail: str = ""

    @property
    def is_given_up(self) -> bool:
        """Nothing of it is believed from here on."""
        return self.how in ("failed", "lost")


@value
class Ended:
    """A turn is over."""

    time: float
    turn: Turn


@value
class Landed:
    """The changes of a turn in its sandbox are in the project now, or were thrown away."""

    time: float
    kept: bool
    count: int = 0  # how many paths it had changed
    held: tuple[str, ...] = ()  # paths that wait for a person's review
    spared: tuple[str, ...] = ()  # what could not be applied, and why
    saved: str = ""  # where to find what is not in the project
    refused: tuple[str, ...] = ()  # hosts that it was not allowed to call
    ours: tuple[str, ...] = ()  # Ralph's own files that it changed


@value
class Checking:
    """A gate is about to run."""

    time: float
    gate: str


@value
class Checked:
    """A gate ran."""

    time: float
    gate: str
    seconds: float
    findings: tuple[Finding, ...] = ()


@value
class Proved:
    """Every gate passed on one tree (ADR 33). Paths are relative to the top of the repository."""

    time: float
    tree: str  # what a commit will hold
    stand: Stand = Stand()
    commit: str = ""  # that holds it already
    gates: tuple[str, ...] = ()  # that passed on it
    left_out: tuple[str, ...] = ()  # new files that only gates made
    put_back: tuple[str, ...] = ()  # what gates change every time, and no turn did
    yours: tuple[str, ...] = ()  # not committed when the run began, and unchanged since
    mixed: tuple[str, ...] = ()  # the same, but changed by a turn: they are committed
    hidden: tuple[str, ...] = ()  # ignored by rules that are new
    outside: tuple[str, ...] = ()  # changed by a turn, outside of the project: not committed
    train: tuple[str, ...] = ()  # tasks whose work is in that tree, which is the last one's


@value
class Decided:
    """A ladder answered. `checked` and `progressed` are part of the reasons."""

    time: float
    boundary: Boundary
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    checked: bool = False
    progressed: bool | None = None
    notes: tuple[str, ...] = ()  # near misses and other words for people
    final: bool = False  # the law has put something back, and would not find it again
    rule: str = ""  # the name of the rule that answered
    tree: str = ""  # of every file when the gates had run, as a Stand has it
    seen: Sight | None = None  # what the rules saw beside; None: an older journal does not tell


@value
class Step:
    """One idempotent step of settling; its key is not taken twice for one iteration."""

    time: float
    key: str
    ok: bool = True
    detail: str = ""
    cost_usd: float | None = 0.0  # of a turn that it took; None: nobody knows
    usage: Usage = Usage()  # of that turn
    commit: str = ""  # that it made, or sent away


@value
class Published:
    """A pull request says what the work is now; it was opened, or is another by these words."""

    time: float
    task: str
    branch: str
    base: str
    number: int
    url: str
    commit: str  # that was pushed
    merged: bool = False


@value
class Resting:
    """Settling, or every worker, waits until then for others to answer: that time is not spent.
    Without a `why` somebody is at work again."""

    time: float
    until: float
    why: str


@value
class Moved:
    """A task's work stands on newer work now: it can be undone to there."""

    time: float
    checkpoint: str


@value
class Assigned:
    """A worker takes up a task, in a run of its own."""

    time: float
    assignment: Assignment
    worker: str  # the name of its run, in `runs` of the foreman's
    seen: Sight | None = None  # by the rules that let it begin


@value
class Returned:
    """A worker is back from its task: done, parked, or with what ended it before either."""

    time: float
    task: str
    worker: str
    verdict: Verdict
    spent: Spent = Spent()
    branch: str = ""  # where people find what it did and nobody merged
    title: str = ""
    commit: str = ""  # of a task that is done
    pulls: tuple[Published, ...] = ()  # that it has opened


@value
class Settled:
    """The verdict is carried out; an Accept whose commit was refused has become a Continue."""

    time: float
    verdict: Verdict


Fact = (
    Started
    | Resumed
    | Asked
    | Began
    | Launching
    | Sent
    | Fared
    | Ended
    | Landed
    | Checking
    | Checked
    | Proved
    | Decided
    | Step
    | Published
    | Resting
    | Settled
    | Moved
    | Assigned
    | Returned
)


CI = "ci"  # the key of the step that tells what continuous integration said


def with_model(agent: str, model: str) -> str:
    """`claude with haiku`."""
    return f"{agent} with {model}" if model else agent


def owed_after(owed: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """The SCM tasks that have failed, and have not succeeded since, after one more step."""
    task = scm_task(step)
    if not task or (step.ok and step.key == "scm:message"):
        return owed
    others = tuple(other for other in owed if scm_task(other) != task)
    return others if step.ok else (*others, step)


def scm_task(step: Step) -> str:
    """The SCM task that a step is about; "" for other steps."""
    prefix, _, task = step.key.partition(":")
    if prefix != "scm" or task in ("undone", "message cut off"):
        return ""
    return "commit" if task in ("message", "changes") or task.split()[:1] == ["commit"] else task


def pushed_after(pushed: tuple[tuple[str, str], ...], step: Step) -> tuple[tuple[str, str], ...]:
    """The commit that each task has sent away last, after one more step."""
    task = scm_task(step)
    if not step.ok or task.split()[:1] != ["push"]:
        return pushed
    return tuple({**dict(pushed), task: step.commit}.items())
