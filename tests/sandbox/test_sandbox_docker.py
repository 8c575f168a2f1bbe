"""`docker sandbox`: what is typed and in which order, how files are synced, failures (R §3, §4)."""

import os
import subprocess
from pathlib import Path

import pytest
from fake_support import Fake, fake, policy_now
from sandbox_support import needs_overlay, tree

from ralph.errors import ConfigError
from ralph.kernel.value import replace
from ralph.sandbox.backends import docker
from ralph.sandbox.backends.machine import name_of
from ralph.sandbox.interface import ChangeKind, SandboxPolicy

pytestmark = [needs_overlay, pytest.mark.slow]  # the fake's machines are made of namespaces


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    return fake(tmp_path, monkeypatch, "docker")


def words(project: Path, *lines: str) -> list[str]:
    """Lines with NAME, DIR and STATE filled in."""
    state = os.path.join(os.environ["HOME"], ".dclaude_state")
    named = {"NAME": name_of(str(project), "_"), "DIR": str(project), "STATE": state}
    for key, text in named.items():
        lines = tuple(line.replace(key, text) for line in lines)
    return [f"sandbox {line}" for line in lines]


SETUP = "exec -u root NAME bash -c SETUP setup.sh STATE"
LOOK = "exec -u root -w DIR NAME sh -c GUEST guest look-all"
PACK = "exec -i -u root -w DIR NAME sh -c GUEST guest pack"


def test_what_is_typed(tool: Fake, repo: Path) -> None:
    """R: "create + exec + run pattern"; every argument of it."""
    tool.plays("echo 2 > by-the-agent")
    with docker.open(str(repo), policy_now()) as box:
        assert box.bash("echo 1 > new; exit 3").code == 3
        assert box.spawn(["claude", "-p", "Go"]).wait(lambda: None).code == 0
        assert [change.path for change in box.changes()] == ["by-the-agent", "new"]
    assert (repo / "new").read_text() == "1\n"
    assert tool.calls() == words(
        repo,
        "version",
        "ls --json",
        "create --name NAME claude DIR STATE",
        "network proxy NAME --policy deny",
        SETUP,
        LOOK,
        "exec -w DIR NAME sh -c GUEST guest has YmFzaA==",
        "exec -e RALPH_SANDBOX=docker -w DIR NAME bash -c echo 1 > new; exit 3",
        "run NAME -- -p Go",
        LOOK,
        PACK,
        "stop NAME",
    )
    (facts,) = tool.machines().values()
    assert facts["status"] == "stopped"


@pytest.mark.parametrize(
    ("hosts", "everybody", "line"),
    [
        ((), False, "network proxy NAME --policy deny"),
        ((), True, "network proxy NAME --policy allow"),
        (
            ("pypi.org", "a.b:443"),
            False,
            "network proxy NAME --policy deny --allow-host pypi.org --allow-host a.b:443",
        ),
    ],
)
def test_whom_it_may_call(
    tool: Fake, repo: Path, hosts: tuple[str, ...], everybody: bool, line: str
) -> None:
    docker.open(str(repo), policy_now(*hosts, everybody=everybody)).close()
    assert tool.calls()[3] == words(repo, line)[0]


def test_edits_made_in_a_pause_are_seen_only_after_a_restart(tool: Fake, repo: Path) -> None:
    """R: "host-side overwrites of that file are permanently ignored"; "`stop` + restart"."""
    (repo / "shared").write_text("old\n")
    with docker.open(str(repo), policy_now()) as box:
        (repo / "shared").write_text("by a person\n")
        assert box.fs.read("shared") == b"old\n"
        tool.fresh_calls()
        docker.look_again(box._guest)
        assert tool.calls() == words(repo, "stop NAME", "run NAME -- --version")
        assert box.fs.read("shared") == b"by a person\n"


def test_what_was_edited_between_two_runs_is_seen(tool: Fake, repo: Path) -> None:
    """R: "the sandbox itself persists across iterations"; "Resume after pause"."""
    (repo / "shared").write_text("old\n")
    docker.open(str(repo), policy_now()).close()
    (repo / "shared").write_text("by a person\n")
    tool.fresh_calls()
    with docker.open(str(repo), policy_now()) as box:
        assert box.fs.read("shared") == b"by a person\n"
    expected = ("version", "ls --json", "stop NAME", "run NAME -- --version", SETUP, LOOK)
    assert tool.calls()[:6] == words(repo, *expected)


def verbs(calls: list[str]) -> list[str]:
    """What stops and starts a machine, or makes one."""
    wanted = ("create", "stop", "run", "rm")
    return [verb for call in calls if (verb := call.split()[1]) in wanted]


def awake() -> SandboxPolicy:
    """As a run has it, in which more follows."""
    return replace(policy_now(), awake=True)


RECORDS = (".ralph/guardrail.log", ".ralph-active", ".git/refs/ralph/1", ".git/objects/ab/cd")


def test_a_machine_is_restarted_only_when_the_host_changed_files(tool: Fake, repo: Path) -> None:
    """Issue: "it is restarted only when the host changed files"."""
    (repo / "shared").write_text("old\n")
    with docker.open(str(repo), awake()) as box:
        box.bash("echo 1 > new; git add new; git -c user.name=x -c user.email=x@y commit -qm x")
    tool.fresh_calls()
    for name in RECORDS:
        tree(repo, **{name.replace("/", "__"): "x\n"})
    with docker.open(str(repo), awake()) as box:
        assert box.fs.read("new") == b"1\n"
    assert verbs(tool.fresh_calls()) == []
    (repo / "shared").write_text("by a person\n")
    with docker.open(str(repo), awake()) as box:
        assert box.fs.read("shared") == b"by a person\n"
    assert verbs(tool.fresh_calls()) == ["stop", "run"]
    for words in ("add --all", "-c user.name=x -c user.email=x@y commit --quiet --message y"):
        subprocess.run(["git", *words.split()], cwd=repo, check=True)
    with docker.open(str(repo), awake()) as box:
        assert box.git("log", "-1", "--format=%s").output == b"y\n"
    assert verbs(tool.fresh_calls()) == ["stop", "run"]
    box.rest()
    box.rest()
    assert verbs(tool.fresh_calls()) == ["stop"]
    (facts,) = tool.machines().values()
    assert facts["status"] == "stopped"


def test_what_runs_on_in_it_is_ended(tool: Fake, repo: Path) -> None:
    """Nothing outlives a turn, which only a stop can see to."""
    with docker.open(str(repo), awake()):
        (line,) = words(repo, "exec NAME sh -c")  # not by Ralph, whose keeper sees it here
        daemon = "sleep 600 > /dev/null 2>&1 &"
        subprocess.run([tool.path, *line.split(), daemon], check=True)
    assert verbs(tool.fresh_calls()) == ["create", "stop"]
    with docker.open(str(repo), awake()) as box:
        assert box.bash("true").code == 0
    assert verbs(tool.fresh_calls()) == ["stop", "run"]


@pytest.mark.parametrize("how", ["killed", "stopped by somebody", "cannot tell"])
def test_a_machine_of_which_nothing_is_known_is_restarted(tool: Fake, repo: Path, how: str) -> None:
    with docker.open(str(repo), awake()) as box:
        if how == "cannot tell":
            box.bash("rm $HOME/bin/ps; printf '#!/bin/sh\\nexit 1\\n' > $HOME/bin/ps")
    if how == "killed":
        (note,) = Path(os.environ["RALPH_STATE_DIR"]).rglob("*.awake")
        note.unlink()
    if how == "stopped by somebody":
        (line,) = words(repo, "stop NAME")
        subprocess.run([tool.path, *line.split()], check=True)
    tool.fresh_calls()
    with docker.open(str(repo), awake()) as box:
        assert box.bash("true").code == 0
    assert verbs(tool.fresh_calls())[:2] == ["stop", "run"]


def test_a_machine_that_somebody_uses_is_not_put_to_rest(tool: Fake, repo: Path) -> None:
    docker.open(str(repo), awake()).close()
    with docker.open(str(repo), awake()) as box:
        tool.fresh_calls()
        box.rest()
        assert verbs(tool.calls()) == []


def test_feedback_goes_by_exec(tool: Fake, repo: Path) -> None:
    """R: "Use `docker sandbox exec` to write directly into the sandbox"."""
    (repo / "feedback").write_text("old\n")
    with docker.open(str(repo), policy_now()) as box:
        tool.fresh_calls()
        box.fs.write("feedback", b"Mend the tests.\n")
        written = "exec -i -w DIR NAME sh -c GUEST guest write ZmVlZGJhY2s= "
        assert tool.calls() == words(repo, written)
        assert box.bash("cat feedback").output == b"Mend the tests.\n"
    assert (repo / "feedback").read_text() == "Mend the tests.\n"


@pytest.mark.parametrize(
    ("given", "seconds"), [(None, 2.5), ("0.5", 0.5), ("-1", 0.0), ("soon", 2.5)]
)
def test_how_long_files_may_take_to_settle(given: str | None, seconds: float) -> None:
    """R: "a 2-3 second sleep between iterations to allow sync to settle"."""
    environ = {} if given is None else {"RALPH_SANDBOX_SETTLE": given}
    assert docker._seconds(environ) == seconds


def test_every_kind_of_change_is_told(tool: Fake, repo: Path) -> None:
    (repo / "gone").write_text("x")
    with docker.open(str(repo), policy_now()) as box:
        box.bash("rm gone; echo x >> README.md; chmod 700 sub || mkdir sub; ln -s sub link")
        found = {change.path: change.kind for change in box.changes()}
        kept = box.commit()
    assert found == {
        "README.md": ChangeKind.MODIFIED,
        "gone": ChangeKind.DELETED,
        "link": ChangeKind.SYMLINK,
        "sub": ChangeKind.ADDED,
    }
    assert set(kept.applied) == set(found)
    assert not (repo / "gone").exists()


def test_nothing_can_be_undone_and_that_is_said(tool: Fake, repo: Path) -> None:
    with docker.open(str(repo), policy_now()) as box, pytest.raises(ConfigError, match="undone"):
        box.discard()
    can = docker.probe(str(repo), policy_now())
    assert (can.usable, can.contain, can.rollback, can.egress) == (True, True, False, True)
    assert "nothing can be undone" in can.why
    assert "no virtual machine was started" in can.why


def test_another_network_is_another_machine(tool: Fake, repo: Path) -> None:
    docker.open(str(repo), policy_now()).close()
    tool.fresh_calls()
    docker.open(str(repo), policy_now("pypi.org")).close()
    verbs = [call.split()[1] for call in tool.calls()]
    assert verbs[:5] == ["version", "ls", "rm", "create", "network"]


def test_a_machine_of_somebody_else_is_not_touched(tool: Fake, repo: Path) -> None:
    (line,) = words(repo, "create --name NAME claude DIR")
    subprocess.run([tool.path, *line.split()], check=True)
    with pytest.raises(ConfigError, match="did not make") as caught:
        docker.open(str(repo), policy_now())
    assert "docker sandbox rm ralph-" in caught.value.remedy
    assert len(tool.machines()) == 1


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({"daemon": "Docker Desktop is not running"}, "docker cannot list its sandboxes"),
        ({"create": "pull access denied"}, "docker cannot make a sandbox: ERROR: pull access den"),
        ({"network": "no proxy"}, "docker cannot set the rules of a sandbox: ERROR: no proxy"),
        ({"exec": "no machine"}, "docker cannot prepare the sandbox: ERROR: no machine"),
        ({"version": ""}, "docker cannot be used: this docker has no `sandbox`"),
    ],
)
def test_failures_are_told(tool: Fake, repo: Path, trouble: dict[str, str], said: str) -> None:
    tool.troubled(**trouble)
    with pytest.raises(ConfigError) as caught:
        docker.open(str(repo), policy_now())
    assert caught.value.message.startswith(said)
    tool.troubled()
    docker.open(str(repo), policy_now()).close()  # nothing is in the way the next time


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ({"version": ""}, "Docker Desktop 4.80 removed it"),
        ({"daemon": "is it running?"}, "docker sandbox does not answer: ERROR: is it running?"),
    ],
)
def test_the_probe_says_what_is_missing(
    tool: Fake, repo: Path, trouble: dict[str, str], why: str
) -> None:
    """Facts: "Detect the old one with `docker sandbox version`"."""
    tool.troubled(**trouble)
    can = docker.probe(str(repo), policy_now())
    assert not can.usable
    assert why in can.why


def test_a_list_that_is_none() -> None:
    assert docker.listed(b'{"vms": null}') == {}
    for output in (b"", b"[]", b'{"vms": [{}]}'):
        with pytest.raises(ConfigError, match="something else"):
            docker.listed(output)
