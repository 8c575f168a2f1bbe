"""`ralph prd` from its beginning to the archive, with its own templates (R's plan 9 to 11)."""

import json

from prd_support import story
from run_support import assert_replays, ralph
from story_support import StoryProject
from story_support import project as project  # noqa: PLC0414  a fixture


def test_from_init_to_the_archive(project: StoryProject) -> None:
    for name in ("prompt.md", "prd.md", "progress.txt"):
        (project.path / "ralph" / name).unlink()
    assert ralph("prd", "init", "--name", "x").code == 0
    project.stories(story(1), story(2, dependsOn=["US-001"]))
    assert ralph("prd", "check").out == "2 stories: 2 to do\n"
    done = project.run("", rejections=1)
    assert (done.code, project.fates()) == (0, [(True, "approved", 2)] * 2)
    assert not [prompt for prompt in project.prompts() if "RALPH_" in prompt]
    assert "# Ralph loop: iteration 1 of 15\n" in project.prompts()[0]
    (stats,) = ralph("prd", "stats", "--json").objects
    assert (stats["reviews"], stats["recorded"], stats["cap_hits"]) == (4, 4, 0)
    caught = [{"review": 1, "text": "mend line 3"}]
    assert [one["caught"] for one in stats["stories"]] == [caught, caught]
    assert ralph("prd", "check").out == "2 stories: 2 approved\n"
    (archived,) = ralph("prd", "archive", "--json").objects
    assert (archived["done"], archived["total"]) == (2, 2)
    assert project.dirt() == ""
    summary = (project.path / archived["archive"] / "summary.md").read_text()
    assert "- US-001, review 1: mend line 3\n" in summary
    assert_replays()


def test_a_review_at_the_cap_is_told_apart(project: StoryProject) -> None:
    project.stories(story(1))
    assert project.run("", "--review-cap", "1", rejections=9).code == 0
    (one,) = ralph("prd", "stats", "--json").objects[0]["stories"]
    assert (one["outcome"], one["cap_hit"], one["reviews"]) == ("approved at the cap", True, 1)
    assert one["caught"] == [{"review": 1, "text": "mend line 3"}]


def test_reviews_of_what_was_archived_count_no_more(project: StoryProject) -> None:
    project.stories(story(1))
    assert project.run("", rejections=1).code == 0
    assert ralph("prd", "archive").code == 0
    tasks = project.path / "ralph" / "tasks.json"
    fresh = json.loads(tasks.read_text())
    tasks.write_text(json.dumps({**fresh, "branchName": "ralph/x", "userStories": [story(1)]}))
    (stats,) = ralph("prd", "stats", "--json").objects
    assert (stats["recorded"], stats["stories"][0]["caught"]) == (0, [])
