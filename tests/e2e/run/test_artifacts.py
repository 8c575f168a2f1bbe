"""Artifacts of an explicit result must exist (B §Explicit Completion), for tasks and stories."""

from pathlib import Path

import parallel_support
import pytest
from backlog_support import Project, project
from prd_support import story
from run_support import assert_clear
from story_support import StoryProject

__all__ = ["project"]

RESULT = """echo '<result>{"status": "complete", "artifacts": ["a.txt"]}</result>'"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_result_is_not_believed_until_its_artifacts_are_there(
    project: Project, workers: int
) -> None:
    project.tasks({"id": "A", "title": "Write it"})
    done = parallel_support.run(project, f"[ $n = 2 ] && touch a.txt; {RESULT}", workers=workers)
    assert_clear(done, 0, "artifacts that do not exist: a.txt")
    assert project.turns("A") == 2
    assert "artifacts that do not exist: a.txt" in project.prompt("A", 2)
    assert project.task("A")["evidence"]["artifacts"] == ["a.txt"]
    assert "a.txt" in project.git("ls-tree", "--name-only", "HEAD")


def test_it_is_the_same_for_stories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    found = StoryProject(tmp_path / "project", monkeypatch)
    found.stories(story(1))
    claim = """said = '<result>{"status": "complete", "artifacts": ["gone.txt"]}</result>'"""
    done = found.run(f"if n < 3: {claim}")
    assert_clear(done, 0, "artifacts that do not exist: gone.txt")
    assert any("gone.txt" in prompt for prompt in found.prompts()[1:])
