"""How a task proves that it is complete (B §Completion Detection), and the limits of its own."""

import pytest

from ralph.kernel.limits import Limits
from ralph.kernel.tasks.completion import Completion, Kind, parse, parse_limits, spelled, words

TEST, FILE, SCRIPT = Kind.TEST_PASSING, Kind.FILE_EXISTS, Kind.VALIDATE


@pytest.mark.parametrize(
    ("data", "rule", "said"),
    [
        (None, Completion(), ""),
        ({"type": "explicit"}, Completion(), ""),
        ({"type": "explicit", "command": "make", "other": 1}, Completion(), ""),
        (
            {"type": "test_passing", "command": "make test"},
            Completion(TEST, command="make test"),
            "`make test` exits with 0",
        ),
        (
            {"type": "test_passing", "grep": "login", "command": None},
            Completion(TEST, grep="login"),
            'the tests that match "login" pass',
        ),
        (
            {"type": "test_passing"},  # B: npm test -- --grep "RALPH-001"
            Completion(TEST, grep="T-1"),
            'the tests that match "T-1" pass',
        ),
        (
            {"type": "file_exists", "path": "out.txt", "timeout": 5},
            Completion(FILE, path="out.txt", timeout=5.0),
            "out.txt is there",
        ),
        (
            {"type": "validate", "script": "./check.py", "timeout": 0.5},
            Completion(SCRIPT, script="./check.py", timeout=0.5),
            "the script ./check.py exits with 0",
        ),
    ],
)
def test_a_rule_and_its_words(data: object, rule: Completion, said: str) -> None:
    assert parse(data, "T-1") == rule
    assert words(rule, "T-1") == said


def test_without_command_and_text_the_tests_of_the_task_count() -> None:
    assert words(Completion(TEST), "T-7") == 'the tests that match "T-7" pass'


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("explicit", "must be an object"),
        ([], "must be an object"),
        ({}, "completion.type must be one of explicit, test_passing, file_exists, validate"),
        ({"type": "tests"}, 'not "tests"'),
        ({"type": ["x"]}, 'not ["x"]'),
        ({"type": "x" * 999}, "…"),
        ({"type": "file_exists"}, "completion of type file_exists needs a path"),
        ({"type": "validate", "path": "x"}, "completion of type validate needs a script"),
        ({"type": "validate", "script": 3}, "completion.script must be a text"),
        ({"type": "file_exists", "path": "  "}, "that is not blank"),
        ({"type": "file_exists", "path": "a\0b"}, "must not contain a NUL"),
        ({"type": "test_passing", "command": "a", "grep": "b"}, "both a command and a grep"),
        ({"type": "explicit", "timeout": 0}, "completion.timeout must be a number above 0, not 0"),
        ({"type": "explicit", "timeout": True}, "not true"),
        ({"type": "explicit", "timeout": "5"}, 'not "5"'),
        ({"type": "explicit", "timeout": float("inf")}, "a number above 0"),
        ({"type": "explicit", "timeout": float("nan")}, "a number above 0"),
        ({"type": "explicit", "timeout": 10**400}, "a number above 0"),
    ],
)
def test_a_rule_that_is_none_is_refused(data: object, why: str) -> None:
    """A task that names a check must never become one without it."""
    with pytest.raises(ValueError, match="completion") as refused:
        parse(data, "T-1")
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "data"),
    [
        ("explicit", {"type": "explicit"}),
        ("test:make test", {"type": "test_passing", "command": "make test"}),
        ("test: a:b ", {"type": "test_passing", "command": "a:b"}),
        ("grep:login", {"type": "test_passing", "grep": "login"}),
        ("file:out.txt", {"type": "file_exists", "path": "out.txt"}),
        ("validate:./c.ts", {"type": "validate", "script": "./c.ts"}),
        (' {"type": "validate", "x": 1}', {"type": "validate", "x": 1}),
    ],
)
def test_how_people_spell_a_rule(spec: str, data: dict[str, object]) -> None:
    assert spelled(spec) == data


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("", "is no completion rule"),
        ("test:", "is no completion rule"),
        ("explicit:x", "is no completion rule"),
        ("make test", "it is explicit, test:COMMAND"),
        ('{"type"', "is not JSON"),
        ("{" * 20, "is not JSON"),
    ],
)
def test_what_is_no_spelling(spec: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"completion|JSON") as refused:
        spelled(spec)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("data", "limits"),
    [
        (None, Limits()),
        ({}, Limits()),
        ({"maxIterations": 5, "other": "kept"}, Limits(5)),
        ({"maxTime": 90, "maxCost": 0.5}, Limits(None, 90.0, 0.5)),
        ({"maxIterations": 1, "maxTime": 1.5, "maxCost": None}, Limits(1, 1.5)),
    ],
)
def test_limits_of_a_task(data: object, limits: Limits) -> None:
    """`limits` on a task: {maxIterations, maxTime, maxCost}."""
    assert parse_limits(data) == limits


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (5, "limits must be an object"),
        ({"maxIterations": 0}, "limits.maxIterations must be a whole number, 1 or more, not 0"),
        ({"maxIterations": 1.5}, "not 1.5"),
        ({"maxIterations": True}, "not true"),
        ({"maxTime": -1}, "limits.maxTime must be a number above 0, not -1"),
        ({"maxCost": "5"}, 'limits.maxCost must be a number above 0, not "5"'),
    ],
)
def test_limits_that_are_none(data: object, why: str) -> None:
    with pytest.raises(ValueError, match="limits") as refused:
        parse_limits(data)
    assert why in str(refused.value)
