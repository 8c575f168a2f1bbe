"""ADR 46: what is likely left of a list of stories, by what earlier stories took."""

import json

import pytest
from prd_support import story
from run_support import ralph
from story_support import StoryProject
from story_support import project as project  # noqa: PLC0414  a fixture


@pytest.mark.slow
def test_earlier_stories_tell_what_the_others_will_take(project: StoryProject) -> None:
    """Each takes two turns, implement and review; the last run ends in the middle."""
    project.stories(*(story(number) for number in range(1, 7)))
    first = project.run()
    assert first.code == 0
    assert "Forecast" not in first.err
    project.stories(*(story(number) for number in range(11, 15)))
    second = project.run("", "-n", "3")
    assert second.code == 1
    (line,) = [line for line in second.err.splitlines() if "Forecast" in line]
    assert line.startswith("[ralph] Forecast: 7 to 9 iterations (about 8), ")
    assert "; the limit of 3 iterations will likely not hold (by 6 earlier stories)." in line
    told = json.loads(ralph("status", "--json").out)["forecast"]
    assert told["iterations"]["median"] in (5, 6), "three of eight turns are over"
    assert (told["observations"], told["of"], told["limit_holds"]) == (7, "stories", False)
