"""`ralph tasks import`: "Formats are detected, `--dry-run` shows what will happen, what cannot be
held is listed"."""

import json
import os
import re
from pathlib import Path

import pytest
from list_support import asked, has, hub, issue, open_issue, prd, story
from run_support import Here, assert_clear, in_shell, program

from kits.forge import FakeForge, PullRequest
from ralph.formats.catalog import NAMES

__all__ = ["hub"]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def tasks(here: Here) -> dict[str, dict[str, object]]:
    return {task["id"]: task for task in json.loads(here("tasks", "list", "--json").out)}


# ------------------------------------------------------------------ a file


def test_a_list_is_shown_taken_in_and_brought_up_to_date(here: Here, workspace: Path) -> None:
    path = workspace / "prd.json"
    prd(path, story("US-0"), story("US-1", passes=True), story("US-2", dependsOn=["US-1", "US-9"]))
    shown = (
        "  + US-0: Do US-0\n"
        "  + US-1: Do US-1 (done)\n"
        "  + US-2: Do US-2 (waits for US-1)\n"
        "  - cannot be held: US-2 depends on US-9, which is not in the list\n"
    )
    dry = here("tasks", "import", "prd.json", "--dry-run")
    head = "prd.json (ralph-tui): 3 to add, 0 to update, 0 unchanged\n"
    assert (dry.code, dry.out, dry.err) == (0, f"{head}{shown}Nothing was written.\n", "")
    assert not (workspace / ".ralph").exists()
    done = here("tasks", "import", "prd.json")
    assert done.out == f"prd.json (ralph-tui): 3 added, 0 updated, 0 unchanged\n{shown}"
    prd(
        path,
        story("US-1", passes=True),
        story("US-2", title="Other", dependsOn=["US-1"]),
        story("US-3"),
    )
    assert here("tasks", "import", "prd.json").out == (
        "prd.json (ralph-tui): 1 added, 1 updated, 1 unchanged\n"
        "  + US-3: Do US-3\n"
        "  ~ US-2: title\n"
        "  ? US-0 is not in prd.json any more; it stays\n"
    )
    found = tasks(here)
    assert list(found) == ["US-0", "US-1", "US-2", "US-3"]
    assert (found["US-1"]["status"], found["US-2"]["title"]) == ("done", "Other")


def test_a_conflict_is_told(here: Here, workspace: Path) -> None:
    prd(workspace / "prd.json", story("US-1"))
    here("tasks", "import", "prd.json")
    here("tasks", "edit", "US-1", "--title", "Mine")
    prd(workspace / "prd.json", story("US-1", title="Theirs"))
    done = here("tasks", "import", "prd.json")
    assert done.code == 0
    assert done.out == (
        "prd.json (prd): 0 added, 0 updated, 1 unchanged, 1 conflict\n"
        "  ! US-1: title was changed here and in prd.json; it stays as it is here\n"
    )
    conflicts = json.loads(here("tasks", "import", "prd.json", "--json").out)["conflicts"]
    assert conflicts == [{"id": "US-1", "field": "title", "ours": "Mine", "theirs": "Theirs"}]


def test_for_programs_there_is_json(here: Here, workspace: Path) -> None:
    prd(workspace / "prd.json", story("US-1"))
    found = json.loads(here("tasks", "import", "prd.json", "--json", "--dry-run").out)
    assert found.pop("added")[0]["source"]["path"] == "prd.json"
    assert found == {
        "source": "prd.json",
        "format": "prd",
        "dryRun": True,
        **{name: [] for name in ("updated", "unchanged", "conflicts", "missing", "checks")},
        **{name: [] for name in ("kept", "lost")},
    }


def test_commands_that_a_run_will_run_are_shown(here: Here, workspace: Path) -> None:
    """Nobody who imports a plan should be surprised by what is run to prove its tasks."""
    plan = "## Validation Commands\n- `make {}`\n### Task 1: a\n- [ ] b\n### Task 2: c\n- [ ] d\n"
    (workspace / "plan.md").write_text(plan.format("test"))
    line = "  $ T-001, T-002: done when `make test` exits with 0"
    assert line in here("tasks", "import", "plan.md", "--dry-run").out.splitlines()
    assert line in here("tasks", "import", "plan.md").out.splitlines()
    assert "$" not in here("tasks", "import", "plan.md").out
    (workspace / "plan.md").write_text(plan.format("mischief"))
    assert "`make mischief` exits" in here("tasks", "import", "plan.md", "--dry-run").out
    told = json.loads(here("tasks", "import", "plan.md", "--json").out)
    check = {"check": "`make mischief` exits with 0", "tasks": ["T-001", "T-002"]}
    assert told["checks"] == [check]


def test_a_task_says_from_where_it_came(here: Here, workspace: Path) -> None:
    prd(workspace / "prd.json", story("US-1", extra="x"))
    here("tasks", "import", "prd.json")
    done = here("tasks", "show", "US-1")
    assert "  came from: prd.json (prd): US-1" in done.out.splitlines()
    assert "seen" not in done.out


def test_a_list_is_found_again_by_whatever_path(here: Here, workspace: Path) -> None:
    """In the workspace by its path there, elsewhere by its whole path."""
    (workspace / "a").mkdir()
    prd(workspace / "a" / "prd.json", story("US-1"))
    prd(workspace.parent / "prd.json", story("US-2"))
    here("tasks", "import", "./a/../a/prd.json")
    here("tasks", "import", str(workspace / "a" / "prd.json"))
    here("tasks", "import", "../prd.json")
    here("tasks", "import", str(workspace.parent / "prd.json"))
    paths = [task["source"]["path"] for task in tasks(here).values()]  # type: ignore[index]
    assert paths == ["a/prd.json", str(workspace.parent / "prd.json")]


def test_a_list_from_standard_input(workspace: Path) -> None:
    prd(workspace / "prd.json", story("US-1"))
    done = in_shell("cat prd.json | ralph tasks import - --format prd")
    assert (done.code, done.out.splitlines()[-1]) == (0, "  + US-1: Do US-1")


def test_a_list_from_a_pipe(here: Here, workspace: Path) -> None:
    """`ralph tasks import <(command)`. Another list may come from there the next time."""
    piped = 'echo "- [ ] {}" > pipe & ralph tasks import pipe || exit; '
    done = in_shell(f"mkfifo pipe; {piped.format('One')}{piped.format('Two')}")
    assert (done.code, done.err) == (0, "")
    told = [line for line in done.out.splitlines() if line.startswith(" ")]
    assert told == ["  + T-001: One", "  + T-002: Two"]
    sources = [task["source"] for task in tasks(here).values()]
    assert [source["path"] for source in sources] == ["-", "-"]  # type: ignore[index]


def test_many_are_taken_in_at_once(here: Here, workspace: Path) -> None:
    prd(workspace / "prd.json", *(story(f"US-{n}") for n in range(1000)))
    done = here("tasks", "import", "prd.json")
    assert done.out.splitlines()[0] == "prd.json (prd): 1000 added, 0 updated, 0 unchanged"
    assert done.out.splitlines()[-1] == "  and 980 more"
    assert len(tasks(here)) == 1000


def test_an_agent_imports_nothing_as_done(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RALPH_RUN", "20260131-120000-abcd")
    prd(workspace / "prd.json", story("US-1", passes=True))
    done = here("tasks", "import", "prd.json")
    assert "  ! US-1 is added as pending: an agent does not say done" in done.out.splitlines()
    assert tasks(here)["US-1"]["status"] == "pending"


# ------------------------------------------------------------------ what cannot be


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read list.json: No such file or directory"),
        (b"\xff\xfe", "list.json is not UTF-8 text (byte 0)"),
        (b"a\0b", "list.json contains a NUL byte"),
        (b'{"a": 1}', "list.json is no task list that is known"),
        (
            b'{"userStories": [{"id"',
            "list.json is no task list that is known: it is no JSON (line 1",
        ),
        (b"some words\n", "list.json is no task list that is known"),
        (b'{"userStories": [{"id": 1}]}', "list.json cannot be read as prd: story 1 has no title"),
    ],
)
def test_what_is_no_list_is_named(
    here: Here, workspace: Path, content: bytes | None, words: str
) -> None:
    """ "An unreadable or unknown file is 2 with its name"."""
    if content is not None:
        (workspace / "list.json").write_bytes(content)
    done = here("tasks", "import", "list.json")
    assert_clear(done, 2, words)
    assert not (workspace / ".ralph").exists()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("list.json", "", "it is empty"),
        ("list.json", " \n", "it is empty"),
        ("plan.md", "# Plan\n\n- Build it\n", "no line of it has a checkbox"),
        ("plan.md", "## Task 1: Build it\n\nNow.\n", "'Task 1: Build it' has no box"),
        ("prd.json", json.dumps({"name": "x", "userStories": []}), "there are no tasks in it"),
    ],
)
def test_a_list_without_a_task_says_why(
    here: Here, workspace: Path, name: str, content: str, why: str
) -> None:
    """The issue: "`import` that finds nothing says why (exit 1)"."""
    (workspace / name).write_text(content)
    assert_clear(here("tasks", "import", name), 1, f"nothing to import from {name}", why)
    done = here("tasks", "import", name, "--json")
    assert (done.code, why in done.objects[0]["nothing"], done.objects[0]["added"]) == (1, True, [])
    assert not (workspace / ".ralph" / "tasks.jsonl").exists()


def test_a_list_that_is_read_as_what_it_is_not_says_why(here: Here, workspace: Path) -> None:
    prd(workspace / "prd.json", story("US-1"))
    done = here("tasks", "import", "prd.json", "--format", "markdown")
    assert_clear(done, 1, "no line of it has a checkbox")


def test_a_list_that_is_over_is_imported_as_that(here: Here, workspace: Path) -> None:
    (workspace / "plan.md").write_text("- [x] Build it\n- [-] Paint it\n")
    done = here("tasks", "import", "plan.md")
    assert_clear(done, 1, "nothing to do in plan.md: all of its 2 tasks are over already")
    assert [task["status"] for task in tasks(here).values()] == ["done", "cancelled"]
    assert here("tasks", "import", "plan.md").code == 0  # it was known


NESTED = """\
- [ ] Login
  - [ ] Form
    - [x] Fields
    - [ ] Button
  - [ ] Session
- [ ] Logout
"""


def test_children_come_before_their_parents(here: Here, workspace: Path) -> None:
    """The issue: "Nested checklists: children before parents, `--tree` shows them"."""
    (workspace / "plan.md").write_text(NESTED)
    assert here("tasks", "import", "plan.md").code == 0
    found = {task["title"]: task for task in tasks(here).values()}
    ids = {title: task["id"] for title, task in found.items()}
    assert found["Login"]["blockedBy"] == [ids["Form"], ids["Session"]]
    assert found["Form"]["blockedBy"] == [ids["Fields"], ids["Button"]]
    assert here("tasks", "next").out == f"{ids['Button']}: Button\n"
    tree = here("tasks", "list", "--tree").out.splitlines()[:-1]
    shown = [re.sub(r"T-\d+: \[\w+\] (\w+).*", r"\1", line) for line in tree]
    assert shown == ["Login", "  Form", "    Fields", "    Button", "  Session", "Logout"]
    assert "0 added, 0 updated, 6 unchanged" in here("tasks", "import", "plan.md").out
    assert here("tasks", "export", "--format", "markdown").out == NESTED  # nothing is written to it
    assert '"type":"blocks"' not in here("tasks", "export", "--format", "beads").out


def test_a_child_that_waits_for_its_parent_is_no_circle(here: Here, workspace: Path) -> None:
    """Of its own word or by others; an order that the list itself has is kept."""
    circle = (
        "- [ ] T-1: Login\n  - [ ] T-2: Form\n    After: T-3\n\n- [ ] T-3: Base\n  After: T-1\n"
    )
    text = f"{circle}- [ ] T-4: Logout\n  - [ ] T-5: Button\n"
    (workspace / "plan.md").write_text(text)
    done = here("tasks", "import", "plan.md")
    assert done.code == 0, done.err
    found = {task["id"]: task.get("blockedBy", []) for task in tasks(here).values()}
    assert found == {"T-1": [], "T-2": ["T-3"], "T-3": ["T-1"], "T-4": ["T-5"], "T-5": []}


def test_what_is_unknown_is_told_which_formats_there_are(here: Here, workspace: Path) -> None:
    (workspace / "list.json").write_text("{}")
    assert f"--format {'|'.join(NAMES)}" in here("tasks", "import", "list.json").err


def test_a_list_that_is_too_large_is_refused(here: Here, workspace: Path) -> None:
    with (workspace / "list.json").open("wb") as file:
        file.truncate((64 << 20) + 1)
    assert_clear(here("tasks", "import", "list.json"), 2, "list.json is larger than 64 MB")


def test_a_circle_is_refused_and_nothing_is_written(here: Here, workspace: Path) -> None:
    prd(workspace / "prd.json", story("a", dependsOn=["b"]), story("b", dependsOn=["a"]))
    for more in ([], ["--dry-run"]):
        done = here("tasks", "import", "prd.json", *more)
        assert_clear(done, 2, "these would wait for each other: a → b → a")
    assert tasks(here) == {}


def test_a_folder_is_no_list(here: Here, workspace: Path) -> None:
    (workspace / "plans").mkdir()
    assert_clear(here("tasks", "import", "plans"), 2, "cannot read plans: Is a directory")


def test_labels_are_for_issues(here: Here, workspace: Path) -> None:
    prd(workspace / "prd.json")
    assert here("tasks", "import", "prd.json", "--label", "bug").code == 2
    done = here("tasks", "import", "github:a/b", "--format", "prd")
    assert_clear(done, 2, "--format prd is for files; leave it out for github:a/b.")


# ------------------------------------------------------------------ issues


def test_issues_become_tasks(here: Here, hub: FakeForge) -> None:
    """The newest first; pull requests are none."""
    has(hub, open_issue(3, state="closed"), open_issue(2, labels=["bug"]), open_issue(1))
    hub.pulls.append(PullRequest(4, "a", "main", "No issue"))
    done = here("tasks", "import", "github:some/where")
    assert done.out == (
        "github:some/where (github): 2 added, 0 updated, 0 unchanged\n"
        "  + T-001: Issue 2\n  + T-002: Issue 1\n"
    )
    assert here("tasks", "import", "github:some/where", "--state", "all").code == 0
    found = tasks(here)
    assert [task["status"] for task in found.values()] == ["pending", "pending", "done"]
    assert found["T-001"]["externalUrl"] == "https://github.com/some/where/issues/2"
    assert all(sent.authorized for sent in hub.requests)


def test_what_everybody_may_read_needs_no_token(
    here: Here, hub: FakeForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(hub, open_issue(1))
    monkeypatch.delenv("GITHUB_TOKEN")
    done = here("tasks", "import", "github:some/where")
    assert_clear(done, 2, "GitHub does not let in anybody without a token")
    assert "gh auth login" in done.err
    hub.public = True
    assert here("tasks", "import", "github:some/where").code == 0
    assert not any(sent.authorized for sent in hub.requests)


def test_a_token_that_gh_knows(
    here: Here, hub: FakeForge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """gh is asked for nothing else."""
    has(hub, open_issue(1))
    monkeypatch.delenv("GITHUB_TOKEN")
    (tmp_path / "bin").mkdir()
    host = hub.url.removeprefix("http://")
    script = f'[ "$*" = "auth token --hostname {host}" ] && echo {hub.token}'
    program(tmp_path / "bin" / "gh", script)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert here("tasks", "import", "github:some/where").code == 0


def test_all_pages_of_issues_are_read(here: Here, hub: FakeForge) -> None:
    has(hub, *(open_issue(number, labels=["ready"]) for number in range(1, 251)))
    hub.issues[7].labels = []
    done = here("tasks", "import", "github:some/where", "--label", "Ready", "--dry-run")
    assert done.out.startswith("github:some/where (github): 249 to add")


def test_labels_with_a_comma(here: Here, hub: FakeForge) -> None:
    has(hub, open_issue(1, labels=["a,b", "c"]), open_issue(2, labels=["a", "b", "c"]))
    done = here("tasks", "import", "github:some/where", "--label", "c", "--label", "A,b")
    assert done.out.splitlines()[1:] == ["  + T-001: Issue 1"]


def test_an_issue_that_is_not_among_those_asked_for_is_asked_for(
    here: Here, hub: FakeForge
) -> None:
    """It may be closed by now, and must not be worked on."""
    has(hub, open_issue(3), open_issue(2), open_issue(1, labels=["bug"]))
    here("tasks", "import", "github:some/where")
    has(hub, open_issue(3, state="closed"), open_issue(1, labels=["bug"]))
    done = here("tasks", "import", "github:some/where", "--label", "bug")
    assert done.out.splitlines() == [
        "github:some/where (github): 0 added, 1 updated, 1 unchanged",
        "  ~ T-001: completedAt, status, notes",
        "  ? T-002 is not in github:some/where any more; it stays",
    ]
    assert tasks(here)["T-001"]["status"] == "done"
    assert len(asked(hub, 2)) == len(asked(hub, 3)) == 1


def test_issues_that_are_not_read_are_told(
    here: Here, hub: FakeForge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("ralph.loops.backlog.tracker.github", "ralph.forge.github"):
        monkeypatch.setattr(f"{module}.MOST_ISSUES", 2)
    has(hub, open_issue(1))
    assert "--label" not in here("tasks", "import", "github:some/where").out
    has(hub, open_issue(1), open_issue(2), open_issue(3))
    done = here("tasks", "import", "github:some/where", "--dry-run")
    assert "issues behind the newest 2, which are not read" in done.out


def test_issues_from_a_file_are_the_same_issues(
    here: Here, hub: FakeForge, workspace: Path
) -> None:
    """ "GitHub issues through `gh` (and from a file of its `--json` output)"."""
    has(hub, open_issue(1, labels=["bug"]))
    here("tasks", "import", "github:some/where")
    label = {"id": "L_0", "name": "bug", "description": "", "color": "ededed"}
    same = issue(
        1,
        labels=[label],
        updatedAt="2026-01-31T12:00:00Z",
        stateReason="",
        assignees=[],
        milestone=None,
        closedAt=None,
    )
    by_gh = json.dumps([same, issue(2)], sort_keys=True)
    (workspace / "issues.json").write_text(by_gh)
    done = here("tasks", "import", "issues.json")
    assert done.out.splitlines()[0] == "issues.json (github): 1 added, 0 updated, 1 unchanged"


def test_a_github_that_fails_is_told(here: Here, hub: FakeForge) -> None:
    hub.trouble(status=403, body={"message": "Resource not accessible by this token"})
    done = here("tasks", "import", "github:some/where")
    assert_clear(done, 2, "GitHub refuses GET /repos/some/where/issues: Resource not accessible")
    assert "The token needs the scope repo" in done.err
    assert_clear(
        here("tasks", "import", "github:no/where"),
        2,
        "GitHub finds nothing at /repos/no/where/issues",
    )


@pytest.mark.parametrize("name", ["--help", "a", "a/b/c", "-a/b", "a/b;x", "../x", "a/$(id)", ""])
def test_what_is_no_repository_is_refused(here: Here, hub: FakeForge, name: str) -> None:
    assert_clear(here("tasks", "import", f"github:{name}"), 2, "is no repository")
    assert hub.requests == []
