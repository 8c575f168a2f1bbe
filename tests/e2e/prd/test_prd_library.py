"""Stories as a library: `from ralph import StoryRun`."""

from prd_support import story
from story_support import StoryProject
from story_support import project as project  # noqa: PLC0414  a fixture

from ralph import StoryRun, TaskResult


def test_a_result_has_every_story(project: StoryProject) -> None:
    project.stories(story(1), story(2))
    run = StoryRun(project.path, agent=project.agent(), sandbox=False, max_iterations=2)
    result = run.run()
    assert (result.reason, result.exit_code, result.iterations) == ("limit", 1, 2)
    titles = [project.story(number)["title"] for number in (1, 2)]
    assert result.tasks == (
        TaskResult("US-001", done=True, title=titles[0]),
        TaskResult("US-002", done=False, title=titles[1]),
    )
    again = run.run()
    assert again.completed
    assert all(task.done for task in again.tasks)
    assert project.modes() == "implement review implement review"


def test_reviews_can_be_left_out(project: StoryProject) -> None:
    project.stories(story(1))
    agent = project.agent(skip=True)
    assert StoryRun(project.path, agent=agent, sandbox=False, skip_review=True).run().completed
    assert project.modes() == "implement"
