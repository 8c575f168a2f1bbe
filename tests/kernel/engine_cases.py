"""Arbitrary cases and histories, and one policy of each profile."""

from dataclasses import replace

from hypothesis import strategies as st

from kits.loop_fakes import FakeWorkbench
from ralph.kernel.case import Case
from ralph.kernel.claims import find_claims
from ralph.kernel.events import Failure, Usage
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.ports import Gate, Policy
from ralph.kernel.roster import Roster, StepDown, rostered
from ralph.kernel.rules import Patience
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Assignment, Backlog, Mode, ReviewStatus, Status, Task
from ralph.kernel.turn import Ending, Pulse, Turn
from ralph.kernel.verdict import Boundary, Feedback, Placement
from ralph.kernel.world import Signals, Snapshot
from ralph.loops.backlog.policy import Bounds, tasks
from ralph.loops.prompt.policy import Scm, harness
from ralph.loops.session.policy import session
from ralph.loops.stories.policy import reviewed
from ralph.loops.stories.prompt import StoryTerms
from ralph.loops.supervise.policy import supervise
from ralph.testing.fakes import FakeWorld

SMALL = Limits(iterations=6, seconds=500.0, dollars=4.0)
PATIENT = Patience(turn=60.0, idle=20.0, stop_grace=5.0, max_wait=1000.0, stall_after=3)

RELAYED = replace(PATIENT, roster=Roster(fallbacks=1, after=60.0, step_down=StepDown(0.5, "haiku")))


def policies(
    world: FakeWorld, gates: tuple[Gate, ...] = (), scm: Scm | None = None
) -> dict[str, Policy]:
    """One policy of each profile, with every limit small."""
    bench = FakeWorkbench(world)
    return {
        "harness": harness(SMALL, PATIENT, gates=gates, scm=scm),
        "relay": rostered(harness(SMALL, RELAYED, gates=gates, scm=scm), RELAYED.roster, 4.0),
        "tasks": tasks(bench, Bounds(SMALL, SMALL), patience=PATIENT, gates=gates),
        "supervise": supervise(max_restarts=4, patience=PATIENT),
        "reviewed": reviewed(limits=SMALL, patience=PATIENT, gates=gates),
        "unreviewed": reviewed(
            limits=SMALL, patience=PATIENT, gates=gates, terms=StoryTerms(15, skip_review=True)
        ),
        "session": session(max_iterations=4, gates=gates),
    }


WORDS = (
    "",
    "working",
    "DONE",
    "<response>DONE</response>",
    "<response>no</response> <response>DONE</response>",
    "<promise>DONE</promise>",
    "<promise>COMPLETE</promise>",
    "<promise>BLOCKED: no key</promise>",
    '<result>{"status":"failed"}</result>',
    '<result>{"status":"complete"}</result>',
)
MONEY = st.sampled_from([None, 0.0, 0.25, 1.5])
TIMES = st.sampled_from([0.0, 1.0, 59.0, 60.0, 999.0, 5000.0])
FAILURES = st.builds(
    Failure,
    st.just("API error"),
    st.sampled_from([None, 401, 429, 500, 529]),
    retry_after=st.sampled_from([None, 0.0, 12.0]),
    resets_at=st.sampled_from([None, 900.0, 1400.0]),
)


def _spoken(turn: Turn) -> Turn:
    return replace(turn, claims=find_claims(turn.text))


TURNS = st.builds(
    Turn,
    st.sampled_from([Ending.EXITED, Ending.EXITED, Ending.EXITED, Ending.CUT, Ending.UNSTARTABLE]),
    st.sampled_from([0, 0, 0, 1, 42, None]),
    st.just("why it ended"),
    st.none() | st.none() | FAILURES,
    text=st.sampled_from(WORDS),
    overheard=st.sampled_from([(), find_claims("<promise>DONE</promise>")]),
    question=st.sampled_from([None, None, None, "Which port?"]),
    tools=st.integers(0, 2),
    cost_usd=MONEY,
    usage=st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
).map(_spoken)

IDS = st.sampled_from(["a", "b", "c"])
TASKS = st.builds(
    Task,
    IDS,
    status=st.sampled_from([Status.PENDING, Status.PENDING, *Status]),
    priority=st.integers(-1, 2),
    blocked_by=st.lists(IDS | st.just("unknown"), max_size=2).map(tuple),
    limits=st.builds(Limits, st.sampled_from([None, 1]), st.sampled_from([None, 60.0])),
    check=st.sampled_from(["", "make test"]),
    review=st.sampled_from([None, *ReviewStatus]),
    passes=st.booleans(),
)
BACKLOGS = st.builds(
    Backlog,
    st.lists(TASKS, max_size=3, unique_by=lambda task: task.id).map(tuple),
    st.sampled_from([None, None, None, "tasks.jsonl: no such file"]),
)
SIGNALS = st.builds(
    Signals,
    st.sampled_from([0, 0, 0, 1, 2]),
    st.sampled_from([None, 990.0]),
    st.booleans(),
    st.sampled_from([None, None, 600.0]),
    st.sampled_from([None, None, "a webhook"]),
    st.sampled_from([None, None, "DONE is a directory"]),
)
FINDINGS = st.lists(
    st.builds(Finding, st.just("make test"), st.just("it fails"), st.sampled_from(Placement)),
    max_size=2,
).map(tuple)
SPENT = st.builds(Spent, st.integers(0, 9), TIMES, st.sampled_from([0.0, 3.9, 4.0]))
COUNTS = st.sampled_from([0, 1, 2, 3, 9, 5000])
SNAPSHOTS = st.builds(Snapshot, st.sampled_from(["", "one", "two"]))
STATES = st.builds(
    RunState,
    time=st.sampled_from([0.0, 990.0, 1000.0]),
    spent=SPENT,
    spent_before_task=SPENT,
    iteration=st.integers(1, 9),
    again=st.booleans(),
    cut_off=st.booleans(),
    assignment=st.builds(Assignment, IDS, st.just("a title"), st.sampled_from(Mode)),
    snapshot=SNAPSHOTS,
    findings=FINDINGS,
    feedback=st.lists(st.builds(Feedback, st.just("told")), max_size=1).map(tuple),
    failures=COUNTS,
    stalls=COUNTS,
    holds=COUNTS,
    waits=COUNTS,
    waited=TIMES,
    done=st.frozensets(IDS, max_size=3),
    parked=st.lists(st.tuples(IDS, st.just("why")), max_size=2).map(tuple),
)


@st.composite
def cases(draw: st.DrawFn, boundary: Boundary) -> Case:
    """Whatever a survey could find at this boundary."""
    turn = TURNS if boundary in (Boundary.STOPPING, Boundary.CLOSING) else st.none()
    pulse = st.builds(Pulse, TIMES, TIMES, st.none() | TIMES)
    return Case(
        boundary,
        replace(draw(STATES), turn=draw(turn)),
        now=1000.0,
        signals=draw(SIGNALS),
        backlog=draw(BACKLOGS),
        snapshot=draw(SNAPSHOTS),
        findings=draw(FINDINGS),
        passed=draw(st.sampled_from([(), ("make test",)])),
        checked=draw(st.booleans()),
        pulse=draw(pulse) if boundary is Boundary.WATCHING else None,
    )
