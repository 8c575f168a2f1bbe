"""Whatever is done after a checkpoint, a restore gives back what was there (B §Rollback)."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kits.thorough import examples
from kits.work_tree import Files, State, files, git, new_repository, saved, state, work_of
from ralph.git.status import is_among
from ralph.git.view import is_repository

Step = tuple[str, str, str]
NAMES = (
    *("a", "b", "a/one", "a/two", "b/x", "c", "c/d/e", "tool", "link", "x.log", "build/new"),
    *(".gitignore", "a/.gitignore", "-n", "new\nline", "two words", "\udcff"),
)
HOWS = (
    *("write", "write", "remove", "move", "chmod", "symlink", "mkdir", "add", "add", "force"),
    *("unstage", "commit", "branch", "detach", "back", "reset", "ignore", "exclude", "init"),
    *("unborn", "merge", "stash"),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(HOWS), st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=8
)


def run(top: Path, *words: str) -> None:
    """Git, as an agent uses it: what fails, fails."""
    subprocess.run(["git", "-C", str(top), *words], capture_output=True, check=False)


def remove(path: str) -> None:
    whole = os.path.isdir(path) and not os.path.islink(path)
    shutil.rmtree(path) if whole else os.unlink(path)


def write(path: str, text: str, how: str = "w") -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, how, encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def take(top: Path, number: int, how: str, one: str, other: str) -> None:
    """Do one step, if it can be done."""
    path, second = os.path.join(top, one), os.path.join(top, other)
    rules = {"ignore": os.path.join(top, ".gitignore"), "exclude": f"{top}/.git/info/exclude"}
    try:
        match how:
            case "write":
                write(path, f"{number} {other}\n")
            case "remove":
                remove(path)
            case "move":
                os.rename(path, second)
            case "chmod":
                os.chmod(path, 0o755 if number % 2 else 0o644)
            case "symlink":
                os.symlink(other, path)
            case "mkdir":
                os.makedirs(path)
            case "ignore" | "exclude":
                write(rules[how], f"{other}\n" if number % 2 else "", "a" if number % 3 else "w")
            case "init":
                run(top, "init", "--quiet", "--", path)
            case _:
                in_git(top, number, how, one)
    except (OSError, shutil.Error):
        pass


def in_git(top: Path, number: int, how: str, name: str) -> None:
    words = {
        "add": ("add", "--", name),
        "force": ("add", "--force", "--", name),
        "unstage": ("rm", "-r", "--cached", "--quiet", "--force", "--", name),
        "commit": ("commit", "--quiet", "--all", "--message", f"{number}"),
        "branch": ("checkout", "--quiet", "-b", f"branch-{number}"),
        "detach": ("checkout", "--quiet", "--detach"),
        "back": ("checkout", "--quiet", "main"),
        "unborn": ("update-ref", "-d", "refs/heads/main"),
        "merge": ("merge", "--quiet", "--no-edit", "branch-100", "branch-101", "main"),
        "stash": ("stash", "push", "--quiet", "--include-untracked"),
        "reset": ("reset", "--quiet", "--soft", "HEAD~1"),
    }
    run(top, *words[how])


@given(STEPS, STEPS)
@example([], [("ignore", "a", "c"), ("write", "c", "a")])
@example([("write", "c", "a")], [("write", "a/.gitignore", "a"), ("exclude", "a", "c")])
@example([("init", "a/.gitignore", "a")], [("remove", "a", "a")])
@example([("init", "c", "a")], [("remove", "c", "a"), ("write", "c/d/e", "a")])
@example([("init", "c", "a")], [("move", "c", "x.log"), ("write", "c", "a"), ("add", "c", "a")])
@example([("init", "c", "a"), ("write", "c/d/e", "a")], [("remove", "c", "a"), ("write", "c", "a")])
@example([("write", "a/.gitignore", "a")], [("init", "a", "a")])
@example([("write", "a/.gitignore", "a")], [("write", "b", "a"), ("init", "a", "a")])
@example([], [("write", "a/.gitignore", "a"), ("init", "a", "a")])
@example([], [("write", "a/.gitignore", "a"), ("init", "a", "a"), ("unborn", "a", "a")])
@example([("write", "a/.gitignore", "a")], [("init", "a", "a"), ("unborn", "a", "a")])
@example([("remove", "b", "a")], [("init", "b", "a")])
@example([], [("remove", "a", "a"), ("init", "a/one", "a")])
@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
def test_a_restore_gives_back_exactly_what_was_there(before: list[Step], after: list[Step]) -> None:
    """B §Rollback: "Discard filesystem changes"; the issue: "a person's uncommitted work at the
    start is never touched", "restores it exactly"."""
    with tempfile.TemporaryDirectory() as place:
        top = new_repository(Path(place, "top"))
        for number, step in enumerate(before):
            take(top, number, *step)
        work = work_of(top)
        was, refs = state(top), places(top)
        there = work.checkpoint()
        for number, step in enumerate(after, 100):
            take(top, number, *step)
        stood, left = work.checkpoint(), files(top)
        gone = {
            path for path in work.apart(there).repositories if not is_repository(f"{top}/{path}")
        }
        ref = work.restore(there, "cut-1")
        spared = work.apart(there).spared - {*work.apart(there).copies, *gone}
        expected = with_spared(was, left, spared)
        assert without_new(state(top), expected) == expected
        assert refs.items() <= places(top).items()
        assert bool(ref) or stood.tree == there.tree
        if ref:
            kept = saved(top, ref)
            assert saved(top, stood.tree).items() <= kept.items()
            git(top, "merge-base", "--is-ancestor", stood.head or ref, ref)
        assert work.restore(there, "cut-2") == ""


def places(top: Path) -> dict[str, str]:
    """Where every branch points to."""
    said = git(top, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    return dict(line.split(" ") for line in said.splitlines())


def with_spared(was: State, left: Files, spared: frozenset[str]) -> State:
    """What has to be there: what is in an ignored directory, or in another repository that is
    still there, as the agent left it."""
    kept = {path: file for path, file in was["files"].items() if not is_among(path, spared)}
    return {**was, "files": kept | {path: left[path] for path in left if is_among(path, spared)}}


def without_new(now: State, expected: State) -> State:
    """What is there now, without files that nobody expects: status shows them if git sees them."""
    found = {path: file for path, file in now["files"].items() if path in expected["files"]}
    return {**now, "files": found}


def test_files_see_everything(tmp_path: Path) -> None:
    """The tests above would otherwise prove nothing."""
    assert set(files(new_repository(tmp_path / "top"))) == {
        *(".gitignore", "a/one", "b", "tool", "link", ".env", "build/out")
    }
