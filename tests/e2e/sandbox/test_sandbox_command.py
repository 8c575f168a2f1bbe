"""`ralph sandbox`: probe, and run with what becomes of the changes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pexpect
import pytest
from run_support import RALPH, Done, Running, assert_clear, ralph

from kits.sandbox.stage import overlay_is_usable
from kits.thorough import dealt
from ralph.sandbox.names import BACKENDS

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

needs_overlay = pytest.mark.skipif(
    not overlay_is_usable(), reason="this machine allows no namespaces"
)


def run(*arguments: str) -> Done:
    return ralph("sandbox", "run", *arguments)


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "a").write_text("1\n")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "b").write_text("1\n")
    return workspace


def contents(project: Path) -> dict[str, str]:
    files = (path for path in project.rglob("*") if path.is_file())
    return {str(path.relative_to(project)): path.read_text() for path in files}


AS_IT_WAS = {"a": "1\n", "sub/b": "1\n"}


# ------------------------------------------------------------------ probe


def test_probe_lists_every_backend(workspace: Path) -> None:
    """Settled: `{"chosen": NAME, "backends": [{"name","usable",...}]}`, every backend listed."""
    done = ralph("sandbox", "probe", "--json")
    found = json.loads(done.out)
    assert list(found) == ["chosen", "backends"]
    assert [row["name"] for row in found["backends"]] == list(BACKENDS)
    for row in found["backends"]:
        assert list(row) == ["name", "usable", "contain", "rollback", "egress", "why"]
        assert row["why"]
    assert done.code == (0 if found["chosen"] else 1)
    assert os.listdir(workspace) == []


@needs_overlay
def test_probe_chooses_the_overlay(workspace: Path) -> None:
    done = ralph("sandbox", "probe")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "Chosen: overlay"
    assert done.out.split()[:5] == ["overlay", "usable", "contain", "rollback", "egress"]
    assert os.listdir(os.environ["RALPH_STATE_DIR"]) == []


def without_namespaces(*arguments: str) -> Done:
    """`ralph` where the kernel allows no more user namespaces."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    return ralph(*arguments, command=("unshare", "-Ur", "sh", "-c", script, "sh", *RALPH))


@needs_overlay
def test_without_namespaces_a_worktree_is_taken_and_said(repo: Path) -> None:
    """Bad input: "no namespaces": it never degrades silently to nothing."""
    done = without_namespaces("sandbox", "probe", "--json")
    found = json.loads(done.out)
    assert found["chosen"] == "worktree"
    assert "cannot make a user namespace" in found["backends"][0]["why"]
    assert "sysctl" in found["backends"][0]["why"]
    done = without_namespaces("sandbox", "run", "--discard", "--", "rm", "README.md")
    assert done.err.splitlines()[0].startswith("[ralph] Sandbox: worktree, which undoes but does")
    assert (repo / "README.md").exists()


@needs_overlay
def test_without_namespaces_and_git_nothing_is_run(project: Path) -> None:
    done = without_namespaces("sandbox", "run", "--keep", "--", "rm", "a")
    assert_clear(done, 2, "no sandbox is usable here", "ralph sandbox probe")
    assert contents(project) == AS_IT_WAS


# ------------------------------------------------------------------ run


@needs_overlay
@pytest.mark.parametrize("flags", [("--discard",), ()], ids=["discard", "no flag"])
def test_what_is_not_kept_never_happened(project: Path, flags: tuple[str, ...]) -> None:
    """Settled: "without a terminal nothing is applied"; "`--discard` writes nothing"."""
    before = os.stat(project / "sub").st_ctime_ns
    done = run(*flags, "--", "sh", "-c", "rm -rf a sub; echo gone; exit 3")
    assert (done.code, done.out) == (3, "gone\n")
    assert "[ralph]   deleted   sub/b" in done.err
    assert contents(project) == AS_IT_WAS
    assert os.stat(project / "sub").st_ctime_ns == before


@needs_overlay
def test_what_is_kept(project: Path) -> None:
    done = run("--keep", "--", "sh", "-c", "echo 2 > a; rm -r sub; echo 3 > 'new\nline'")
    assert done.code == 0
    assert contents(project) == {"a": "2\n", "new\nline": "3\n"}
    assert "[ralph]   added     new\\nline" in done.err
    assert "[ralph] Kept 4 changes." in done.err


@needs_overlay
@pytest.mark.parametrize("keep", ["--keep", "--keep=all"])
def test_what_is_held_for_review(project: Path, keep: str) -> None:
    """Settled: "holds `.git/hooks` … back unless `--keep=all`"."""
    script = "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; ln -s /etc out; echo 2 > a"
    done = run(keep, "--", "sh", "-c", script)
    everything = keep == "--keep=all"
    assert (project / "a").read_text() == "2\n"
    assert (project / ".git" / "hooks" / "pre-commit").exists() == everything
    assert (project / "out").is_symlink() == everything
    assert ("Held for review (--keep=all applies it)" in done.err) != everything


@needs_overlay
def test_what_a_person_changes_meanwhile_is_named(project: Path) -> None:
    """Settled: "`--keep` never overwrites what a person changed meanwhile and names it"."""
    script = "echo agent > a; echo agent > c; echo ready; read x"
    words = [*RALPH[1:], "sandbox", "run", "--keep", "--", "sh", "-c", script]
    shell = pexpect.spawn(RALPH[0], words, timeout=30)
    shell.expect("ready")
    (project / "a").write_text("person\n")
    shell.sendline("go on")
    shell.expect("a: someone changed it meanwhile")
    shell.expect("What was not applied is in ([^\r\n]*)")
    saved = Path(shell.match[1].decode())
    shell.expect(pexpect.EOF)
    assert contents(project) == {**AS_IT_WAS, "a": "person\n", "c": "agent\n"}
    assert (saved / "a").read_text() == "agent\n"


@needs_overlay
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("nosuchcommand",), 127, "nosuchcommand: not found in the sandbox"),
        (("./a",), 126, "./a: Permission denied"),
        (("sh", "-c", "kill -9 $$"), 137, "Nothing was changed."),
        (("sh", "-c", "exit 42"), 42, "Nothing was changed."),
    ],
)
def test_exit_codes(project: Path, command: tuple[str, ...], code: int, said: str) -> None:
    """Settled: "exit code passes through; command not found 127"."""
    done = run("--", *command)
    assert done.code == code
    assert said in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("COMMAND",)),
        (("--",), ("COMMAND",)),
        (("--keep", "--discard", "--", "true"), ("exclude each other",)),
        (("--keep=most", "--", "true"), ("most",)),
        (("--backend", "moon", "--", "true"), ("moon", "overlay")),
        (("--backend", "srt", "--", "true"), ("srt cannot be used", "npm install")),
        (("--backend", "sbx", "--", "true"), ("sbx cannot be used", "docs.docker.com")),
        (("--backend", "docker", "--", "true"), ("cannot be undone", "--keep")),
        (("--backend", "docker", "--keep", "--", "true"), ("docker cannot be used",)),
        (("--backend", "direct", "--", "true"), ("cannot be undone", "--keep")),
        (("--backend", "direct", "--discard", "--", "true"), ("cannot be undone",)),
        (("--backend", "worktree", "--", "true"), ("not a git repository", "git init")),
        (("--backend", "worktree", "--network", "off", "--", "true"), ("network",)),
        (("--network", "a b", "--", "true"), ("a b", "pypi.org")),
        (("--network", "", "--", "true"), ("off, on",)),
        (("--network", "ON", "--", "true"), ("'ON' stands alone and in small letters",)),
        (("--network", "on,off", "--", "true"), ("'on' stands alone",)),
        (("--network", "pypi.org,Off", "--", "true"), ("'Off' stands alone",)),
        (("--network", "pypi.org:0", "--", "true"), ("'0' is no port", "65535")),
        (("--network", "pypi.org:99999", "--", "true"), ("'99999' is no port",)),
        (("--network", "[::1]:80", "--", "true"), ("IPv6",)),
        (("--network", "2001:db8::1", "--", "true"), ("IPv6",)),
        (("-C", "/no/where", "--", "true"), ("/no/where",)),
        (("--nosuch", "--", "true"), ("--nosuch",)),
    ],
)
def test_bad_input_is_clear(
    project: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """Settled: "no command 2"."""
    assert_clear(run(*arguments), 2, *words)
    assert contents(project) == AS_IT_WAS


@needs_overlay
def test_json(project: Path) -> None:
    done = run("--json", "--keep", "--", "sh", "-c", "echo hello; echo 2 > a; mkfifo p; exit 4")
    assert done.code == 4
    (found,) = done.objects
    assert found == {
        "backend": "overlay",
        "network": "off",
        "refused": [],
        "exit_code": 4,
        "kept": True,
        "changes": [
            {"path": "a", "kind": "modified", "entry": "file"},
            {"path": "p", "kind": "added", "entry": "other"},
        ],
        "applied": ["a"],
        "held": [],
        "changed": [],
        "failed": [{"path": "p", "why": "a socket, a pipe or a device is not kept"}],
        "saved": "",
    }
    assert "hello" in done.err


@needs_overlay
@pytest.mark.parametrize("script", ["mkfifo $(seq 60)", "mkdir .git; for n in $(seq 60); do {}"])
def test_everything_that_is_not_applied_is_named(project: Path, script: str) -> None:
    """Settled: `--keep` "names it"; not only the first of many."""
    one = "ln -s /etc out$n; done"
    done = run("--keep", "--", "sh", "-c", script.format(one))
    spared = [line for line in done.err.splitlines() if line.endswith(("not kept", "leads out"))]
    assert len(spared) == 60


@pytest.mark.parametrize("backend", ["auto", "worktree", "overlay"])
def test_a_state_directory_that_is_the_project_is_refused(project: Path, backend: str) -> None:
    before = contents(project)
    words = ("sandbox", "run", "--keep", "--backend", backend, "--", "rm", "a")
    done = ralph(*words, env={"RALPH_STATE_DIR": str(project)})
    assert_clear(done, 2, "is Ralph's state directory", "export RALPH_STATE_DIR")
    assert contents(project) == before


FULL = """
import os, sys
from ralph.sandbox.changes import apply
from ralph.cli.main import run_command_line
def write(*given):
    os.write(os.open("/dev/full", os.O_WRONLY), b"x")
apply.Commit.write = write
sys.exit(run_command_line(sys.argv[1:]))
"""


@needs_overlay
def test_a_full_state_directory_loses_nothing(project: Path) -> None:
    """Bad input: "full upper layer": the layer stays, and people are told where."""
    words = ("sandbox", "run", "--keep", "--", "sh", "-c", "echo 2 > a")
    done = ralph(*words, command=(RALPH[0], "-c", FULL))
    assert_clear(done, 2, "could not be kept: No space left", "export RALPH_STATE_DIR=")
    assert os.environ["RALPH_STATE_DIR"] in done.err
    (place,) = [line for line in done.err.splitlines() if "What was changed is in" in line]
    assert (Path(place.partition(" is in ")[2]) / "a").read_text() == "2\n"
    assert contents(project) == AS_IT_WAS
    assert run("--discard", "--", "true").code == 0  # which tidies up
    assert Path(place.partition(" is in ")[2]).exists()


def test_direct_works_in_place(project: Path) -> None:
    done = run("--backend", "direct", "--keep", "--", "sh", "-c", "echo 2 > a")
    assert done.code == 0
    assert "Sandbox: direct, in place; network on" in done.err
    assert (project / "a").read_text() == "2\n"


def test_a_worktree_has_what_is_not_committed_too(repo: Path) -> None:
    (repo / "README.md").write_text("changed\n")
    (repo / "untracked").write_text("x\n")
    script = "cat README.md untracked; echo 2 > untracked; git commit -qam inside"
    done = run("--backend", "worktree", "--keep", "--", "sh", "-c", script)
    assert done.out == "changed\nx\n"
    assert (repo / "untracked").read_text() == "2\n"
    listed = subprocess.run(["git", "worktree", "list"], capture_output=True, check=True).stdout
    assert listed.count(b"\n") == 1


# ------------------------------------------------------------------ what ends it


@needs_overlay
@pytest.mark.parametrize("number", dealt([signal.SIGINT, signal.SIGTERM, signal.SIGKILL], 1))
def test_nothing_outlives_a_run_that_is_ended(project: Path, number: signal.Signals) -> None:
    """Settled: "no process or mount outlives the run"."""
    mark = _mark(number)
    script = f"rm a; setsid sleep {mark} & echo up; sleep {mark}"
    running = Running(project, "sandbox", "run", "--keep", "--", "sh", "-c", script)
    running.await_that(lambda: _sleepers(number))
    running.send(number)
    done = running.end()
    deadline = time.monotonic() + 30  # after SIGKILL the kernel tidies up, when ralph is gone
    while _sleepers(number) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _sleepers(number)
    assert done.code == (-9 if number == signal.SIGKILL else 130)
    assert contents(project) == AS_IT_WAS
    assert run("--discard", "--", "true").code == 0  # which tidies up
    kept = [f for _, names, _ in os.walk(os.environ["RALPH_STATE_DIR"]) for f in names]
    assert "upper" not in kept


def _mark(number: int) -> str:
    """Seconds that no other run of these tests sleeps, also at the same time."""
    return f"{8000 + number}.{os.getpid()}"


def _sleepers(number: int) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found += [pid] if line == f"sleep\0{_mark(number)}\0".encode() else []
    return found


# ------------------------------------------------------------------ a terminal


@needs_overlay
@pytest.mark.parametrize(("answer", "kept"), [("y", True), ("n", False), ("", False)])
def test_a_person_is_asked(project: Path, answer: str, kept: bool) -> None:
    """`ralph sandbox run` "shows the change list and asks"."""
    words = [*RALPH[1:], "sandbox", "run", "--", "sh", "-c", "echo 2 > a; exit 5"]
    shell = pexpect.spawn(RALPH[0], words, timeout=30)
    shell.expect("modified  a")
    shell.expect("Keep these changes")
    shell.sendline("d")
    shell.expect(r"\+2")
    shell.expect("Keep these changes")
    shell.sendline(answer)
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 5
    assert (project / "a").read_text() == ("2\n" if kept else "1\n")


@needs_overlay
def test_a_shell_has_a_terminal_of_its_own(project: Path) -> None:
    """Ctrl+C ends what runs in the shell, and not the shell."""
    words = [*RALPH[1:], "sandbox", "run", "--discard", "--", "sh"]
    shell = pexpect.spawn(RALPH[0], words, timeout=30, dimensions=(33, 101))
    # Said by what Ctrl+C shall end: the shell itself could not say that it has begun to wait.
    shell.sendline("stty size; sh -c 'echo $((40 + 2)); exec sleep 1000'")
    shell.expect("33 101")
    shell.expect("42")
    shell.sendcontrol("c")
    shell.sendline("echo $((50 + 5)); exit 6")
    shell.expect("55")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 6
