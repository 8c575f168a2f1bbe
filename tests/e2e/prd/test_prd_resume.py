"""`ralph resume` of a run over stories that has ended."""

from prd_support import story
from run_support import assert_clear, journals, ralph
from story_support import StoryProject
from story_support import project as project  # noqa: PLC0414  a fixture


def test_after_the_limit_of_iterations(project: StoryProject) -> None:
    """ "All loops": the next turn is the one that was due, reviews and counters go on."""
    project.stories(story(1), story(2))
    assert_clear(project.run("", "-n", "1", rejections=1), 1, "1 iteration used up")
    run = journals()[0].parent.name
    assert_clear(ralph("resume"), 2, f"Raise it: ralph resume {run} -m +10")
    done = ralph("resume", "-m", "+14")
    assert_clear(done, 0, "the stories in ", "Iteration 2/15 starting: review US-001")
    assert project.fates() == [(True, "approved", 2)] * 2
    assert (project.dirt(), len(journals())) == ("", 1)
    assert "iteration 2 of 15" in project.prompts()[1] or "Mode: review" in project.prompts()[1]


def test_a_question_was_answered(project: StoryProject) -> None:
    project.stories(story(1))
    ask = "if n == 1:\n    said, save = '<promise>DECIDE: Which port?</promise>', False"
    assert project.run(ask).code == 3
    assert_clear(ralph("resume"), 0, "Which port?", "Iteration 2/15 starting: implement US-001")
    assert project.fates() == [(True, "approved", 1)]


def test_a_later_run_has_taken_the_stories_up(project: StoryProject) -> None:
    project.stories(story(1))
    assert project.run("", "-n", "1").code == 1
    first = journals()[0].parent.name
    assert project.run("").code == 0
    assert_clear(ralph("resume", first, "-m", "+5"), 2, "has worked on the stories since")
    assert_clear(ralph("resume"), 2, "it has ended (completed", "ralph prd run")
