"""The tools of `ralph mcp`: their names, what they take and what they promise. What each does is in
the function that stands beside it, which is imported when it is called."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ralph.kernel.value import value

INSTRUCTIONS = """\
Ralph runs a coding agent in a loop, in the background, until the work is done and proven by checks.
`start` returns a run at once; then call `wait` again and again until it says "ended". When it says
"question", read `questions` and `answer`: if you do not know, ask the person you work for. `report`
tells what a run did. Results say what to do `next`. A run goes on when this connection ends."""
LONGEST_PROMPT = 32_000  # characters: it is an argument of a process
LONGEST_WAIT = 60  # seconds: clients take longer calls for dead
_USUAL_WAIT = 45  # some give up after a minute


def _text(about: str, most: int, least: int = 0) -> Meta:
    return Meta(description=about, min_length=least or None, max_length=most)


Run = Annotated[str, _text("Part of its id; left out: the one that goes on, else the last.", 200)]
Directory = Annotated[str, _text("Below the server's root; left out: the root.", 4096)]
Prompt = Annotated[str, _text("What to do, for the agent's every turn.", LONGEST_PROMPT)]
Backlog = Annotated[Literal["tasks"], Meta(description='"tasks": work through the backlog.')]
Agent = Annotated[
    Literal["claude", "codex", "amp", "gemini", "opencode"],
    Meta(description="Left out: that of the project's settings, else one that is installed."),
]
Words = Annotated[str, _text("", LONGEST_PROMPT, 1)]
Task = Annotated[str, _text("The id of a task.", 200)]
Short = Annotated[str, Meta(max_length=200)]
Duration = Annotated[str, _text('Such as "30m" or "8h" of work.', 20)]
Iterations = Annotated[int, Meta(description="Turns of the agent; with tasks: of each.", ge=1)]
Dollars = Annotated[float, Meta(description="Dollars.", gt=0)]
Green = Annotated[bool, Meta(description="Done as soon as every guardrail passes. Not for tasks.")]
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_WAIT)]
Ignoring = Annotated[bool, Meta(description="Wait for the end, even if a task asks something.")]
Since = Annotated[
    str,
    _text('`position` of the last answer; "0.0": the beginning; left out: the last lines.', 60),
]
Events = Annotated[bool, Meta(description="Also what the agent says and does.")]
Now = Annotated[bool, Meta(description="Do not let the agent finish its turn.")]
MoreIterations = Annotated[str, _text('New total, or "+10": so many more.', 20)]
MoreTime = Annotated[str, _text('New total "8h", or "+2h".', 20)]
MoreDollars = Annotated[str, _text('New total "20", or "+5".', 20)]
Title = Annotated[str, _text("On one line.", 500, 1)]
Description = Annotated[str, _text("What the agent is told.", LONGEST_PROMPT)]
Completion = Annotated[
    str,
    _text(
        "What proves it: test:COMMAND, grep:TEXT, file:PATH, validate:SCRIPT; left out: the "
        "agent's word.",
        2000,
    ),
]
Priority = Annotated[int, Meta(description="Higher comes first.")]
Tasks = Annotated[list[Task], Meta(description="Must be done first.", max_length=100)]
Tags = Annotated[list[Short], Meta(max_length=100)]
Status = Literal["pending", "in_progress", "blocked", "review", "done", "cancelled"]
After = Annotated[str, _text("Only those behind this id.", 200)]
Offset = Annotated[int, Meta(description="Characters to leave out, to read a long one on.", ge=0)]


def _texts(said: object) -> list[str]:
    if isinstance(said, list):
        return said
    return [said] if isinstance(said, str) else []


class Input(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a tool takes; `serve` leaves out what is null."""

    def __post_init__(self) -> None:
        """ValueError, which msgspec passes on as its own, for what no file or process takes."""
        for said in msgspec.structs.astuple(self):
            if any("\0" in text for text in _texts(said)):
                raise ValueError("a text holds a NUL character")


class StartInput(Input):
    prompt: Prompt | None = None
    loop: Backlog | None = None
    directory: Directory | None = None
    agent: Agent | None = None
    model: Short | None = None
    max_iterations: Iterations | None = None
    max_time: Duration | None = None
    max_cost: Dollars | None = None
    until_green: Green = False


class WhichInput(Input):
    run: Run | None = None


class WaitInput(Input):
    run: Run | None = None
    seconds: Seconds = _USUAL_WAIT
    ignore_questions: Ignoring = False


class LogInput(Input):
    run: Run | None = None
    since: Since | None = None
    events: Events = False


class QuestionsInput(Input):
    pass


class AnswerInput(Input):
    text: Words
    task: Task | None = None
    run: Run | None = None


class NoteInput(Input):
    text: Words
    run: Run | None = None
    task: Task | None = None


class StopInput(Input):
    run: Run | None = None
    now: Now = False


class ResumeInput(Input):
    run: Run | None = None
    max_iterations: MoreIterations | None = None
    max_time: MoreTime | None = None
    max_cost: MoreDollars | None = None


class TasksAddInput(Input):
    title: Title
    description: Description | None = None
    completion: Completion | None = None
    priority: Priority | None = None
    blocked_by: Tasks = []
    tags: Tags = []
    directory: Directory | None = None


class TasksListInput(Input):
    status: Status | None = None
    after: After | None = None
    directory: Directory | None = None


class ReportInput(Input):
    run: Run | None = None
    offset: Offset = 0


@value
class Tool:
    """A tool."""

    name: str
    title: str
    about: str
    takes: type[Input]
    does: str  # where the function is
    looks: bool = True
    destroys: bool = False
    again: bool = True  # the same once more changes nothing
    deed: str = ""  # as a refusal to agents of runs names it; "": they may

    def told(self) -> dict[str, Any]:
        """The tool as a client gets it."""
        hints: dict[str, Any] = {"title": self.title, "readOnlyHint": self.looks}
        if not self.looks:
            hints |= {"destructiveHint": self.destroys, "idempotentHint": self.again}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.about,
            "inputSchema": _schema(self.takes),
            "annotations": {**hints, "openWorldHint": self.destroys},  # by the agent of a run
        }


def _schema(takes: type[Input]) -> dict[str, Any]:
    """The JSON schema of what a tool takes; of what may be null only the rest, which is shorter."""
    _, found = msgspec.json.schema_components([takes])
    schema = found[takes.__name__]
    properties = {}
    for name, taken in schema["properties"].items():
        some = [kind for kind in taken.get("anyOf", ()) if kind != {"type": "null"}]
        told = {**taken, **(some[0] if some else {})}
        told |= {"type": "string"} if "enum" in told else {}
        left_out = ("anyOf", *(key for key, said in told.items() if said in (None, "")))
        properties[name] = {key: said for key, said in told.items() if key not in left_out}
    required = {"required": schema["required"]} if schema["required"] else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


_LOOKING, _STEERING = "ralph.mcp.looking:", "ralph.mcp.steering:"
_ASKING, _READING = "ralph.mcp.asking:", "ralph.mcp.reading:"
TOOLS = (
    Tool(
        "start",
        "Start a run",
        "Start a run in the background: an agent works, in a loop, until the work is done and the "
        'project\'s checks pass. Give `prompt`, or `loop`: "tasks". Returns the run at once; then '
        "`wait`. One run at a time in a directory.",
        StartInput,
        f"{_STEERING}start",
        looks=False,
        deed="start a run",
        destroys=True,
        again=False,
    ),
    Tool(
        "status",
        "Look at runs",
        "What a run does, what it has spent, how it ended and what comes next. Without `run`: all "
        "that go on, and the last ones.",
        WhichInput,
        f"{_LOOKING}status",
    ),
    Tool(
        "wait",
        "Wait for a run",
        "Wait until a run ends, a task of it asks something, or the seconds are over; `returned` "
        "says which. Call it again while that is `time`.",
        WaitInput,
        f"{_LOOKING}wait",
    ),
    Tool(
        "log",
        "Read a run's log",
        "The lines of a run's log behind a position. Pass `position` of the answer as `since` to "
        "go on from there: nothing is left out or told twice.",
        LogInput,
        f"{_READING}log",
    ),
    Tool(
        "questions",
        "Open questions",
        "What agents want to know from you before they go on. Answer with `answer`; what you do "
        "not know, ask the person you work for.",
        QuestionsInput,
        f"{_ASKING}questions",
    ),
    Tool(
        "answer",
        "Answer a question",
        "Answer what a task has asked; it is worked on again, and its next prompt holds the "
        "answer. If its run has ended, `resume` it afterwards.",
        AnswerInput,
        f"{_STEERING}answer",
        looks=False,
        deed="answer a question",
        again=False,
    ),
    Tool(
        "note",
        "Tell a run something",
        "The agent's next prompt holds the text, once. The turn under way is not disturbed.",
        NoteInput,
        f"{_STEERING}note",
        looks=False,
        deed="leave a note for a run",
        again=False,
    ),
    Tool(
        "stop",
        "Stop a run",
        "End a run after its current operation, or `now`. `resume` goes on with it later.",
        StopInput,
        f"{_STEERING}stop",
        looks=False,
        deed="stop a run",
        destroys=True,
    ),
    Tool(
        "pause",
        "Pause a run",
        "Hold a run before its next turn, until `resume`.",
        WhichInput,
        f"{_STEERING}pause",
        looks=False,
        deed="pause a run",
    ),
    Tool(
        "resume",
        "Go on with a run",
        "Go on with a run that is paused, was stopped, or has ended before it was done. One that "
        "is at a limit needs a higher one.",
        ResumeInput,
        f"{_STEERING}resume",
        looks=False,
        deed="resume a run",
        destroys=True,
    ),
    Tool(
        "tasks_add",
        "Add a task",
        "Add a task to the backlog that `start` with `loop` works through. With `completion` it is "
        "done when that passes, whatever the agent says.",
        TasksAddInput,
        f"{_STEERING}tasks_add",
        looks=False,
        again=False,
    ),
    Tool(
        "tasks_list",
        "List the tasks",
        "The tasks of the backlog, with status, question and what blocks them.",
        TasksListInput,
        f"{_ASKING}tasks_list",
    ),
    Tool(
        "report",
        "Report of a run",
        "What a run did, as Markdown: how it ended, tasks, iterations with their verdicts, cost.",
        ReportInput,
        f"{_READING}report",
    ),
)
