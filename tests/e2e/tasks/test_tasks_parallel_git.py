"""Several tasks at once in repositories as people have them, and conflicts of every kind."""

import re
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project
from parallel_support import MEET, assert_tidy, run, tasks
from run_support import Running, ralph

pytestmark = pytest.mark.slow

__all__ = ["project"]

LINES = "".join(f"{number}\n" for number in range(1, 11))


@pytest.fixture(autouse=True)
def _where(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT", str(project.path))


def two_tasks_on_lines(project: Project) -> None:
    """Both are about a file of ten lines."""
    (project.path / "x").write_text(LINES)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "x")
    tasks(project, "a", "b")


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("sed -i s/5/five/ x", "git mv x y; sed -i s/5/V/ y"),  # a rename: y is not in HEAD
        ("git mv x y; sed -i s/5/five/ y", "sed -i s/5/V/ x"),
        ("sed -i s/5/five/ x", "sed -i s/5/V/ x"),
        ("echo a > new", "echo b > new"),
    ],
)
def test_markers_that_are_left_are_never_committed(
    project: Project, mine: str, theirs: str
) -> None:
    """Wherever they are; the agent of b leaves everything as it finds it."""
    two_tasks_on_lines(project)
    script = f"""if [ $n = 1 ]; then
    if [ $id = a ]; then {mine}; else {theirs}; fi
    meet 2; [ $id = a ] || committed a; fi; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 3, done.err
    assert project.statuses() == {"a": "done", "b": "blocked"}
    assert "<<<<<<<" not in project.git("grep", "-h", "", "HEAD")
    assert_tidy(project, "ralph/b")


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("git rm -q x", "sed -i s/5/V/ x"),
        ("sed -i s/5/five/ x", "git rm -q x"),
        ("printf '\\000a' > x", "printf '\\000b' > x"),
        ("git rm -q x; mkdir x; echo a > x/a", "sed -i s/5/V/ x"),
        ("ln -sf a x", "ln -sf b x"),
    ],
)
def test_conflicts_without_markers_go_back_once_too(
    project: Project, mine: str, theirs: str
) -> None:
    """Deleted here and changed there, binary, a link, a directory: then it is as the agent says."""
    two_tasks_on_lines(project)
    script = f"""if [ $n = 1 ]; then
    if [ $id = a ]; then {mine}; else {theirs}; fi
    meet 2; [ $id = a ] || committed a; else rm -rf x x~*; echo mine > x; fi; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert project.turns("b") == 2
    assert "CONFLICT (" in project.prompt("b", 2)
    assert (project.path / "x").read_text() == "mine\n"
    assert_tidy(project)


@pytest.mark.parametrize("where", ["here", "in another worktree", "nowhere", "below"])
def test_a_branch_of_a_persons_is_left_alone(project: Project, where: str) -> None:
    """One of that name has his work: ours gets another name, and his stays as it is."""
    name = "ralph/a/b" if where == "below" else "ralph/a"
    project.git("switch", "-q", "-c", name)
    project.git("commit", "-q", "--allow-empty", "-m", "mine")
    if where != "here":
        project.git("switch", "-q", "main")
    if where == "in another worktree":
        project.git("worktree", "add", "-q", "../other", name)
    tip = project.git("rev-parse", name)
    tasks(project, "a", "b")
    for _ in range(2):
        done = run(project, f'echo "$id" > "$id"; {COMPLETE}')
        assert done.code == 0, done.err
    assert set(project.statuses().values()) == {"done"}
    branches = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert branches == ["main", name]
    if where != "here":
        assert project.git("rev-parse", name) == tip
    assert {*project.subjects()} >= {"a: It is a", "b: It is b"}


def test_a_project_below_the_top_of_its_repository(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks, records and work are in the directory; the rest of the repository is as it was."""
    inner = project.path / "inner"
    inner.mkdir()
    (project.path / ".gitignore").write_text("agent.sh\n")
    (inner / "README").write_text("inner\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "inner")
    monkeypatch.chdir(inner)
    project.path = inner
    tasks(project, "a", "b")
    done = run(project, f'echo "$id" > "$id"; cat README > "$id.seen"; {COMPLETE}')
    assert done.code == 0, done.err
    assert (inner / "b.seen").read_text() == "inner\n"
    assert set(project.statuses().values()) == {"done"}
    assert project.git("diff", "--name-only", "HEAD~2", "HEAD", "--", ":/", ":!/inner") == ""
    assert not project.dirt()


def test_a_commit_hook_that_refuses_speaks_to_the_agent(project: Project) -> None:
    """The user's own hooks run for a worker's commit as for any other."""
    hook = project.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n! git diff --cached --name-only | grep -q bad\n")
    hook.chmod(0o755)
    tasks(project, "a", "b")
    script = f"""echo "$id" > "$id"; [ $n = 1 ] && touch "bad.$id" || rm -f bad.*; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert "The commit was refused" in project.prompt("b", 2)
    assert not list(project.path.glob("bad*"))
    assert_tidy(project)


def test_each_conflict_goes_back_once(project: Project) -> None:
    """Three tasks write the same lines: the last has two conflicts, each with other work."""
    tasks(project, "a", "b", "c")
    script = f"""if grep -q '^<<<<<<<' shared 2>/dev/null; then
    grep -v '^[<=>]\\{{7\\}}' shared > both; mv both shared; [ $id.$n != c.2 ] || committed b
    else echo "$id" > shared; meet 3; [ $id = a ] || committed a; fi; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert sorted((project.path / "shared").read_text().split()) == ["a", "b", "c"]
    assert_tidy(project)


def test_a_heading_is_no_marker(project: Project) -> None:
    """A line of `=` alone is in many files."""
    tasks(project, "a", "b")
    script = f"""if [ $n = 1 ]; then printf 'Title\n=======\n'"$id"'\n' > doc; meet 2
    [ $id = a ] || committed a; else printf 'Title\n=======\na\nb\n' > doc; fi; {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert (project.path / "doc").read_text() == "Title\n=======\na\nb\n"


def test_a_conflict_without_markers_that_nobody_looks_at_is_parked(project: Project) -> None:
    """One version of a binary file would be lost without a word."""
    tasks(project, "a", "b")
    script = (
        f"""[ $n = 1 ] && printf "\\000$id" > x; meet 2; [ $id = a ] || committed a; {COMPLETE}"""
    )
    done = run(project, script)
    assert done.code == 3, done.err
    assert "conflicts are left in x" in project.task("b")["reason"]
    assert "/work-1:PATH" in project.prompt("b", 2)
    assert (project.path / "x").read_bytes() == b"\0a"


def test_what_a_person_drops_meanwhile_does_not_come_back(project: Project) -> None:
    """Only what the task has changed is merged, whatever became of what it began with."""
    (project.path / "secret").write_text("oops\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "oops")
    tasks(project, "a", "b")
    script = f"""echo "$id" > "$id"; meet 2
    if [ $id = a ]; then git -C "$PROJECT" reset -q --hard HEAD~1; else committed a; fi
    {COMPLETE}"""
    done = run(project, script)
    assert done.code == 0, done.err
    assert project.subjects() == ["b: It is b", "a: It is a", "begin"]
    assert not (project.path / "secret").exists()
    assert_tidy(project)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('git -C "$PROJECT" switch -q -c release', "on release now, and was on main"),
        ('touch "$PROJECT/.git/MERGE_HEAD"', "in the middle of a merge"),
    ],
)
def test_work_goes_to_no_other_branch(project: Project, script: str, words: str) -> None:
    """Who switches, or merges himself, has the tasks on their branches."""
    tasks(project, "a", "b")
    done = run(project, f'echo "$id" > "$id"; meet 2; {script}; {COMPLETE}')
    assert done.code == 3, done.err
    assert words in project.task("b")["reason"]
    assert project.subjects() == ["begin"]
    assert project.git("show", "ralph/b:b") == "b\n"


def test_conflicts_that_come_back_are_still_conflicts(project: Project) -> None:
    """A run is killed while its agent resolves them, and a new one goes on with the work."""
    tasks(project, "a", "b")
    script = f"""{MEET}
    if [ $n = 1 ]; then echo "$id" > shared; meet 2; [ $id = a ] || committed a; {COMPLETE}
    elif [ $n = 2 ]; then touch "$NOTES/resolving"; sleep 60
    else {COMPLETE}; fi"""
    agent = project.agent(script)
    words = ("tasks", "run", "--agent", agent, "--no-sandbox", "--max-iterations", "3")
    running = Running(project.path, *words, "--parallel", "2")
    running.await_that((project.notes / "resolving").exists)
    running.process.kill()
    running.process.wait()
    done = ralph(*words)
    assert done.code == 3, done.err
    assert "conflicts are left in shared" in done.err
    assert (project.path / "shared").read_text() == "a\n"
    refs = project.git("for-each-ref", "--format=%(refname)", "refs/ralph").split()
    assert not [ref for ref in refs if "/work-" in ref or "/checkpoint-" in ref], refs


def test_two_projects_of_one_repository_do_not_fight(project: Project) -> None:
    """Each has a task of that id: the second takes another name for its branch."""
    project.git("worktree", "add", "-q", "-b", "ralph/a", "../other")
    tasks(project, "a", "b")
    done = run(project, f'git symbolic-ref HEAD > "$NOTES/branch-$id"; echo > $id; {COMPLETE}')
    assert done.code == 0, done.err
    assert (project.notes / "branch-a").read_text() == "refs/heads/ralph/a-2\n"
    branches = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert branches == ["main", "ralph/a"]


def test_a_sparse_checkout_is_refused(project: Project) -> None:
    """What is not checked out would seem to be deleted."""
    tasks(project, "a", "b")
    project.git("sparse-checkout", "set", "in")
    done = run(project, COMPLETE)
    assert done.code == 2
    assert "--parallel 1" in done.err


COMMIT = "git add x; git -c user.name=x -c user.email=x@y commit -qm inner"


@pytest.mark.parametrize(
    ("setup", "work", "why"),
    [
        (True, f"echo x > x; {COMMIT}", "the submodule sub"),
        (True, f"echo x > x; {COMMIT}; echo y > x", "iterations used up"),
        (True, "echo y > x", "iterations used up"),
        (False, "echo y > x", "iterations used up"),
    ],
    ids=["committed", "committed in part", "not committed", "not checked out"],
)
def test_work_in_a_submodule_is_not_lost(
    project: Project, monkeypatch: pytest.MonkeyPatch, work: str, why: str, *, setup: bool
) -> None:
    """ "Work in submodules under `--parallel`: done or refused, never lost". It would be in a
    repository that goes with the worktree, or in files that git does not see."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    project.git("clone", "-q", ".", "../library")
    project.git("submodule", "--quiet", "add", "../library", "sub")
    line = "git submodule --quiet update --init" if setup else "true"
    project.settings(loop={"setup": line})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "sub")
    tasks(project, "a", "b")
    script = f"if [ $id = a ]; then cd sub; {work}; cd ..; else echo b > b; fi; {COMPLETE}"
    done = run(project, script, "--max-iterations", "2")
    assert done.code == 3, done.err
    assert project.statuses() == {"a": "blocked", "b": "done"}
    assert why in project.task("a")["reason"]
    assert project.git("submodule", "status").startswith(" ")
    kept = re.search(r"the submodule sub is kept (?:there: (refs/.*)|in (.*))", done.err)
    assert kept, done.err
    if setup:
        content = project.git("-C", "sub", "show", f"{kept[1]}:x")
    else:
        content = Path(kept[2], "x").read_text()
    assert content == ("y\n" if "echo y" in work else "x\n")
