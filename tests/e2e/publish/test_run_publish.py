"""Pull requests and CI for a prompt and for stories: `ralph run --pr`, `ralph prd run --pr`."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prd_support import story
from publish_support import LOG, QUICK, SOON, Shop, forge_at, shop
from run_support import Done, prepare, ralph
from story_support import StoryProject, project

from kits.forge import FakeForge
from kits.forge.pictures import failed, passed, pending

__all__ = ["project", "shop"]

DONE = {"text": "<response>DONE</response>"}
WRITE = {"files": {"a.txt": "one"}, **DONE}
MESSAGE = {"text": "<response>Write a</response>"}


def run(
    shop: Shop, *turns: object, flags: tuple[str, ...] = ("--pr", "per-run"), **more: object
) -> Done:
    """`ralph run` with a scripted agent whose settings are committed."""
    prepare(shop.path, *turns, **{"ci": QUICK, **more})  # type: ignore[arg-type]
    return ralph("run", "-p", "# Write a\n\nand say so", *flags)


def test_a_prompt_becomes_a_pull_request_that_ci_has_proven(shop: Shop) -> None:
    """`--pr` commits by itself; red goes back to the agent, and the next commit is judged anew."""
    shop.forge.ci("*", [[failed("build", log=LOG)]], [[pending("build")], [passed("build")]])
    again = {"files": {"b.txt": "two"}, **DONE}
    done = run(shop, WRITE, MESSAGE, again, {"text": "<response>Mend a</response>"})
    assert done.code == 0, done.err
    (pull,) = shop.forge.pulls
    assert (pull.base, pull.title) == ("main", "Write a")
    assert shop.forge.head(pull.branch) == shop.git("rev-parse", "HEAD").strip()
    assert shop.subjects() == ["Mend a", "Write a", "begin"]
    assert "CI is red: build failed" in done.err
    assert "CI passes: build" in done.err


def test_ci_can_be_asked_of_what_is_pushed_anyway(shop: Shop) -> None:
    """`--ci` without `--pr`: the branch that scm.tasks push."""
    shop.git("config", "push.default", "current")
    shop.forge.ci("*", [[passed("build")]])
    scm = {"command": "git", "tasks": ["commit", "push"]}
    done = run(shop, WRITE, MESSAGE, flags=("--ci",), scm=scm)
    assert done.code == 0, done.err
    assert not shop.forge.pulls
    assert "CI passes: build" in done.err


def test_no_ci_is_no_green(shop: Shop) -> None:
    """Issue 25: '"No CI here" is never green: exit 3, naming `--no-ci`'."""
    done = run(shop, WRITE, MESSAGE, ci=SOON)
    assert done.code == 3, done.err
    assert "--no-ci" in done.err
    assert len(shop.forge.pulls) == 1


def test_what_is_not_committed_is_not_complete(shop: Shop) -> None:
    hook = shop.path / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    done = run(shop, WRITE, MESSAGE)
    assert done.code == 3, done.err
    assert "not committed" in done.err
    assert not shop.forge.pulls


@pytest.mark.parametrize(
    ("flags", "settings", "words"),
    [
        (("--ci",), {}, "nothing pushes them"),
        (("--pr", "per-run"), {"scm": {"tasks": ["commit", "push"]}}, "scm.tasks has 'push' too"),
        (("--pr", "per-run"), {"scm": {"command": "hg"}}, "--pr is for git"),
        (("--merge",), {}, "--merge is for pull requests"),
    ],
)
def test_what_could_not_work_is_refused(
    shop: Shop, flags: tuple[str, ...], settings: dict[str, object], words: str
) -> None:
    done = run(shop, WRITE, MESSAGE, flags=flags, **settings)
    assert (done.code, words in done.err) == (2, True), done.err


def test_without_a_remote_there_is_nowhere_to_go(shop: Shop) -> None:
    shop.git("remote", "remove", "origin")
    done = run(shop, WRITE, MESSAGE)
    assert done.code == 2, done.err
    assert "git remote add origin" in done.err
    shutil.rmtree(shop.path / ".git")
    done = run(shop, WRITE, MESSAGE)
    assert (done.code, "git clone URL" in done.err) == (2, True), done.err


def test_a_dry_run_asks_nobody(shop: Shop) -> None:
    before = len(shop.forge.requests)
    done = run(shop, WRITE, MESSAGE, flags=("--pr", "per-run", "--dry-run"))
    assert (done.code, len(shop.forge.requests)) == (0, before), done.err


@contextmanager
def stories_at(
    project: StoryProject, monkeypatch: pytest.MonkeyPatch, *stories: object
) -> Iterator[FakeForge]:
    """Stories whose settings are committed and pushed."""
    folder = project.path / ".ralph"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"ci": QUICK}))
    project.stories(*stories)  # type: ignore[arg-type]
    with forge_at(project.path, monkeypatch) as forge:
        yield forge


def test_stories_are_published_together(
    project: StoryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red opens the last story once more, also though every one is approved."""
    with stories_at(project, monkeypatch, story(1), story(2)) as forge:
        forge.ci("*", [[failed("build", log="it broke")]], [[passed("build")]])
        done = project.run("", "--pr", "per-run")
        assert done.code == 0, done.err
        (pull,) = forge.pulls
        assert pull.title == "2 stories"
        assert "it broke" in project.prompts()[-1]
        assert project.run("", "--pr", "per-task").code == 2


def test_a_story_that_ci_does_not_let_pass_is_reviewed_again(
    project: StoryProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--pr stacked`: a pull request a story; red is a review that asks for changes."""
    with stories_at(project, monkeypatch, story(1), story(2)) as forge:
        red = [[pending("build")], [failed("build", log="it broke")]]
        forge.ci("ralph/US-001", red, [[passed("build")]])
        forge.ci("ralph/US-002", [[passed("build")]])
        done = project.run("", "--pr", "stacked")
        assert done.code == 0, done.err
        assert [(pull.branch, pull.base) for pull in forge.pulls] == [
            ("ralph/US-001", "main"),
            ("ralph/US-002", "ralph/US-001"),
        ]
        assert project.modes() == "implement review review-fix review implement review"
        assert "it broke" in project.prompts()[2]
        assert project.fates() == [(True, "approved", 2), (True, "approved", 1)]
        assert "ralph: CI is red for US-001 (iteration 2)" in project.subjects()
        assert forge.head("ralph/US-002") == project.git("rev-parse", "HEAD").strip()
