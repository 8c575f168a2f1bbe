"""`sbx`: what is typed, in which order, and what happens when that fails (R §3, §4)."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from fake_support import Fake, fake, policy_now
from sandbox_support import needs_overlay

from ralph.errors import ConfigError
from ralph.kernel.value import replace
from ralph.sandbox.backends import sbx
from ralph.sandbox.backends.guest import encoded
from ralph.sandbox.backends.machine import name_of
from ralph.sandbox.interface import SandboxPolicy

pytestmark = [needs_overlay, pytest.mark.slow]  # the fake's machines are made of namespaces


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    return fake(tmp_path, monkeypatch, "sbx")


def words(project: Path, *lines: str) -> list[str]:
    """Lines with NAME, DIR and STATE filled in."""
    state = os.path.join(os.environ["HOME"], ".dclaude_state")
    named = {"NAME": name_of(str(project), "-"), "DIR": str(project), "STATE": state}
    for key, text in named.items():
        lines = tuple(line.replace(key, text) for line in lines)
    return list(lines)


CREATED = (
    "ls --json",
    "create --quiet --name NAME --clone claude DIR STATE",
    "policy deny network --sandbox NAME **",
    "exec -u root NAME bash -c SETUP setup.sh STATE",
)
LOOK = "exec -u root -w DIR NAME sh -c GUEST guest look"
PACK = "exec -i -u root -w DIR NAME sh -c GUEST guest pack"
HAS = "exec -w DIR NAME sh -c GUEST guest has YmFzaA=="
BASH = "exec -e RALPH_RUN=7 -e RALPH_SANDBOX=sbx -w DIR NAME bash -c"


def head(repo: Path) -> bytes:
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=repo).strip()


def with_run(policy: SandboxPolicy) -> SandboxPolicy:
    return replace(policy, environ={**policy.environ, "RALPH_RUN": "7"})


def test_a_machine_stays_awake_as_long_as_more_follows(tool: Fake, repo: Path) -> None:
    """Issue: "it is restarted only when the host changed files": here these are brought in."""
    given = replace(policy_now(), awake=True)
    for number in (1, 2):
        (repo / "shared").write_text(f"{number}\n")
        with sbx.open(str(repo), given) as box:
            assert box.fs.read("shared") == f"{number}\n".encode()
            box.bash(f"echo {number} > new")
            assert box.commit().applied == ("new",)
    made = [call for call in tool.fresh_calls() if call.split()[0] in ("create", "stop", "rm")]
    assert [call.split()[0] for call in made] == ["create"]
    box.rest()
    assert tool.calls() == words(repo, "stop NAME")


def test_what_runs_on_in_it_is_ended(tool: Fake, repo: Path) -> None:
    given = replace(policy_now(), awake=True)
    with sbx.open(str(repo), given) as box:
        (line,) = words(repo, "exec NAME sh -c")  # not by Ralph, whose keeper sees it here
        subprocess.run([tool.path, *line.split(), "sleep 600 > /dev/null 2>&1 &"], check=True)
        box.bash("echo > new")
        assert box.commit().applied == ("new",)
    assert words(repo, "stop NAME")[0] in tool.calls()


def test_what_is_typed_when_it_is_kept(tool: Fake, repo: Path) -> None:
    """R: "create + exec + run pattern"; every argument of it."""
    with sbx.open(str(repo), with_run(policy_now())) as box:
        assert box.bash("echo 1 > new; exit 3").code == 3
        assert [change.path for change in box.changes()] == ["new"]
        assert box.commit().applied == ("new",)
    assert (repo / "new").read_text() == "1\n"
    assert tool.calls() == words(
        repo,
        *CREATED,
        LOOK,
        HAS,
        f"{BASH} echo 1 > new; exit 3",
        LOOK,
        PACK,
        "stop NAME",
        LOOK,
        PACK,
        "stop NAME",
    )
    (facts,) = tool.machines().values()
    assert facts["status"] == "stopped"


@pytest.mark.parametrize("how", ["discard", "close"])
def test_what_is_not_kept_goes_with_the_machine(tool: Fake, repo: Path, how: str) -> None:
    """Sandbox: "what was not committed is then gone"; `rm` at discard."""
    box = sbx.open(str(repo), with_run(policy_now()))
    box.bash("rm -rf ./*")
    getattr(box, how)()
    assert (repo / "README.md").exists()
    assert tool.calls()[-1:] == words(repo, "rm --force NAME")
    assert tool.machines() == {}


def test_the_agent_is_run_by_run(tool: Fake, repo: Path) -> None:
    """R: "Every iteration: run NAME -- -p PROMPT"."""
    tool.plays('cat ~/.claude.json; echo "$2" > said; exit 5')
    output = bytearray()
    with sbx.open(str(repo), policy_now()) as box:
        ended = box.spawn(["claude", "-p", "Do it; $(id)"], output.extend).wait(lambda: None)
        assert (ended.code, bytes(output)) == (5, b"{}\n")
        assert box.fs.read("said") == b"Do it; $(id)\n"
    assert words(repo, "run --name NAME -- -p Do it; $(id)")[0] in tool.calls()


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        ({}, "policy deny network --sandbox NAME **"),
        ({"everybody": True}, "policy allow network --sandbox NAME **"),
        (
            {"hosts": ("pypi.org:443", "*.npmjs.org")},
            "policy allow network --sandbox NAME pypi.org:443,*.npmjs.org",
        ),
    ],
)
def test_whom_it_may_call(tool: Fake, repo: Path, policy: dict[str, object], line: str) -> None:
    hosts = policy.get("hosts", ())
    assert isinstance(hosts, tuple)
    sbx.open(str(repo), policy_now(*hosts, everybody=bool(policy.get("everybody")))).close()
    assert [call for call in tool.calls() if call.startswith("policy")] == words(repo, line)


def test_what_is_not_committed_is_brought_along(tool: Fake, repo: Path) -> None:
    """A clone has only what was committed; Ralph brings the rest, but for ignored files."""
    (repo / "README.md").unlink()
    (repo / "new").write_text("new\n")
    (repo / "é\n").symlink_to("new")
    (repo / ".gitignore").write_text("ignored\n")
    (repo / "ignored").write_text("x")
    with sbx.open(str(repo), policy_now()) as box:
        assert set(box.fs.list()) == {".git", ".gitignore", "new", "é\n"}
        assert box.changes() == ()
        box.bash("echo more >> new")
        assert box.commit().applied == ("new",)
    assert (repo / "new").read_text() == "new\nmore\n"


def left_behind(repo: Path) -> None:
    """A ralph that was killed: nobody closed its sandbox."""
    box = sbx.open(str(repo), policy_now())
    box.bash("echo junk > junk; echo junk > README.md")
    box._ours.release()
    box._keeper.close()


def test_a_machine_that_was_left_is_used_again(tool: Fake, repo: Path) -> None:
    """Killed half-way: it is used the next time, without what was done in it."""
    left_behind(repo)
    tool.fresh_calls()
    with sbx.open(str(repo), policy_now()) as box:
        assert set(box.fs.list()) == {".git", "README.md"}
        assert box.fs.read("README.md") != b"junk\n"
    calls = tool.calls()
    expected = (
        "ls --json",
        "stop NAME",
        f"exec -w DIR NAME sh -c GUEST guest reset {encoded(head(repo))}",
        "exec -u root NAME bash -c SETUP setup.sh STATE",
    )
    assert calls[:4] == words(repo, *expected)
    assert not [call for call in calls if call.startswith("create")]


@pytest.mark.parametrize("why", ["another commit", "another network"])
def test_a_machine_that_will_not_do_is_made_anew(tool: Fake, repo: Path, why: str) -> None:
    left_behind(repo)
    if why == "another commit":
        commit = ["git", "commit", "--quiet", "--allow-empty", "--message", "Next"]
        subprocess.run(commit, cwd=repo, check=True)
    policy = policy_now(*(["pypi.org"] if why == "another network" else []))
    tool.fresh_calls()
    sbx.open(str(repo), policy).close()
    verbs = [call.split()[0] for call in tool.calls()]
    assert [verb for verb in verbs if verb in ("ls", "rm", "create")] == [
        "ls",
        "rm",
        "create",
        "rm",
    ]


def test_a_sandbox_of_somebody_else_is_not_touched(tool: Fake, repo: Path) -> None:
    """Name exists already."""
    (line,) = words(repo, "create --name NAME --clone claude DIR")
    subprocess.run([tool.path, *line.split()], check=True)
    with pytest.raises(ConfigError, match="did not make") as caught:
        sbx.open(str(repo), policy_now())
    assert caught.value.remedy == words(repo, "Type: sbx rm NAME")[0]
    assert len(tool.machines()) == 1


def test_one_ralph_at_a_time(tool: Fake, repo: Path) -> None:
    with sbx.open(str(repo), policy_now()), pytest.raises(ConfigError, match="another ralph uses"):
        sbx.open(str(repo), policy_now())
    sbx.open(str(repo), policy_now()).close()


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({"daemon": ""}, "list its sandboxes: ERROR: Cannot connect to the daemon"),
        ({"create": "pull access denied"}, "make a sandbox: ERROR: pull access denied"),
        ({"policy": "not signed in"}, "set the rules of a sandbox: ERROR: not signed in"),
        ({"exec": "no hypervisor"}, "prepare the sandbox: ERROR: no hypervisor"),
    ],
)
def test_failures_are_told(tool: Fake, repo: Path, trouble: dict[str, str], said: str) -> None:
    """Failure ways: daemon not running, create fails, exec fails."""
    tool.troubled(**trouble)
    with pytest.raises(ConfigError) as caught:
        sbx.open(str(repo), policy_now())
    assert caught.value.message == f"sbx cannot {said}" + (
        ". Is it running?" if "daemon" in trouble else ""
    )
    assert caught.value.remedy.startswith("See: sbx ")
    tool.troubled()
    sbx.open(str(repo), policy_now()).close()  # nothing is in the way the next time


def test_a_machine_that_cannot_be_removed_is_told(tool: Fake, repo: Path) -> None:
    box = sbx.open(str(repo), policy_now())
    tool.troubled(rm="busy")
    with pytest.raises(ConfigError, match="sbx cannot remove the sandbox: ERROR: busy"):
        box.close()
    assert os.listdir(repo / ".git")


def test_the_project_deleted_in_it(tool: Fake, repo: Path) -> None:
    """The worst that a command can do is still undone by `discard`."""
    with sbx.open(str(repo), policy_now()) as box:
        box.bash("rm -rf ./* .git; find . -mindepth 1 -delete")
        box.discard()
    assert (repo / "README.md").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("no tool", "not installed"),
        ("no daemon", "sbx does not answer: ERROR: Cannot connect to the daemon"),
        ("no git", "not a git repository"),
        ("worktree", "a git worktree cannot be cloned"),
    ],
)
def test_the_probe_says_what_is_missing(
    tool: Fake, repo: Path, monkeypatch: pytest.MonkeyPatch, change: str, why: str
) -> None:
    project = repo
    if change == "no tool":
        os.unlink(tool.path)
    elif change == "no daemon":
        tool.troubled(daemon="")
    elif change == "no git":
        project = repo.parent
    else:
        project = repo.parent / "linked"
        subprocess.run(["git", "worktree", "add", "-q", str(project)], cwd=repo, check=True)
    can = sbx.probe(str(project), policy_now())
    assert (can.usable, can.contain, can.rollback, can.egress) == (False,) * 4
    assert why in can.why


def test_the_probe_starts_no_machine(tool: Fake, repo: Path) -> None:
    can = sbx.probe(str(repo), policy_now())
    assert (can.usable, can.contain, can.rollback, can.egress) == (True,) * 4
    assert "no virtual machine was started" in can.why
    assert tool.calls() == ["ls --json"]


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ('{"sandboxes": [{"name": "a", "id": "1"}, {"name": "b"}]}', {"a", "b"}),
        ('Starting the daemon...\n{"sandboxes": null}', set()),
        ('[{"name": "a"}, {}]', {"a"}),
        ("", set()),
    ],
)
def test_lists_of_several_versions_are_understood(output: str, names: set[str]) -> None:
    assert sbx.listed(output.encode()) == names


def test_a_list_that_is_none(tool: Fake) -> None:
    with pytest.raises(ConfigError, match="no JSON"):
        sbx.listed(b"{ torn")


def test_the_login_outlives_the_machine(tool: Fake, repo: Path) -> None:
    """R: "credentials persist across sandbox destruction"; `{}`, not an empty file."""
    state = Path(os.environ["HOME"]) / ".dclaude_state"
    state.mkdir()
    (state / ".claude.json").touch()
    with sbx.open(str(repo), policy_now()) as box:
        assert json.loads((state / ".claude.json").read_text()) == {}
        box.bash("echo '{\"a\": 1}' > ~/.claude.json; echo key > ~/.claude/key")
    with sbx.open(str(repo), policy_now()) as box:
        assert box.bash("cat ~/.claude.json ~/.claude/key").output == b'{"a": 1}\nkey\n'
