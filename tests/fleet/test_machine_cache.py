"""What a machine keeps between attempts: warm trees, what is installed there, and nothing else."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from kits.attempts import RUN, Site, gone
from kits.work_tree import git
from ralph.fleet.machine.cache import opened
from ralph.fleet.machine.setting_up import TreeSetup
from ralph.testing.scripted_agent.install import calls

SHOW = (
    "git status --porcelain --ignored; git branch; git tag; git stash list;"
    " ls -A; cat b a/one; cat build/out build/own"
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, [{"text": "ok"}])


def run(site: Site, task: str, command: str, task_list: bytes | None = None) -> str:
    """What the command prints in the next attempt, where agents work."""
    site.again({"text": "ok", "tools": [{"name": "bash", "run": f"({command}) 2>&1"}]})
    job = site.job(task, task_list=task_list)
    assert "done" in site.made(job), "it has a result"
    return site.work.repository.ask("cat-file", "blob", site.found(job).stream).decode()


def test_the_next_attempt_finds_what_git_ignores_and_nothing_else(site: Site) -> None:
    dirt = (
        "mkdir build; echo warm > build/own; echo x > untracked; echo x > b; rm a/one;"
        " mkdir -p d/e; git init -q inner; touch inner/x; ln -s / toplink; git tag mine-tag;"
        " echo x > .ralph/notes.log; mkdir q; chmod 0 q;"
        " git stash -q; git checkout -q -b elsewhere; git add -A"
    )
    run(site, "T-1", f"mkdir -p .ralph; {dirt}", task_list=b"{}\n")
    (site.project / "b").write_text("another\n")
    said = run(site, "T-2", SHOW)
    for words in ("warm", "ralph/T-2", "another", "one"):
        assert words in said
    for words in (
        "untracked",
        "inner",
        "toplink",
        "notes.log",
        "ralph/T-1",
        "mine-tag",
        "stash@",
        "elsewhere",
    ):
        assert words not in said, said


@pytest.mark.slow
def test_a_tree_that_cannot_be_cleaned_is_made_anew(site: Site) -> None:
    run(
        site, "T-1", "rm -r a; mkdir -p build a/one/build; touch a/one/build/x; rm .git; mkdir .git"
    )
    said = run(site, "T-2", SHOW)
    assert "one" in said
    assert "ralph/T-2" in said


def test_what_an_agent_does_to_git_does_not_reach_the_next(site: Site, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    hook = f"#!/bin/sh\ntouch {mark}\n"
    steps = (
        "G=$(git rev-parse --git-common-dir); D=$(git rev-parse --git-dir)",
        f"mkdir -p $G/hooks $G/info; printf '{hook}' > $G/hooks/post-index-change",
        "cp $G/hooks/post-index-change $G/hooks/reference-transaction; chmod +x $G/hooks/*",
        f"git config core.fsmonitor {tmp_path}/evil; git config core.hooksPath $G/hooks",
        "git config extensions.worktreeConfig true; git config --worktree core.bare true",
        "echo '* filter=evil' > $G/info/attributes; echo b > $G/info/exclude",
        "git update-index --assume-unchanged b; echo hidden > b; touch $D/index.lock",
        "mkdir $D/rebase-merge; touch $D/MERGE_HEAD $D/HEAD.lock",
        f"printf '{hook}' > {tmp_path}/evil; chmod +x {tmp_path}/evil",
    )
    run(site, "T-1", "; ".join(steps))
    mark.unlink(missing_ok=True)
    said = run(site, "T-2", f"{SHOW}; git config --list --local; git commit -q --allow-empty -m x")
    assert not mark.exists(), said
    assert "hidden" not in said
    assert "evil" not in said
    assert "rebas" not in said


def test_the_second_attempt_fetches_only_what_is_new(site: Site) -> None:
    (site.project / "large").write_bytes(os.urandom(2_000_000))
    git(site.project, "add", "--all")
    git(site.project, "commit", "--quiet", "--message", "Large")
    run(site, "T-1", "true")
    before = size(site.cache / "repo.git")
    (site.project / "b").write_text("small\n")
    run(site, "T-2", "true")
    assert size(site.cache / "repo.git") - before < 100_000


def size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


@pytest.mark.slow
def test_a_cache_that_is_of_no_use_is_made_anew(site: Site) -> None:
    run(site, "T-1", "true")
    for path in (site.cache / "repo.git" / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"broken")
    assert "ralph/T-2" in run(site, "T-2", SHOW)
    for path in (site.cache / "repo.git").glob("*"):
        if path.is_file():
            path.write_bytes(b"")
    assert "ralph/T-3" in run(site, "T-3", SHOW)
    assert not list(site.cache.glob("broken*"))


@pytest.mark.slow
def test_a_remote_that_is_away_costs_no_cache(site: Site) -> None:
    run(site, "T-1", "true")
    before = (site.cache / "repo.git").stat().st_ino
    job = site.job("T-2")
    os.rename(site.remote.url, f"{site.remote.url}.away")
    assert "failed" in site.made(job)
    os.rename(f"{site.remote.url}.away", site.remote.url)
    assert "done" in site.made(job)
    assert (site.cache / "repo.git").stat().st_ino == before


def test_two_attempts_have_a_tree_each(site: Site, tmp_path: Path) -> None:
    """Also of tasks of the same name, of two runs."""
    both = f"touch {tmp_path}/$RALPH_RUN; until test $(ls {tmp_path} | grep -c ^2026) = 2"
    command = (
        f"{both}; do sleep 0.02; done; git branch --show-current > mine; echo $RALPH_RUN >> mine"
    )
    site.again({"text": "ok", "tools": [{"run": command}]})
    jobs = [site.job("T-1", run=f"{RUN}{n}") for n in range(2)]
    threads = [threading.Thread(target=site.made, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = [site.files(site.found(job).work)["mine"] for job in jobs]
    assert [each.split("\n")[1] for each in said] == [f"{job.run}-T-1.1" for job in jobs]
    assert {each.split("\n")[0] for each in said} == {"ralph/T-1", "ralph/T-1-2"}
    assert {call["cwd"] for call in calls(site.agent)} == {
        str(site.cache / "trees" / name) for name in "01"
    }


@pytest.mark.slow
def test_a_tree_whose_holder_was_killed_is_taken_over(site: Site, tmp_path: Path) -> None:
    site.again({"text": "ok", "files": {"half": "done\n"}, "tools": [{"run": "sleep 600"}]})
    with site.started(site.job("T-1")) as attempt:
        attempt.lend()
        attempt.until("launched")
        while not (site.cache / "trees" / "0" / "half").exists():
            attempt._hear(0.05)
        attempt.process.send_signal(signal.SIGKILL)
    (site.cache / "repo.git" / "worktrees" / "0" / "index.lock").touch()
    said = run(site, "T-2", SHOW)
    assert "half" not in said
    assert gone(str(site.home))
    assert [path.name for path in (site.cache / "trees").glob("?")] == ["0"]


# ------------------------------------------------------------------ loop.setup


def setup(site: Site, command: str) -> None:
    site.settings = {"loop": {"setup": command}}


def commit(site: Site, **files: str) -> None:
    for name, text in files.items():
        (site.project / name.replace("__", ".")).write_text(text)
    git(site.project, "add", "--all")
    git(site.project, "commit", "--quiet", "--message", "More")


@pytest.mark.slow
def test_a_tree_is_set_up_once_for_each_lockfile(site: Site, tmp_path: Path) -> None:
    """Issue: "`loop.setup` once per lockfile hash"."""
    log = tmp_path / "log"
    setup(site, f"cat uv.lock >> {log}; mkdir -p build; cp uv.lock build/own")
    commit(site, uv__lock="one\n")
    for number in range(2):
        assert "one" in run(site, f"T-{number}", "cat build/own")
    assert log.read_text() == "one\n"
    commit(site, b="not a lock\n")
    run(site, "T-2", "true")
    assert log.read_text() == "one\n"
    commit(site, uv__lock="two\n")
    assert "two" in run(site, "T-3", "cat build/own")
    assert log.read_text() == "one\ntwo\n"
    setup(site, f"echo other >> {log}")
    run(site, "T-4", "true")
    assert log.read_text() == "one\ntwo\nother\n"


@pytest.mark.slow
def test_what_an_agent_wants_installed_is_set_up_too(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "log"
    setup(site, f"cat uv.lock b >> {log}")
    commit(site, uv__lock="one\n")
    (site.project / "uv.lock").write_text("agent's\n")
    (site.project / "b").write_text("agent's, too\n")
    for number in range(2):
        said = run(site, f"T-{number}", "cat uv.lock; git status --porcelain")
        assert "agent's" in said
        assert " M uv.lock" in said
    assert log.read_text() == "one\nb\nagent's\nagent's, too\n"


def test_a_setup_that_fails_says_how(site: Site) -> None:
    setup(site, "echo the registry is down; exit 7")
    told = site.made(site.job())["failed"]
    assert "exit code 7" in told["why"]
    assert "the registry is down" in told["why"]
    assert "setup.log" in told["remedy"]
    assert told["passes"]
    assert calls(site.agent) == []
    setup(site, "true")
    run(site, "T-2", "true")


@pytest.mark.slow
def test_a_setup_that_was_cut_off_is_run_again(site: Site, tmp_path: Path) -> None:
    log = tmp_path / "log"
    setup(site, f"echo begun >> {log}; sleep 600")
    with site.started(site.job()) as attempt:
        attempt.lend()
        while not log.exists():
            attempt._hear(0.05)
        attempt.tell(cut={"why": "enough", "grace": 0.1})
        assert "enough" in attempt.result()["failed"]["why"]
    assert gone(str(site.home))
    setup(site, f"echo begun >> {log}")
    run(site, "T-2", "true")
    assert log.read_text() == "begun\nbegun\n"


def test_the_files_that_say_what_to_install(site: Site) -> None:
    names = (
        *("package-lock.json", "uv.lock", "poetry.lock", "requirements.txt", "Cargo.lock"),
        *("requirements-dev.txt", "go.sum", "pnpm-lock.yaml", "yarn.lock", "Gemfile.lock"),
        *("composer.lock", "mix.lock", "deep/er/uv.lock"),
    )
    seen = set()
    needs = TreeSetup("x", "", "").needs
    for name in names:
        path = site.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        git(site.project, "add", "--all")
        seen.add(needs(site.work.repository, git(site.project, "write-tree")))
    assert len(seen) == len(names)
    (site.project / "package.json").write_text("x")
    git(site.project, "add", "--all")
    assert needs(site.work.repository, git(site.project, "write-tree")) in seen


def test_remotes_of_the_same_name_have_a_cache_each(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    paths = []
    for remote in ("/one/x.git", "/two/x.git", "ssh://host/x", "..", "a/ü ../"):
        with opened(environ, remote) as cache:
            paths.append(cache.path)
    above = str(tmp_path / ".cache" / "ralph" / "fleet")
    assert {os.path.dirname(path) for path in paths} == {above}
    assert len(set(paths)) == 5
    assert os.path.basename(paths[0]).startswith("x-")


def test_a_cache_in_use_is_not_thrown_away(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with opened(environ, "/one") as one, opened(environ, "/one") as other:
        one.prepare("0" * 40)
        with one.slot("a") as first, other.slot("b") as second:
            assert (first.number, second.number) == (0, 1)
            assert not one.make_anew("0" * 40)
    with opened(environ, "/one") as one, one.slot("a") as first:
        assert first.number == 0
        assert one.make_anew("0" * 40)
        subprocess.run(["git", "-C", one.git_dir, "fsck"], check=True)
