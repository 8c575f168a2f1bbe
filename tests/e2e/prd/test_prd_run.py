"""`ralph prd run`: the cycle of R, as its users see it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from prd_support import story
from run_support import assert_clear, ralph
from story_support import APPROVED, IN_OVERLAY, StoryProject
from story_support import project as project  # noqa: PLC0414  a fixture

from kits.thorough import dealt


def test_a_story_goes_through_its_review(project: StoryProject) -> None:
    """R Verification Plan 9: implement, review, fix, review again."""
    project.stories(story(1))
    done = project.run(
        'said += "\\n<promise>COMPLETE</promise>" if s["passes"] else ""', rejections=1
    )
    assert (done.code, project.modes()) == (0, "implement review review-fix review")
    assert project.fates() == [(True, "approved", 2)]
    assert "US-001 changes requested (review 1): mend line 3" in done.err
    assert (project.dirt(), (project.path / ".ralph-active").exists()) == ("", False)


def test_the_list_alone_completes(project: StoryProject) -> None:
    """R §3: "Falls back to tasks.json-only check"."""
    project.stories(story(1))
    assert (project.run().code, project.fates()) == (0, [(True, "approved", 1)])


def test_a_promise_alone_does_not(project: StoryProject) -> None:
    """R §3: the promise is verified with the list."""
    project.stories(story(1))
    done = project.run(
        'said = "<promise>COMPLETE</promise>"; s.update(reviewStatus=None)', "-n", "2"
    )
    assert (done.code, project.modes()) == (1, "implement implement")
    assert "these are not approved: US-001" in project.prompts()[1]


def test_dependencies_come_first(project: StoryProject) -> None:
    """R §6: "respecting dependsOn"."""
    project.stories(story(1, dependsOn=["US-002"]), story(2, priority=9))
    assert project.run().code == 0
    told = [prompt.splitlines()[1] for prompt in project.prompts()]
    assert told == [f"Story: {name}" for name in ("US-002", "US-002", "US-001", "US-001")]


def test_the_marker_says_what_the_turn_is(project: StoryProject) -> None:
    """R §3: the payload, rewritten before every turn."""
    project.stories(story(1), story(2, **APPROVED))
    keep = 'open(f"../marker{n}", "w").write(open(".ralph-active").read())'
    assert project.run(keep, "--review-cap", "3").code == 0
    first, second = (json.loads((project.path.parent / f"marker{n}").read_text()) for n in (1, 2))
    assert first["preIterationSnapshot"] == {
        "US-001": {"passes": False, "reviewStatus": None, "reviewCount": 0},
        "US-002": {"passes": True, "reviewStatus": "approved", "reviewCount": 1},
    }
    assert (first["iterationMode"], second["iterationMode"]) == ("implement", "review")
    assert second["preIterationSnapshot"]["US-001"]["reviewStatus"] == "needs_review"
    fixed = {k: first[k] for k in ("max_iterations", "mode", "skipReview", "reviewCap")}
    assert fixed == {"max_iterations": 15, "mode": "direct", "skipReview": False, "reviewCap": 3}
    assert first["timestamp"].endswith("Z")


def test_a_review_at_the_cap_that_asks_for_changes_approves(project: StoryProject) -> None:
    """R Verification Plan 9, review cap test; the host sees to it."""
    project.stories(story(1))
    done = project.run("", "--review-cap", "1", rejections=9)
    assert (done.code, project.fates()) == (0, [(True, "approved", 1)])
    assert project.story(1)["reviewFeedback"] == "[AUTO-APPROVED AT CAP] mend line 3"
    assert project.subjects()[0] == "ralph: approve US-001 at the review cap (iteration 2)"
    assert project.dirt() == ""


def test_without_reviews_a_story_passes_at_once(project: StoryProject) -> None:
    """R Verification Plan 9, skip-review test."""
    project.stories(story(1), story(2))
    done = project.run("", "--skip-review")
    assert (done.code, project.modes()) == (0, "implement implement")
    assert project.fates() == [(True, None, 0)] * 2


def test_silence_is_taken_again(project: StoryProject) -> None:
    """R §3: "retrying the iteration, with a cap on retries"."""
    project.stories(story(1))
    silent = """
if n < 3:
    said, save, commits = "", False, False
    os.unlink(f"{name}.txt")
"""
    done = project.run(silent)
    assert (done.code, project.modes()) == (0, "implement implement implement review")
    assert done.err.count("Iteration 1/15 starting") == 3


def test_who_has_no_name_commits_as_ralph(project: StoryProject) -> None:
    """R §3: the sandbox's git is `Ralph Loop`; so is any that does not know its user."""
    project.stories(story(1))
    project.git("config", "--unset", "user.name")
    project.git("config", "--unset", "user.email")
    project.git("config", "user.useConfigOnly", "true")
    done = project.run()
    assert (done.code, project.modes()) == (0, "implement review"), done.err
    assert "git does not know who you are" in done.err
    assert project.git("log", "-1", "--format=%an <%ae>") == "Ralph Loop <ralph@localhost>\n"


def test_the_marker_is_nobodys_to_commit(project: StoryProject) -> None:
    """Also where no .gitignore names it."""
    (project.path / ".gitignore").write_text("")
    project.stories(story(1))
    assert project.run().code == 0
    assert project.dirt() == ""
    assert ".ralph-active" not in project.git("log", "--name-only", "--format=")


def test_who_works_without_a_word_is_not_asked_again(project: StoryProject) -> None:
    """Only an empty answer is: nothing said, nothing called, nothing changed."""
    project.stories(story(1))
    done = project.run('said = ""')
    assert (done.code, project.modes()) == (0, "implement review")
    assert "Completed after 2 iterations" in done.err


def test_what_is_left_uncommitted_is_no_completion(project: StoryProject) -> None:
    """R §5b Check 3, by the host."""
    project.stories(story(1))
    done = project.run('if mode == "review": commits = False')
    assert (done.code, project.modes(), project.dirt()) == (0, "implement review implement", "")
    assert "There are uncommitted changes: US-001.txt, ralph/tasks.json." in project.prompts()[2]
    assert "Every story is approved, and nothing is left to implement" in project.prompts()[2]


def test_an_estimate_stands_at_the_beginning(project: StoryProject) -> None:
    """R §Open Questions: "5 stories × ~3 iterations each = ~15 iterations needed"."""
    project.stories(story(1), story(2, reviewStatus="needs_review"), story(3, **APPROVED))
    done = project.run("", "-n", "1")
    assert "2 of 3 stories left × ~3 = ~5 iterations needed, more than the limit of 1" in done.err
    assert done.code == 1


def test_all_approved_at_the_start_takes_no_turn(project: StoryProject) -> None:
    project.stories(story(1, **APPROVED))
    done = project.run()
    assert (done.code, project.modes()) == (0, "")
    assert "Completed after 0 iterations" in done.err


def test_another_agent_reviews(project: StoryProject) -> None:
    """Reviewer independence: `--review-agent` takes the turns in mode review, and only those."""
    project.stories(story(1))
    reviewer = project.agent('open("../reviewed", "a").write(mode)', name="reviewer")
    done = project.run('assert mode != "review"', "--review-agent", reviewer)
    assert (done.code, project.fates()) == (0, [(True, "approved", 1)])
    assert (project.path.parent / "reviewed").read_text() == "review"
    assert "Reviews by reviewer" in done.err


def test_another_folder(project: StoryProject, tmp_path: Path) -> None:
    """R §3: `--ralph-dir`, `-d`; the issue: "the prompt names the folder"."""
    project.stories(story(1))
    project.git("mv", "ralph", "plans")
    agent = project.agent(folder="plans")
    project.git("commit", "-q", "-m", "move")
    os.chdir(tmp_path)
    flags = ("--agent", agent, "--no-sandbox", "-d", "project", "--ralph-dir", "plans")
    done = ralph("prd", "run", *flags)
    assert done.code == 0, done.err
    assert project.modes() == "implement review"
    assert all("progress.txt: plans\n" in prompt for prompt in project.prompts())


def test_a_sandbox_lets_the_whole_cycle_through(project: StoryProject) -> None:
    """R Verification Plan 10, three stories; in an overlay, where this machine has one."""
    project.stories(story(1), story(2), story(3))
    (project.path / ".gitignore").write_text(".ralph-active\n.turns\n")
    project.git("commit", "-qam", "ignore")
    agent = project.agent(notes=".turns")
    done = ralph("prd", "run", "--agent", agent, "--sandbox")
    assert done.code == 0, done.err
    assert project.fates() == [(True, "approved", 1)] * 3
    assert (project.dirt(), (project.path / ".ralph-active").exists()) == ("", False)


@IN_OVERLAY
@pytest.mark.parametrize("where", dealt(["linked worktree", "subdirectory", "worktree backend"], 1))
def test_where_the_agent_cannot_commit_the_host_does(
    project: StoryProject, tmp_path: Path, where: str
) -> None:
    """ "worktrees for parallel features": also in a sandbox, which cannot write to git there."""
    (project.path / ".gitignore").write_text(".ralph-active\n.turns\n")
    place = project.path
    project.stories(story(1), story(2))
    if where == "subdirectory":
        place = project.path / "inner"
        place.mkdir()
        project.git("mv", "ralph", "inner")
        project.git("commit", "-qm", "inner")
    if where == "linked worktree":
        place = tmp_path / "linked"
        project.git("worktree", "add", "-q", str(place))
    os.chdir(place)
    backend = "worktree" if where == "worktree backend" else "overlay"
    agent = project.agent("commits = False", notes=".turns", rejections=1)
    done = ralph("prd", "run", "--agent", agent, f"--sandbox={backend}")
    assert done.code == 0, done.err
    log = subprocess.run(["git", "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout.splitlines()[:4] == [
        "review: [US-002] - approved",
        "fix: [US-002] - address review feedback",
        "review: [US-002] - changes requested",
        "feat: [US-002] - Story 2",
    ]
    status = subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


def test_the_same_objection_again_and_again_ends_it(project: StoryProject) -> None:
    """The issue: "the same objection three times in a row is "no progress", whatever the agent
    appends or commits meanwhile"."""
    (project.path / ".ralph").mkdir()
    settings = {"guardrails": [{"command": "echo the same; exit 1"}]}
    (project.path / ".ralph" / "settings.json").write_text(json.dumps(settings))
    project.stories(story(1), story(2))
    append = 'open("ralph/progress.txt", "a").write(f"turn {n}\\n")'
    done = project.run(append)
    why = "no progress: echo the same; exit 1 objects to the same thing 3 times in a row"
    assert_clear(done, 4, why)
    assert len(project.prompts()) == 3
    assert (project.path / "ralph" / "progress.txt").read_text().count("turn") == 3


def test_json_for_programs(project: StoryProject) -> None:
    project.stories(story(1))
    done = project.run("", "--json")
    last = done.objects[-1]
    assert (done.code, last["type"], last["reason"]) == (0, "stop", "completed")


def test_dry_run_shows_the_first_turn(project: StoryProject) -> None:
    project.stories(story(1, **APPROVED), story(2, reviewStatus="needs_review", notes="done"))
    done = project.run("", "--dry-run")
    assert done.code == 0
    assert "Mode: review\nStory: US-002\n\nWork on it." in done.out
    assert not list(project.notes.iterdir())


def test_dry_run_of_a_finished_list_says_so(project: StoryProject) -> None:
    project.stories(story(1, **APPROVED))
    done = project.run("", "--dry-run")
    assert (done.code, done.out) == (0, "There is no turn to take: every story is approved.\n")
    first, last = project.run("", "--dry-run", "--json").objects
    assert (first["command"], first["why"]) == (None, "every story is approved")
    assert last["reason"] == "completed"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (None, "ralph prd init"),
        ("{", "not valid JSON"),
        (json.dumps({"userStories": []}), "'project' is missing"),
        (json.dumps({"project": "", "branchName": "", "description": "", "userStories": []}),
         "there are no stories in it"),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_worked_on(
    project: StoryProject, broken: str | None, said: str
) -> None:
    """ "`run` without `ralph/`, or with a `tasks.json` that fails check 1: 2"."""
    if broken is not None:
        project.write({"tasks.json": broken})
    done = project.run()
    assert (done.code, project.modes()) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"reviewCount": True}, "Story US-001: 'reviewCount' must be an integer"),
        ({"passes": True, "notes": "x"}, "Story US-001 has passes=true but reviewStatus is 'null'"),
        ({"acceptanceCriteria": []}, "Story US-001: 'acceptanceCriteria'"),
        ({"dependsOn": ["US-002"]}, "wait for each other: US-001 → US-002 → US-001"),
    ],
)
def test_a_story_that_no_turn_could_mend(
    project: StoryProject, fields: dict[str, object], said: str
) -> None:
    project.stories(story(1, **fields), story(2, dependsOn=["US-001"]))
    done = project.run()
    assert (done.code, project.modes()) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--review-cap", "0"), "0 is less than 1"),
        (("--review-cap", "x"), "'x' is not a whole number"),
        (("--ralph-dir", ".."), "lies outside the project"),
        (("--sandbox",), "exclude each other"),
        (("--review-agent", "no-such-agent"), "no-such-agent"),
        (("-n", "0"), "0"),
    ],
)
def test_wrong_flags(project: StoryProject, flags: tuple[str, ...], said: str) -> None:
    project.stories(story(1))
    done = project.run("", *flags)
    assert (done.code, project.modes()) == (2, "")
    assert said in done.err


def test_the_log_of_a_run_tells_of_its_reviews(project: StoryProject) -> None:
    project.stories(story(1))
    assert project.run("", rejections=1).code == 0
    done = ralph("logs")
    assert "Iteration 2/15 starting: review US-001 (Story 1)" in done.out
    assert "US-001 changes requested (review 1): mend line 3" in done.out
    assert "{" not in done.out
