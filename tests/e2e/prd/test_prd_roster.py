"""The next agent for stories (ADR 45): it works, and it reviews for a reviewer of its own."""

import json
import time

from prd_support import story
from run_support import assert_clear, ralph
from story_support import StoryProject
from story_support import project as project  # noqa: PLC0414  a fixture

from ralph.testing.scripted_agent.install import calls, install_agent


def limited(project: StoryProject, name: str) -> str:
    """Install an agent that is always limited."""
    error = {"status": 429, "message": "You've hit your limit", "resets_at": time.time() + 3600}
    return install_agent(str(project.path.parent / name), [{"error": error}])


def settings(project: StoryProject, first: str) -> None:
    agent = {"command": first, "fallbacks": [{"command": project.agent()}]}
    (project.path / ".ralph").mkdir()
    (project.path / ".ralph" / "settings.json").write_text(json.dumps({"agent": agent}))
    project.stories(story(1))


def test_stories_go_on_with_the_next_agent(project: StoryProject) -> None:
    first = limited(project, "bin")
    settings(project, first)
    done = ralph("prd", "run", "--no-sandbox")
    assert_clear(done, 0, "claude cannot go on", "Agent: agent")
    assert (project.fates(), project.modes()) == ([(True, "approved", 1)], "implement review")
    assert len(calls(first)) == 1


def test_the_next_agent_reviews_where_the_reviewer_cannot(project: StoryProject) -> None:
    """The reviewer's bench is its own: the first agent has implemented meanwhile."""
    first, reviewer = limited(project, "bin"), limited(project, "other")
    settings(project, first)
    done = ralph("prd", "run", "--no-sandbox", "--review-agent", reviewer)
    assert_clear(done, 0, "Reviews by claude", "Agent: agent", "Reviewer: agent")
    assert (project.fates(), project.modes()) == ([(True, "approved", 1)], "implement review")
    assert (len(calls(first)), len(calls(reviewer))) == (1, 1)
