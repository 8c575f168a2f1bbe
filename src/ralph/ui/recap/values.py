"""The recap of a run: everything that is shown of it afterwards, or while it goes on.

`ralph report --format json` and `ralph web` print these values as they are; every text in them is
clean and without secrets. Times are Unix times, durations seconds, None is what nobody knows.
"""

from enum import StrEnum

from ralph.kernel.events import Usage
from ralph.kernel.value import value


class ItemKind(StrEnum):
    """What stands in the log of a turn."""

    TEXT = "text"  # the agent's words
    THINKING = "thinking"
    OTHER = "other"  # words that are not the agent's own: its sub-agents', hooks', its host's
    TOOL = "tool"
    TODO = "todo"
    QUESTION = "question"
    TROUBLE = "trouble"  # a retry, a rate limit, a failure
    UNREAD = "unread"  # a line that is not understood


@value
class Item:
    """One thing that the agent said or did. Of a tool, `name` and what it was asked (`text`)."""

    kind: ItemKind
    text: str
    name: str = ""
    output: str = ""  # of a tool, shortened
    is_error: bool = False


@value
class Check:
    """A gate that ran."""

    gate: str
    seconds: float
    objections: tuple[str, ...] = ()  # none: it passed
    code: int | None = None  # the exit code, where it is a command that failed
    log: str = ""  # the path of its whole output
    output: str = ""  # the end of that


@value
class FileChange:
    path: str
    added: int | None = None  # lines; None for a binary file
    removed: int | None = None


@value
class Diff:
    """What an iteration, or a task, has changed."""

    files: tuple[FileChange, ...] = ()
    patch: str = ""  # shortened; "" where git does not know it any more
    is_cut: bool = False  # the patch does not show all of it
    left_out: int = 0  # files that are not even named: there are too many

    @property
    def added(self) -> int:
        return sum(file.added or 0 for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed or 0 for file in self.files)


@value
class Judgement:
    """A verdict, the rule that gave it, and why."""

    time: float
    verdict: str  # continue, accept, park, wait, stop
    words: str  # one sentence
    rule: str = ""  # its name, as `ralph explain` prints it
    rule_words: str = ""  # the first line of its explanation, where it is known
    evidence: tuple[str, ...] = ()  # of an Accept, or of a Stop that completes
    objections: tuple[str, ...] = ()  # of gates, which speak against the claim
    notes: tuple[str, ...] = ()  # near misses: words that were almost a claim
    claims: tuple[str, ...] = ()  # what the agent claimed, as it was written
    feedback: tuple[str, ...] = ()  # what the next prompt will hold
    is_disbelieved: bool = False  # something was claimed, was judged, and does not count


@value
class Settling:
    """A step that carried out a verdict: a commit, a push, a record."""

    key: str
    ok: bool = True
    detail: str = ""
    commit: str = ""


@value
class Iteration:
    """One iteration, with its turn and its judgement. Seconds of what has not ended count up to
    now."""

    number: int  # 0: the checks ran once before the first turn
    worker: str = ""  # the worker's run; "" where the run works itself
    task: str = ""
    title: str = ""
    mode: str = "implement"  # implement, review, review-fix; look: of iteration 0
    tries: int = 1  # turns; more than one where a turn was cut off or the provider failed
    began: float = 0.0
    ended: float | None = None  # None: it goes on
    agent_seconds: float = 0.0
    gate_seconds: float = 0.0
    wait_seconds: float = 0.0  # asleep, before it or in between: rate limits, pauses aside
    cost_usd: float | None = None
    usage: Usage = Usage()
    prompt: str = ""
    fed_back: tuple[str, ...] = ()  # what this prompt was told of the iteration before
    person_notes: tuple[str, ...] = ()  # what people told it: `ralph note`
    items: tuple[Item, ...] = ()
    items_left_out: int = 0  # in the middle
    tools: tuple[tuple[str, int, int], ...] = ()  # (name, calls, of these with an error)
    tool_calls: int = 0  # also where the stream was not read, and `tools` is not known
    tool_errors: int = 0
    agent: str = ""  # that took the last turn, with its model
    machines: tuple[str, ...] = ()  # of a fleet, on which it was tried, and how that went
    stream: str = ""  # the path of what the agent printed
    ending: str = ""  # exited, cut, unstartable; "" while it works, and where no agent did
    trouble: str = ""  # why it was cut, failed or could not start
    checks: tuple[Check, ...] = ()
    judgement: Judgement | None = None
    settled: tuple[Settling, ...] = ()
    commit: str = ""
    tree: str = ""  # that was proven
    diff: Diff = Diff()


class TaskState(StrEnum):
    """The column of a task on the board."""

    PENDING = "pending"
    ACTIVE = "in_progress"
    REVIEW = "review"
    BLOCKED = "blocked"
    DONE = "done"
    CANCELLED = "cancelled"


@value
class TaskRow:
    """A task of the backlog, or a story, as this run has left it."""

    id: str
    title: str = ""
    state: TaskState = TaskState.PENDING
    why: str = ""  # why it is blocked
    question: str = ""  # that a person can answer
    iterations: int = 0  # in this run
    seconds: float = 0.0  # of its iterations
    cost_usd: float | None = None
    commit: str = ""
    added: int = 0
    removed: int = 0
    files: int = 0
    evidence: tuple[str, ...] = ()
    worker: str = ""  # the last that was at it


@value
class Lane:
    """What one worker did, from when to when: a bar of the chart."""

    worker: str
    task: str
    began: float
    ended: float | None  # None: it is at work
    outcome: str = ""  # done, parked, or why it ended


@value
class Point:
    """What was spent up to a moment, and what was left to do then."""

    time: float
    dollars: float
    tokens_in: int
    tokens_out: int
    done: int  # tasks or approved stories
    open: int | None = None  # None where the list is not known


@value
class ReviewRow:
    """One review of a story."""

    time: float
    story: str
    outcome: str  # approved, changes_requested
    feedback: str = ""


@value
class PullRow:
    """A pull request, as the run has published it last."""

    number: int
    url: str
    branch: str
    base: str
    task: str
    merged: bool = False


@value
class Steered:
    """A request of a person's, and whether the run has heard it."""

    time: float
    request: str  # stop, stop-now, pause, resume, note
    origin: str
    text: str = ""
    task: str = ""
    heard: bool = True


@value
class Money:
    """What was spent of what may be."""

    iterations: int = 0
    max_iterations: int | None = None
    seconds: float = 0.0
    max_seconds: float | None = None
    waited: float = 0.0
    dollars: float | None = None  # None: no cost is known
    max_dollars: float | None = None
    uncounted: int = 0  # turns of unknown cost
    usage: Usage = Usage()


@value
class AgentRow:
    """What one of the run's agents did in it."""

    agent: str  # with its model, where one was asked for
    turns: int = 0
    cost_usd: float | None = None
    usage: Usage = Usage()


@value
class Outlook:
    """What is likely left of a run, after the iterations that are over: eight times of ten it lies
    between the first and the last of three numbers, and half the time below the one between. None
    is what nobody can tell."""

    words: str
    observations: int  # earlier runs, tasks or stories by which this was found
    iterations: tuple[float, float, float] | None = None
    seconds: tuple[float, float, float] | None = None
    cost_usd: tuple[float, float, float] | None = None
    limit_holds: bool | None = None  # None: that is uncertain
    after: tuple[int, float, float] = (0, 0.0, 0.0)  # iterations, seconds and dollars of those


@value
class Recap:
    """A run, whole."""

    run: str
    state: str  # running, waiting, paused, asking, crashed, unknown; or how it ended
    outcome: str  # one sentence: how it ended, or what it does now
    exit: int | None = None
    reason: str = ""  # completed, limit, blocked, ...
    why: str = ""
    judgement: Judgement | None = None  # that ended it, or keeps it from its next turn
    profile: str = ""  # harness, tasks, reviewed, supervise
    command: str = ""  # run, tasks run, prd run, supervise
    asked: str = ""  # what it was to do: the prompt, or which tasks
    agent: str = ""
    model: str = ""
    workspace: str = ""
    version: str = ""  # of ralph
    now: float = 0.0  # when this was gathered
    started: float | None = None
    ended: float | None = None
    workers: int = 1
    lead: str = ""  # of a worker: its run
    pid: int | None = None
    wake_at: float | None = None
    pending: str = ""  # asked for and not heard yet: stop, stop-now, pause
    spent: Money = Money()
    agents: tuple[AgentRow, ...] = ()  # those that took turns
    forecast: Outlook | None = None  # of a run that goes on
    evidence: tuple[str, ...] = ()
    tree: str = ""
    commit: str = ""
    branch: str = ""
    done: tuple[str, ...] = ()  # lines: what was achieved
    left: tuple[str, ...] = ()  # lines: what is not done, and why
    yours: tuple[str, ...] = ()  # lines: what waits for a person
    next: tuple[str, ...] = ()  # commands to type
    tasks: tuple[TaskRow, ...] = ()
    pulls: tuple[PullRow, ...] = ()
    iterations: tuple[Iteration, ...] = ()
    lanes: tuple[Lane, ...] = ()
    points: tuple[Point, ...] = ()
    reviews: tuple[ReviewRow, ...] = ()
    tools: tuple[tuple[str, int, int], ...] = ()
    steered: tuple[Steered, ...] = ()
    directory: str = ""
    journal: str = ""
    problem: str = ""  # what cannot be read of it
