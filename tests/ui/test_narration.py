"""Histories of facts in, Ralph's own lines out."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ralph.kernel.claims import Claim
from ralph.kernel.events import Failure
from ralph.kernel.facts import (
    Asked,
    Began,
    Checked,
    Checking,
    Decided,
    Ended,
    Fact,
    Landed,
    Launching,
    Resumed,
    Settled,
    Started,
    Step,
)
from ralph.kernel.findings import Finding
from ralph.kernel.state import NEW, STEP_DOWN, fold, replay
from ralph.kernel.tasks.task import Assignment, Mode
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.verdict import (
    Accept,
    Bench,
    Boundary,
    Cause,
    Continue,
    Park,
    Placement,
    Verdict,
    Wait,
)
from ralph.kernel.world import (
    ANSWER,
    NOTE,
    PAUSE,
    RESUME,
    STOP,
    STOP_NOW,
    Origin,
    Request,
    Signals,
)
from ralph.ui.lines import Briefing
from ralph.ui.narration import heard, narrate

NOW = 1_700_000_000.0
BRIEFING = Briefing(
    iterations=10,
    guardrails=frozenset({"make lint", "make test"}),
    permission_hint="Add --dangerously-skip-permissions to agent.flags.",
)
STARTED = Started(NOW, "r1", "harness", "/w", 7, "1.0")
BEGAN = Began(NOW, 1, Assignment("prompt"))
DONE = Claim("<response>DONE</response>")
FAILED_TEST = Finding("make test", "it failed", code=2, log=".ralph/guardrail_001_make_test.log")


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def told(*history: Fact, verbose: bool = False, briefing: Briefing = BRIEFING) -> list[str]:
    """What is said about the last fact of a history."""
    *earlier, last = history
    before = replay(earlier, NEW)
    lines = narrate(last, before, fold(before, last), briefing)
    return [line.text for line in lines if verbose or not line.verbose]


def ended(turn: Turn) -> list[str]:
    return told(STARTED, BEGAN, Ended(NOW + turn.seconds, turn))


def decided(
    verdict: Verdict,
    turn: Turn = Turn(),
    *,
    findings: tuple[Finding, ...] = (),
    notes: tuple[str, ...] = (),
    verbose: bool = False,
) -> list[str]:
    fact = Decided(NOW, Boundary.CLOSING, verdict, findings, notes=notes)
    return told(STARTED, BEGAN, Ended(NOW, turn), fact, verbose=verbose)


def test_an_iteration_starts() -> None:
    """H §Verbose Output: `[ralph] Iteration 1/10 starting`."""
    assert told(STARTED, BEGAN) == ["Iteration 1/10 starting"]
    assert told(STARTED, BEGAN, briefing=Briefing()) == ["Iteration 1 starting"]


def test_an_iteration_that_is_taken_again_says_so() -> None:
    wait = Decided(NOW, Boundary.CLOSING, Wait(NOW + 30, "overloaded"))
    history = (STARTED, BEGAN, Ended(NOW, Turn()), wait, BEGAN)
    assert told(*history) == ["Iteration 1/10 starting again"]


def test_a_resumed_run_says_where_it_goes_on() -> None:
    resumed = Resumed(NOW, 8)
    assert told(STARTED, BEGAN, resumed) == ["Resumed: iteration 1/10 was cut off"]
    assert told(STARTED, BEGAN, Ended(NOW, Turn()), resumed) == ["Resumed after 1 iteration"]


def test_the_run_is_named_to_the_verbose() -> None:
    assert told(STARTED) == []
    assert told(STARTED, verbose=True) == ["Run r1 (harness) in /w"]


# ------------------------------------------------------------------ guardrails


def test_a_guardrail_starts_and_passes() -> None:
    """H §Verbose Output: `Running guardrail: …`, `Guardrail exited with code 0 (1.2s)`."""
    assert told(Checking(NOW, "make test")) == ["Running guardrail: make test"]
    assert told(Checked(NOW, "make test", 1.2)) == ["Guardrail exited with code 0 (1.2s)"]


@pytest.mark.parametrize("placement", Placement)
def test_a_guardrail_fails(placement: Placement) -> None:
    """H §Guardrails: "Print guardrail start/end, exit status, and fail action used"."""
    finding = replace(FAILED_TEST, placement=placement)
    [line] = told(Checked(NOW, "make test", 0.31, (finding,)))
    assert (
        line
        == f"Guardrail exited with code 2 (0.3s): fail action {placement}, output in {finding.log}"
    )


def test_a_guardrail_whose_log_could_not_be_written() -> None:
    finding = replace(FAILED_TEST, log="")
    [line] = told(Checked(NOW, "make test", 0.3, (finding,)))
    assert line == "Guardrail exited with code 2 (0.3s): fail action APPEND"


def test_other_gates_speak_only_when_they_object() -> None:
    assert told(Checking(NOW, "protect"), verbose=True) == []
    assert told(Checked(NOW, "protect", 0.01)) == []
    assert told(Checked(NOW, "protect", 0.01), verbose=True) == ["protect: nothing found (0.0s)"]
    finding = Finding("protect", "Makefile was changed and is put back.\nMore.")
    assert told(Checked(NOW, "protect", 0.01, (finding,))) == [
        "protect: Makefile was changed and is put back."
    ]


# ------------------------------------------------------------------ turns


@pytest.mark.parametrize(
    ("turn", "line"),
    [
        (Turn(exit_code=3, seconds=3.4), "Agent exited with code 3 (3.4s)"),
        (Turn(exit_code=137, seconds=3.4), "Agent exited with code 137 (SIGKILL) (3.4s)"),
        (Turn(exit_code=159, seconds=0.0), "Agent exited with code 159 (SIGSYS) (0.0s)"),
        (Turn(exit_code=161), "Agent exited with code 161 (0.0s)"),
        (
            Turn(exit_code=1, failure=Failure("API Error: 500", 500), seconds=12),
            "Agent failed (12s, exit code 1): API Error: 500",
        ),
        (Turn(failure=Failure("no result")), "Agent failed (0.0s): no result"),
        (
            Turn(Ending.CUT, None, "silent for 1m", seconds=60),
            "Agent was cut off (1m): silent for 1m",
        ),
        (
            Turn(Ending.UNSTARTABLE, None, "claude: not found"),
            "Agent could not be started: claude: not found",
        ),
    ],
)
def test_a_failed_turn_says_why_in_one_line(turn: Turn, line: str) -> None:
    assert ended(turn) == [line]


def test_the_last_lines_of_stderr_follow_a_failure() -> None:
    stderr = "\n\n".join(f"line {n}" for n in range(1, 9))
    assert ended(Turn(exit_code=1, stderr=stderr))[1:] == [
        f"  stderr: line {n}" for n in range(4, 9)
    ]
    assert ended(Turn(text="Done.", stderr=stderr)) == []
    said = told(STARTED, BEGAN, Ended(NOW, Turn(text="Done.", stderr="late\n")), verbose=True)
    assert said[1:] == ["  stderr: late"]


def test_what_an_agent_printed_beside_its_stream_follows_a_failure() -> None:
    """ADR 5: "the agent's last words ... Both are shown"."""
    turn = Turn(exit_code=1, failure=Failure("no result"), stray="Invalid key\n", stderr="bye")
    assert ended(turn)[1:] == ["  stdout: Invalid key", "  stderr: bye"]


def test_an_agent_that_says_nothing_is_noticed() -> None:
    """Bad input: an agent that prints nothing at all; its stderr may say why."""
    assert ended(Turn(stderr="no model\n")) == ["Agent said nothing (0.0s)", "  stderr: no model"]


def test_denied_permissions_name_the_tools_and_the_flag() -> None:
    """ADR 15: "when a stream reports denied permissions the flag to add is named"."""
    assert ended(Turn(tools=3, denied=("Bash", "Write", "Bash"))) == [
        "Permission denied: Bash, Write. Add --dangerously-skip-permissions to agent.flags."
    ]


def test_timing_and_skipped_lines_are_for_the_verbose() -> None:
    """H §Verbose Output: "Timing information for each operation"."""
    turn = Turn(seconds=3.4, tools=1, unknown=2, cost_usd=0.12)
    assert told(STARTED, BEGAN, Ended(NOW, turn), verbose=True) == [
        "Agent finished (3.4s, 1 tool call, $0.12)",
        "2 lines of the agent's output not understood and skipped",
    ]
    assert ended(turn) == []


# ------------------------------------------------------------------ verdicts


def test_a_rate_limit_names_when_it_goes_on() -> None:
    limited = Turn(exit_code=1, failure=Failure("usage limit reached.", 429))
    assert decided(Wait(NOW + 29, "usage limit reached."), limited) == [
        "Rate limited: usage limit reached; waiting until 22:13:49 (29s)"
    ]


def test_an_overloaded_provider_is_named_with_the_tries() -> None:
    """ADR 11: "ten times in a row at most"."""
    busy = Turn(exit_code=1, failure=Failure("Overloaded.", 529))
    assert decided(Wait(NOW + 29, "Overloaded (try 1 of 10)"), busy) == [
        "Provider not available: Overloaded (try 1 of 10); waiting until 22:13:49 (29s)"
    ]


def test_a_long_pause_between_failed_turns_is_told() -> None:
    """ADR 11: "Failed turns in a row are spaced"."""
    crash = Turn(exit_code=1)
    assert decided(Continue(after=2.0), crash) == []
    assert decided(Continue(after=32.0), crash) == ["Waiting 32s before the next iteration"]


@pytest.mark.parametrize(
    ("wait", "line"),
    [
        (Wait(0, "the agent said nothing"), "The agent said nothing; trying again"),
        (Wait(None, "paused"), "Paused; waiting to be resumed"),
        (Wait(NOW + 7200, "later"), "Later; waiting until Wed 00:13:20 (2h)"),
    ],
)
def test_other_waits(wait: Wait, line: str) -> None:
    assert decided(wait) == [line]


def test_a_pause_after_a_rate_limit_is_a_pause() -> None:
    limited = Ended(NOW, Turn(failure=Failure("limit", 429)))
    paused = Decided(NOW, Boundary.OPENING, Wait(None, "paused"))
    assert told(STARTED, BEGAN, limited, paused) == ["Paused; waiting to be resumed"]


def test_near_misses_are_named() -> None:
    """ADR 3: near misses "are named in the feedback and the log"."""
    assert decided(Continue(), notes=("Close.", "Closer.")) == ["Note: Close.", "Note: Closer."]


def test_findings_that_go_back_are_named_once() -> None:
    findings = (Finding("make lint", "a"), FAILED_TEST, FAILED_TEST)
    told_all = Continue(tuple(finding.feedback() for finding in findings))
    assert decided(told_all, findings=findings) == [
        "Not done yet: the agent is told what make lint, make test found"
    ]
    assert decided(Continue(), findings=findings) == []


@pytest.mark.parametrize(
    ("placements", "words"),
    [
        ("APPEND REPLACE", "b found, but not what a found"),
        ("REPLACE APPEND", "a, b found"),
        ("REPLACE REPLACE", "b found, but not what a found"),
        ("PREPEND APPEND", "a, b found"),
    ],
)
def test_only_what_the_agent_is_really_told_is_said(placements: str, words: str) -> None:
    """The issue: "with several failing guardrails the console says only what the agent is really
    told"; H §Guardrails: each fail action is applied to the next prompt."""
    pairs = zip("ab", placements.split(), strict=True)
    findings = tuple(Finding(name, name, Placement(how), 1) for name, how in pairs)
    verdict = Continue(tuple(finding.feedback() for finding in findings))
    assert decided(verdict, findings=findings) == [f"Not done yet: the agent is told what {words}"]


def test_completion_checks_are_for_the_verbose() -> None:
    """H §Verbose Output: "Completion detection attempts"."""
    turn = Turn(claims=(DONE,))
    assert decided(Accept(("claimed",)), turn) == []
    assert decided(Accept(("claimed",)), turn, verbose=True) == [
        "Completion check: the agent said <response>DONE</response>: believed"
    ]
    assert decided(Continue(), verbose=True) == [
        "Completion check: the agent said no tag: not complete"
    ]


def test_a_long_claim_is_shown_on_one_short_line() -> None:
    claim = Claim(f"<response>a\n{'b' * 100}</response>")
    [line] = decided(Continue(), Turn(claims=(claim,)), verbose=True)
    assert line == f"Completion check: the agent said <response>a {'b' * 65}...: not complete"


# ------------------------------------------------------------------ settling


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        (
            Step(NOW, "scm:commit", detail="[main 1a2b3c4] Add a test\n 1 file changed"),
            ["Committed: [main 1a2b3c4] Add a test"],
        ),
        (Step(NOW, "scm:commit --no-verify"), ["Committed: done"]),
        (
            Step(NOW, "scm:push origin HEAD:main", detail="To x"),
            ["SCM task push origin HEAD:main done"],
        ),
        (
            Step(NOW, "scm:push", ok=False, detail="! [rejected] main\nhint: fetch first\n"),
            ["SCM task push failed: ! [rejected] main", "  hint: fetch first"],
        ),
        (Step(NOW, "scm:push", ok=False), ["SCM task push failed: no reason given"]),
        (Step(NOW, "scm:message", detail="Add a test"), []),
        (Step(NOW, "scm:message", ok=False, detail="no answer"), ["No commit: no answer"]),
        (Step(NOW, "correct", detail="put back US-1"), ["correct: put back US-1"]),
        (Step(NOW, "commit", ok=False, detail="hook refused"), ["commit failed: hook refused"]),
        (Step(NOW, "record"), []),
    ],
)
def test_steps(step: Step, lines: list[str]) -> None:
    """H §SCM Tasks; the issue: "Failure is reported, the run goes on"."""
    assert told(STARTED, BEGAN, step) == lines


def test_quiet_steps_are_for_the_verbose() -> None:
    assert told(BEGAN, Step(NOW, "record"), verbose=True) == ["record: done"]
    message = Step(NOW, "scm:message", detail="Add a test")
    assert told(BEGAN, message, verbose=True) == ["Commit message: Add a test"]


def test_what_settles_without_ending_the_run() -> None:
    asks, limit = (
        Park("which one?", Cause.QUESTION),
        Park("task limit: 1 iteration used up"),
    )
    assert told(STARTED, BEGAN, Settled(NOW, asks)) == ["prompt waits for you: which one?"]
    assert told(STARTED, BEGAN, Settled(NOW, limit)) == [
        "prompt is blocked: task limit: 1 iteration used up"
    ]
    assert told(STARTED, BEGAN, Settled(NOW, Accept(("passed",)))) == []


@pytest.mark.parametrize(
    ("landed", "lines"),
    [
        (Landed(NOW, kept=True, count=3), []),
        (Landed(NOW, kept=False), []),
        (Landed(NOW, kept=False, count=1), ["Sandbox: 1 change thrown away"]),
        (
            Landed(NOW, kept=False, count=2, saved="/s/x"),
            ["Sandbox: 2 changes thrown away; see /s/x"],
        ),
        (
            Landed(NOW, kept=True, count=2, held=(".envrc",), saved="/s/x"),
            ["Held for your review: .envrc; see /s/x"],
        ),
        (
            Landed(NOW, kept=True, spared=("a: changed meanwhile",), saved="/s/x"),
            ["Not applied: a: changed meanwhile; see /s/x"],
        ),
        (
            Landed(NOW, kept=True, refused=("a.example", "b.example")),
            ["Not allowed to call: a.example, b.example. To allow it: --network"],
        ),
    ],
)
def test_what_came_out_of_a_sandbox(landed: Landed, lines: list[str]) -> None:
    assert told(BEGAN, Ended(NOW, Turn()), landed) == lines
    assert told(BEGAN, Ended(NOW, Turn()), Landed(NOW, kept=True), verbose=True) == [
        "Sandbox: 0 changes"
    ]


# ------------------------------------------------------------------ steering


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request("1", NOTE, Origin.WEB, text="Use tabs."), "Note from web: Use tabs."),
        (Request("1", NOTE, text="a\n\n\x1b[31mb", task="T-1"), "Note from cli for T-1: a b"),
        (Request("1", NOTE, text="x" * 900), f"Note from cli: {'x' * 197}..."),
        (Request("1", STOP, Origin.WEB), "Asked to stop (web)"),
        (Request("1", STOP_NOW), "Asked to stop now"),
        (Request("1", PAUSE, Origin.MCP), "Asked to pause (mcp)"),
        (Request("1", PAUSE, text="no agent"), "Stays paused: no agent"),
        (Request("1", RESUME, Origin.WATCH), "Asked to go on (watch)"),
        (Request("1", ANSWER, Origin.WEB, text="Tabs.", task="T-1"), "Answer to T-1 (web): Tabs."),
    ],
)
def test_whoever_asks_is_named(request_: Request, words: str) -> None:
    """ADR 38: unless it was typed, which is what people do."""
    assert told(STARTED, Asked(NOW, request_)) == [words]


def test_settings_that_were_read_again_are_told() -> None:
    changed = (("maxCost", "null", "2"), ("guardrails", "[]", f'["{"x" * 200}"]'))
    first, cost, rails = told(STARTED, BEGAN, Resumed(NOW + 5, 8, changed=changed))
    assert first == "Resumed: iteration 1/10 was cut off"
    assert cost == "  maxCost is now 2 (was null)"
    assert rails == f'  guardrails is now ["{"x" * 95}... (was [])'


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (Signals(1), "Asked to stop: the run ends after the current operation"),
        (
            Signals(1, requests=(Request("1", STOP, Origin.WEB),)),
            "Asked to stop (web): the run ends after the current operation",
        ),
        (
            Signals(2, requests=(Request("2", STOP_NOW, Origin.WATCH),)),
            "Asked to stop (watch): the run ends at once",
        ),
        (
            Signals(paused=True, requests=(Request("1", PAUSE, Origin.WEB),)),
            "Asked to pause (web): the run pauses before its next turn",
        ),
    ],
)
def test_what_is_asked_is_told_at_once(now: Signals, words: str) -> None:
    assert [line.text for line in heard(Signals(), now)] == [words]


def test_who_lets_a_run_go_on_is_named() -> None:
    was = Signals(paused=True, requests=(Request("1", PAUSE, Origin.CLI),))
    now = Signals(requests=(Request("2", RESUME, Origin.WEB),))
    assert [line.text for line in heard(was, now)] == ["Asked to go on (web)"]
    again = Signals(paused=True, requests=(Request("3", PAUSE, text="bad settings"),))
    assert list(heard(Signals(), again)) == [], "that was said in other words"


# ------------------------------------------------------------------ the next agent (ADR 45)

LIMITED = Turn(exit_code=1, failure=Failure("no", 429), agent="claude")
WHY = "claude cannot go on: no."


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (
            Wait(0, WHY, Bench(0, NOW + 3600, "claude")),
            "the next agent does, and claude is asked again after 23:13:20 (1h)",
        ),
        (
            Wait(0, WHY, Bench(0, None, "claude")),
            "the next agent does, and claude is not asked again in this run",
        ),
        (
            Wait(NOW + 60, WHY, Bench(0, NOW + 3600, "claude")),
            "no other can before 22:14:20 (1m), and claude is asked again after 23:13:20 (1h)",
        ),
    ],
)
def test_who_is_benched(wait: Wait, words: str) -> None:
    assert decided(wait, LIMITED) == [f"claude cannot go on: no; {words}"]


@pytest.mark.parametrize(
    ("before", "role", "agent", "lines"),
    [
        ("claude", Role.WORK, "codex", ["Agent: codex"]),
        ("codex", Role.WORK, "codex", []),
        ("", Role.WORK, "codex", []),  # the first lines have said it
        ("claude", Role.MESSAGE, "codex", []),
        ("claude", Role.REVIEW, "codex", []),  # nobody has reviewed before
    ],
)
def test_another_agent_is_named(before: str, role: Role, agent: str, lines: list[str]) -> None:
    ended = Ended(NOW, Turn(agent=before))
    launching = Launching(NOW, role, "claude", "/s", 1, agent)
    assert told(STARTED, BEGAN, ended, launching) == lines


def test_another_reviewer_is_named() -> None:
    review = Began(NOW, 1, Assignment("S-1", mode=Mode.REVIEW))
    launching = Launching(NOW, Role.REVIEW, "claude", "/s", 1, "codex", "m")
    history = (STARTED, review, Ended(NOW, Turn(agent="claude")), launching)
    assert told(*history) == ["Reviewer: codex with m"]


def test_a_cheaper_model_is_told() -> None:
    assert told(STARTED, BEGAN, Step(NOW, STEP_DOWN, detail="it is haiku")) == [
        "step down: it is haiku"
    ]
