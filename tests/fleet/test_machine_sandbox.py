"""What a sandbox on another machine shows its agent, and what lands of its work there."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

import ralph
from kits.attempts import Json, Site, gone, naming
from kits.sandbox.stage import overlay_is_usable
from kits.thorough import dealt
from kits.work_tree import git
from ralph.errors import ConfigError
from ralph.fleet.machine.pipe import Voice
from ralph.fleet.machine.taking import place_of, plan_of, settings_of
from ralph.kernel.facts import Landed
from ralph.processes.child import start
from ralph.sandbox import catalog

needs_overlay = pytest.mark.skipif(
    not overlay_is_usable(), reason="this machine allows no namespaces"
)
SOURCE = os.path.dirname(ralph.__file__)
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, [], {"sandbox": "auto"})


def plays(site: Site, command: str) -> None:
    """Have the agent run a command, and then say that all is well; it writes nothing down."""
    said = json.dumps({**RESULT, "total_cost_usd": 0.5})
    Path(site.agent).write_text(
        f'#!/bin/sh\ncase "$*" in *--version*|*--help*) echo 2.1.197; exit;; esac\n'
        f"cat > /dev/null < /dev/stdin\n({command}) > said 2>&1\necho {shlex.quote(said)}\n"
    )


def result(site: Site, command: str, task: str = "T-1") -> dict[str, str]:
    """The files that the agent has changed, and what its command printed as `said`."""
    plays(site, command)
    job = site.job(task)
    told = site.made(job)
    assert "done" in told, told
    return site.files(site.found(job).work)


@needs_overlay
def test_what_a_turn_changed_lands_in_its_tree(site: Site) -> None:
    files = result(site, "echo $RALPH_SANDBOX; echo new > made; echo x >> b; rm a/one")
    assert files == {"said": "overlay\n", "made": "new\n", "b": "b\nx\n", "a/one": "gone"}
    job = site.job("T-2")
    plays(site, "echo new > made; exit 3")
    site.made(job)
    found = site.found(job)
    landed = found.facts[0]
    assert isinstance(landed, Landed)
    assert (landed.kept, landed.count) == (True, 2)


@needs_overlay
def test_a_turn_that_failed_leaves_nothing(site: Site) -> None:
    Path(site.agent).write_text("#!/bin/sh\necho new > made; exit 3\n")
    job = site.job()
    site.made(job)
    found = site.found(job)
    landed = found.facts[0]
    assert isinstance(landed, Landed)
    assert not landed.kept
    assert site.files(found.work) == {}


@needs_overlay
def test_an_agent_reaches_neither_another_tree_nor_the_cache(site: Site) -> None:
    """Nor the stamp of its own tree, the state directory, and what keeps git's objects."""
    result(site, "true")
    cache, trees = site.cache, site.cache / "trees"
    (trees / "7").mkdir()
    (trees / "7" / "secret").write_text("another attempt's\n")
    (trees / "0.setup").write_text("stamp\n")
    before = snapshot(cache / "repo.git")
    command = "; ".join(
        (
            f"cat {trees}/7/secret; ls {trees}; echo x > {trees}/7/secret",
            f"echo x > {trees}/0.setup",
            f"rm -rf {trees}/7 {trees}/0.setup {cache}/repo.git/HEAD; ls {site.runs}",
            f"echo x > {cache}/repo.git/config; mkdir -p {cache}/repo.git/hooks",
            f"echo x > {cache}/repo.git/hooks/pre-commit; echo x > {cache}/config",
            "git log --format=%s; git config core.hooksPath .; git commit -qm mine --allow-empty",
            "git update-ref refs/heads/mine HEAD; git branch --show-current",
        )
    )
    said = result(site, command, "T-2")["said"]
    assert "another attempt's" not in said
    assert "Begin" in said, "git can be looked at"
    assert "ralph/T-2" in said
    assert "001.stream" not in said
    assert (trees / "7" / "secret").read_text() == "another attempt's\n"
    assert (trees / "0.setup").read_text() == "stamp\n"
    after = snapshot(cache / "repo.git")
    assert {name: text for name, text in after.items() if name in before} == before
    assert not [name for name in after if "hooks" in name or "mine" in name]


def snapshot(place: Path) -> dict[str, bytes]:
    """What git obeys in it."""
    names = ("config", "HEAD", "hooks", "info", "refs/heads")
    paths = [path for name in names for path in (place / name, *(place / name).rglob("*"))]
    return {str(p.relative_to(place)): p.read_bytes() for p in paths if p.is_file()}


@needs_overlay
def test_a_hidden_credential_stays_hidden(site: Site) -> None:
    (site.home / ".ssh").mkdir()
    (site.home / ".ssh" / "id_rsa").write_text("PRIVATE\n")
    said = result(site, "cat ~/.ssh/id_rsa; echo x > ~/written; ls ~")["said"]
    assert "PRIVATE" not in said
    assert not (site.home / "written").exists()


@needs_overlay
@pytest.mark.slow
def test_what_an_agent_changed_is_set_up_in_a_sandbox(site: Site, tmp_path: Path) -> None:
    """As a worker here would, on what is committed; the agent's own idea of it is contained."""
    site.settings = {**site.settings, "loop": {"setup": f"sh ./setup.sh; touch {tmp_path}/ran"}}
    mark = tmp_path / "mark"
    (site.project / "setup.sh").write_text("mkdir -p build; cp uv.lock build/own\n")
    (site.project / "uv.lock").write_text("one\n")
    git(site.project, "add", "--all")
    git(site.project, "commit", "--quiet", "--message", "Setup")
    (site.project / "setup.sh").write_text(f"touch {mark}; mkdir -p build; cp uv.lock build/own\n")
    assert result(site, "cat build/own")["said"] == "one\n"
    (tmp_path / "ran").unlink()
    (site.project / "uv.lock").write_text("agent's\n")
    assert result(site, "cat build/own", "T-2")["said"] == "agent's\n"
    assert not mark.exists()
    assert not (tmp_path / "ran").exists()


@needs_overlay
@pytest.mark.parametrize("how", dealt(["kill", "let_go", "lease"], 1))
@pytest.mark.slow
def test_nothing_of_a_sandbox_is_left(site: Site, how: str) -> None:
    seconds = f"87{os.getpid():07d}"
    plays(site, f"(env -i setsid sleep {seconds} &) ; touch started; sleep {seconds}")
    with site.started(site.job(lease=6.0)) as attempt:
        end = 0
        while not gone_is(seconds) and end < 400:
            attempt.lend()
            attempt._hear(0.1)
            end += 1
        if how == "kill":
            attempt.process.kill()
        elif how == "let_go":
            attempt.let_go()
        if how != "kill":
            attempt.result()
        assert gone(seconds)
    assert gone(str(site.home))
    assert result(site, "ls", "T-2")["said"].split() == ["a", "b", "link", "said", "tool"]


def gone_is(text: str) -> bool:
    """Whether it has begun."""
    return any(f"sleep\0{text}".encode() in cmdline(pid) for pid in naming(text))


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_machine_that_cannot_contain_an_agent_refuses(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auto` never degrades silently; who names a sandbox that contains nothing gets that."""
    monkeypatch.setattr(catalog, "AUTO", ("worktree",))
    where = (str(site.project), dict(os.environ), str(site.root / "run"), str(site.root / "trees"))
    with pytest.raises(ConfigError) as caught:
        plan_of(settings_of(site.job()), *where)
    assert "contains" in caught.value.message
    assert "worktree" in caught.value.message
    assert "ralph sandbox probe" in caught.value.remedy
    plan = plan_of(settings_of(site.job("T-2", settings={"sandbox": "worktree"})), *where)
    assert plan.sandbox
    assert plan.sandbox.backend == "worktree"
    monkeypatch.setattr(catalog, "AUTO", ())
    with pytest.raises(ConfigError, match="no sandbox is usable"):
        plan_of(settings_of(site.job("T-3")), *where)


def test_keys_of_the_forge_are_not_for_agents(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_x")
    where = (str(site.project), dict(os.environ), str(site.root / "run"), str(site.root / "trees"))
    for pr, seen in (({"mode": "per-task"}, False), ({}, True)):
        job = site.job("T-1" if seen else "T-2", settings={"pr": pr, "sandbox": "direct"})
        plan = plan_of(settings_of(job), *where)
        assert ("GITHUB_TOKEN" in plan.environment.values) is seen


def test_what_is_judged_elsewhere_is_not_here(site: Site, tmp_path: Path) -> None:
    job = site.job(
        settings={"sandbox": "direct", "proof": "clean", "guardrails": [{"command": "false"}]}
    )
    (tmp_path / "run" / "signals").mkdir(parents=True)
    run_dir = str(tmp_path / "run")
    plan = plan_of(settings_of(job), str(site.project), dict(os.environ), run_dir, run_dir)
    with ExitStack() as cleanup:
        place = place_of(plan, run_dir, start, Voice(2), cleanup)
        assert place.guardrails() == ()


def python_for_everybody(place: Path) -> str | None:
    """A Python that an ordinary user may run, which finds there what Ralph needs."""
    python, packages = "/usr/bin/python3", os.path.dirname(os.path.dirname(msgspec.__file__))
    for source in (SOURCE, os.path.join(packages, "msgspec")):
        name = os.path.basename(source)
        shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["chmod", "-R", "a+rX", place], check=True)
    same = f"import sys, msgspec; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    done = subprocess.run(
        [*NOBODY, "sh", "-c", f'{python} -c "{same}"'],
        check=False,
        capture_output=True,
        env={"PYTHONPATH": str(place)},
    )
    return None if done.returncode else python


@needs_overlay
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
@pytest.mark.slow
def test_an_ordinary_user_makes_attempts() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        python = python_for_everybody(place / "packages")
        if python is None:
            pytest.skip("no Python of this version that an ordinary user may run")
        site = Site(place, [], {"sandbox": "auto"})
        site.environ |= {"PYTHONPATH": str(place / "packages"), "TMPDIR": "/tmp"}
        plays(site, "id -u; echo $RALPH_SANDBOX")
        job = site.job()
        subprocess.run(["chown", "-R", "65534:65534", site.home, site.remote.url], check=True)
        with site.started(job, *NOBODY, python) as attempt:
            attempt.lend()
            told: Json = attempt.result()
        assert "done" in told, told
        subprocess.run(["chown", "-R", "0:0", site.remote.url], check=True)
        assert site.files(site.found(job).work)["said"] == "65534\noverlay\n"
