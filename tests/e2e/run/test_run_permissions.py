"""Where a sandbox contains the agent, it is the permission (ADR 15): claude need not be asked."""

from pathlib import Path
from typing import Any

import pytest
from backlog_support import Project
from prd_support import story
from run_support import Done, assert_clear, program, ralph
from story_support import IN_OVERLAY, StoryProject

SKIPS = "--dangerously-skip-permissions"
SAID = f"claude gets {SKIPS}: the sandbox is the permission (agent.permissions: ask turns that off)"
# Writes down how it was called, once a task, and whom it takes itself to be.
CLAUDE = r"""
for prompt; do :; done
id=$(printf '%s\n' "$prompt" | sed -n 's/^Task \([^: ]*\).*/\1/p' | head -1)
printf '%s\n' "${IS_SANDBOX:-no}" "$@" > "argv.${id:-story}"
cat <<'END'
{"type":"assistant","message":{"content":[{"type":"text","text":"<promise>COMPLETE</promise>"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"Done.","total_cost_usd":0.01}
END
"""


def backlog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Project:
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project", monkeypatch)
    project.tasks(*({"id": name, "title": f"Do {name}"} for name in names))
    return project


def claude(tmp_path: Path) -> str:
    (tmp_path / "bin").mkdir(exist_ok=True)
    return program(tmp_path / "bin" / "claude", CLAUDE)


def called(project: Path, name: str) -> list[str]:
    """What the agent of a task was given."""
    return (project / f"argv.{name}").read_text().split("\n")


@IN_OVERLAY
@pytest.mark.parametrize("parallel", [(), ("--parallel", "2")], ids=["one", "two at a time"])
def test_a_contained_claude_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel: tuple[str, ...]
) -> None:
    """Issue: "`prd run` and `tasks run` give claude `--dangerously-skip-permissions` themselves,
    said in the first lines of the run"."""
    project = backlog(tmp_path, monkeypatch, "A", "B")
    done = ralph("tasks", "run", "--agent", claude(tmp_path), "--sandbox=overlay", *parallel)
    assert_clear(done, 0, SAID)
    assert done.err.index(SAID) < done.err.index("Task A")
    for name in ("A", "B"):
        assert called(project.path, name).count(SKIPS) == 1


@IN_OVERLAY
def test_a_claude_that_works_on_stories_is_not_asked_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    project = StoryProject(tmp_path / "project", monkeypatch)
    project.stories(story(1))
    words = ("prd", "run", "--agent", claude(tmp_path), "--sandbox=overlay", "-n", "1")
    done = ralph(*words)
    assert done.code == 1
    assert SAID in done.err
    assert called(project.path, "story").count(SKIPS) == 1


def shown(project: Project, agent: str, flags: list[str], *words: str, **settings: Any) -> Done:  # noqa: ANN401
    project.settings(agent={"command": agent, "flags": flags, **settings})
    return ralph("tasks", "run", "--dry-run", *words)


@IN_OVERLAY
@pytest.mark.parametrize(
    ("flags", "count"),
    [
        ([], 1),
        ([SKIPS], 1),
        (["--permission-mode plan"], 0),
        (["--permission-mode=acceptEdits"], 0),
        (["--allowedTools", "Edit"], 0),
        (["--model opus"], 1),
        (["--disallowedTools", "WebFetch"], 1),
    ],
)
def test_whoever_says_how_it_is_asked_has_said_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], count: int
) -> None:
    """Issue: not "twice when the user's agent.flags already have it or another permission mode"."""
    project = backlog(tmp_path, monkeypatch, "A")
    done = shown(project, claude(tmp_path), flags, "--sandbox=overlay")
    assert_clear(done, 0)
    assert done.out.splitlines()[0].split().count(SKIPS) == count


@IN_OVERLAY
@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (("--sandbox=overlay",), {"permissions": "ask"}),
        (("--sandbox=worktree",), {}),
        (("--no-sandbox",), {}),
        (("--sandbox=overlay",), {"kind": "text"}),
    ],
    ids=["asked for", "not contained", "in place", "another agent"],
)
def test_elsewhere_it_is_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    settings: dict[str, str],
) -> None:
    """Issue: "settings key `agent.permissions: ask` turns that off"."""
    project = backlog(tmp_path, monkeypatch, "A")
    done = shown(project, claude(tmp_path), [], *words, **settings)
    assert_clear(done, 0)
    assert SKIPS not in done.out


@IN_OVERLAY
def test_a_prompt_loop_gives_what_you_give(workspace: Path, tmp_path: Path) -> None:
    """H's table has no permission flag; in a sandbox of `ralph run` neither."""
    agent = claude(tmp_path)
    done = ralph("run", "-p", "x", "--agent", agent, "--sandbox=overlay", "--dry-run")
    assert_clear(done, 0)
    assert SKIPS not in done.out


def test_a_word_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = backlog(tmp_path, monkeypatch, "A")
    done = shown(project, claude(tmp_path), [], permissions="never")
    said = 'agent.permissions: found "never"; allowed: "sandbox" or "ask".'
    assert_clear(done, 2, said)
