"""`srt`: what it is told, over which tree, and what a killed one leaves."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from fake_support import Fake, fake, policy_now
from sandbox_support import needs_overlay

from ralph.errors import ConfigError
from ralph.sandbox import catalog
from ralph.sandbox.backends import srt
from ralph.sandbox.changes.commit import Commit
from ralph.sandbox.interface import Capabilities
from ralph.sandbox.names import BACKENDS

pytestmark = needs_overlay  # the fake is made of namespaces


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    return fake(tmp_path, monkeypatch, "srt")


def rules(box: srt.Srt) -> dict[str, dict[str, list[str]]]:
    with open(box._settings, encoding="utf-8") as file:
        found: dict[str, dict[str, list[str]]] = json.load(file)
    return found


def test_what_srt_is_told(tool: Fake, repo: Path) -> None:
    """Only the clone and a temporary directory are written, only allowed hosts called."""
    with srt.open(str(repo), policy_now("pypi.org", "*.npmjs.org:443")) as box:
        done = box.bash("exit 7")
        state = os.path.realpath(os.environ["RALPH_STATE_DIR"])
        temporary = os.path.join(os.path.dirname(box.project), "tmp")
        found = rules(box)
        assert found["network"]["allowedDomains"] == ["pypi.org", "*.npmjs.org:443"]
        files = found["filesystem"]
        assert files["allowWrite"] == [box.project, temporary]
        assert {"/tmp", "/var/tmp", state} <= set(files["denyRead"])
        assert str(repo / ".git" / "objects") in files["allowRead"]
        assert str(repo) not in files["allowRead"]
        assert files["denyWrite"] == ["/tmp/claude"]
        settings = box._settings
    assert done.code == 7
    (call,) = tool.calls()
    words = call.split()
    assert words[:3] == ["-s", settings, "--"]
    assert words[3].endswith("bash")
    assert words[4:] == ["-c", "exit", "7"]
    assert not os.path.exists(settings)


def test_commits_stay_in_the_clone(tool: Fake, repo: Path) -> None:
    """What is done to .git in there does not reach the project's own."""
    before = sorted(str(path) for path in (repo / ".git").rglob("*"))
    with srt.open(str(repo), policy_now()) as box:
        script = "echo 1 > new; git add -A && git commit -qm Work"
        assert box.bash(script).code == 0
        assert b"Work" in box.git("log", "--oneline").output
        assert box.git("status", "--porcelain").output == b""
        assert [change.path for change in box.changes()] == ["new"]
        assert box.commit().applied == ("new",)
    assert sorted(str(path) for path in (repo / ".git").rglob("*")) == before
    assert (repo / "new").read_text() == "1\n"


def test_what_cannot_be_kept_is_saved(
    tool: Fake, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input: "state directory full"; the clone is left then."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Commit, "write", full)
    with srt.open(str(repo), policy_now()) as box:
        box.bash("echo 1 > new")
        with pytest.raises(OSError, match="No space"):
            box.commit()
        saved = box.rescue().removeprefix("What was changed is in ")
    assert (Path(saved) / "new").read_text() == "1\n"


def test_what_a_killed_srt_leaves_is_no_change(tool: Fake, repo: Path) -> None:
    """srt puts empty files into the tree, and takes them away unless it is killed."""
    with srt.open(str(repo), policy_now()) as box:
        for name in (".bashrc", ".claude/commands"):
            Path(box.project, name).touch()
        assert box.changes() == ()
        Path(box.project, ".claude/settings.json").write_text("{}")
        Path(box.project, ".mcp.json").write_text("{}")
        found = [change.path for change in box.changes()]
    assert found == [".claude", ".claude/settings.json", ".mcp.json"]


def test_what_is_not_committed_is_in_the_clone(tool: Fake, repo: Path) -> None:
    (repo / "README.md").unlink()
    (repo / "new").write_text("new\n")
    with srt.open(str(repo), policy_now()) as box:
        assert box.bash("cat new; ls README.md").output == b"new\n"
        assert box.changes() == ()


def test_a_program_that_is_not_there_or_no_program(tool: Fake, repo: Path) -> None:
    (repo / "text").write_text("no program")
    with srt.open(str(repo), policy_now()) as box:
        with pytest.raises(FileNotFoundError):
            box.spawn(["nosuchprogram"])
        with pytest.raises(PermissionError):
            box.spawn(["./text"])
    assert tool.calls() == []


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("no tool", "not installed: npm install -g @anthropic-ai/sandbox-runtime"),
        ("no git", "not a git repository"),
        ("everybody", "srt lets nobody call everybody"),
    ],
)
def test_what_cannot_be(tool: Fake, repo: Path, trouble: str, said: str) -> None:
    project = repo.parent if trouble == "no git" else repo
    if trouble == "no tool":
        os.unlink(tool.path)
    with pytest.raises(ConfigError, match=said):
        srt.open(str(project), policy_now(everybody=trouble == "everybody"))
    if trouble != "everybody":
        can = srt.probe(str(project), policy_now())
        assert not can.usable
        assert said in can.why


def test_a_path_that_srt_would_take_for_a_pattern(
    tool: Fake, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, sockets = repo.parent / "a[b]", repo.parent / "sockets"
    repo.rename(odd)
    sockets.mkdir()
    monkeypatch.setattr(srt, "_TEMPORARY", str(sockets))
    with pytest.raises(ConfigError, match="for a pattern"):
        srt.open(str(odd), policy_now())
    assert list(Path(os.environ["RALPH_STATE_DIR"]).rglob("tree")) == []
    assert list(sockets.iterdir()) == []


def test_the_probe_tries_it(tool: Fake, repo: Path) -> None:
    """A live probe: "write a file, see it in the layer, host clean, network shut"."""
    can = srt.probe(str(repo), policy_now())
    assert (can.usable, can.contain, can.rollback, can.egress) == (True,) * 4
    assert len(tool.calls()) == 1
    assert subprocess.run(["git", "status", "--porcelain"], cwd=repo, check=True).returncode == 0


@pytest.mark.parametrize("lie", ["exec shift", "runs outside"])
def test_the_probe_sees_an_srt_that_does_nothing(tool: Fake, repo: Path, lie: str) -> None:
    """Not by `which`: one that only runs the command contains nothing, and is not usable."""
    text = {
        "exec shift": '#!/bin/sh\nshift 3\nexec "$@"\n',
        "runs outside": "#!/bin/sh\nexit 0\n",
    }
    Path(tool.path).write_text(text[lie])
    can = srt.probe(str(repo), policy_now())
    assert not can.usable
    assert "a trial failed" in can.why


ABLE, UNABLE = Capabilities(True, True, True, "x"), Capabilities(False, False, False, "x", False)


@pytest.mark.parametrize(
    ("usable", "taken"),
    [
        ({"overlay", "srt", "worktree", "sbx", "docker", "direct"}, "overlay"),
        ({"srt", "worktree", "sbx"}, "srt"),
        ({"worktree", "sbx", "direct"}, "worktree"),
        ({"sbx", "docker", "direct"}, None),
    ],
)
def test_the_order_of_auto(usable: set[str], taken: str | None) -> None:
    """`auto`: "overlay, else srt with git, else worktree, else refuse"."""
    found = tuple(catalog.Probed(n, ABLE if n in usable else UNABLE) for n in BACKENDS)
    assert catalog.chosen(found) == taken


def test_what_a_killed_ralph_left_is_tidied_up(
    tool: Fake, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(srt, "_TEMPORARY", str(tmp_path))
    left = tmp_path / "ralph-srt-left"
    left.mkdir()
    with srt.open(str(repo), policy_now()) as first:
        assert not left.exists()
        with srt.open(str(repo), policy_now()):
            assert os.path.isdir(first._sockets.path)
    assert list(tmp_path.glob("ralph-srt-*")) == []
