"""The checks of one commit: all of them, each once, and nobody else's."""

import pytest
from forge_support import bare, forge, github, gitlab, head, push

from kits.forge import (
    FakeForge,
    Run,
    Status,
    Suites,
    client,
    failed,
    neutral,
    passed,
    pending,
    skipped,
    status,
)
from ralph.errors import ForgeError
from ralph.forge.port import CheckState as State
from ralph.text.redact import know

__all__ = ["bare", "forge", "github", "gitlab", "head", "push"]


def looked(forge: FakeForge, commit: str) -> list[tuple[str, State]]:
    return [(check.name, check.state) for check in client(forge).checks(commit)]


def test_check_runs_and_statuses_together(github: FakeForge, head: str) -> None:
    """Issue: "check-runs and legacy statuses"."""
    github.ci(
        "ralph/a",
        [
            [
                *(passed("test"), failed("lint"), pending("docs"), neutral("audit")),
                *(skipped("deploy"), status("jenkins", "failure"), status("cla")),
                status("old", "pending"),
            ]
        ],
    )
    assert looked(github, head) == [
        ("audit", State.NEUTRAL),
        ("cla", State.PASSED),
        ("deploy", State.SKIPPED),
        ("docs", State.PENDING),
        ("jenkins", State.FAILED),
        ("lint", State.FAILED),
        ("old", State.PENDING),
        ("test", State.PASSED),
    ]


@pytest.mark.parametrize(
    ("run", "state", "said"),
    [
        (Run("a", "timed_out"), State.FAILED, "timed out"),
        (Run("a", "cancelled"), State.FAILED, "cancelled"),
        (Run("a", "action_required"), State.FAILED, "action required"),
        (Run("a", "stale"), State.FAILED, "stale"),
        (Run("a", "startup_failure"), State.FAILED, "startup failure"),
        (Run("a", "something new"), State.FAILED, "something new"),
        (Run("a", status="queued"), State.PENDING, ""),
        (Run("a", status="waiting"), State.PENDING, ""),
        (Run("a", "success", status="in_progress"), State.PENDING, ""),
        (Run("a", status="completed"), State.PENDING, ""),
        (Run("a", "failure", title="3 problems"), State.FAILED, "3 problems"),
    ],
)
def test_what_a_run_says(github: FakeForge, head: str, run: Run, state: State, said: str) -> None:
    github.ci("ralph/a", [[run]])
    (check,) = client(github).checks(head)
    assert (check.state, check.said) == (state, said)


def test_each_look_is_another_picture_and_the_last_one_stays(github: FakeForge, head: str) -> None:
    github.ci("ralph/a", [[], [pending("test")], [passed("test")]])
    assert looked(github, head) == []
    assert looked(github, head) == [("test", State.PENDING)]
    assert looked(github, head) == looked(github, head) == [("test", State.PASSED)]


def test_what_has_not_changed_is_not_sent_again(github: FakeForge, head: str) -> None:
    """Forges do not count such requests; the answer is the same as anew."""
    page = pending("a"), pending("b"), pending("c")
    github.ci("ralph/a", [page, page, [*page[:2], failed("c")], [*page[:2], failed("c")]])
    github.page = 2
    there = client(github)
    looks = [[check.state for check in there.checks(head)] for _ in range(4)]
    assert looks == [[State.PENDING] * 3] * 2 + [[State.PENDING] * 2 + [State.FAILED]] * 2
    assert len(github.unchanged) == 3 + 2 + 3


def test_a_page_that_was_added_is_seen(forge: FakeForge, head: str) -> None:
    """The one before it is the same as it was."""
    page = passed("a"), passed("b")
    forge.ci("ralph/a", [page, [*page, failed("c")]])
    forge.page = 2
    there = client(forge)
    assert [check.name for check in there.checks(head)] == ["a", "b"]
    assert [check.name for check in there.checks(head)] == ["a", "b", "c"]


def test_an_answer_about_another_commit_does_not_count(github: FakeForge, head: str) -> None:
    """Issue: "a stale green that does not pass"."""
    old = github.head("main")
    github.ci(
        "ralph/a",
        [
            [passed("test", sha=old), status("cla", sha=old)],
            [passed("test", sha=old), pending("test", number=1)],
        ],
    )
    assert looked(github, head) == []
    assert looked(github, head) == [("test", State.PENDING)]


def test_a_commit_that_is_not_known_yet_has_no_checks(github: FakeForge, head: str) -> None:
    assert looked(github, "0" * 40) == []


@pytest.mark.parametrize("turned", [False, True])
def test_the_latest_run_counts_in_whatever_order_they_come(
    github: FakeForge, head: str, turned: bool
) -> None:
    rows = [failed("test", number=5), passed("test", number=9)]
    posted = [status("ci", "failure", number=5), status("ci", number=9)]
    picture: list[Run | Status | Suites] = [*rows, *posted]
    github.ci("ralph/a", [picture[::-1] if turned else picture])
    assert looked(github, head) == [("ci", State.PASSED), ("test", State.PASSED)]


def test_jobs_of_one_name_in_two_workflows_must_all_pass(github: FakeForge, head: str) -> None:
    github.ci("ralph/a", [[passed("build", suite=2), failed("build", suite=1, number=1)]])
    assert looked(github, head) == [("build", State.FAILED)]


def test_a_workflow_that_is_not_at_its_end_is_pending(github: FakeForge, head: str) -> None:
    """A job that needs another one has no run yet. An app that never began does not matter."""
    github.ci("ralph/a", [[passed("lint"), Suites()], [passed("lint"), passed("test")]])
    assert looked(github, head) == [("(github-actions)", State.PENDING), ("lint", State.PASSED)]
    assert looked(github, head) == [("lint", State.PASSED), ("test", State.PASSED)]


def test_all_pages_are_read(github: FakeForge, head: str) -> None:
    """The one that failed is the last of 250."""
    runs = [passed(f"job {number:03}") for number in range(250)]
    github.ci("ralph/a", [[*runs, failed("job 999"), *(status(f"s{n:03}") for n in range(250))]])
    found = looked(github, head)
    assert len(found) == 501
    assert [name for name, state in found if state is State.FAILED] == ["job 999"]


@pytest.mark.parametrize("page", ["check-runs", "status"])
def test_a_page_that_does_not_come_is_no_end(github: FakeForge, head: str, page: str) -> None:
    """A part of a list is never taken for all of it."""
    github.ci("ralph/a", [[passed("a"), failed("b"), status("c"), status("d", "error")]])
    github.page = 1
    there = client(github)
    github.trouble(page, times=1, status=200, body={"total_count": 2})
    github.trouble(page, times=9, status=502)
    assert "(not listed)" in [c.name for c in there.checks(head)] or page == "status"
    with pytest.raises(ForgeError) as error:
        there.checks(head)
    assert error.value.retry_after is not None


# ------------------------------------------------------------------ logs


def test_the_end_of_a_log_as_plain_text(github: FakeForge, head: str) -> None:
    """Issue: "its last 200 lines, redacted". The host of the logs gets no token."""
    know(["s3cret-of-the-host"])
    lines = [f"2026-01-31T12:00:00.1234567Z line {number}" for number in range(300)]
    lines[-1] = "2026-01-31T12:00:00.1234567Z \x1b[31mError\x1b[0m: s3cret-of-the-host"
    github.ci("ralph/a", [[failed("test", log="\n".join(lines))]])
    there = client(github)
    (check,) = there.checks(head)
    log = there.log(check).splitlines()
    assert (len(log), log[0], log[-1]) == (200, "line 100", "Error: [redacted]")
    (at_storage,) = (sent for sent in github.requests if sent.elsewhere)
    assert not at_storage.authorized
    assert all(sent.authorized for sent in github.requests if not sent.elsewhere)


def test_without_a_log_the_output_of_the_check_speaks(github: FakeForge, head: str) -> None:
    runs: list[Run | Status | Suites] = [
        failed("actions", title="Broken", summary="no such workflow"),
        failed("other", app="linter", title="3 problems", summary="line 7 is long", log="not it"),
        status("jenkins", "failure", description="It failed"),
    ]
    github.ci("ralph/a", [runs])
    there = client(github)
    logs = {check.name: there.log(check) for check in there.checks(head)}
    assert logs["actions"] == "Broken\n\nno such workflow"
    assert logs["other"] == "3 problems\n\nline 7 is long"
    assert logs["jenkins"] == ""


# ------------------------------------------------------------------ GitLab


@pytest.mark.parametrize(
    ("run", "state", "said"),
    [
        (Run("a", "success"), State.PASSED, ""),
        (Run("a", "failure"), State.FAILED, ""),
        (Run("a", "failure", title="3 problems"), State.FAILED, "3 problems"),
        (Run("a", "failure", allowed=True), State.NEUTRAL, ""),
        (Run("a", "cancelled"), State.FAILED, "canceled"),
        (Run("a", "something new"), State.FAILED, "something new"),
        (Run("a", "skipped"), State.SKIPPED, ""),
        (Run("a", "manual", allowed=True), State.SKIPPED, "waits for a person"),
        (Run("a", "manual"), State.FAILED, "waits for a person"),
        (Run("a", status="waiting_for_resource"), State.PENDING, ""),
        (Run("a", status="in_progress", allowed=True), State.PENDING, ""),
        (Run("a"), State.PENDING, ""),
    ],
)
def test_what_a_job_says(gitlab: FakeForge, head: str, run: Run, state: State, said: str) -> None:
    gitlab.ci("ralph/a", [[run]])
    (check,) = client(gitlab).checks(head)
    assert (check.state, check.said) == (state, said)


def test_jobs_and_statuses_of_that_commit_alone(gitlab: FakeForge, head: str) -> None:
    """On all pages, the latest of each name, whatever their order."""
    old = gitlab.head("main")
    picture: list[Run | Status | Suites] = [
        *(passed("test", number=9), failed("test", number=5), failed("stale", sha=old)),
        *(status("sonar", "failure"), status("old", sha=old), passed("lint")),
        *(passed(f"job {number:03}") for number in range(120)),
    ]
    gitlab.ci("ralph/a", [[], picture])
    assert looked(gitlab, head) == []
    found = dict(looked(gitlab, head))
    assert len(found) == 123
    assert (found["test"], found["sonar"]) == (State.PASSED, State.FAILED)
    assert looked(gitlab, "0" * 40) == []


def test_a_pipeline_that_is_not_at_its_end_is_pending(gitlab: FakeForge, head: str) -> None:
    """Somebody else was quicker than GitLab."""
    gitlab.ci("ralph/a", [[status("cla"), Suites((7,))], [status("cla"), passed("test")]])
    assert looked(gitlab, head) == [("(pipeline 7)", State.PENDING), ("cla", State.PASSED)]
    assert looked(gitlab, head) == [("cla", State.PASSED), ("test", State.PASSED)]


def test_the_trace_of_a_job(gitlab: FakeForge, head: str) -> None:
    log = "\x1b[0Ksection_start:1560896352:step\r\x1b[0KRunning\n\x1b[31;1mERROR: no\x1b[0m\n"
    log += "\x1b[0Ksection_end:1560896353:step\r\x1b[0K"
    gitlab.ci("ralph/a", [[failed("test", log=log), failed("none"), status("sonar", "failure")]])
    there = client(gitlab)
    logs = {check.name: there.log(check) for check in there.checks(head)}
    assert logs == {"none": "", "sonar": "", "test": "Running\nERROR: no"}
