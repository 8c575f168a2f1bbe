"""Pull requests and CI for a backlog: `ralph tasks run --pr` (ADR 44)."""

import json
import signal

import pytest
from backlog_support import COMPLETE
from publish_support import LOG, QUICK, SOON, Shop, shop
from run_support import Running, ralph

from kits.forge.pictures import failed, neutral, passed, pending, skipped, status
from kits.thorough import dealt

__all__ = ["shop"]

WORK = f'echo "$id $n" >> "$id.txt"; {COMPLETE}'
TWO = ({"id": "T1", "title": "One"}, {"id": "T2", "title": "Two"})


def test_each_task_of_a_stack_stands_on_the_one_before(shop: Shop) -> None:
    """The pull request of the second merges into the branch of the first; what is pushed is what
    was proven, and CI was green on it."""
    shop.settings(ci=QUICK)
    shop.tasks({**TWO[0], "description": "Say <b>one</b>.\n@everyone"}, TWO[1])
    shop.forge.ci("*", [[], [pending("build")], [passed("build"), status("legacy")]])
    done = shop.run(WORK, "--pr", "stacked", "--draft")
    assert done.code == 0, done.err
    assert shop.statuses() == {"T1": "done", "T2": "done"}
    first, second = shop.forge.pulls
    assert (first.branch, first.base, first.title) == ("ralph/T1", "main", "T1: One")
    assert (second.branch, second.base, second.draft) == ("ralph/T2", "ralph/T1", True)
    assert shop.forge.head("ralph/T2") == shop.git("rev-parse", "HEAD").strip()
    assert shop.forge.head("ralph/T1") == shop.git("rev-parse", "HEAD^").strip()
    assert shop.forge.head("main") == shop.git("rev-parse", "main").strip()
    assert "&lt;b&gt;one" in first.body
    assert "@everyone" not in first.body, "nobody is called"
    for words in ("It took 1 iteration", "claimed: COMPLETE", "as Ralph reports it", "T1"):
        assert words in first.body
    assert "Pulls      #1 ralph/T1 -> main" in done.err
    assert "Merge  " not in done.err


@pytest.mark.parametrize("shop", dealt(["github", "gitlab"], 1), indirect=True)
def test_red_is_told_and_repaired_on_the_same_pull_request(shop: Shop) -> None:
    """Issue 25: "red is a Continue, as a refused commit is: the failing job's name and its last 200
    lines, redacted, are in the next prompt"."""
    shop.settings(ci=QUICK)
    shop.tasks(*TWO)
    red = [[pending("build")], [failed("build (3.12)", log=LOG), passed("lint")]]
    shop.forge.ci("ralph/T1", red, [[pending("build (3.12)")], [passed("build (3.12)")]])
    shop.forge.ci("ralph/T2", [[passed("build (3.12)")]])
    done = shop.run(WORK, "--pr", "stacked")
    assert done.code == 0, done.err
    told = shop.prompt("T1", 2)
    assert "build (3.12)" in told
    assert "line 300" in told
    assert "line 101\n" in told
    assert "line 100\n" not in told, "no more than 200 lines"
    assert shop.forge.token not in told
    assert "lint" not in told.partition("Continuous integration is red")[2].partition("\n")[0]
    assert len(shop.forge.pulls) == 2
    opened = shop.forge.asked("POST", "/pulls") + shop.forge.asked("POST", "/merge_requests")
    assert len(opened) == 2
    subjects = ["T2: Two", "T1: One", "T1: One", "begin"]
    assert shop.subjects() == subjects
    assert shop.statuses() == {"T1": "done", "T2": "done"}


def test_what_stays_red_is_left_to_a_person(shop: Shop) -> None:
    """Issue 25: "at most `ci.repairs`, then a comment and exit 3"; nothing pushed is undone."""
    shop.settings(ci={**QUICK, "repairs": 1})
    shop.tasks(*TWO)
    shop.forge.ci("*", [[failed("build")]])
    done = shop.run(WORK, "--pr", "stacked")
    assert done.code == 3, done.err
    assert shop.turns("T1") == 2
    assert shop.turns("T2") == 0
    assert shop.task("T1")["status"] == "blocked"
    assert "still red after 1 repair" in shop.task("T1")["reason"]
    (comment,) = shop.forge.pulls[0].comments
    assert "leaves it to you" in comment
    assert shop.subjects()[0] == "Record what became of the tasks"
    assert shop.forge.head("ralph/T1") == shop.git("rev-parse", "HEAD^").strip()


def test_nothing_is_stacked_on_what_is_red(shop: Shop) -> None:
    """An agent that asks instead of repairing leaves the stack to a person."""
    shop.settings(ci=QUICK)
    shop.tasks(*TWO)
    shop.forge.ci("*", [[failed("build")]])
    script = f'echo $n >> a; [ $n = 1 ] && {COMPLETE} || echo "<promise>BLOCKED: how?</promise>"'
    done = shop.run(script, "--pr", "stacked")
    assert done.code == 3, done.err
    assert shop.task("T1")["question"] == "how?"
    assert shop.turns("T2") == 0


@pytest.mark.parametrize(
    ("pictures", "settings", "code", "words"),
    dealt(
        [
            ([[]], {}, 3, "--no-ci"),
            ([[passed("lint")]], {"required": ["build"]}, 3, "build"),
            ([[passed("build", sha="0" * 40)]], {}, 3, "no CI here"),
            ([[passed("build")], [failed("build", log="boom")]], {"repairs": 0}, 3, "still red"),
            ([[passed("a"), neutral("b")]], {"neutral": "fail", "repairs": 0}, 3, "b"),
            ([[passed("a"), skipped("b"), neutral("c")]], {}, 0, ""),
            ([[passed("a"), failed("b")]], {"required": ["a"]}, 0, ""),
            ([[passed("a"), status("s", "failure")]], {"repairs": 0}, 3, "s"),
        ],
        3,
    ),
)
def test_green_is_what_the_settings_say_of_this_very_commit(
    shop: Shop, pictures: list[object], settings: dict[str, object], code: int, words: str
) -> None:
    """Check runs and legacy statuses; an empty list is never green, nor is another commit's."""
    shop.settings(ci={**SOON, **settings})
    shop.tasks(TWO[0])
    shop.forge.ci("*", pictures)  # type: ignore[arg-type]
    done = shop.run(WORK, "--pr", "per-run")
    assert done.code == code, done.err
    assert words in done.err


@pytest.mark.parametrize("mode", dealt(["stacked", "per-task"], 1))
def test_somebody_elses_push_is_not_ours_to_judge(shop: Shop, mode: str) -> None:
    """Issue 25: "somebody else's push to the branch → blocked"."""
    shop.settings(ci={**QUICK, "poll": 0.2})
    shop.tasks(TWO[0])
    shop.forge.ci("*", [[pending("build")]])
    run = Running(shop.path, *shop.words(WORK, "--pr", mode))
    run.await_that(lambda: "CI of #1" in run.err())
    theirs = shop.push("ralph/T1", "mine now")
    done = run.end()
    assert done.code == 3, done.err
    assert theirs[:12] in done.err
    assert "T1 is blocked: " in done.err
    assert "Next       ralph tasks edit T1 --status pending" in done.err
    assert shop.task("T1")["status"] == "blocked"


@pytest.mark.parametrize("mode", dealt(["stacked", "per-task"], 1))
def test_whoever_was_killed_while_waiting_waits_on(shop: Shop, mode: str) -> None:
    """Issue 25: "Killed while waiting, `resume` neither opens again nor pushes again"; the time
    asleep is not spent."""
    shop.settings(ci={**QUICK, "poll": 0.2})
    shop.tasks(TWO[0])
    shop.forge.ci("*", [[pending("build")]])
    run = Running(shop.path, *shop.words(WORK, "--pr", mode))
    run.await_that(lambda: "CI of #1" in run.err())
    told = json.loads(ralph("status", "--json").out)
    assert (told["workers"] or [told])[0]["state"] == "waiting"
    run.send(signal.SIGKILL)
    run.end()
    before = len(shop.forge.asked("POST", "/pulls"))
    shop.forge.now(shop.forge.head("ralph/T1"), [passed("build")])
    done = ralph("resume")
    assert done.code == 0, done.err
    assert len(shop.forge.asked("POST", "/pulls")) == before == 1
    assert shop.turns("T1") == 1
    assert "Pushed" not in done.err
    assert shop.statuses() == {"T1": "done"}


def test_a_pull_request_of_its_own_holds_one_task(shop: Shop) -> None:
    """`--pr per-task`: each begins at the base, the checkout stays as it is, and what waits for
    another stands on that one's branch."""
    shop.settings(ci=QUICK)
    shop.tasks(*TWO, {"id": "T3", "title": "Three", "blockedBy": ["T1"]})
    shop.forge.ci("*", [[pending("build")], [passed("build")]])
    done = shop.run(WORK, "--pr", "per-task")
    assert done.code == 0, done.err
    bases = {pull.branch: pull.base for pull in shop.forge.pulls}
    assert bases == {"ralph/T1": "main", "ralph/T2": "main", "ralph/T3": "ralph/T1"}
    assert shop.subjects() == ["begin"]
    assert shop.git("symbolic-ref", "--short", "HEAD").strip() == "main"
    files = shop.forge.git("ls-tree", "--name-only", "ralph/T2").split()
    assert files == ["README", "T2.txt"], "neither another task's work nor Ralph's records"
    files = shop.forge.git("ls-tree", "--name-only", "ralph/T3").split()
    assert files == ["README", "T1.txt", "T3.txt"]
    assert shop.statuses() == dict.fromkeys(("T1", "T2", "T3"), "done")
    assert len(shop.git("worktree", "list").splitlines()) == 1
    told = json.loads(ralph("status", "--json").out)
    assert [pull["number"] for pull in told["pulls"]] == [1, 2, 3]
    assert "ralph/T3 → ralph/T1" in ralph("report", "--format", "md").out


def test_the_run_goes_on_while_ci_is_at_work(shop: Shop) -> None:
    """Issue 25: "With per-task pull requests the run goes on with other tasks meanwhile"; a red one
    gets its place back."""
    shop.settings(ci=QUICK)
    shop.tasks(*TWO)
    shop.forge.ci("ralph/T1", [[pending("build")]], [[passed("build")]])
    shop.forge.ci("ralph/T2", [[passed("build")]])
    run = Running(shop.path, *shop.words(WORK, "--pr", "per-task"))
    run.await_that(lambda: shop.forge.head("ralph/T2"))
    assert shop.turns("T1") == 1
    assert json.loads(ralph("status", "--json").out)["tasks"], "it is told as a crew is"
    assert "whichever task" in ralph("note", "Mind the gap").out
    shop.forge.now(shop.forge.head("ralph/T1"), [failed("build", log="T1 broke it")])
    done = run.end()
    assert done.code == 0, done.err
    assert "T1 broke it" in shop.prompt("T1", 2)
    assert len(shop.forge.pulls) == 2
    assert shop.forge.git("log", "--format=%s", "main..ralph/T1") == "T1: One\nT1: One"
    assert json.loads(ralph("list", "--json").out)[0]["iterations"] == 3


def test_one_pull_request_for_the_run_grows_with_it(shop: Shop) -> None:
    """`--pr per-run`: pushed after every task, complete with the last, whose CI counts."""
    shop.settings(ci=QUICK)
    shop.tasks(*TWO)
    shop.forge.ci("*", [[pending("build")], [passed("build")]])
    done = shop.run(WORK, "--pr", "per-run")
    assert done.code == 0, done.err
    (pull,) = shop.forge.pulls
    assert pull.title == "2 tasks: T1, T2"
    assert "It took 2 iterations" in pull.body
    assert "T1: One" in pull.body
    assert pull.branch == shop.git("symbolic-ref", "--short", "HEAD").strip()
    assert done.err.count("CI passes: ") == 1


@pytest.mark.parametrize("mode", dealt(["stacked", "per-task"], 1))
def test_merged_when_complete_and_never_without_being_told(shop: Shop, mode: str) -> None:
    """Issue 25: "never merges without `--merge`"; the next of a stack then stands on the base, and
    so does a task that waits for another."""
    shop.settings(ci=QUICK)
    shop.tasks(TWO[0], {**TWO[1], "blockedBy": ["T1"]})
    shop.forge.ci("*", [[passed("build")]])
    done = shop.run(WORK, "--pr", mode, "--merge")
    assert done.code == 0, done.err
    assert "T1.txt" in shop.forge.git("ls-tree", "--name-only", "ralph/T2")
    assert [(pull.state, pull.base) for pull in shop.forge.pulls] == [("merged", "main")] * 2
    assert "T2.txt" in shop.forge.git("ls-tree", "--name-only", "main")


@pytest.mark.parametrize("base", dealt(["main", "next"], 1))
def test_an_issue_is_closed_by_the_merge_alone(shop: Shop, base: str) -> None:
    """Issue 25: '"Closes #N" only where the base is the default branch (else a comment)'."""
    shop.git("push", "-q", "origin", "main:next")
    source = {"format": "github", "key": "acme/shop#7", "repo": "acme/shop"}
    url = "https://github.com/acme/shop/issues/7"
    shop.tasks({"id": "GH-7", "title": "Seven", "source": source, "externalUrl": url})
    done = shop.run(WORK, "--pr", "per-task", "--no-ci", "--base", base)
    assert done.code == 0, done.err
    (pull,) = shop.forge.pulls
    assert ("Closes #7" in pull.body.splitlines()) is (base == "main")
    assert ("For #7" in pull.body.splitlines()) is (base == "next")
    assert len(pull.comments) == (base == "next")
    assert not shop.forge.asked("PATCH", "/issues/7")


def test_without_ci_nobody_is_waited_for(shop: Shop) -> None:
    shop.tasks(TWO[0])
    done = shop.run(WORK, "--pr", "stacked", "--no-ci")
    assert done.code == 0, done.err
    assert not [sent for sent in shop.forge.requests if "check-runs" in sent.path]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--pr", "stacked", "--base", "nowhere"), "no branch nowhere"),
        (("--draft",), "--draft is for pull requests"),
        (("--base", "main"), "--base is for pull requests"),
        (("--pr", "stacked", "--parallel", "2"), "--pr per-task"),
        (("--ci",), "--pr per-task"),
        (("--pr", "stacked", "--merge", "--draft"), "a draft cannot be merged"),
    ],
)
def test_what_could_not_work_is_refused_before_anything_is_paid(
    shop: Shop, flags: tuple[str, ...], words: str
) -> None:
    shop.tasks(TWO[0])
    done = shop.run(WORK, *flags)
    assert done.code == 2, done.err
    assert words in done.err
    assert shop.turns("T1") == 0


def test_a_wrong_token_is_said_before_anything_is_paid(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.tasks(TWO[0])
    monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    done = shop.run(WORK, "--pr", "stacked")
    assert done.code == 2, done.err
    assert shop.turns("T1") == 0


def test_neither_agent_nor_checks_can_speak_for_ci(shop: Shop) -> None:
    """With the token an agent could call its own commit green, or merge it."""
    shop.settings(ci=QUICK, guardrails=[{"command": 'echo "$GITHUB_TOKEN" >> "$NOTES/rail"'}])
    shop.tasks(TWO[0])
    shop.forge.ci("*", [[passed("build")]])
    done = shop.run(f'echo "$GITHUB_TOKEN$GH_TOKEN" > "$NOTES/key"; {WORK}', "--pr", "stacked")
    assert done.code == 0, done.err
    assert (shop.notes / "key").read_text().strip() == ""
    assert (shop.notes / "rail").read_text().strip() == ""


@pytest.mark.slow
def test_the_forge_may_be_busy(shop: Shop) -> None:
    """A secondary limit and a broken answer are waited out."""
    shop.settings(ci=QUICK)
    shop.tasks(TWO[0])
    shop.forge.ci("*", [[passed("build")]])
    shop.forge.trouble("POST /repos", status=403, headers={"Retry-After": "11"})
    shop.forge.trouble("check-runs", status=502, times=2)
    done = shop.run(WORK, "--pr", "stacked")
    assert done.code == 0, done.err
    assert "Waiting:" in done.err
    assert len(shop.forge.pulls) == 1


def test_an_agent_cannot_lead_the_push_elsewhere(shop: Shop) -> None:
    """Both addresses are told, without who may push there."""
    shop.settings(ci=QUICK)
    shop.tasks(TWO[0])
    shop.git("remote", "set-url", "origin", f"file://me:right@localhost{shop.forge.bare}")
    other = shop.path.parent / "evil.git"
    shop.git("init", "-q", "--bare", str(other))
    script = f'git remote set-url origin "file://you:wrong@localhost{other}"; {WORK}'
    done = shop.run(script, "--pr", "stacked")
    assert done.code == 3, done.err
    assert "git remote set-url origin" in done.err
    assert f"origin leads to file://localhost{other} now" in done.err
    assert ":right@" not in done.err
    assert not shop.forge.pulls


def test_a_push_that_is_refused_says_why(shop: Shop) -> None:
    """The words of the user's own hook, and how to try it by hand."""
    shop.settings(ci=QUICK)
    shop.tasks(TWO[0])
    hook = shop.path / ".git" / "hooks" / "pre-push"
    hook.write_text("#!/bin/sh\necho 'no pushing on Fridays' >&2\nexit 1\n")
    hook.chmod(0o755)
    done = shop.run(WORK, "--pr", "stacked")
    assert done.code == 3, done.err
    assert "git push: no pushing on Fridays. To see all: git push origin " in done.err
    assert shop.statuses() == {"T1": "in_progress"}
