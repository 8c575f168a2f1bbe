"""ADR 48: tasks that wait to be merged are checked and merged together, with real git and an agent
that is a script."""

import os
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project
from parallel_support import assert_tidy, run, tasks
from riding_support import WAIT, hold_the_first
from run_support import Done

from kits.thorough import dealt

__all__ = ["project"]


@pytest.fixture(autouse=True)
def _where(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROJECT", "RUNS", "MANY"):
        monkeypatch.setenv(name, str(project.path))


def ride(project: Project, work: str, *flags: str, sandbox: bool = False, many: int = 4) -> Done:
    """A run in which all tasks but `a` wait for `a`."""
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings", "--allow-empty")
    state = Path(os.environ["RALPH_STATE_DIR"])
    hold_the_first(project.path, state, project.notes, many)
    return run(project, f"{WAIT}\n{work}\n{COMPLETE}", *flags, sandbox=sandbox)


def gates(project: Project) -> list[str]:
    return (project.notes / "gates").read_text().splitlines()


@pytest.mark.parametrize("sandbox", dealt([True, False], 1))
def test_those_that_wait_are_checked_once_and_merged_together(
    project: Project, *, sandbox: bool
) -> None:
    """Each is a commit of its own and names the tree of the last; each check runs on it."""
    project.settings(guardrails=[{"command": 'ls | xargs >> "$NOTES/gates"'}])
    check = {"completion": {"type": "test_passing", "command": "ls | xargs >> $NOTES/checks"}}
    tasks(project, "a", "b", "c", "d", **dict.fromkeys("abcd", check))
    flags = ("--sandbox", "worktree") if sandbox else ()
    done = ride(project, 'echo "$id" > "$id"', *flags, sandbox=sandbox)
    assert done.code == 0, done.err
    assert gates(project).count("README a b c d") == 1
    assert len(gates(project)) == 5, "each alone, and once together"
    assert (project.notes / "checks").read_text().splitlines().count("README a b c d") == 3
    assert sorted(project.subjects()[:4]) == [f"{name}: It is {name}" for name in "abcd"]
    assert project.git("log", "--merges", "--oneline") == ""
    last = project.git("rev-parse", "HEAD").strip()
    for name in "bcd":
        evidence = project.task(name)["evidence"]
        assert sorted(evidence["train"]) == ["b", "c", "d"]
        differing = project.git("diff", "--name-only", evidence["tree"], last).split()
        assert all(path.startswith(".ralph/") for path in differing)
        said = project.git("log", "-1", "--format=%(trailers)", f"--grep=^{name}: It")
        assert f"Ralph-Tree: {evidence['tree']}" in said
        others = [other for other in evidence["train"] if other != name]
        assert f"{name} | [ralph] merged with: {', '.join(others)}" in done.err
    assert "train" not in project.task("a")["evidence"]
    assert_tidy(project)


def test_the_guilty_one_goes_back_with_the_log_of_what_failed(project: Project) -> None:
    project.settings(guardrails=[{"command": "! { test -e b && test -e c && echo both; }"}])
    tasks(project, "a", "b", "c", "d")
    work = """echo "$id" > "$id"
    log=$(sed -n 's/^Output file: //p' "$NOTES/$id.$n.prompt" | head -1)
    if [ $n = 2 ]; then mv "$id" other; cp "$log" "$NOTES/log"; fi"""
    done = ride(project, work)
    assert done.code == 0, done.err
    assert set(project.statuses().values()) == {"done"}
    assert sorted(project.turns(name) for name in "abcd") == [1, 1, 1, 2]
    guilty = next(name for name in "bc" if project.turns(name) == 2)
    assert "Other tasks were merged while you worked" in project.prompt(guilty, 2)
    assert (project.notes / "log").read_text() == "both\n"
    assert {p.name for p in project.path.iterdir()} >= {"a", "d", "other", *"bc"} - {guilty}
    assert_tidy(project)


def test_a_conflict_leaves_the_train(project: Project) -> None:
    tasks(project, "a", "b", "c", "d")
    work = """case $id in b|c) [ $n = 2 ] && git show HEAD:shared > shared; echo $id >> shared ;;
    *) echo "$id" > "$id" ;; esac"""
    done = ride(project, work)
    assert done.code == 0, done.err
    assert sorted((project.path / "shared").read_text().split()) == ["b", "c"]
    assert sorted(project.turns(name) for name in "abcd") == [1, 1, 1, 2]
    assert_tidy(project)


@pytest.mark.slow
def test_what_gates_change_is_in_the_last_commit(project: Project) -> None:
    """A formatter, on all of them together: that tree is proven, and lands."""
    project.settings(guardrails=[{"command": "[ -e b ] && [ -e c ] && echo both > all; true"}])
    (project.path / "all").touch()
    tasks(project, "a", "b", "c", "d")
    done = ride(project, 'echo "$id" > "$id"')
    assert done.code == 0, done.err
    assert (project.path / "all").read_text() == "both\n"
    assert_tidy(project)


@pytest.mark.slow
def test_lists_that_tasks_came_from_are_ticked(project: Project) -> None:
    """Each in its own commit, as without a train."""
    (project.path / "TODO.md").write_text("".join(f"- [ ] {name}\n" for name in "abcd"))
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "list")
    from run_support import ralph

    assert ralph("tasks", "import", "TODO.md").code == 0
    ids = list(project.statuses())
    work = f'[ "$id" = {ids[0]} ] || while [ ! -e "$NOTES/first" ]; do sleep 0.02; done; '
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tasks", "--allow-empty")
    hold_the_first(project.path, Path(os.environ["RALPH_STATE_DIR"]), project.notes, 4)
    done = run(project, f'{work} echo "$id" > "$id"; {COMPLETE}')
    assert done.code == 0, done.err
    assert (project.path / "TODO.md").read_text() == "".join(f"- [x] {n}\n" for n in "abcd")
    assert done.err.count("merged with") == 3
    for commit in project.git("log", "-4", "--format=%H").split():
        changed = project.git("show", "--format=", "--numstat", commit, "--", "TODO.md").split()
        assert changed[:2] == ["1", "1"]
    assert_tidy(project)


@pytest.mark.slow
def test_a_hook_that_refuses_one_commit_dissolves_the_train(project: Project) -> None:
    tasks(project, "a", "b", "c", "d")
    state = Path(os.environ["RALPH_STATE_DIR"])
    project.git("commit", "-q", "-m", "x", "--allow-empty")
    hold_the_first(project.path, state, project.notes, 4)
    hook = project.path / ".git" / "hooks" / "commit-msg"
    hook.write_text(
        '#!/bin/sh\ngrep -q "^c: " "$1" && [ ! -e fixed ] && echo no c && exit 1\ntrue\n'
    )
    hook.chmod(0o755)
    work = 'echo "$id" > "$id"; [ $n = 2 ] && touch fixed'
    done = run(project, f"{WAIT}\n{work}\n{COMPLETE}")
    assert done.code == 0, done.err
    assert [project.turns(name) for name in "abcd"] == [1, 1, 2, 1]
    assert "The commit was refused:\nno c" in project.prompt("c", 2)
    assert sorted(project.subjects()[:4]) == [f"{name}: It is {name}" for name in "abcd"]
    assert_tidy(project)


@pytest.mark.slow
def test_without_trains_each_is_merged_alone(project: Project) -> None:
    project.settings(loop={"train": 1}, guardrails=[{"command": 'ls | xargs >> "$NOTES/gates"'}])
    tasks(project, "a", "b", "c", "d")
    done = ride(project, 'echo "$id" > "$id"')
    assert done.code == 0, done.err
    assert len(gates(project)) == 7
    assert "merged with" not in done.err
    assert_tidy(project)
