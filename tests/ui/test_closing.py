"""The last lines of a run, for each reason there is."""

from dataclasses import replace

import pytest

from ralph.kernel.claims import Claim
from ralph.kernel.events import Failure
from ralph.kernel.facts import (
    Assigned,
    Began,
    Decided,
    Ended,
    Fact,
    Landed,
    Proved,
    Returned,
    Settled,
    Started,
    Step,
)
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import replay
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Accept, Boundary, Continue, Park, Reason, Stop, Wait
from ralph.review.law import APPROVED, CHANGES_REQUESTED
from ralph.review.stats import Review
from ralph.ui.closing import closing_lines
from ralph.ui.lines import Briefing

MARKER = "<response>DONE</response>"
BRIEFING = Briefing(iterations=2, journal="/state/journal.jsonl", marker=MARKER)
JOURNAL = "Journal    /state/journal.jsonl"
TASKS = replace(BRIEFING, tasks=True, iterations=10, marker="")
STORIES = replace(BRIEFING, stories=True, marker="")
QUIET = Turn(cost_usd=0.06, stream="/state/002.stream")
LIMITED = Turn(exit_code=1, failure=Failure("too many requests", 429))
CLAIMED = replace(QUIET, claims=(Claim("<response>NOT YET</response>"),))
TREE = "tree 1453f4b399c8"
UNTOLD = "--no-tell-completion keeps the agent from being told"
SPENT = "2 iterations in 12s, $0.12"
DONE = Stop(Reason.COMPLETED, "nothing is left to do", (f"claimed: {MARKER}", "passed: make test"))
USED_UP = Stop(Reason.LIMIT, "2 iterations used up")


def history(
    first: Turn = CLAIMED, second: Turn = QUIET, limits: Limits = Limits(iterations=2)
) -> list[Fact]:
    """Two iterations of six seconds."""
    return [
        Started(100.0, "r1", "harness", "/w", 7, "1.0", limits=limits),
        Began(100.0, 1, Assignment("prompt")),
        Ended(106.0, first),
        Decided(106.0, Boundary.CLOSING, Continue()),
        Settled(106.0, Continue()),
        Began(106.0, 2, Assignment("prompt")),
        Ended(112.0, second),
    ]


def closing(
    stop: Stop,
    *facts: Fact,
    turns: tuple[Turn, Turn] = (CLAIMED, QUIET),
    briefing: Briefing = BRIEFING,
) -> list[str]:
    state = replay([*history(*turns), *facts, Settled(112.0, stop)])
    return [line.text for line in closing_lines(stop, state, briefing)]


def committed(subject: str, commit: str) -> Step:
    return Step(112.0, "scm:commit", detail=subject, commit=commit)


# ------------------------------------------------------------------ completed


def test_a_completed_run_tells_its_cost_the_work_the_proof_and_how_to_look_at_it() -> None:
    proof = Proved(112.0, "1453f4b399c8aaaa", gates=("make test",), yours=("notes.md", "a.py"))
    made = committed("Add dates", "879d392b64ffbbbb")
    pushed = Step(112.0, "scm:push", commit="879d392b64ffbbbb")
    assert closing(DONE, proof, made, pushed) == [
        f"Completed after {SPENT}.",
        "Done       879d392b64ff  Add dates",
        "Proof      make test passed on tree 1453f4b399c8; ignored files aside",
        "Yours      notes.md, a.py: not committed before the run, and not by it",
        JOURNAL,
        "Next       git show 879d392b64ff",
    ]


def test_of_many_commits_the_newest_are_named() -> None:
    made = [committed(f"Step {n}", f"{n}" * 40) for n in range(1, 6)]
    assert closing(DONE, *made)[1:5] == [
        "Done       555555555555  Step 5",
        "           444444444444  Step 4",
        "           333333333333  Step 3",
        "           and 2 more",
    ]
    assert closing(DONE, *made)[-1] == "Next       git log --stat 111111111111^.."


def test_four_rows_are_shown_rather_than_three_and_one_more() -> None:
    made = [committed(f"Step {n}", f"{n}" * 40) for n in range(1, 5)]
    assert closing(DONE, *made)[4] == "           111111111111  Step 1"


@pytest.mark.parametrize(
    ("evidence", "proved", "lines"),
    [
        (
            ("passed: protect", "passed: make test"),
            True,
            [
                f"Proof      make test passed on {TREE}, not committed; ignored files aside",
                JOURNAL,
                "Next       git status  # the work is in your files, and not committed",
            ],
        ),
        (
            (f"claimed: {MARKER}", "passed: make test"),
            False,
            ["Proof      make test passed (no tree: not a git repository)", JOURNAL],
        ),
        (
            (f"claimed: {MARKER}", "passed: protect"),
            False,
            [
                "Proof      only the agent's word: no guardrail is configured",
                JOURNAL,
                "Next       ralph init  # adds checks, so that the next run proves its work",
            ],
        ),
        ((), False, [JOURNAL]),
    ],
    ids=["not committed", "no git", "no check", "nothing was left to do"],
)
def test_what_stands_behind_the_work(
    evidence: tuple[str, ...], proved: bool, lines: list[str]
) -> None:
    facts = (Proved(112.0, "1453f4b399c8aaaa"),) if proved else ()
    assert closing(replace(DONE, evidence=evidence), *facts)[1:] == lines


def test_what_could_not_be_pushed_is_said() -> None:
    """ "A failed SCM task is in the last lines and in `status`: "not pushed: …"."""
    said = "To ../remote\n ! [rejected]  main -> main (fetch first)\nerror: failed to push"
    steps = (
        Step(112.0, "scm:commit", ok=False, detail="tabs"),
        Step(112.0, "scm:push", ok=False, detail=said),
        Step(112.0, "scm:tag x", ok=False),
    )
    assert closing(DONE, *steps)[2:-1] == [
        "Not done   Not committed: tabs",
        "           Not pushed: ! [rejected]  main -> main (fetch first)",
        "           SCM task tag x failed: no reason given",
    ]


def test_changes_that_wait_for_a_person_are_named() -> None:
    landed = Landed(112.0, kept=True, count=2, held=("deploy.sh",), saved="/state/held")
    assert "Yours      deploy.sh: for your review, in /state/held" in closing(DONE, landed)


# ------------------------------------------------------------------ stopped


@pytest.mark.parametrize(
    ("stop", "why", "next_one"),
    [
        (
            Stop(Reason.CONFIG, "prompt.md: no such file"),
            "prompt.md: no such file (config)",
            "ralph resume  # once that is fixed",
        ),
        (
            Stop(Reason.INTERRUPTED, "interrupted"),
            "interrupted",
            "ralph resume  # what was finished is kept",
        ),
        (
            Stop(Reason.BUG),
            "bug",
            "This is a fault of Ralph, not of your work: please report it.",
        ),
    ],
)
def test_a_run_that_stopped_says_why_and_what_to_do(stop: Stop, why: str, next_one: str) -> None:
    assert closing(stop) == [f"Stopped: {why}. {SPENT}.", JOURNAL, f"Next       {next_one}"]


def test_refused_permissions_are_set_by_init() -> None:
    barred = replace(QUIET, denied=("Write",))
    lines = closing(Stop(Reason.CONFIG, "permission denied: Write"), turns=(QUIET, barred))
    assert (
        lines[-1]
        == "Next       ralph init  # sets the agent's permission flags; then: ralph resume"
    )


@pytest.mark.parametrize(
    ("reason", "next_one"),
    [
        (Reason.BLOCKED, "ralph resume  # once you have answered in the prompt or in the files"),
        (
            Reason.STALLED,
            "ralph logs  # read what the agent said, then make the prompt clearer",
        ),
        (
            Reason.FAILING,
            "ralph logs  # fix what the agent complains about, then: ralph resume",
        ),
    ],
)
def test_where_the_agents_words_help_they_are_named(reason: Reason, next_one: str) -> None:
    assert closing(Stop(reason, "so it is.")) == [
        f"Stopped: so it is ({reason.value}). {SPENT}.",
        "Output     /state/002.stream",
        JOURNAL,
        f"Next       {next_one}",
    ]


@pytest.mark.parametrize(
    ("limits", "more"),
    [
        (Limits(iterations=2), " -m +10"),
        (Limits(dollars=0.1), " --max-cost +1"),
        (Limits(seconds=12), " --max-time +1h"),
        (Limits(iterations=9), ""),
    ],
)
def test_at_a_limit_the_next_command_raises_it(limits: Limits, more: str) -> None:
    state = replay([*history(limits=limits), Settled(112.0, USED_UP)])
    *_, last = closing_lines(USED_UP, state, BRIEFING)
    assert last.text == f"Next       ralph resume{more}  # goes on; what was spent stays counted"


def test_what_the_last_checks_found_is_not_done() -> None:
    found = (
        Finding("make test", "it failed", code=2, log=".ralph/g.log"),
        Finding("protect", "Protected path x was changed.\nLeave it alone."),
    )
    decided = Decided(112.0, Boundary.CLOSING, Continue(), findings=found, checked=True)
    assert closing(USED_UP, decided)[1:3] == [
        "Not done   make test: exit code 2, output in .ralph/g.log",
        "           protect: Protected path x was changed.",
    ]


@pytest.mark.parametrize(
    ("untold", "line"),
    [
        (False, f"Not done   Nothing said {MARKER}"),
        (
            True,
            f"Not done   Nothing said {MARKER}; {UNTOLD}",
        ),
    ],
)
def test_a_limit_without_any_tag_is_told_as_that(untold: bool, line: str) -> None:
    lines = closing(USED_UP, turns=(QUIET, QUIET), briefing=replace(BRIEFING, untold=untold))
    assert lines[1] == line


@pytest.mark.parametrize(
    ("stop", "turns", "marker"),
    [
        (USED_UP, (CLAIMED, QUIET), MARKER),
        (Stop(Reason.STALLED, "x"), (QUIET, QUIET), MARKER),
        (Stop(Reason.LIMIT, "waiting"), (QUIET, LIMITED), MARKER),
        (USED_UP, (QUIET, QUIET), ""),
    ],
    ids=["a tag was written", "stalled", "rate limited", "the checks decide"],
)
def test_nobody_else_hears_of_the_tag(stop: Stop, turns: tuple[Turn, Turn], marker: str) -> None:
    lines = closing(stop, turns=turns, briefing=replace(BRIEFING, marker=marker))
    assert not any("Nothing said" in line for line in lines)


# ------------------------------------------------------------------ tasks and stories


def task_history(*verdicts: Accept | Park) -> list[Fact]:
    """Tasks of one iteration each, and what became of them."""
    facts: list[Fact] = []
    for number, verdict in enumerate(verdicts, 1):
        task = Assignment(f"T-{number}", f"Title {number}")
        facts += [Began(100.0 + number, number, task), Ended(101.0 + number, QUIET)]
        facts += [Decided(101.0 + number, Boundary.CLOSING, verdict)]
        if isinstance(verdict, Accept):
            commit = f"{number}" * 40
            detail = f"T-{number}: Title {number}" if number != 2 else ""
            facts += [Step(101.0 + number, "commit", detail=detail, commit=commit)]
        facts += [Settled(101.0 + number, verdict)]
    return facts


def of_tasks(stop: Stop, facts: list[Fact], briefing: Briefing = TASKS) -> list[str]:
    state = replay([*facts, Settled(110.0, stop)])
    return [line.text for line in closing_lines(stop, state, briefing)]


def test_tasks_are_told_with_their_commits() -> None:
    facts = task_history(Accept(("x",)), Accept(("x",)))
    lines = of_tasks(Stop(Reason.COMPLETED, "nothing is left to do", ("x",)), facts)
    assert lines[0].endswith(": 2 tasks done.")
    assert lines[1:] == [
        "Done       T-2  Title 2",  # there was nothing more to commit
        "           T-1  111111111111  Title 1",
        JOURNAL,
        "Next       git show 111111111111",
    ]


def test_tasks_that_wait_are_told_with_what_brings_them_back() -> None:
    waiting = (
        "T-1 asks: tabs; or spaces?",
        "T-2 is blocked: task limit; 2 iterations used up",
        "T-3 waits for T-2",
    )
    facts = task_history(Park("tabs; or spaces?"), Park("task limit"))
    lines = of_tasks(Stop(Reason.BLOCKED, "; ".join(waiting)), facts)
    assert lines[0].startswith("Stopped: what is left needs you (blocked). 2 iterations in ")
    assert lines[0].endswith(": 0 tasks done, 2 left to you.")
    assert lines[1:] == [
        f"Not done   {waiting[0]}",
        f"           {waiting[1]}",
        f"           {waiting[2]}",
        JOURNAL,
        'Next       ralph tasks answer T-1 "..."',
        "           ralph tasks edit T-2 --status pending",
        "           ralph tasks run  # afterwards; all that wait: ralph tasks list",
    ]


def test_one_task_that_waits_is_the_reason_itself() -> None:
    lines = of_tasks(Stop(Reason.BLOCKED, "T-1 asks: which port?"), task_history(Park("which?")))
    assert lines[0].startswith("Stopped: T-1 asks: which port? (blocked). 1 iteration in ")
    assert lines[1:4] == [
        "Not done   T-1: which?",
        JOURNAL,
        'Next       ralph tasks answer T-1 "..."',
    ]


def test_a_task_in_the_middle_is_named() -> None:
    facts = [*task_history(Park("too hard")), Began(103.0, 2, Assignment("T-2"))]
    lines = of_tasks(Stop(Reason.INTERRUPTED, "asked to stop"), facts)
    assert lines[1:3] == [
        "Not done   T-1: too hard",
        "           T-2 is in the middle: iteration 1/10",
    ]


def test_tasks_of_workers_are_told_too() -> None:
    sent = [Assigned(100.0, Assignment(f"T-{n}", f"Title {n}"), f"r-{n}") for n in (1, 2)]
    back = Returned(101.0, "T-2", "r-2", Accept(("x",)), Spent(3), "", "Title 2", "2" * 40)
    lost = Returned(102.0, "T-1", "r-1", Park("too hard"))
    lines = of_tasks(Stop(Reason.LIMIT, "1h of time used up"), [*sent, back, lost])
    assert lines[1:] == [
        "Done       T-2  222222222222  Title 2",
        "Not done   T-1: too hard",
        JOURNAL,
        "Next       ralph resume  # goes on; what was spent stays counted",
    ]


def test_stories_are_told_by_their_last_review() -> None:
    facts: list[Fact] = [Began(100.0, 1, Assignment("US-3"))]
    for name, outcome in (
        ("US-1", CHANGES_REQUESTED),
        ("US-2", CHANGES_REQUESTED),
        ("US-1", APPROVED),
    ):
        detail = Review(name, outcome, 1, "No test.\nAdd one.", "b").detail()
        facts.append(Step(101.0, "review", detail=detail))
    lines = of_tasks(USED_UP, [*facts, Step(101.0, "review")], STORIES)
    assert lines[1:] == [
        "Done       US-1 is approved",
        "Not done   US-2 needs changes: No test.",
        "           US-3 is not approved yet",
        JOURNAL,
        "Next       ralph resume  # goes on; what was spent stays counted",
    ]


@pytest.mark.parametrize(
    ("briefing", "last"),
    [
        (STORIES, "Next       ralph prd stats  # what the reviews found; then: ralph prd archive"),
        (replace(BRIEFING, attempts=True), JOURNAL),
    ],
)
def test_what_ended_it_well_is_what_is_done(briefing: Briefing, last: str) -> None:
    stop = Stop(Reason.COMPLETED, "so it is", ("it is so",))
    lines = of_tasks(stop, [], briefing)
    assert (lines[1], lines[-1]) == ("Done       it is so", last)


# ------------------------------------------------------------------ what it cost


def test_waiting_is_not_spent_and_an_unknown_cost_is_not_shown() -> None:
    """ADR 1: `Wait` never counts an iteration or time asleep."""
    facts: list[Fact] = [
        Started(100.0, "r1", "harness", "/w", 7, "1.0"),
        Began(100.0, 1, Assignment("prompt")),
        Ended(103.4, Turn()),
        Decided(103.4, Boundary.CLOSING, Wait(403.4, "limit")),
        Began(403.4, 1, Assignment("prompt")),
    ]
    stop = Stop(Reason.COMPLETED)
    [line] = closing_lines(stop, replay(facts), Briefing())
    assert line.text == "Completed after 1 iteration in 3.4s and 5m of waiting."


def test_what_is_not_known_about_the_cost_is_said_beside_what_is() -> None:
    """ADR 22: never less than it costs."""
    facts: list[Fact] = [
        Began(100.0, 1, Assignment("prompt")),
        Ended(101.0, Turn(cost_usd=5.0)),
        Ended(102.0, Turn()),
    ]
    [line] = closing_lines(Stop(Reason.COMPLETED), replay(facts), Briefing())
    assert line.text.endswith(", $5.00 and 1 turn of unknown cost.")
