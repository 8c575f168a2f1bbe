"""A task that came from a list: when it is done, the list says so (B §The Loop: "Sync")."""

import json
from collections.abc import Callable

import pytest
from backlog_support import COMPLETE, Json, Project, project
from list_support import has, hub
from run_support import program, ralph

from kits.forge import FakeForge, Issue
from kits.thorough import dealt

__all__ = ["hub", "project"]

LIST = "# Plan\n\n- [ ] Write the one\n- [ ] Write the other\n"


def begin(project: Project, **files: str) -> None:
    for name, text in files.items():
        (project.path / name.replace("_", ".")).write_text(text)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "lists")
    for name in files:
        assert ralph("tasks", "import", name.replace("_", ".")).code == 0


def prd(*stories: Json) -> str:
    return json.dumps({"project": "p", "userStories": list(stories)}, indent=2) + "\n"


def story(number: int, **more: object) -> Json:
    return {
        "id": f"US-{number}",
        "title": f"It is {number}",
        "priority": number,
        "passes": False,
        **more,
    }


@pytest.mark.parametrize("flags", dealt([((),), (("--parallel", "2"),)], 1))
def test_boxes_are_ticked_in_the_tasks_own_commits(
    project: Project, flags: tuple[str, ...]
) -> None:
    """ "sync changes only the one checkbox"; nothing is left uncommitted, no commit is extra."""
    begin(project, plan_md=LIST)
    done = project.run(f'echo "$id" > "$id"; {COMPLETE}', *flags)
    assert done.code == 0, done.err
    assert (project.path / "plan.md").read_text() == LIST.replace("[ ]", "[x]")
    assert not project.dirt()
    assert len(project.subjects()) == 4
    changed = project.git("show", "--format=", "--unified=0", "HEAD", "--", "plan.md").splitlines()
    assert (
        len([line for line in changed if line[:1] in "+-" and line[:3] not in ("+++", "---")]) == 2
    )
    assert ralph("tasks", "import", "plan.md").out.startswith(
        "plan.md (markdown): 0 added, 0 updated"
    )


def test_passes_is_set_in_a_prd(project: Project) -> None:
    """Only `passes` of the one story."""
    before = prd(story(1), story(2, passes=True))
    begin(project, prd_json=before)
    assert project.run(f"echo x > x; {COMPLETE}").code == 0
    after = (project.path / "prd.json").read_text()
    assert after == before.replace('"passes": false', '"passes": true')
    assert not project.dirt()


def test_a_parked_task_is_not_ticked_off(project: Project) -> None:
    """Nor one whose commit a hook refuses."""
    begin(project, plan_md=LIST)
    hook = project.path / ".git/hooks/pre-commit"
    program(hook, "grep -q '\\[x\\] Write the one' plan.md && { echo no; exit 1; }; true")
    done = project.run(f'echo "$id" > "$id"; {COMPLETE}', "--max-tasks", "1")
    assert done.code == 3, done.err
    assert (project.path / "plan.md").read_text() == LIST
    assert not project.dirt()


def test_somebody_else_changed_the_wish(project: Project) -> None:
    """ "a two-way conflict is reported, never overwritten"."""
    begin(project, prd_json=prd(story(1)))
    script = f"""sed -i 's/It is 1/It is another/' prd.json; echo x > x; {COMPLETE}"""
    done = project.run(script)
    assert done.code == 0, done.err
    assert "US-1 was changed in prd.json since it was imported (title)" in done.err
    assert '"passes": false' in (project.path / "prd.json").read_text()


@pytest.fixture
def issues(
    project: Project, hub: FakeForge, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[str]]:
    """A task for an issue; the comments on it."""
    has(hub, Issue(7, "Fix it", "It is broken"))
    assert ralph("tasks", "import", "github:some/where").code == 0
    return lambda: hub.issue(7).comments


def test_an_issue_is_closed_with_the_evidence(
    project: Project, hub: FakeForge, issues: Callable[[], list[str]]
) -> None:
    done = project.run(f"echo x > x; {COMPLETE}")
    assert done.code == 0, done.err
    (comment,) = issues()
    assert comment.startswith("Done by ralph: T-001: Fix it")
    assert hub.issue(7).state == "closed"
    assert "github:some/where#7 is closed" in done.err


def test_an_issue_that_cannot_be_closed_now_is_closed_later(
    project: Project, hub: FakeForge, issues: Callable[[], list[str]]
) -> None:
    """The task is done all the same; `ralph tasks sync` tells it."""
    hub.trouble("PATCH", status=403, body={"message": "not now"})
    done = project.run(f"echo x > x; {COMPLETE}")
    assert done.code == 0, done.err
    assert "not now" in done.err
    assert "ralph tasks sync" in done.err
    assert "is closed" in ralph("tasks", "sync").out
    assert len(issues()) == 1


MEET = """touch "$NOTES/here-$id"
while [ "$(ls "$NOTES" | grep -c '^here-')" -lt 2 ]; do sleep 0.02; done"""


def test_a_list_that_a_person_is_changing_is_told_afterwards(project: Project) -> None:
    """Several at once: his line stays, the tasks land, and their boxes are ticked."""
    begin(project, plan_md=LIST)
    (project.path / "plan.md").write_text(f"{LIST}- [ ] Mine\n")
    script = f'echo "$id" > "$id"; {MEET}; {COMPLETE}'
    done = project.run(script, "--parallel", "2", "--allow-dirty")
    assert done.code == 0, done.err
    assert set(project.statuses().values()) == {"done"}
    ticked = LIST.replace("[ ]", "[x]")
    assert (project.path / "plan.md").read_text() == f"{ticked}- [ ] Mine\n"
    assert len(project.subjects()) == 5, "and a commit of the records"
    assert project.dirt() == [" M plan.md"]


def test_agents_that_tick_their_boxes_themselves_do_not_conflict(project: Project) -> None:
    """Boxes in adjacent lines: the list is the host's to change."""
    begin(project, plan_md=LIST)
    script = f"""echo "$id" > "$id"; {MEET}
    [ $id = T-001 ] && sed -i '3s/\\[ \\]/[x]/' plan.md || sed -i '4s/\\[ \\]/[x]/' plan.md
    {COMPLETE}"""
    done = project.run(script, "--parallel", "2")
    assert done.code == 0, done.err
    assert (project.path / "plan.md").read_text() == LIST.replace("[ ]", "[x]")
    assert (project.turns("T-001"), project.turns("T-002")) == (1, 1)
    assert not project.dirt()
