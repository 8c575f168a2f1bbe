"""`ralph demo` (the issue, §5): the whole idea, without any agent, key or network."""

import json
import os
from pathlib import Path

import pytest
from run_support import assert_clear, ralph

from ralph.journal.journal import read_journal
from ralph.kernel.facts import Decided
from ralph.kernel.verdict import Accept, Boundary, Continue


@pytest.mark.parametrize("words", [(), ("--agent", "builtin")])
def test_the_demo_shows_the_whole_idea(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Claimed too early, rejected, fed back, passed, believed with evidence, committed."""
    done = ralph("demo", *words, env={"TMPDIR": str(tmp_path)})
    told = (
        "Guardrail exited with code 1",
        "Proof      python3 check.py passed on tree ",
        "Committed: Add greet",
        "Completed after 2 iterations",
        "What happened:",
    )
    assert_clear(done, 0, *told)
    (journal,) = tmp_path.glob("ralph-demo-*/state/*/runs/*/journal.jsonl")
    assert str(journal) in done.err, "the closing lines say where the journal is"
    decided = [f for f in read_journal(str(journal))[0] if isinstance(f, Decided)]
    closings = [f.verdict for f in decided if f.boundary is Boundary.CLOSING]
    assert [type(verdict) for verdict in closings] == [Continue, Accept]


def test_the_own_agent_really_works_and_needs_no_key(tmp_path: Path) -> None:
    """Nobody is called but the scripted model, whatever the environment says; the file is its."""
    environ = {"ANTHROPIC_API_KEY": "real", "OPENAI_API_KEY": "real", "http_proxy": "http://no:1"}
    done = ralph("demo", "--agent", "builtin", env={"TMPDIR": str(tmp_path), **environ})
    assert done.code == 0, done.err
    assert "[ralph] Agent: ralph-agent with anthropic:scripted\n" in done.err
    (project,) = tmp_path.glob("ralph-demo-*/project")
    assert "Hello, {name}!" in (project / "greet.py").read_text()
    (stream,) = tmp_path.glob("ralph-demo-*/state/*/runs/*/001.stream")
    told = [json.loads(line)["type"] for line in stream.read_text().splitlines()]
    assert told[:5] == ["session", "used", "text", "action", "action_result"]


def test_the_demo_leaves_everything_else_alone(tmp_path: Path) -> None:
    ralph("demo", env={"TMPDIR": str(tmp_path)})
    assert os.listdir(os.environ["RALPH_STATE_DIR"]) == []
    assert len(os.listdir(tmp_path)) == 1


def test_the_demo_in_json(tmp_path: Path) -> None:
    objects = ralph("demo", "--json", env={"TMPDIR": str(tmp_path)}).objects
    assert (objects[-1]["type"], objects[-1]["iterations"], objects[-1]["exit"]) == ("stop", 2, 0)


def test_the_demo_commits_into_its_own_repository_only(repo: Path, tmp_path: Path) -> None:
    """In a git hook GIT_DIR names the user's repository."""
    head = (repo / ".git" / "refs" / "heads" / "main").read_text()
    env = {"TMPDIR": str(tmp_path), "GIT_DIR": str(repo / ".git"), "GIT_WORK_TREE": str(repo)}
    assert ralph("demo", env=env).code == 0
    assert (repo / ".git" / "refs" / "heads" / "main").read_text() == head
