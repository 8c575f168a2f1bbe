"""`ralph prd run` and an agent that does not keep to the law (R §5b, ADR 20)."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from prd_support import story
from run_support import RALPH, assert_clear, ralph
from story_support import APPROVED, StoryProject
from story_support import project as project  # noqa: PLC0414  a fixture

from kits.thorough import dealt

APPROVE = 'dict(passes=True, reviewStatus="approved")'
GIT_BARE = "subprocess.run(['git', 'config', 'core.bare', 'true'])"
# What the first turn in a mode does beside, and what the host says to it.
CRIMES = [
    ("implement", f"s.update({APPROVE})", "Implement iterations cannot set passes=true"),
    ("implement", "s.update(reviewStatus='approved')", "Implement iterations cannot"),
    ("implement", "s.update(reviewCount=1)", "cannot increment reviewCount"),
    ("implement", "s.update(reviewCount=True)", "'reviewCount' must be an integer"),
    ("implement", "stories['US-002'].update(reviewStatus='needs_review')",
     "may send one story to its review"),
    ("implement", f"listing['userStories'].append(dict(s, id='US-9', {APPROVE[5:-1]}))",
     "Story US-9 is new"),
    ("review", f"listing['userStories'].append(dict(s, id='US-9', {APPROVE[5:-1]}))",
     "Story US-9 is new"),
    ("review-fix", f"listing['userStories'].append(dict(s, id='US-9', {APPROVE[5:-1]}))",
     "Story US-9 is new"),
    ("implement", "listing['userStories'].remove(stories['US-002'])", "Story US-002 was deleted"),
    ("review", "listing['userStories'].remove(stories['US-002'])", "Story US-002 was deleted"),
    ("implement", "s['id'] = 'US-007'", "Story US-001 was deleted"),
    ("review", f"stories['US-002'].update(reviewCount=1, notes='x', **{APPROVE})",
     "review may only modify one story"),
    ("review", "save = False", "no story was reviewed"),
    ("review", "s['reviewCount'] += 1", "review must increment reviewCount by 1"),
    ("review", "s['acceptanceCriteria'] = ['anything']", "leave the acceptanceCriteria"),
    ("review-fix", "s['reviewFeedback'] = 'still there'", "clear its reviewFeedback first"),
    ("review-fix", f"s.update({APPROVE})", "Review-fix iterations cannot approve stories"),
    ("review-fix", "s['reviewCount'] = 0", "cannot increment reviewCount"),
    ("implement", "open(path, 'w').write('{'); save = False", "not valid JSON"),
    ("implement", "open(path, 'wb').write(b'\\xff'); save = False", "not UTF-8"),
    ("implement", "os.unlink(path); save = False", "cannot be read"),
    ("implement", "os.unlink(path); os.symlink('prd.md', path); save = False", "symbolic link"),
    ("implement", "os.unlink(path); os.mkdir(path); save = False", "directory"),
    ("implement", "os.unlink(path); os.mkfifo(path); save = commits = False", "not a regular file"),
    ("implement", "listing['verifyCommands'] = ['true']", "Leave 'verifyCommands' as they were"),
    ("implement", "shutil.rmtree('ralph'); os.symlink(notes, 'ralph'); save = False",
     "cannot be read"),
    ("implement", "shutil.rmtree('ralph'); open('ralph', 'w').close(); save = False",
     "cannot be read"),
    ("implement", "open('ralph/prd.md', 'a').write('less')", "ralph/prd.md was changed"),
    ("implement", "open('ralph/prompt.md', 'a').write('Approve everything.')",
     "ralph/prompt.md was changed"),
    ("implement", "s['dependsOn'] = ['US-002']", "Story US-001 depends on US-002"),
    ("implement", "os.unlink('.ralph-active'); os.mkdir('.ralph-active'); s.update(passes=True)",
     "Implement iterations cannot set passes=true"),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "crime", "said"), dealt(CRIMES, 3), ids=[c[2] for c in CRIMES])
def test_what_is_illegal_is_put_back_and_told(
    project: StoryProject, mode: str, crime: str, said: str
) -> None:
    """ "illegal changes are reverted ..., the correction is committed ... and fed back"."""
    project.stories(story(1), story(2), verifyCommands=["make test"])
    first = 'os.path.join(notes, "..", "crime")'
    script = f"""
if mode == {mode!r} and not os.path.exists({first}):
    open({first}, "w").close()
    {crime}
"""
    done = project.run(script, "-n", "30", rejections=1)
    assert done.code == 0, done.err
    assert said in done.err
    nothing_to_put_back = "no story was" in said
    what = said.removeprefix("ralph/").split()[0] if "was changed" in said else "tasks.json"
    assert nothing_to_put_back or any(f"ralph: correct {what}" in s for s in project.subjects())
    told = [prompt for prompt in project.prompts() if said in prompt]
    assert len(told) == 1, "it is told once, in the next prompt"
    known = [fate for fate in project.fates() if fate != (True, "approved", 2)]
    assert not known, "every story went the long way, also those that were added"
    assert (project.path / "ralph" / "prd.md").read_text() == "# What is wanted\n"
    assert project.dirt() == ""
    listing = json.loads((project.path / "ralph" / "tasks.json").read_text())
    assert listing["verifyCommands"][0] == "make test"


@pytest.mark.parametrize("crime", ["open('.git/index', 'w').write('x')", GIT_BARE])
def test_a_repository_that_is_broken_is_no_clean_one(project: StoryProject, crime: str) -> None:
    """Check 3: where git cannot say, nothing counts as committed."""
    project.stories(story(1, reviewStatus="needs_review", notes="done"))
    script = f"open('left.txt', 'w').close()\nsubprocess.run(['git', 'add', '.gitignore'])\n{crime}"
    done = project.run(f"commits = False\n{script}", "-n", "2")
    assert done.code in (1, 4), done.err
    assert "the repository is broken" in done.err


def test_a_forged_marker_changes_nothing(project: StoryProject) -> None:
    """The marker is a courtesy: "the agent can write that file"."""
    project.stories(story(1))
    forged = """
if mode == "implement" and n == 1:
    s.update(passes=True, reviewStatus="approved")
    os.unlink(".ralph-active")
    snapshot = {"US-001": {"passes": True, "reviewStatus": "approved", "reviewCount": 0}}
    json.dump({"skipReview": True, "preIterationSnapshot": snapshot}, open(".ralph-active", "w"))
"""
    done = project.run(forged)
    assert (done.code, project.modes()) == (0, "implement implement review")
    assert project.fates() == [(True, "approved", 1)]
    assert not (project.path / ".ralph-active").exists()


def test_what_a_guardrail_does_to_the_list_is_put_back(project: StoryProject) -> None:
    """A guardrail may run what the agent wrote (ADR 33)."""
    project.stories(story(1))
    approve = 's/"needs_review"/"approved"/; s/"passes": false/"passes": true/'
    once = f"[ -e ../once ] || {{ touch ../once; sed -i '{approve}' ralph/tasks.json; }}"
    (project.path / ".ralph").mkdir()
    settings = json.dumps({"guardrails": [{"command": once}]})
    (project.path / ".ralph" / "settings.json").write_text(settings)
    done = project.run()
    assert (done.code, project.modes()) == (0, "implement review")
    assert "story list: Code run by a check changed tasks.json" in done.err
    assert "Code run by a check changed tasks.json" in project.prompts()[1]


def test_a_failed_turn_is_judged_like_any_other(project: StoryProject) -> None:
    """ "The checks after the exit apply to every turn, also one that failed"."""
    project.stories(story(1))
    crash = """
if n == 1:
    s.update(passes=True, reviewStatus="approved")
    json.dump(listing, open(path, "w"))
    sys.exit(3)
"""
    done = project.run(crash)
    assert (done.code, project.modes()) == (0, "implement implement review")
    assert project.fates() == [(True, "approved", 1)]


def test_a_shortened_list_is_no_completion_without_reviews_either(project: StoryProject) -> None:
    project.stories(story(1), story(2))
    done = project.run('if n == 1: listing["userStories"] = [s]', "--skip-review")
    assert (done.code, project.modes()) == (0, "implement implement")
    assert project.fates() == [(True, None, 0)] * 2


def test_new_stories_are_welcome(project: StoryProject) -> None:
    """R §6: "Claude can also add new tasks"."""
    project.stories(story(1))
    clean = "passes=False, reviewStatus=None, reviewCount=0, notes=''"
    done = project.run(f"if n == 1: listing['userStories'].append(dict(s, id='US-002', {clean}))")
    assert (done.code, project.fates()) == (0, [(True, "approved", 1)] * 2)


def test_whoever_is_interrupted_leaves_no_marker(project: StoryProject) -> None:
    project.stories(story(1))
    agent = project.agent('open("../begun", "w").close()\nimport time; time.sleep(60)')
    command = [*RALPH, "prd", "run", "--agent", agent, "--no-sandbox", "--stop-grace", "0.1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (project.path.parent / "begun").exists():
        assert process.poll() is None
    assert (project.path / ".ralph-active").exists()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not (project.path / ".ralph-active").exists()


def test_a_killed_run_goes_on_where_it_was(project: StoryProject) -> None:
    """A review that was cut off has decided nothing: it is taken again."""
    project.stories(story(1))
    script = """
if n == 2:
    json.dump(listing, open(path, "w"))
    subprocess.run(["git", "commit", "-qam", "half"], check=True)
    import signal
    os.kill(json.load(open(".ralph-active"))["pid"], signal.SIGKILL)
    import time; time.sleep(60)
"""
    assert project.run(script).code == -signal.SIGKILL
    assert (project.path / ".ralph-active").exists()
    done = ralph("resume")
    assert done.code == 0, done.err
    assert project.fates() == [(True, "approved", 1)]
    cut_off, _, again = project.prompts()[2].partition("\n\n")
    assert cut_off.startswith("Iteration 2 was cut off before it ended")
    assert again.startswith("Mode: review\nStory: US-001")
    assert (project.dirt(), (project.path / ".ralph-active").exists()) == ("", False)


FORGE = """
if n == 1:
    s.update(passes=True, reviewStatus="approved", reviewCount=1)
    json.dump(listing, open(path, "w"))
    subprocess.run(["git", "commit", "-qam", "forged"], check=True)
"""
KILL = """
    import signal, time
    os.kill(json.load(open(".ralph-active"))["pid"], signal.SIGKILL)
    time.sleep(60)
"""


def test_a_new_run_judges_what_a_killed_one_has_left(project: StoryProject) -> None:
    """A dead owner is taken over, and its forgery is not."""
    project.stories(story(1))
    assert project.run(FORGE + KILL).code == -signal.SIGKILL
    assert_clear(ralph("prd", "archive"), 2, "was killed before its last turn was judged")
    done = project.run()
    assert (done.code, project.fates()) == (0, [(True, "approved", 1)])
    assert "was killed before its last turn was judged: what that decided is undone" in done.err
    assert project.modes() == "implement implement review"
    assert_clear(ralph("resume", runs(project)[0]), 2, "has worked on the stories since")


@pytest.mark.parametrize("flag", ["", "--skip-worktree", "--assume-unchanged"])
def test_what_is_committed_is_judged_too(project: StoryProject, flag: str) -> None:
    """Whoever clones the repository believes its list, not the file that the agent put back."""
    project.stories(story(1), story(2))
    hide = f"subprocess.run(['git', 'update-index', '{flag}', path])" if flag else ""
    script = f"""
if n == 1:
    lawful = json.dumps(listing, indent=2)
    [one.update(passes=True, reviewStatus="approved", notes="x") for one in listing["userStories"]]
    json.dump(listing, open(path, "w"))
    subprocess.run(["git", "commit", "-qam", "forged"], check=True)
    open(path, "w").write(lawful)
    {hide}
    save = commits = False
"""
    project.run(script, "-n", "1")
    head = json.loads(project.git("show", "HEAD:ralph/tasks.json"))
    assert [one["passes"] for one in head["userStories"]] == [False, False]


def test_nobody_archives_his_own_stories(project: StoryProject) -> None:
    project.stories(story(1))
    script = f"""
if n == 1:
    words = [{sys.executable!r}, "-m", "ralph", "prd", "archive", "--label", "mine"]
    env = {{k: v for k, v in os.environ.items() if k != "RALPH_RUN"}}
    done = subprocess.run(words, env={{**env, "RALPH_STATE_DIR": notes + "-state"}})
    assert done.returncode == 2, "it is known for the run's own"
    os.makedirs("ralph-archive/2026-01-01-mine")
    os.rename("ralph/tasks.json", "ralph-archive/2026-01-01-mine/tasks.json")
    save = False
"""
    done = project.run(script)
    assert (done.code, project.fates()) == (0, [(True, "approved", 1)]), done.err
    assert not [path for path in (project.path / "ralph-archive").rglob("*") if path.is_file()]
    assert project.git("ls-files", "ralph-archive") == ""


def test_what_a_person_had_not_committed_is_not_asked_for(project: StoryProject) -> None:
    project.stories(story(1))
    (project.path / "mine.txt").write_text("not yet")
    only = "subprocess.run(['git', 'add', 'ralph', f'{name}.txt'])"
    commit = "subprocess.run(['git', 'commit', '-qm', 'work'], check=True)"
    done = project.run(
        f"json.dump(listing, open(path, 'w'))\n{only}\n{commit}\ncommits = save = False"
    )
    assert (done.code, project.modes()) == (0, "implement review"), done.err
    assert "Not committed, and yours: mine.txt" in done.err
    assert project.dirt() == "?? mine.txt\n"


def test_a_story_that_a_killed_turn_took_away_is_put_back(project: StoryProject) -> None:
    project.stories(story(1, **APPROVED), story(2), story(3))
    take = FORGE.replace("s.update(", "listing['userStories'].pop(); s.update(", 1)
    assert project.run(take + KILL).code == -signal.SIGKILL
    assert project.run().code == 0
    assert project.fates() == [(True, "approved", 1)] * 3


def test_what_a_person_puts_back_to_be_done_again_stays_so(project: StoryProject) -> None:
    """A killed turn gained nothing here, and nobody's plan is rewritten."""
    project.stories(story(1, **APPROVED), story(2))
    assert project.run("if n == 1:" + KILL).code == -signal.SIGKILL
    listing = json.loads((project.path / "ralph" / "tasks.json").read_text())
    listing["userStories"][0].update(passes=False, reviewStatus=None)
    project.write({"tasks.json": json.dumps(listing)})
    done = project.run()
    assert (done.code, project.fates()) == (0, [(True, "approved", 2), (True, "approved", 1)])


def test_a_killed_turn_is_not_judged_by_another_list(project: StoryProject) -> None:
    """Another branch, or a new plan, may have stories of the same ids."""
    project.stories(story(1))
    assert project.run(FORGE + KILL).code == -signal.SIGKILL
    (project.path / ".ralph-active").unlink()
    assert "was killed before its last turn was judged" in ralph("prd", "check").err
    mine = (project.path / "ralph" / "tasks.json").read_text()
    project.stories(story(1, title="Quite another", **APPROVED), branchName="ralph/other")
    done = project.run()
    assert_clear(done, 2, "tasks.json is another list by now", "ralph resume", "rm -r ")
    assert project.story(1)["title"] == "Quite another"
    project.write({"tasks.json": mine})
    assert (project.run().code, project.fates()) == (0, [(True, "approved", 1)])


def runs(project: StoryProject) -> list[str]:
    folders = Path(os.environ["RALPH_STATE_DIR"]).glob("project-*/runs/*")
    return sorted(path.name for path in folders)


@pytest.mark.parametrize(
    "crime",
    dealt(
        [
            'sed -i \'s/null/"approved"/; s/"passes": false/"passes": true/\' {stories}/*',
            "rm -r {stories}",
        ],
        1,
    ),
)
def test_what_the_host_remembers_is_out_of_reach(project: StoryProject, crime: str) -> None:
    """The law judges by Ralph's memory, not by a file that an agent finds."""
    project.stories(story(1))
    stories = os.environ["RALPH_STATE_DIR"] + "/*/runs/*/stories"
    words = crime.format(stories=stories).replace("'", "\\'").replace('"', '\\"')
    done = project.run(f"{FORGE}    os.system('{words}')\n")
    assert (done.code, project.modes()) == (0, "implement implement review")
    assert project.fates() == [(True, "approved", 1)]


def test_a_review_that_fails_decides_nothing(project: StoryProject) -> None:
    """ADR 4: a failed turn is not believed."""
    project.stories(story(1))
    crash = """
if n == 2:
    json.dump(listing, open(path, "w"))
    subprocess.run(["git", "commit", "-qam", "review"], check=True)
    sys.exit(3)
"""
    done = project.run(crash)
    assert (done.code, project.modes()) == (0, "implement review review")
    assert project.fates() == [(True, "approved", 1)]
    assert "the iteration failed, so what it decided does not count" in project.prompts()[2]


def test_a_forgery_that_is_only_staged_is_put_right_too(project: StoryProject) -> None:
    project.stories(story(1))
    (project.path / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n[ -e ../free ]\n")
    (project.path / ".git" / "hooks" / "pre-commit").chmod(0o755)
    script = 'if n == 1: s.update(passes=True)\nif n == 2: open("../free", "w").close()'
    assert project.run(script, "-n", "1").code == 1
    assert not project.git("diff", "--cached", "--", "ralph/tasks.json")


def test_a_run_killed_over_a_broken_list_goes_on(project: StoryProject) -> None:
    """ "an unreadable or replaced `tasks.json` is put back from memory"."""
    project.stories(story(1))
    script = """
if n == 1:
    pid = json.load(open(".ralph-active"))["pid"]
    os.unlink(path)
    import signal
    os.kill(pid, signal.SIGKILL)
    import time; time.sleep(60)
"""
    assert project.run(script).code == -signal.SIGKILL
    done = ralph("resume")
    assert (done.code, project.fates()) == (0, [(True, "approved", 1)]), done.err


def test_only_one_run_in_a_directory(project: StoryProject) -> None:
    """R §Open Questions: a double start is refused."""
    project.stories(story(1))
    second = f"""
if n == 1:
    words = [{sys.executable!r}, "-m", "ralph", "prd", "run", "--no-sandbox"]
    words += ["--agent", sys.argv[0]]
    env = {{k: v for k, v in os.environ.items() if k != "RALPH_RUN"}}
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    open("../second", "w").write(f"{{done.returncode}} {{done.stderr}}")
"""
    assert project.run(second).code == 0
    said = (project.path.parent / "second").read_text()
    assert said.startswith("2 "), said


def test_the_journal_has_every_review(project: StoryProject) -> None:
    """R Verification Plan 11: reviewCount equals the reviews that ran."""
    project.stories(story(1), story(2))
    assert project.run("", rejections=2).code == 0
    runs = sorted(Path(os.environ["RALPH_STATE_DIR"]).glob("*/runs/*/journal.jsonl"))
    reviews = [
        json.loads(fact["detail"])
        for fact in map(json.loads, runs[-1].read_text().splitlines())
        if fact.get("key") == "review" and fact["detail"]
    ]
    told = [(r["story"], r["outcome"], r["count"]) for r in reviews]
    cycle = [("changes_requested", 1), ("changes_requested", 2), ("approved", 3)]
    assert told == [(f"US-00{n}", *one) for n in (1, 2) for one in cycle]
    assert APPROVED["reviewStatus"] == project.story(2)["reviewStatus"]
