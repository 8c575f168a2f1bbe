"""What a person types after `/ralph-loop`, and what the agent is told (P)."""

import pytest

from ralph.hosts.stop_cap import CAP
from ralph.loops.session.policy import ULTRAWORK
from ralph.loops.session.words import UnusableLoop, Wish, limit_of, opening, parse, spelled

TASK = "Build it"
LONG = "Build it\n---\niteration: 7\n---\n$(date) `x` \\n"


@pytest.mark.parametrize(
    ("typed", "task"),
    [
        ("Build it", TASK),
        ('"Build it"', TASK),
        ("'Build it'", TASK),
        ("  Build it \n", TASK),
        ("Build  it,\n\n  with care", "Build  it,\n\n  with care"),
        (f'"{LONG}"', LONG),
        ('"it"s odd"', 'it"s odd'),
        ("---\niteration: 7\n---\nBuild it", "---\niteration: 7\n---\nBuild it"),
        ('say "hi" and $(rm -rf /)', 'say "hi" and $(rm -rf /)'),
        ('"say "hi" loudly"', 'say "hi" loudly'),
        ('"say \\"hi\\" loudly"', 'say \\"hi\\" loudly'),
        ('"a" and "b"', '"a" and "b"'),
        ('"a" and --max-iterations 7 "b"', '"a" and "b"'),
        ("it's what it's", "it's what it's"),
        ('"never closed', '"never closed'),
        ('"5" wide" or so', '"5" wide" or so'),
        ("- one\n- two -x", "- one\n- two -x"),
        ('"use --verbose here"', "use --verbose here"),
        ("a -- b", "a -- b"),
        ("-- --foo is broken", "--foo is broken"),
        ("--max-iterations 7 -- --foo", "--foo"),
        ('"a"b', '"a"b'),
    ],
)
def test_a_task_arrives_unchanged(typed: str, task: str) -> None:
    """ "quoted or not, multi-line, contain `---`, `$( )`, quotes, `iteration:`"."""
    assert parse(typed) == Wish(task, max_iterations=7 if "--max-iterations" in typed else 50)


@pytest.mark.parametrize(
    "typed",
    [
        '"Build it" --max-iterations 3',
        '--max-iterations 3 "Build it"',
        "--max-iterations=3 Build it",
        "Build it --max-iterations=3",
        "Build --max-iterations 3 it",
        "Build it --max-iterations 003",
        "Build it --max-iterations 9 --max-iterations 3",
        'Build it --max-iterations="3"',
        "Build it --max-iterations\n3\n",
    ],
)
def test_flags_stand_before_or_after_the_task(typed: str) -> None:
    """Complaints: "`--max-iterations=3` taken as prompt text, `08` as octal"."""
    assert parse(typed) == Wish(TASK, max_iterations=3)


def test_every_flag_has_its_place() -> None:
    typed = (
        '--gate "make test" --completion-promise "ALL GREEN" --min-tool-calls 0 "Build it" '
        "--on-promise-no-work=warn --gate='make lint' --ulw --max-iterations 08"
    )
    gates = ("make test", "make lint")
    assert parse(typed) == Wish(TASK, "ALL GREEN", 8, 0, "warn", gates, ulw=True)
    assert parse("x", ulw=True).ulw
    assert parse("x") == Wish("x", "DONE", 50, 1, "reject", (), ulw=False)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ('"a"--max-iterations 3', "put a blank between the task's closing quote and"),
        ("--", "task"),
        ("", "there is no task"),
        ('" "', "there is no task"),
        ("--max-iterations 3", "there is no task"),
        ("x --max-iterations -1", "a whole number, 0 or more, not '-1'"),
        ("x --max-iterations 1.5", "not '1.5'"),
        ("x --max-iterations=", "not ''"),
        ('x --max-iterations ""', "not ''"),
        ("x --max-iterations ten", "not 'ten'"),
        ("x --max-iterations \N{SUPERSCRIPT TWO}", "a whole number"),
        ("x --max-iterations 12345678901", "too large"),
        ("x --max-iterations", "--max-iterations needs a value"),
        ("x --gate --ulw", "--gate needs a value"),
        ("x --gate ' '", "--gate needs a command"),
        ("x --min-tool-calls few", "--min-tool-calls is a whole number"),
        ("x --on-promise-no-work maybe", "reject, warn, accept, not 'maybe'"),
        ("x --completion-promise ' '", "needs a word"),
        ("x --completion-promise <promise>DONE</promise>", "the word between the tags"),
        ("x --completion-promise 'a\nb'", "in one line"),
        (f"x --completion-promise {'y' * 1001}", "the word between the tags"),
        ("x --forever", "there is no flag --forever"),
        ('"x" --forever', "there is no flag --forever"),
        ("x --ulw=yes", "--ulw takes no value"),
        ("x \N{EM DASH}max-iterations 3", "write --max-iterations with two short dashes"),
    ],
)
def test_what_is_no_loop_is_refused_in_words(typed: str, words: str) -> None:
    """ "negative, fractional or empty numbers, unknown flags and a blank task: 2, no loop"."""
    with pytest.raises(UnusableLoop) as refused:
        parse(typed)
    assert words in str(refused.value)


def test_the_start_message_states_the_contract() -> None:
    """P §Prompt contract: task, stopping rule, strictness, safety valve."""
    told = opening(Wish("Build\nit", "ALL GREEN", gates=("make test",)), "s-1")
    assert "Task:\nBuild\nit\n" in told
    assert "only when the task is fully done, output exactly <promise>ALL GREEN</promise>" in told
    assert "No extra blanks inside the tag, no other case, no variants" in told
    assert "if the task is not done, do not output the promise" in told
    assert "at most 50 iterations" in told
    assert "which the host runs:\n  make test\n" in told
    assert "/ralph:cancel-ralph" in told
    assert "ralph loop cancel --session s-1" in told
    assert f"{CAP}=0" in told
    assert opening(Wish("x", ulw=True), "s").startswith(f"{ULTRAWORK}\n\nA Ralph loop has begun")


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (Wish("x"), "counts after 1 tool call at least."),
        (Wish("x", min_tool_calls=0), "counts also without tool calls."),
        (Wish("x", on_promise_no_work="accept"), "counts also without tool calls."),
        (Wish("x", on_promise_no_work="warn"), "before 1 tool call is accepted with a warning."),
    ],
)
def test_the_start_message_says_what_evidence_counts(wish: Wish, words: str) -> None:
    assert words in opening(wish, "s")


def test_no_limit_is_said() -> None:
    assert limit_of(0) == "without a limit of iterations"
    assert limit_of(1) == "at most 1 iteration"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("plugin", "/ralph:cancel-ralph"),
        ("bare", "/cancel-ralph"),
        ("", "/ralph:cancel-ralph or /cancel-ralph"),
    ],
)
def test_commands_are_named_as_they_are_called_here(how: str, words: str) -> None:
    """Complaint: "cancel not cancelling"."""
    assert spelled("cancel-ralph", how) == words
    assert f"For people: {words} ends the loop" in opening(Wish("x"), "s-1", how)
