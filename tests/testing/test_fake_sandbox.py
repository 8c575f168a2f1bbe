"""The fakes of sandbox tools refuse what the real ones do not know, and keep their sandboxes."""

import json
import subprocess
from pathlib import Path

import pytest

from kits.sandbox.stage import overlay_is_usable
from kits.sandbox.tools import fake_calls, install_fake, machines

pytestmark = pytest.mark.slow

USABLE = overlay_is_usable()
needs_namespaces = pytest.mark.skipif(not USABLE, reason="this machine allows no namespaces")


def call(path: str, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [path, *line.split()], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("sbx", ""),
        ("sbx", "fly"),
        ("sbx", "ls --all"),
        ("sbx", "ls --json more"),
        ("sbx", "create --quiet --name a_b --clone claude DIR"),  # no `_` in names
        ("sbx", "create --quiet --name ab --clone codex DIR"),
        ("sbx", "create --quiet --name ab --clone claude"),
        ("sbx", "create claude DIR --name ab"),
        ("sbx", "exec --privileged n true"),
        ("sbx", "exec -w"),
        ("sbx", "run --name n -p x"),
        ("sbx", "policy allow net --sandbox n h"),
        ("docker", "sandbox create --clone --name ab claude DIR"),
        ("docker", "sandbox rm --force ab"),
        ("docker", "sandbox network proxy"),
        ("srt", "true"),
        ("srt", "-s settings true"),
        ("srt", "--settings x -- true"),
        ("srt", "-s x --"),
    ],
)
def test_what_the_tool_does_not_know_is_refused(
    tmp_path: Path, repo: Path, kind: str, line: str
) -> None:
    """ "refuses unknown subcommands/flags/orders with exit 2"."""
    path = install_fake(str(tmp_path / "bin"), kind)
    line = line.replace("DIR", str(repo))
    done = call(path, line)
    assert done.returncode in ((1, 2) if "rm --force" in line else (2,)), done.stderr
    assert fake_calls(path) == [line.split()]
    assert machines(path) == {}


@pytest.mark.parametrize(
    ("kind", "line", "said"),
    [
        ("sbx", "exec nobody true", "no sandbox named 'nobody'"),
        ("sbx", "policy deny network --sandbox nobody **", "no sandbox named"),
        ("sbx", "create --name ab --clone claude /nowhere", "Git worktree"),
        ("docker", "compose up", "unknown command"),
        ("docker", "sandbox stop nobody", "no sandbox named"),
        ("srt", "-s /nowhere -- true", "/nowhere"),
    ],
)
def test_what_cannot_be_done_fails(tmp_path: Path, kind: str, line: str, said: str) -> None:
    done = call(install_fake(str(tmp_path / "bin"), kind), line)
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    "rules",
    [
        "{}",
        "torn",
        '{"network": {"allowedDomains": [], "deniedDomains": []}}',
        (
            '{"network": {"allowedDomains": ["*"], "deniedDomains": []}, "filesystem": '
            '{"denyRead": [], "allowRead": [], "allowWrite": [], "denyWrite": []}}'
        ),
    ],
)
def test_srt_checks_its_settings(tmp_path: Path, rules: str) -> None:
    (tmp_path / "rules.json").write_text(rules)
    path = install_fake(str(tmp_path / "bin"), "srt")
    assert call(path, f"-s {tmp_path / 'rules.json'} -- true").returncode == 1


@needs_namespaces
def test_a_sandbox_is_kept_between_calls(tmp_path: Path, repo: Path) -> None:
    path = install_fake(str(tmp_path / "bin"), "docker")
    create = f"sandbox create --name a_b claude {repo}"
    assert call(path, create).returncode == 0
    assert "already exists" in call(path, create).stderr
    assert call(path, f"sandbox exec -w {repo} a_b touch new").returncode == 0
    assert (repo / "new").exists()
    rows = json.loads(call(path, "sandbox ls --json").stdout)["vms"]
    assert [(row["name"], row["status"]) for row in rows] == [("a_b", "running")]
    assert call(path, "sandbox stop a_b").returncode == 0
    assert "not running" in call(path, "sandbox exec a_b true").stderr
    assert call(path, "sandbox run a_b -- --version").returncode == 0
    assert call(path, "sandbox exec a_b nosuchprogram").returncode == 127
    assert call(path, "sandbox rm a_b").returncode == 0
    assert machines(path) == {}


@needs_namespaces
def test_stop_ends_what_runs(tmp_path: Path, repo: Path) -> None:
    path = install_fake(str(tmp_path / "bin"), "sbx")
    assert call(path, f"create --quiet --name ab --clone claude {repo}").returncode == 0
    script = "echo $$; exec sleep 600"
    words = [path, "exec", "ab", "sh", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert call(path, "stop ab").returncode == 0
        assert child.wait() == 128 + 9
