"""`ralph sandbox` with srt, sbx and docker, on fakes of these tools."""

import json
import os
import signal
import sys
from pathlib import Path

import pexpect
import pytest
from run_support import RALPH, Done, Running, assert_clear, ralph

from kits.sandbox.stage import overlay_is_usable
from kits.sandbox.tools import fake_calls, install_fake, machines

USABLE = overlay_is_usable()
pytestmark = [
    pytest.mark.skipif(not USABLE, reason="this machine allows no namespaces"),
    pytest.mark.slow,
]
TOOLS = ("srt", "sbx", "docker")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    directory = str(tmp_path / "fakes")
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RALPH_SANDBOX_SETTLE", "0")
    return {kind: install_fake(directory, kind) for kind in TOOLS}


def run(*arguments: str) -> Done:
    return ralph("sandbox", "run", *arguments)


@pytest.mark.parametrize("backend", TOOLS)
def test_what_is_kept(tools: dict[str, str], repo: Path, backend: str) -> None:
    """ "`ralph sandbox run --backend srt|sbx|docker` works", and the exit code passes through."""
    script = "echo hello; echo 2 > new; rm README.md; exit 3"
    done = run("--backend", backend, "--keep", "--", "sh", "-c", script)
    assert (done.code, done.out) == (3, "hello\n"), done.err
    assert f"[ralph] Sandbox: {backend}" in done.err
    assert "network off" in done.err.splitlines()[0]
    assert "Kept 2 changes." in done.err
    assert (repo / "new").read_text() == "2\n"
    assert not (repo / "README.md").exists()


@pytest.mark.parametrize("backend", ["srt", "sbx"])
@pytest.mark.parametrize("flags", [("--discard",), ()], ids=["discard", "no flag"])
def test_what_is_not_kept(
    tools: dict[str, str], repo: Path, backend: str, flags: tuple[str, ...]
) -> None:
    done = run("--backend", backend, *flags, "--", "sh", "-c", "rm -rf ./*; exit 4")
    assert done.code == 4, done.err
    assert "deleted   README.md" in done.err
    assert (repo / "README.md").exists()
    assert machines(tools["sbx"]) == {}


def test_docker_must_be_allowed_to_work_in_place(tools: dict[str, str], repo: Path) -> None:
    for flags in ((), ("--discard",)):
        done = run("--backend", "docker", *flags, "--", "rm", "README.md")
        assert_clear(done, 2, "docker works in place", "--keep")
    assert fake_calls(tools["docker"]) == []
    assert (repo / "README.md").exists()


@pytest.mark.parametrize("backend", TOOLS)
def test_hosts_are_passed_on(tools: dict[str, str], repo: Path, backend: str) -> None:
    done = run("--backend", backend, "--network", "pypi.org", "--keep", "--", "true")
    assert done.code == 0, done.err
    assert "network pypi.org" in done.err
    calls = [" ".join(call) for call in fake_calls(tools[backend])]
    assert backend == "srt" or any("pypi.org" in call for call in calls)


@pytest.mark.parametrize("backend", TOOLS)
def test_a_program_that_is_not_there(tools: dict[str, str], repo: Path, backend: str) -> None:
    """Settled: "command not found 127"."""
    done = run("--backend", backend, "--keep", "--", "nosuchprogram")
    assert done.code == 127
    assert "nosuchprogram: not found in the sandbox" in done.err


def test_srt_calls_named_hosts_only(tools: dict[str, str], repo: Path) -> None:
    done = run("--backend", "srt", "--network", "on", "--keep", "--", "true")
    assert_clear(done, 2, "srt lets nobody call everybody", "--network HOST")


def test_probe_with_the_tools(tools: dict[str, str], repo: Path) -> None:
    """Every backend with a reason, tried where that is quick."""
    found = json.loads(ralph("sandbox", "probe", "--json").out)
    rows = {row["name"]: row for row in found["backends"]}
    properties = {
        name: [rows[name][k] for k in ("contain", "rollback", "egress")] for name in TOOLS
    }
    assert properties == {
        "srt": [True, True, True],
        "sbx": [True, True, True],
        "docker": [True, False, True],
    }
    assert all(row["usable"] and row["why"] for row in rows.values())
    assert found["chosen"] == "overlay"


def test_probe_without_the_tools(repo: Path) -> None:
    found = json.loads(ralph("sandbox", "probe", "--json").out)
    rows = {row["name"]: row for row in found["backends"]}
    assert [rows[name]["usable"] for name in TOOLS] == [False] * 3
    assert "npm install" in rows["srt"]["why"]
    assert "not installed" in rows["sbx"]["why"]


@pytest.mark.parametrize("backend", TOOLS)
def test_on_a_terminal(tools: dict[str, str], repo: Path, backend: str) -> None:
    """The command has a terminal, of which it is told the size."""
    script = "test -t 0 && test -t 1 && stty size && echo 1 > new"
    words = ["sandbox", "run", "--backend", backend, "--keep", "--", "sh", "-c", script]
    child = pexpect.spawn(RALPH[0], [*RALPH[1:], *words], dimensions=(33, 77), timeout=30)
    child.logfile_read = sys.stdout.buffer
    child.expect("33 77")
    child.expect("Kept 1 change")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_a_killed_ralph_leaves_a_machine_that_is_used_again(
    tools: dict[str, str], repo: Path
) -> None:
    """Killed half-way: nothing is in the project, and the next run needs no new machine."""
    script = "echo junk > junk; sleep 600"
    running = Running(
        repo, "sandbox", "run", "--backend", "sbx", "--keep", "--", "sh", "-c", script
    )
    running.await_that(lambda: any("sleep 600" in call[-1] for call in fake_calls(tools["sbx"])))
    running.send(signal.SIGKILL)
    running.end()
    done = run("--backend", "sbx", "--keep", "--", "sh", "-c", "ls; echo 1 > new")
    assert (done.code, done.out) == (0, "README.md\n"), done.err
    assert [call[0] for call in fake_calls(tools["sbx"])].count("create") == 1
    assert sorted(os.listdir(repo)) == [".git", "README.md", "new"]
