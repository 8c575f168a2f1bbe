"""The layer over the home directory: everything can be written there, and nothing comes of it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_support import needs_overlay, policy, tree

from ralph.kernel.value import replace
from ralph.sandbox.backends import overlay
from ralph.sandbox.interface import SandboxPolicy
from ralph.sandbox.policy import plan_of

OPTIONS = "userxattr,lowerdir={home},upperdir=u,workdir=w"
TREE = {"home__config": "old\n", "home__work__project__a": "1\n"}


def at_home(tmp_path: Path, **files: str) -> tuple[Path, Path, SandboxPolicy]:
    """A home directory, a project in it, and a policy with the state directory in it too."""
    home = tree(tmp_path, **TREE, **files) / "home"
    state = home / ".local" / "state" / "ralph"
    tree(state, secret="x")
    return home, home / "work" / "project", replace(policy(), state=str(state), home=str(home))


def contents(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != "places")
    return {str(path.relative_to(directory)): path.read_text() for path in files}


@needs_overlay
@pytest.mark.parametrize("memory", [0, 1024 * 1024], ids=["disk", "memory"])
def test_a_project_in_the_home_directory(tmp_path: Path, memory: int) -> None:
    home, project, wish = at_home(tmp_path)
    before = contents(home)
    script = (
        "cd; echo new >> config; echo x > .claude.json; mkdir -p .codex/sessions; cat config; "
        "rm -r .local/share; mv config moved; echo 2 > work/project/a; echo 2 > work/beside"
    )
    with overlay.open(str(project), replace(wish, memory=memory)) as sandbox:
        done = sandbox.run("env", f"HOME={home}", "sh", "-c", script)
        assert done.output == b"old\nnew\n", done
        assert sandbox.run("ls", f"{home}/.claude.json", f"{home}/work/beside").code == 0
        assert [change.path for change in sandbox.changes()] == ["a"]
        assert sandbox.capabilities.lacks == ""
    assert contents(home) == before


@needs_overlay
@pytest.mark.parametrize(
    "script",
    [
        "cat {state}/secret",
        "echo x > {state}/other",
        "mv {home}/.local {home}/elsewhere; cat {home}/elsewhere/state/ralph/secret",
        "rm -rf {home}/.local; cat {state}/secret",
        "unshare -Urm umount {state}",
        "mkdir /tmp/x; unshare -Urm mount --bind {home} /tmp/x",
        f"cd /tmp; mkdir m u w; unshare -Urm mount -t overlay x m -o {OPTIONS}",
        "touch /usr/x",
    ],
)
def test_what_is_hidden_in_it_stays_hidden(tmp_path: Path, script: str) -> None:
    """Backends: "state directory hidden"."""
    home, project, wish = at_home(tmp_path)
    with overlay.open(str(project), wish) as sandbox:
        done = sandbox.bash(script.format(state=wish.state, home=home))
    assert done.code != 0, done
    assert b"x" not in done.output.splitlines()
    assert contents(Path(wish.state))["secret"] == "x"


@needs_overlay
def test_its_sockets_lead_nowhere(tmp_path: Path) -> None:
    """An agent's keys are asked for by a socket, say."""
    home, project, wish = at_home(tmp_path)
    call = "import socket; socket.socket(socket.AF_UNIX).connect('socket'); print('in')"
    before = os.getcwd()
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(home)  # a socket's path is short
        try:
            listener.bind("socket")
        finally:
            os.chdir(before)
        listener.listen()
        with overlay.open(str(project), wish) as sandbox:
            code = f"import os; os.chdir({str(home)!r})\n{call}"
            assert b"refused" in sandbox.eval(code).error


@needs_overlay
def test_what_is_to_be_seen_in_it_is_read_only(tmp_path: Path) -> None:
    home, project, wish = at_home(tmp_path, home__tools__program="echo hello\n")
    wish = replace(wish, visible=(str(home / "tools"),))
    with overlay.open(str(project), wish) as sandbox:
        assert sandbox.bash(f"sh {home}/tools/program").output == b"hello\n"
        assert b"Read-only" in sandbox.bash(f"echo x > {home}/tools/program").error


@needs_overlay
def test_a_commit_outside_of_the_project_is_refused_and_not_lost(repo: Path) -> None:
    """In a linked worktree, and in a directory of a repository, git's own files lie elsewhere."""
    git = ("git", "-C", str(repo))
    linked, below = repo.parent / "linked", repo / "below"
    subprocess.run([*git, "worktree", "add", "--quiet", str(linked)], check=True)
    below.mkdir()
    for project in (linked, below):
        with overlay.open(str(project), replace(policy(), home=str(repo.parent))) as sandbox:
            sandbox.bash("touch new; touch ../other")
            assert sandbox.git("status", "--short").code == 0
            done = sandbox.bash("git add new && git commit -qm inside")
            assert done.code != 0
            assert b"Read-only file system" in done.error


def place(tmp_path: Path, home: str, project: str = "project", state: str = "state") -> bytes:
    """The home directory that is planned for, with these directories below a temporary one."""
    for name in (home, project, state):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    wish = SandboxPolicy({}, str(tmp_path / state), home=str(tmp_path / home))
    return plan_of(str(tmp_path / project), wish, str(tmp_path))["home"]


@pytest.mark.parametrize(
    ("home", "project", "state", "layered"),
    [
        ("home", "project", "state", True),
        ("home", "home/project", "home/state", True),
        ("home", "home-project", "state", True),
        ("home", "home", "state", False),  # what is written there is the project's
        ("project/home", "project", "state", False),
        ("state/home", "project", "state", False),  # it is not to be seen
        ("state", "project", "state", False),
    ],
)
def test_when_there_is_a_layer(
    tmp_path: Path, home: str, project: str, state: str, layered: bool
) -> None:
    found = place(tmp_path, home, project, state)
    assert found == (os.fsencode(tmp_path / home) if layered else b"")


@pytest.mark.parametrize("home", ["", "/", "/tmp", "/run", "/no/such/place", "/etc/passwd"])
def test_when_there_is_none(tmp_path: Path, home: str) -> None:
    assert plan_of(str(tmp_path), SandboxPolicy({}, "/state", home=home), "")["home"] == b""


@needs_overlay
def test_a_home_directory_that_is_a_link(tmp_path: Path) -> None:
    home, project, wish = at_home(tmp_path)
    (tmp_path / "link").symlink_to(home)
    with overlay.open(str(project), replace(wish, home=str(tmp_path / "link"))) as sandbox:
        assert sandbox.bash(f"echo x > {home}/new && cat {home}/new").output == b"x\n"
    assert not (home / "new").exists()


MOUNTED = """
import sys
from ralph.sandbox.backends import overlay
from ralph.sandbox.interface import SandboxPolicy
project, home, state = sys.argv[1:]
with overlay.open(project, SandboxPolicy({"PATH": "/usr/bin:/bin"}, state, home=home)) as sandbox:
    print(sandbox.capabilities.lacks)
    print(sandbox.bash(f"touch {home}/new").code, sandbox.bash("echo 2 > a").code)
    print([change.path for change in sandbox.changes()])
"""


@needs_overlay
def test_with_other_file_systems_in_it_it_is_read_only_and_said(tmp_path: Path) -> None:
    home, project, wish = at_home(tmp_path)
    (home / "disk").mkdir()
    mount = f'mount -t tmpfs disk {home}/disk && exec "$@"'
    python = (os.path.realpath(sys.executable), "-c", MOUNTED)
    words = (*python, str(project), str(home), wish.state)
    done = subprocess.run(
        ("unshare", "-Urm", "sh", "-c", mount, "sh", *words),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = "the home directory is read only: other file systems are mounted in it"
    assert done.stdout.splitlines() == [said, "1 0", "['a']"], done.stderr


@needs_overlay
@pytest.mark.parametrize("memory", [0, 1024 * 1024], ids=["disk", "memory"])
def test_a_state_directory_in_a_project_at_home(tmp_path: Path, memory: int) -> None:
    home, project, wish = at_home(tmp_path)
    state = tree(project / "state", secret="x")
    wish = replace(wish, state=str(state), memory=memory)
    with overlay.open(str(project), wish) as sandbox:
        assert sandbox.bash(f"ls -A state; echo 2 > a; echo x > {home}/new").output == b""
        assert [change.path for change in sandbox.changes()] == ["a"]
        assert not sandbox.commit().spared
    assert (project / "a").read_text() == "2\n"
    assert (state / "secret").read_text() == "x"
    assert not (home / "new").exists()
