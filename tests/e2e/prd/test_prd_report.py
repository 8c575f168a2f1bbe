"""`ralph report` of reviewed stories: each with its reviews, and what is left."""

from pathlib import Path

from prd_support import story
from run_support import ralph
from story_support import StoryProject
from story_support import project as project  # noqa: PLC0414  a fixture


def test_the_reviews_of_stories_are_drawn(project: StoryProject, tmp_path: Path) -> None:
    project.stories(story(1), story(2))
    assert project.run(rejections=1).code == 0
    path = tmp_path / "report.html"
    assert ralph("report", "-o", str(path)).code == 0
    page = path.read_text("utf-8")
    assert 'aria-label="4 reviews: 2 of 2 stories approved."' in page
    assert page.count("<title>changes requested: mend line 3</title>") == 2
    assert "<b>Stories left to do</b>" in page
    assert "<dt>Stories</dt><dd><b>2</b> <small>of 2 done</small>" in page
    assert "✅ done | **US-001**" in ralph("report", "--format", "md").out
