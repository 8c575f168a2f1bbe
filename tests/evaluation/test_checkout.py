"""Start states of tasks, what is protected in them, and what is laid over the work."""

import os
import subprocess
from pathlib import Path

import pytest

from ralph.errors import ConfigError
from ralph.evaluation.checkout import commit_of, make_checkout, make_hidden, protected
from ralph.evaluation.lay import lay
from ralph.evaluation.schema import SuiteFile, SuiteTask
from ralph.evaluation.suite import Suite


def git(place: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(place), "-c", "user.name=n", "-c", "user.email=e@x", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def suite_at(tmp_path: Path) -> Suite:
    return Suite(str(tmp_path / "s.toml"), "", SuiteFile())


def made(tmp_path: Path, **given: object) -> Path:
    """The checkout of a task."""
    task = SuiteTask(name="a", prompt="p", check="true", **given)  # type: ignore[arg-type]
    make_checkout(suite_at(tmp_path), task, str(tmp_path / "out"), os.environ)
    return tmp_path / "out"


def test_nothing_is_an_empty_repository(tmp_path: Path) -> None:
    out = made(tmp_path)
    assert git(out, "log", "--format=%s") == "Begin"
    assert os.listdir(out) == [".git"]


def test_a_folder_and_files_over_it(tmp_path: Path) -> None:
    start = tmp_path / "start"
    (start / ".ralph").mkdir(parents=True)
    (start / ".ralph" / "settings.json").write_text('{"pr": {"mode": "per-run"}}')
    (start / "a").write_text("1")
    (start / "link").symlink_to("a")
    out = made(tmp_path, dir="start", files={"a": "2", "d/run.sh": "#!/bin/sh\n"})
    assert (out / "a").read_text() == "2"
    assert os.readlink(out / "link") == "a"
    assert os.access(out / "d" / "run.sh", os.X_OK)
    assert not (out / ".ralph").exists()  # whose settings would be the task's
    assert git(out, "status", "--porcelain") == ""
    assert git(out, "ls-files").split() == ["a", "d/run.sh", "link"]


def test_a_repository_without_what_came_after_the_commit(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet")
    for name in ("first", "second", "solution"):
        (repo / name).touch()
        git(repo, "add", "--all")
        git(repo, "commit", "--quiet", "--message", name)
    git(repo, "tag", "here", "HEAD~1")
    out = made(tmp_path, repo="repo", ref="here")
    assert git(out, "log", "--all", "--format=%s").split() == ["Begin", "second", "first"]
    assert not (out / "solution").exists()
    assert git(out, "remote") == ""
    with pytest.raises(ConfigError, match="has no commit gone"):
        commit_of(str(repo), "gone", os.environ)


@pytest.mark.parametrize(
    ("check", "names"),
    [
        ("make test", ["Makefile", "tests/test_a.py"]),
        ("npm test", ["package.json", "tests/test_a.py"]),
        ("python3 -m unittest checks.one", ["checks/one.py", "tests/test_a.py"]),
        ("sh ./run.sh && true", ["./run.sh", "tests/test_a.py"]),
        ("cat /etc/passwd ../x . && 'not closed", ["tests/test_a.py"]),
    ],
)
def test_tests_and_what_the_check_names_are_protected(
    tmp_path: Path, check: str, names: list[str]
) -> None:
    files = ("Makefile", "package.json", "checks/one.py", "run.sh", "tests/test_a.py", "src/a.py")
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    suite = suite_at(tmp_path)
    task = SuiteTask(name="a", prompt="p", check=check)
    assert list(protected(suite, task, str(tmp_path))) == names
    chosen = SuiteTask(name="a", prompt="p", check=check, protect=("src/*",))
    assert protected(suite, chosen, str(tmp_path)) == ("src/*",)


def test_hidden_files_replace_whatever_is_in_their_way(tmp_path: Path) -> None:
    task = SuiteTask(
        name="a", prompt="p", check="true", hidden_files={"tests/a.sh": "truth", "b": "truth"}
    )
    source = make_hidden(suite_at(tmp_path), task, str(tmp_path / "hidden"))
    work, outside = tmp_path / "work", tmp_path / "outside"
    outside.mkdir()
    (outside / "a.sh").write_text("mine")
    (work / "b" / "deep").mkdir(parents=True)
    (work / "tests").symlink_to(outside)  # so that what is laid would lead out of the work
    lay(source, str(work))
    assert (work / "tests" / "a.sh").read_text() == (work / "b").read_text() == "truth"
    assert (outside / "a.sh").read_text() == "mine"
    (work / "tests" / "a.sh").unlink()
    (work / "tests" / "a.sh").symlink_to(outside / "a.sh")
    lay(source, str(work))
    assert (outside / "a.sh").read_text() == "mine"
    assert make_hidden(suite_at(tmp_path), SuiteTask("a", "p", "true"), str(tmp_path / "no")) == ""
