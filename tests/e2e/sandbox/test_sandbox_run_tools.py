"""`ralph run --sandbox` with srt, sbx and docker, on fakes of these tools (R §3)."""

import json
import os
from pathlib import Path

import pytest
from prd_support import commit_all, story, write_stories
from run_support import assert_clear, program, ralph

from kits.sandbox.stage import overlay_is_usable
from kits.sandbox.tools import fake_calls, install_fake

pytestmark = [
    pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces"),
    pytest.mark.slow,
]

SAYS = '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}'
AGENT = f"""\
case "$*" in *"previous iteration failed"*) ;; *) rm README.md; exit 1;; esac
echo hello > hello.txt
echo '{SAYS % "<response>DONE</response>"}'
echo '{{"type":"result","subtype":"success","is_error":false}}'
"""


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The tools on PATH, a machine's claude, and one of this machine."""
    directory = str(tmp_path / "fakes")
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RALPH_SANDBOX_SETTLE", "0")
    paths = {kind: install_fake(directory, kind, agent=AGENT) for kind in ("srt", "sbx", "docker")}
    program(Path(directory) / "claude", AGENT)
    return paths


@pytest.mark.parametrize(("backend", "undone"), [("srt", True), ("sbx", True), ("docker", False)])
def test_a_run_of_claude(fakes: dict[str, str], repo: Path, backend: str, undone: bool) -> None:
    """A failed turn is undone by what can undo; guardrails run in there too."""
    settings = {"agent": {"command": "claude", "probe": False}, "sandbox": backend}
    rails = {"guardrails": [{"command": "grep -q hello hello.txt"}]}
    (repo / ".ralph").mkdir(exist_ok=True)
    (repo / ".ralph" / "settings.json").write_text(json.dumps({**settings, **rails}))
    done = ralph("run", "-p", "Say hello.", "-m", "3")
    assert done.code == 0, done.err
    assert f"Sandbox: {backend} (contain" in done.err
    assert (repo / "hello.txt").read_text() == "hello\n"
    assert (repo / "README.md").exists() is undone
    assert ("thrown away" in done.err) is undone
    if backend != "srt":
        agents = [call for call in fake_calls(fakes[backend]) if "-p" in call]
        assert [call[0] if backend == "sbx" else call[1] for call in agents] == ["run", "run"]


WORKS = f"""\
echo x >> work.txt
git add work.txt
git -c user.name=x -c user.email=x@y commit -qm Work
echo '{SAYS % "Done."}'
echo '{{"type":"result","subtype":"success","is_error":false}}'
"""


@pytest.mark.parametrize("backend", ["sbx", "docker"])
def test_a_machine_has_no_hooks_and_stays_awake(
    fakes: dict[str, str], repo: Path, backend: str
) -> None:
    """Issue: "A docker or sbx machine gets hooks it can run (no host paths), or none and says so;
    it is restarted only when the host changed files"."""
    install_fake(os.path.dirname(fakes[backend]), backend, agent=WORKS)
    write_stories(repo, story(1))
    commit_all(repo)
    done = ralph("prd", "run", "--agent", "claude", f"--sandbox={backend}", "-n", "3")
    assert done.code in (1, 4), "nothing is committed"
    said = f"No hooks in {backend}, a machine without this Ralph: turns are judged when they end"
    assert done.err.index(said) < done.err.index("Iteration 1")
    calls = [call[backend == "docker" :] for call in fake_calls(fakes[backend])]
    turns = [call for call in calls if "-p" in call]
    assert len(turns) == 3
    for call in turns:
        assert "--settings" not in call
        assert call.count("--dangerously-skip-permissions") == 1
    life = [call[0] for call in calls if call[0] in ("create", "run", "stop", "rm")]
    assert life == ["create", "run", "run", "run", "stop"]


@pytest.mark.parametrize("backend", ["sbx", "docker"])
def test_our_own_agent_cannot_work_on_a_machine_without_this_ralph(
    fakes: dict[str, str], repo: Path, backend: str
) -> None:
    environ = {"ANTHROPIC_API_KEY": "dummy-0123456789"}
    words = ("run", "-p", "x", "--agent", "builtin", "--sandbox", backend)
    done = ralph(*words, env=environ)
    said = f"ralph-agent cannot work in {backend}, a machine without this Ralph"
    assert_clear(done, 2, said, "Take another sandbox (ralph sandbox probe)")
    assert not [call for call in fake_calls(fakes[backend]) if "-p" in call]
