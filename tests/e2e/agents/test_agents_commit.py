"""Real agents and source control: the model's words become the commit (H §SCM Tasks)."""

import pytest

from agents.real_agents import DONE, MESSAGE_PROMPT, World

pytestmark = pytest.mark.agents

WRITES = {  # a call that writes a file, other than by a shell
    "claude": {"name": "Write", "input": {"file_path": "${REPO}/evil.txt", "content": "evil"}},
    "codex": {
        "name": "apply_patch",
        "input": "*** Begin Patch\n*** Add File: evil.txt\n+evil\n*** End Patch\n",
    },
    "gemini": {"name": "write_file", "input": {"file_path": "evil.txt", "content": "evil"}},
    "opencode": {"name": "write", "input": {"filePath": "evil.txt", "content": "evil"}},
}
USAGE = {"input": 10_000, "output": 100}


@pytest.fixture
def committing(world: World) -> World:
    """A clean repository whose settings ask for commits."""
    guardrails = [{"command": "test -f hello.txt"}, {"command": "grep -q hello hello.txt"}]
    world.configure(guardrails=guardrails, scm={"command": "git", "tasks": ["commit"]})
    world.git("add", "--all")
    world.git("commit", "--quiet", "--message", "Add settings")
    return world


def test_what_passed_is_committed_in_the_models_words(committing: World) -> None:
    """ADR 8: new files too, and nothing of Ralph's own."""
    world = committing
    world.plays(
        world.shell("echo hello > hello.txt; echo more >> README.md"),
        {"text": DONE},
        message=({"text": "Add a greeting"},),
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert MESSAGE_PROMPT in world.asked(2)
    assert world.git("log", "-1", "--format=%s") == "Add a greeting"
    assert world.git("show", "--name-only", "--format=").split() == ["README.md", "hello.txt"]
    assert world.git("ls-files", ".ralph") == ".ralph/settings.json"
    assert world.git("status", "--porcelain") == ""
    assert "Committed: Add a greeting" in run.err


def test_a_clean_tree_needs_no_message(committing: World) -> None:
    """ADR 8: a clean tree skips SCM without a message turn; H commits each iteration."""
    world = committing
    message = f"<response>Add a greeting</response>\nas you asked, not {DONE}"
    world.plays(
        world.shell("echo hello > hello.txt"),
        {"text": "Half of it is there."},
        {"text": DONE},
        message=({"text": message},),
    )
    run = world.run("-m", "5")
    assert run.code == 0, run.err
    assert run.stop["iterations"] == 2
    assert [step["key"] for step in run.facts("step")] == ["scm:message", "scm:commit"]
    assert len(world.model.main_calls()) == 4
    assert world.git("log", "--format=%s").splitlines()[0] == "Add a greeting"


def test_a_message_turn_that_fails_commits_nothing(committing: World) -> None:
    """H §SCM Tasks: no valid message aborts them; an API error printed as text is none."""
    world = committing
    error = {"status": 400, "type": "invalid_request_error", "message": "no"}
    world.plays(
        world.shell("echo hello > hello.txt"),
        {"text": DONE},
        message=({"error": error, "times": -1},),
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert "No commit" in run.err
    assert world.git("log", "-1", "--format=%s") == "Add settings"
    assert world.git("status", "--porcelain") == "?? hello.txt"


@pytest.mark.parametrize("kind", WRITES)
def test_a_message_turn_can_change_nothing(committing: World) -> None:
    """ADR 8: it has no tools, although `agent.flags` let every tool run; what it tries costs."""
    world = committing
    evil = world.shell("echo evil > evil.txt; echo evil >> hello.txt; git commit -qam evil")
    world.plays(
        world.shell("echo hello > hello.txt"),
        {"text": DONE},
        message=(
            {"text": "First I mend it.", **evil, "usage": USAGE},
            {"tools": [WRITES[world.kind]], "usage": USAGE},
            {"text": "Add a greeting", "usage": USAGE},
        ),
    )
    run = world.run("-m", "1")
    assert run.code == 0, run.err
    assert len(world.model.main_calls()) == 5  # it was tried, and the model was told
    assert not (world.repo / "evil.txt").exists()
    assert (world.repo / "hello.txt").read_text() == "hello\n"
    subjects = world.git("log", "--format=%s").splitlines()
    assert subjects[:2] == ["Add a greeting", "Add settings"]
    assert world.git("status", "--porcelain") == ""
    (message, _) = run.facts("step")
    assert message["cost_usd"] > 0
    assert run.stop["cost_usd"] > message["cost_usd"]
    assert "unknown cost" not in run.err
