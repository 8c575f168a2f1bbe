"""The guard where no sandbox contains the agent (ADR 25): on for claude, as the first lines say."""

import json
from pathlib import Path

import pytest
from backlog_support import Project
from prd_support import git, story
from run_support import Done, Here, assert_clear, prepare
from story_support import StoryProject

from ralph.testing.scripted_agent.install import calls

SAYS_SO = {"text": "<promise>COMPLETE</promise>", "response": "DONE"}
ON = "Sandbox: none (in place). Guard: on for shell commands."
ANYBODY = "Guard: off for this agent."


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def asks(agent: str) -> bool:
    """Whether the agent was told to ask before each command."""
    argv = calls(agent)[0]["argv"]
    hooks = json.loads(argv[argv.index("--settings") + 1])["hooks"] if "--settings" in argv else {}
    return "PreToolUse" in hooks


def guarded(agent: str) -> object:
    """What the agent's own environment says of the guard."""
    return calls(agent)[0]["env"].get("RALPH_GUARD")


def settled(done: Done) -> Done:
    assert_clear(done, 0)
    return done


@pytest.mark.parametrize("words", [(), ("--no-sandbox",), ("--guard",)])
def test_claude_asks_the_guard_in_place(
    here: Here, workspace: Path, words: tuple[str, ...]
) -> None:
    agent = prepare(workspace, SAYS_SO)
    assert ON in settled(here("-p", "x", *words)).err
    assert (asks(agent), guarded(agent)) == (True, "1")


@pytest.mark.parametrize("words", [(), ("--no-sandbox",)])
def test_a_flag_turns_it_off(here: Here, workspace: Path, words: tuple[str, ...]) -> None:
    agent = prepare(workspace, SAYS_SO)
    done = settled(here("-p", "x", "--no-guard", *words))
    assert "Sandbox: none (in place). Guard: off (--no-guard)." in done.err
    assert (asks(agent), guarded(agent)) == (False, "0")


def test_a_setting_turns_it_off_and_a_flag_on_again(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, SAYS_SO, guard={"enabled": False})
    assert "Guard: off (guard.enabled)." in settled(here("-p", "x")).err
    assert not asks(agent)
    assert ON in settled(here("-p", "x", "--guard")).err


def test_an_agent_that_cannot_be_told_to_ask_is_named(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, SAYS_SO, kind="codex")
    assert f"Sandbox: none (in place). {ANYBODY}" in settled(here("-p", "x")).err
    assert guarded(agent) == "1", "a hook of their own asks"


def test_whoever_gives_settings_of_their_own_has_said_which(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, SAYS_SO, agent={"flags": ["--settings {}"]})
    assert "Guard: off, since the agent has --settings of its own." in settled(here("-p", "x")).err
    assert calls(agent)[0]["argv"].count("--settings") == 1


def test_a_run_over_tasks_goes_without_it(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project", monkeypatch)
    agent = prepare(project.path, SAYS_SO)
    project.tasks(
        {"id": "A", "title": "x", "completion": {"type": "test_passing", "command": "true"}}
    )
    done = settled(here("tasks", "run", "--no-sandbox", "--no-guard"))
    assert "Sandbox: none (in place). Guard: off (--no-guard)." in done.err
    assert not asks(agent)


def test_a_run_over_stories_goes_without_it_too(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its hooks at the end of a turn stay: they are R's law, not the guard."""
    (tmp_path / "project").mkdir()
    project = StoryProject(tmp_path / "project", monkeypatch)
    project.stories(story(1))
    agent = prepare(project.path, SAYS_SO)
    done = here("prd", "run", "--no-sandbox", "--no-guard", "-n", "1")
    assert "Guard: off (--no-guard)." in done.err
    assert not asks(agent)
    assert "--settings" in calls(agent)[0]["argv"]
    assert guarded(agent) == "0"


def test_what_was_not_committed_is_kept_before_the_first_turn(here: Here, workspace: Path) -> None:
    """ "only after the run has saved uncommitted files and stashes in `refs/ralph/<run>/start`,
    which it then always does"."""
    agent = prepare(workspace, {"tools": [{"name": "Bash", "run": LOSES}], **SAYS_SO})
    (workspace / ".gitignore").write_text(".ralph\n")
    repository(workspace)
    (workspace / "stashed").write_text("stashed\n")
    git(workspace, "stash", "--include-untracked")
    (workspace / "mine").write_text("mine\n")
    (workspace / "kept").write_text("changed\n")
    said = settled(here("-p", "x")).err
    ref = calls(agent)[0]["env"]["RALPH_START"]
    assert f"Your uncommitted work and stashes are kept: git show {ref}\n" in said
    assert git(workspace, "stash", "list") == ""
    assert (workspace / "kept").read_text() == "kept\n"
    assert git(workspace, "show", f"{ref}:mine") == "mine\n"
    assert git(workspace, "show", f"{ref}:kept") == "changed\n"
    assert git(workspace, "show", f"{ref}^3^3:stashed") == "stashed\n"
    settled(here("-p", "x"))
    assert git(workspace, "rev-parse", ref), "what is gone stays kept"


LOSES = "git checkout kept; rm mine; git stash drop"


def test_what_is_still_there_need_not_be_kept(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, SAYS_SO, SAYS_SO)
    (workspace / ".gitignore").write_text(".ralph\n")
    repository(workspace)
    (workspace / "mine").write_text("mine\n")
    settled(here("-p", "x"))
    first = calls(agent)[0]["env"]["RALPH_START"]
    assert git(workspace, "rev-parse", first)
    settled(here("-p", "x"))
    left = git(workspace, "for-each-ref", "--format=%(refname)", "refs/ralph").splitlines()
    assert left == [calls(agent)[1]["env"]["RALPH_START"]]


@pytest.mark.parametrize(
    ("guard", "says"),
    [
        ({"level": "strict"}, "Guard: on for shell commands (strict)."),
        ({"enabled": False}, "Guard: off (guard.enabled)."),
    ],
)
def test_nothing_is_kept_where_nothing_may_be_thrown_away(
    here: Here, workspace: Path, guard: dict[str, object], says: str
) -> None:
    agent = prepare(workspace, SAYS_SO, guard=guard)
    repository(workspace)
    (workspace / "mine").write_text("mine\n")
    assert says in settled(here("-p", "x")).err
    assert "RALPH_START" not in calls(agent)[0]["env"]
    assert git(workspace, "for-each-ref", "refs/ralph") == ""


def repository(workspace: Path) -> None:
    (workspace / "kept").write_text("kept\n")
    git(workspace, "init", "-q")
    git(workspace, "config", "user.name", "x")
    git(workspace, "config", "user.email", "x@example.com")
    git(workspace, "add", "kept", *([".gitignore"] if (workspace / ".gitignore").exists() else []))
    git(workspace, "commit", "-q", "-m", "Begin")
