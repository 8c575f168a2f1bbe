"""Several tasks at once beside people, settings and agents that get in the way."""

import json

import pytest
from backlog_support import COMPLETE, Project, project
from parallel_support import assert_tidy, run, tasks

pytestmark = pytest.mark.slow

__all__ = ["project"]


@pytest.fixture(autouse=True)
def _where(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT", str(project.path))


def test_what_a_person_commits_while_a_hook_runs_is_checked_too(project: Project) -> None:
    """ "the gates run on the merged tree": whatever the tree is by then."""
    project.settings(guardrails=[{"command": "! { test -e b && test -e theirs; }"}])
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    hook = project.path / ".git/hooks/pre-commit"
    script = """case $(git symbolic-ref HEAD) in *ralph/b)
    cd "$PROJECT"; unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE GIT_PREFIX
    if [ ! -e theirs ]; then touch theirs; git add theirs; git commit -q --no-verify -m theirs; fi
    esac"""
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)
    tasks(project, "a", "b")
    done = run(project, f'echo "$id" > "$id"; {COMPLETE}')
    assert done.code == 3, done.err
    assert project.statuses() == {"a": "done", "b": "blocked"}
    assert (project.path / "theirs").exists()
    assert not (project.path / "b").exists()
    assert_tidy(project, "ralph/b")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("branch.main.mergeOptions", "--squash"),
        ("merge.ff", "false"),
        ("merge.verifySignatures", "true"),
        ("merge.autoStash", "true"),
        ("pull.rebase", "true"),
        ("submodule.recurse", "true"),
        ("core.autocrlf", "input"),
    ],
)
def test_settings_of_git_change_nothing(project: Project, name: str, text: str) -> None:
    """A person's staged change is as it was, too."""
    (project.path / "mine").write_text("one\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "mine")
    project.git("config", name, text)
    (project.path / "mine").write_text("two\n")
    project.git("add", "mine")
    tasks(project, "a", "b")
    done = run(project, f'echo "$id" > "$id"; meet 2; {COMPLETE}', "--allow-dirty")
    assert done.code == 0, done.err
    assert {*project.subjects()[:2]} == {"a: It is a", "b: It is b"}
    assert project.dirt() == ["M  mine"]


def test_a_line_that_is_gone_is_put_back(project: Project) -> None:
    """Whoever took it out of the list, the others' work goes on."""
    tasks(project, "a", "b")
    script = f"""echo "$id" > "$id"; meet 2
    if [ $id = a ]; then sed -i '/"id": *"b"/d' "$PROJECT/.ralph/tasks.jsonl"; touch "$NOTES/gone"
    else while [ ! -e "$NOTES/gone" ]; do sleep 0.02; done; fi; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert project.statuses() == {"a": "done", "b": "done"}
    assert_tidy(project)


def test_an_agent_cannot_call_others_done_in_the_projects_list(project: Project) -> None:
    """Nor its own task; it is told, or the one whose checks run then, and the tasks are worked
    on."""
    tasks(project, "a", "b", "c", c={"blockedBy": ["a", "b"]})
    line = json.dumps({"id": "c", "title": "It is c", "status": "done", "evidence": {"kind": "x"}})
    script = f"""echo "$id" > "$id"; meet 2
    [ $id != a ] || echo '{line}' >> "$PROJECT/.ralph/tasks.jsonl"; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert "c was " in done.err or "The project's task list was changed" in done.err
    assert project.turns("c") == 1
    assert (project.path / "c").exists()


def test_an_agent_that_removes_its_way_to_git(project: Project) -> None:
    """The host puts it back; the others hear nothing of it."""
    tasks(project, "a", "b")
    done = run(project, f'echo "$id" > "$id"; [ $id = a ] || rm .git; {COMPLETE}')
    assert done.code == 0, done.err
    assert (project.path / "b").exists()
    assert_tidy(project)
