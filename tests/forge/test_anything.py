"""Whatever a forge answers, it is a value or a ForgeError."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.errors import ForgeError
from ralph.forge.answers import each_once, end_of_log, sendable, title_of
from ralph.forge.github import GitHub
from ralph.forge.gitlab import GitLab
from ralph.forge.http import Answer
from ralph.forge.port import Check, CheckState, Proposal

SHA = "a" * 40
KEYS = st.sampled_from(
    [
        *("id", "number", "iid", "sha", "head_sha", "name", "status", "state", "conclusion"),
        *("check_runs", "check_suites", "statuses", "total_count", "labels", "reviewers", "head"),
        *("base", "ref", "repo", "full_name", "output", "title", "body", "milestone", "app"),
        *("source_branch", "target_branch", "requested_reviewers", "assignees", "user", "login"),
    ]
)
LEAVES = (
    st.none() | st.booleans() | st.integers(0, 5) | st.sampled_from(["", SHA, "b", "o/r", "open"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)


class Anything:
    """A service that answers what comes."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers

    def get(self, path: str) -> Any:  # noqa: ANN401
        return self.ask("GET", path).found

    def ask(self, *_: object, **__: object) -> Answer:
        if not self.answers:
            raise ForgeError("no more", status=404)
        return Answer(self.answers.pop(), b"", None)  # type: ignore[arg-type]

    def pages(self, path: str) -> Iterator[Any]:
        yield self.get(path)


PROPOSAL = Proposal("b", "main", "t", "x", labels=("l",), reviewers=("u", "o/t"))
ACTS: tuple[Callable[[Any], object], ...] = (
    lambda it: it.project(),
    lambda it: it.find("b"),
    lambda it: it.put(PROPOSAL),
    lambda it: it.pull(1),
    lambda it: it.comment(1, "x"),
    lambda it: it.merge(1, SHA, "merge"),
    lambda it: it.checks(SHA),
    lambda it: it.log(Check("a", CheckState.FAILED, log="run/1")),
    lambda it: it.log(Check("a", CheckState.FAILED, log="nonsense")),
    lambda it: it.issues("o/r", ("a",), "all"),
    lambda it: it.issue("o/r", "1"),
    lambda it: it.turn("o/r", "1", done=True, comment="x"),
)


@pytest.mark.parametrize("kind", [GitHub, GitLab])
@given(answers=st.lists(JSON, max_size=6))
def test_no_answer_is_a_bug(kind: Any, answers: list[Any]) -> None:  # noqa: ANN401
    for act in ACTS:
        with suppress(ForgeError):
            act(kind(Anything([*answers]), "o/r"))


@given(st.text(), st.integers(100, 300))
def test_what_is_sent_fits(body: str, most: int) -> None:
    sent = sendable(body * 9, most)
    assert len(sent) <= most
    assert len(title_of(body * 9)) <= 240
    assert "\n" not in title_of(body * 9)


def test_what_is_sent_has_no_secrets() -> None:
    key = "ghp_" + "a1B2" * 9
    assert sendable(f"see {key}") == "see [redacted]"
    assert title_of(f"see {key}\nmore") == "see [redacted] more"


@given(st.binary())
def test_a_log_is_text_of_so_many_lines(data: bytes) -> None:
    assert len(end_of_log(data * 99).splitlines()) <= 200


@given(st.lists(st.builds(Check, st.sampled_from("abc"), st.sampled_from(CheckState))))
def test_the_worst_speaks_for_all_of_its_name(checks: list[Check]) -> None:
    found = each_once(checks)
    assert [check.name for check in found] == sorted({check.name for check in checks})
    for check in found:
        same = {other.state for other in checks if other.name == check.name}
        assert (CheckState.FAILED in same) == (check.state is CheckState.FAILED)
        assert check.state in same
        assert check.state is not CheckState.PASSED or same == {CheckState.PASSED}
