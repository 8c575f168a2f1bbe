"""Git on the host never runs what a sandbox wrote: whatever it would obey is held for review."""

import os
import subprocess
from pathlib import Path

import pytest
from sandbox_support import needs_overlay, policy, tree

from kits.thorough import dealt
from ralph.sandbox.backends import overlay
from ralph.sandbox.changes import apply, landing
from ralph.sandbox.changes.commit import NO_LOCK
from ralph.sandbox.changes.review import held_because
from ralph.sandbox.interface import Change, CommitResult

pytestmark = needs_overlay
# Each makes the next git on the host touch a file, unless something of it is held.
EVIL = "git config --file {0}/config core.fsmonitor 'touch {1}; false'"
ATTACKS = {
    "configuration": "git config core.fsmonitor 'touch {ran}; false'",
    "common directory": (
        "mkdir evil; cp -r .git/objects .git/refs .git/HEAD evil; {evil}; "
        "echo ../evil > .git/commondir"
    ),
    "file for the directory": (
        "mkdir evil; cp -r .git/. evil; rm -r .git; {evil}; echo 'gitdir: evil' > .git"
    ),
    "link for the directory": "mkdir evil; cp -r .git/. evil; rm -r .git; {evil}; ln -s evil .git",
    "made anew": "rm -r .git; git init -q; git config core.fsmonitor 'touch {ran}; false'",
    "file below": "cp -r .git evil; {evil}; echo 'gitdir: ../evil' > sub/.git",
    "repository below": "git init -q sub; git -C sub config core.fsmonitor 'touch {ran}; false'",
    "bare repository below": (
        "cp -r .git/. sub; git config --file sub/config core.fsmonitor 'touch {ran}; false'; "
        "git config --file sub/config core.bare false; git config --file sub/config core.worktree ."
    ),
    "link for hooks": "mkdir evil; {hook} > evil/pre-commit; {run} evil/*; rm -r .git/hooks; "
    "ln -s ../evil .git/hooks",
    "a hook": "mkdir -p .git/hooks; {hook} > .git/hooks/pre-commit; {run} .git/hooks/pre-commit",
    "configured hooks": "{hook} > tools/hooks/pre-commit; {run} tools/hooks/pre-commit",
    "link for configured hooks": (
        "cp -r tools evil; {hook} > evil/hooks/pre-commit; {run} evil/hooks/pre-commit; "
        "rm -r tools; ln -s evil tools"
    ),
    "what a hook is a link to": "{hook} > tools/linked; {run} tools/linked",
    "a link on the way to a hook": (
        "mkdir evil; {hook} > evil/linked; {run} evil/linked; rm way; ln -s evil way"
    ),
    "a directory for a link on the way": (
        "rm way; mkdir way; {hook} > way/linked; {run} way/linked"
    ),
    "a link in the middle of configured hooks": (
        "mkdir evil; {hook} > evil/pre-commit; {run} evil/pre-commit; rm way; ln -s evil way"
    ),
    "a directory that a link leaves": (
        "mkdir -p evil/x evil/tools; {hook} > evil/tools/linked; {run} evil/tools/linked; "
        "rm -r sub; ln -s evil/x sub"
    ),
    "included configuration": (
        "git config --file tools/gitconfig core.fsmonitor 'touch {ran}; false'"
    ),
    "a filter's program": (
        "{hook} > tools/clean; {run} tools/clean; echo '* filter=x' > .gitattributes"
    ),
}
CONFIGURED = {
    "configured hooks": ("core.hooksPath", "tools/hooks"),
    "link for configured hooks": ("core.hooksPath", "tools/hooks"),
    "a link in the middle of configured hooks": ("core.hooksPath", "first"),
    "included configuration": ("include.path", "../tools/gitconfig"),
    "a filter's program": ("filter.x.clean", "./tools/clean %f"),
}


HOOKS = {
    "what a hook is a link to": "../../tools/linked",
    "a link on the way to a hook": "../../way/linked",
    "a directory for a link on the way": "../../way/linked",
    "a directory that a link leaves": "../../sub/../tools/linked",
}


@pytest.fixture
def project(repo: Path) -> Path:
    tree(repo, a="1\n", sub__b="1\n", tools__hooks__README="1\n", tools__linked="#!/bin/sh\n")
    tree(repo, tools__clean="#!/bin/sh\ncat\n", tools__gitconfig="")
    for name in ("linked", "clean"):
        (repo / "tools" / name).chmod(0o755)
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Begin")
    return repo


def git(where: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=where, check=False, capture_output=True)


def use(project: Path) -> None:
    """What a person does next."""
    for place in (project, project / "sub"):
        (place / "a").write_text("a person's\n")
        for words in ("status", "diff", "add .", "commit --quiet --message Next"):
            git(place, *words.split())


def kept(project: Path, script: str, *, everything: bool = False) -> CommitResult:
    with overlay.open(str(project), policy()) as sandbox:
        done = sandbox.bash(f"WHO='-c user.name=x -c user.email=x@y'; {script}")
        assert done.code == 0, done
        return sandbox.commit(everything=everything)


@pytest.mark.parametrize("everything", [False, True], ids=["held", "all"])
@pytest.mark.parametrize("attack", dealt(ATTACKS, 8))
def test_git_runs_nothing_that_a_sandbox_wrote(
    project: Path, tmp_path: Path, attack: str, everything: bool
) -> None:
    """Settled: "holds `.git/hooks` … back unless `--keep=all`", and all that does the same."""
    ran = tmp_path / "ran"
    if attack in CONFIGURED:
        git(project, "config", *CONFIGURED[attack])
    if "on the way" in attack:
        (project / "way").symlink_to("tools")
    if "in the middle" in attack:
        (project / "first").symlink_to("way")
        (project / "way").symlink_to("tools/hooks")
    if attack in HOOKS:
        (project / ".git" / "hooks").mkdir(exist_ok=True)
        (project / ".git" / "hooks" / "pre-commit").symlink_to(HOOKS[attack])
    use(project)
    hook, run = f"printf '#!/bin/sh\\ntouch {ran}\\n'", "chmod 755"
    script = ATTACKS[attack].format(ran=ran, evil=EVIL.format("evil", ran), hook=hook, run=run)
    done = kept(project, script, everything=everything)
    assert bool(done.held) == (not everything)
    use(project)
    assert ran.exists() == everything, done


def test_what_takes_two_turns_is_held_as_well(project: Path, tmp_path: Path) -> None:
    """A directory that is no repository yet may have a file called config."""
    ran = tmp_path / "ran"
    first = f"cp .git/HEAD sub; printf '[core]\\nbare=false\\nworktree=.\\n' > sub/config; {EVIL}"
    assert not kept(project, first.format("sub", ran)).held
    done = kept(project, "cp -r .git/objects .git/refs sub")
    assert "sub/objects" in {spared.path for spared in done.held}
    use(project)
    assert not ran.exists()


def test_a_bare_repository_as_the_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    subprocess.run(["git", "init", "--quiet", "--bare", str(project)], check=True)
    script = "echo >> config; echo > hooks/post-receive; echo > commondir; echo > description"
    done = kept(project, script)
    assert {spared.path for spared in done.held} == {"config", "hooks/post-receive", "commondir"}
    assert done.applied == ("description",)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("rm -rf .git", "it is the project's history"),
        ("rm -rf .git; echo > .git", "it is the project's history"),
        ("rm -rf .git; ln -s /etc .git", "it is the project's history"),
    ],
)
def test_the_history_is_held_as_a_whole(project: Path, script: str, says: str) -> None:
    before = subprocess.check_output(["git", "log"], cwd=project)
    done = kept(project, f"{script}; echo 2 > a")
    assert done.applied == ("a",)
    assert {s.path: s.why for s in done.held}[".git"] == says
    assert len({s.path for s in done.held}) == len(done.held), "each once"
    assert subprocess.check_output(["git", "log"], cwd=project) == before


@pytest.mark.parametrize(
    "deed",
    [
        "rm -rf .git/objects",
        "find .git/objects -type f | head -1 | xargs rm -f",
        "f=$(find .git/objects -type f | head -1); chmod u+w $f; echo garbage > $f",
    ],
)
def test_objects_of_the_history_are_held(project: Path, deed: str) -> None:
    """Git takes an object away only once another pack has it, and never changes one."""
    done = kept(project, f"{deed}; echo 2 > a")
    assert "a" in done.applied
    assert done.held
    assert subprocess.run(["git", "fsck", "--strict"], cwd=project, check=False).returncode == 0


def test_a_history_that_was_made_anew_is_held_as_a_whole(project: Path) -> None:
    before = subprocess.check_output(["git", "log"], cwd=project)
    script = "rm -rf .git; git init -q; git add -A; git $WHO commit -qm New; echo 2 > a"
    done = kept(project, script)
    assert done.applied == ("a",)
    whys = {spared.path: spared.why for spared in done.held}
    assert whys[".git/HEAD"] == "it stands in place of the project's history"
    assert subprocess.check_output(["git", "log"], cwd=project) == before


def test_commits_branches_and_gc_are_kept(project: Path) -> None:
    """What git does every day is no business of a reviewer."""
    script = (
        "git checkout -qb hooks/config; echo 2 > a; git $WHO commit -qam Two; git gc -q; git tag t"
    )
    done = kept(project, script)
    assert not done.spared
    assert (
        subprocess.check_output(["git", "log", "--format=%s"], cwd=project)
        == b"Two\nBegin\nBegin\n"
    )
    assert subprocess.run(["git", "fsck", "--strict"], cwd=project, check=False).returncode == 0


def test_a_new_repository_is_kept_but_for_what_git_obeys(tmp_path: Path) -> None:
    project = tree(tmp_path / "project", a="1\n")
    done = kept(project, "git init -q; git add -A; git $WHO commit -qm One")
    assert {spared.path.split("/")[1] for spared in done.held} <= {"config", "hooks"}
    assert subprocess.check_output(["git", "log", "--format=%s"], cwd=project) == b"One\n"


LINKED = (".claude", ".ralph", ".husky", ".github", ".git/modules", ".cursor", ".amp", ".git/info")


@pytest.mark.parametrize("name", LINKED)
def test_a_link_that_gives_other_names_to_what_is_held(project: Path, name: str) -> None:
    """A link in the place of `.claude` makes any directory the one with the settings."""
    make = "mkdir evil; echo > evil/settings.json"
    done = kept(project, f"{make}; rm -rf {name}; ln -s $PWD/evil {name}")
    assert name in {spared.path for spared in done.held}


@pytest.mark.parametrize(
    ("path", "is_held"),
    [
        (".git/commondir", True),
        (".git/config.worktree", True),
        (".git/modules/a/commondir", True),
        (".git/modules/a/modules/b/config", True),
        (".git/worktrees/w/commondir", True),
        (".git/worktrees/w/gitdir", True),
        (".git/worktrees/w/config.worktree", True),
        (".git/rebase-merge/git-rebase-todo", True),
        ("vendor/x/.git/commondir", True),
        (".git/refs/heads/config", False),
        (".git/logs/refs/heads/hooks/x", False),
        (".git/info/grafts", True),
        (".git/worktrees/w/info/attributes", True),
        (".gitmodules", False),
        ("src/config", False),
    ],
)
def test_what_git_obeys_by_its_path(path: str, is_held: bool) -> None:
    assert bool(held_because(path)) == is_held


LOCKS = (".git/index.lock", ".git/refs/heads/main.lock", ".git/HEAD.lock", ".git/config.lock/x")


@pytest.mark.parametrize("everything", [False, True], ids=["held", "all"])
@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_never_lands_and_is_in_no_commits_way(
    project: Path, lock: str, everything: bool
) -> None:
    """Issue: "`*.lock` below `.git` never lands": git on the host would wait for nobody."""
    make = f"mkdir -p $(dirname {lock}); echo > {lock}"
    done = kept(project, f"{COMMIT}; {make}", everything=everything)
    assert {spared.why for spared in done.spared} == {NO_LOCK}
    assert done.saved == ""
    assert landing.told(done, 0.0, count=1).spared == (), "nobody misses it"
    assert not list((project / ".git").rglob("*.lock"))
    assert said(project, "log", "-1", "--format=%s") == "Two\n"
    git(project, "commit", "--quiet", "--allow-empty", "--message", "Three")
    assert said(project, "log", "-1", "--format=%s") == "Three\n"


@pytest.mark.parametrize("everything", [False, True], ids=["held", "all"])
def test_a_lock_of_somebody_else_is_not_taken_away(project: Path, everything: bool) -> None:
    """A person's git may hold it at this moment."""
    lock = tree(project, **{".git__index.lock": "mine\n"}) / ".git" / "index.lock"
    done = kept(project, "echo 2 > a; rm .git/index.lock", everything=everything)
    assert [spared.path for spared in done.held] == ([] if everything else [".git/index.lock"])
    assert lock.exists() is not everything
    assert (project / "a").read_text() == "2\n"


def test_replaced_objects_are_held_also_where_references_are_packed(project: Path) -> None:
    """Issue: "also held for a person's look: … `.git/refs/replace`"; packed, the same."""
    forge = (
        "git $WHO commit -q --allow-empty -m Forged; forged=$(git rev-parse HEAD); "
        "git reset -q --hard HEAD~1; git replace HEAD $forged"
    )
    before = said(project, "log", "--format=%s")
    for script in (forge, f"{forge}; git pack-refs --all"):
        done = kept(project, f"{script}; echo 2 > a")
        assert done.held
        assert said(project, "log", "--format=%s") == before
        assert said(project, "for-each-ref", "refs/replace") == ""
        assert (project / "a").read_text() == "2\n", "the work lands"
        git(project, "checkout", "--", "a")


def test_nothing_is_held_that_was_not_changed(project: Path) -> None:
    git(project, "config", "core.hooksPath", "tools/hooks")
    done = kept(project, "echo 2 > a; echo 2 > tools/other; mkdir -p x/hooks; echo > x/hooks/y")
    assert not done.held
    assert os.path.exists(project / "tools" / "other")


COMMIT = "echo 2 > n; echo 2 > a; git add --all; git $WHO commit -qm Two"


def said(project: Path, *words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=project, text=True)


def look(project: Path) -> None:
    """A person looks: git writes its index anew, since a file has another time."""
    before = (project / ".git" / "index").read_bytes()
    os.utime(project / "sub" / "b", (1, 1))
    git(project, "status")
    assert (project / ".git" / "index").read_bytes() != before


def test_a_person_who_only_looks_is_in_no_commits_way(project: Path) -> None:
    """`git status` changes nothing, though it writes the index."""
    with overlay.open(str(project), policy()) as sandbox:
        assert sandbox.bash(f"WHO='-c user.name=x -c user.email=x@y'; {COMMIT}").code == 0
        look(project)
        assert not sandbox.commit().spared
    assert said(project, "log", "-1", "--format=%s") == "Two\n"
    assert said(project, "status", "--porcelain") == ""


def test_a_person_who_looks_before_a_killed_commit_is_finished(project: Path) -> None:
    class Killed(BaseException):
        pass

    def step(
        job: apply._Job, change: Change, here: os.stat_result | None, temporary: bytes
    ) -> None:
        do(job, change, here, temporary)
        if change.path == ".git/index":
            raise Killed

    do = apply._apply
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "_apply", step)
        with pytest.raises(Killed):
            kept(project, COMMIT)
    look(project)
    (done,) = landing.recover(str(project), policy().state)
    assert not done.spared
    assert said(project, "log", "-1", "--format=%s") == "Two\n"
    assert said(project, "status", "--porcelain") == ""


def test_what_a_person_does_with_git_and_what_the_agent_does_are_not_mixed(project: Path) -> None:
    """The agent's work is in the files; index, branch and log are the person's, and fit."""
    head = said(project, "rev-parse", "HEAD")
    with overlay.open(str(project), policy()) as sandbox:
        assert sandbox.bash(f"WHO='-c user.name=x -c user.email=x@y'; {COMMIT}").code == 0
        (project / "sub" / "b").write_text("a person's\n")
        git(project, "add", "sub/b")
        done = sandbox.commit()
    spared = {spared.path for spared in done.changed}
    assert ".git/index" in spared
    assert any(path.startswith(".git/refs/heads/") for path in spared)
    assert {path.split("/")[1] for path in spared} <= {"index", "HEAD", "refs", "logs"}
    assert said(project, "rev-parse", "HEAD") == head
    assert said(project, "status", "--porcelain") == " M a\nM  sub/b\n?? n\n"
    assert subprocess.run(["git", "fsck", "--strict"], cwd=project, check=False).returncode == 0
