"""Sandboxes that a person comes back to: `ralph sandbox run --name`, `shell`, `eval`, `list`,
`diff`, `keep`, `discard`."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest
from run_support import RALPH, Done, Running, assert_clear, ralph

from kits.sandbox.stage import overlay_is_usable

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
needs_overlay = pytest.mark.skipif(
    not overlay_is_usable(), reason="this machine allows no namespaces"
)
BACKENDS = [pytest.param("overlay", marks=needs_overlay), "worktree"]


def sandbox(*arguments: str) -> Done:
    return ralph("sandbox", *arguments)


@pytest.fixture
def project(repo: Path) -> Path:
    (repo / "a").write_text("1\n")
    (repo / "sub").mkdir()
    (repo / "sub" / "b").write_text("1\n")
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    subprocess.run(["git", "commit", "-qm", "more"], cwd=repo, check=True)
    return repo


def contents(project: Path) -> dict[str, str]:
    found = (path for path in project.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(project)): path.read_text() for path in found}


@pytest.fixture
def as_it_was(project: Path) -> dict[str, str]:
    return contents(project)


def layers() -> list[str]:
    found = Path(os.environ["RALPH_STATE_DIR"]).glob("*/sandboxes/*")
    return [path.name for path in found if path.is_dir()]


# ------------------------------------------------------------------ there and back


@pytest.mark.parametrize("backend", BACKENDS)
def test_leave_look_go_on_keep(project: Path, as_it_was: dict[str, str], backend: str) -> None:
    """The project is untouched until `keep`, which takes all or these paths, again and again."""
    begun = ("run", "--name", "try-1", "--backend", backend, "--")
    done = sandbox(*begun, "sh", "-c", "echo 2 > a; rm -r sub; echo n > new; exit 3")
    assert done.code == 3
    assert "The project is as it was; this stays in the sandbox try-1. Next:" in done.err
    for verb in ("shell", "diff", "keep", "discard"):
        assert f"ralph sandbox {verb} try-1" in done.err
    assert contents(project) == as_it_was
    done = sandbox("diff")
    assert done.out.count("diff --git") == 3
    assert "-1\n+2\n" in done.out
    assert sandbox("diff", "try-1", "new").out.endswith("@@ -0,0 +1 @@\n+n\n")
    done = sandbox(
        "shell", "-c", "cat a new; test ! -e sub; echo more >> new; mkdir d; echo d > d/d"
    )
    assert (done.code, done.out) == (0, "2\nn\n")
    done = sandbox("keep", "try-1", "new", "d")
    assert (done.code, done.err.splitlines()[0]) == (0, "[ralph] Kept 3 changes.")
    assert "3 changes are left in the sandbox try-1: ralph sandbox diff try-1" in done.err
    assert contents(project) == {**as_it_was, "new": "n\nmore\n", "d/d": "d\n"}
    done = sandbox("keep")
    assert done.code == 0
    assert "nothing left, and is removed" in done.err
    assert contents(project) == {"README.md": as_it_was["README.md"], "a": "2\n"} | {
        "new": "n\nmore\n",
        "d/d": "d\n",
    }
    assert layers() == []
    worktrees = subprocess.run(["git", "worktree", "list"], capture_output=True, check=True)
    assert worktrees.stdout.count(b"\n") == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_person_meanwhile_and_what_is_held(project: Path, backend: str) -> None:
    """What somebody changed is not overwritten, and stays in the sandbox; so does what is held,
    until `--all` asks for it."""
    script = "echo box > a; rm sub/b; mkdir .husky; echo h > .husky/h; echo n > n"
    sandbox("shell", "x", "--backend", backend, "-c", script)
    (project / "a").write_text("person\n")
    (project / "sub" / "b").write_text("person\n")
    done = sandbox("keep", "--json")
    (told,) = done.objects
    assert done.code == 1
    assert (told["name"], told["applied"], told["left"]) == ("x", ["n"], 4)
    assert {one["path"] for one in told["changed"]} == {"a", "sub/b"}
    assert {one["path"] for one in told["held"]} == {".husky", ".husky/h"}
    assert contents(project)["a"] == contents(project)["sub/b"] == "person\n"
    done = sandbox("keep", ".husky", "--all")
    assert (done.code, contents(project)[".husky/h"]) == (0, "h\n")
    done = sandbox("discard", "x")
    assert (done.code, "2 changes with it" in done.err) == (0, True)
    assert contents(project)["a"] == "person\n"
    assert layers() == []


@needs_overlay
def test_list(project: Path) -> None:
    assert sandbox("list").out == "No sandbox is kept here. Begin one: ralph sandbox shell NAME\n"
    assert sandbox("list", "--json").out == "[]\n"
    sandbox("run", "--name", "b", "--network", "localhost:1,pypi.org", "--", "touch", "n")
    sandbox("run", "--name", "a.1", "--", "rm", "a", "sub/b")
    rows = sandbox("list").out.splitlines()
    assert [row.split()[:2] for row in rows] == [["NAME", "STATE"], ["a.1", "kept"], ["b", "kept"]]
    told = json.loads(sandbox("list", "--json").out)
    assert [(one["name"], one["changes"], one["network"]) for one in told] == [
        ("a.1", 2, "off"),
        ("b", 1, "localhost:1,pypi.org"),
    ]
    assert "network localhost:1,pypi.org" in sandbox("shell", "b", "-c", "true").err  # as before


@needs_overlay
def test_one_in_which_nothing_is_different_is_removed(project: Path) -> None:
    done = sandbox("shell", "x", "-c", "true")
    assert "Nothing is different in the sandbox x" in done.err
    assert layers() == []
    sandbox("shell", "x", "-c", "echo 2 > a")
    sandbox("shell", "x", "-c", "echo 1 > a")
    assert layers() == []


@needs_overlay
def test_a_command_that_is_not_found_loses_nothing(project: Path) -> None:
    sandbox("shell", "x", "-c", "echo 2 > a")
    assert sandbox("run", "--name", "x", "--", "nosuchcommand").code == 127
    assert "+2" in sandbox("diff", "x").out


@needs_overlay
def test_a_commit_in_it_comes_with_keep(project: Path) -> None:
    script = "echo 2 > a && git -c user.name=a -c user.email=a@b commit -qam inside"
    sandbox("shell", "x", "-c", script)
    assert "diff --git a/a" not in sandbox("diff", "x", ".git").out
    assert sandbox("keep").code == 0
    said = subprocess.run(["git", "log", "-1", "--format=%s"], capture_output=True, check=True)
    assert said.stdout == b"inside\n"


@needs_overlay
def test_json_of_run(project: Path) -> None:
    done = sandbox("run", "--json", "--name", "x", "--", "sh", "-c", "echo hi; rm a")
    (told,) = done.objects
    assert (told["name"], told["kept"], told["exit_code"]) == ("x", False, 0)
    assert told["changes"] == [{"path": "a", "kind": "deleted", "entry": "file"}]
    (told,) = sandbox("diff", "x", "--json").objects
    assert told["changes"] == [{"path": "a", "kind": "deleted", "entry": "file"}]
    assert told["diff"].startswith("diff --git a/a b/a\n")
    assert sandbox("discard", "--json").objects == [{"name": "x", "discarded": True}]


# ------------------------------------------------------------------ eval


@needs_overlay
def test_eval(project: Path, as_it_was: dict[str, str]) -> None:
    """B: "eval": Python; by the flags of `run`."""
    done = sandbox("eval", "--discard", "print(open('a').read() * 2); open('n', 'w').write('x')")
    assert (done.code, done.out) == (0, "1\n1\n\n")
    assert "[ralph]   added     n" in done.err
    assert contents(project) == as_it_was
    assert sandbox("eval", "--keep", "open('n', 'w').write('x'); raise SystemExit(7)").code == 7
    assert (project / "n").read_text() == "x"
    (project / "code.py").write_text("print('from a pipe')")
    with open(project / "code.py") as code:
        words = [*RALPH, "sandbox", "eval", "--discard", "-"]
        piped = subprocess.run(words, stdin=code, capture_output=True, check=False)
    assert piped.stdout == b"from a pipe\n"


def runs_typescript() -> bool:
    from ralph.errors import ConfigError
    from ralph.processes.interpreters import typescript_runner

    try:
        return bool(typescript_runner(os.environ["PATH"]))
    except ConfigError:
        return False


@needs_overlay
def test_eval_of_typescript(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever runs it here; else the error names what to install."""
    monkeypatch.setenv("PATH", os.environ["PATH"])
    done = sandbox("eval", "--discard", "-l", "typescript", "const x: number = 42; console.log(x)")
    if runs_typescript():
        assert (done.code, done.out) == (0, "42\n")
    else:
        assert_clear(done, 2, "TypeScript", "Install node 22.6 or newer, deno or bun")


# ------------------------------------------------------------------ what goes wrong


@needs_overlay
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("diff",), ("no sandbox is kept", "ralph sandbox shell NAME")),
        (("keep", "x"), ("there is no sandbox x", "ralph sandbox shell NAME")),
        (("discard", "x"), ("there is no sandbox x",)),
        (("shell", "a/b", "-c", "true"), ("'a/b' cannot be a sandbox's name", "--name try-1")),
        (("run", "--name", "", "--", "true"), ("'' cannot be a sandbox's name",)),
        (("run", "--name", "x", "--keep", "--", "true"), ("--name leaves the changes",)),
        (("run", "--name", "x", "--discard", "--", "true"), ("--name leaves the changes",)),
        (("shell", "x", "--backend", "direct", "-c", "true"), ("direct has nothing to come back",)),
        (("shell", "x", "--backend", "sbx", "-c", "true"), ("sbx has nothing", "overlay, srt")),
        (("eval", "-l", "cobol", "x"), ("cobol", "python")),
        (("eval",), ("CODE",)),
    ],
)
def test_bad_input_is_clear(
    project: Path, as_it_was: dict[str, str], words: tuple[str, ...], says: tuple[str, ...]
) -> None:
    assert_clear(sandbox(*words), 2, *says)
    assert contents(project) == as_it_was
    assert layers() == []


@needs_overlay
def test_which_one_is_meant(project: Path) -> None:
    """Errors name the sandboxes that there are."""
    for name in ("one", "two"):
        sandbox("shell", name, "-c", f"echo {name} > a")
    for verb in ("shell", "diff", "keep", "discard"):
        assert_clear(sandbox(verb), 2, "several sandboxes are kept: one, two", "Name one of them")
    assert_clear(sandbox("keep", "three"), 2, "there is no sandbox three", "Kept here: one, two")
    assert_clear(sandbox("keep", "one", "b"), 2, "nothing has changed at b", "diff one")
    assert_clear(sandbox("keep", "one", "../a"), 2, "is not in the project")
    assert_clear(
        sandbox("shell", "one", "--backend", "worktree"), 2, "one of overlay", "Leave out --backend"
    )
    sandbox("discard", "two")
    assert_clear(sandbox("keep", "three"), 2, "there is no sandbox three", "Kept here: one")
    assert sandbox("keep", "a").code == 0  # the only one, and a path that has changed in it
    assert (project / "a").read_text() == "one\n"


@needs_overlay
def test_two_people_at_once(project: Path) -> None:
    """Locks: whoever comes second is told, and waits for nothing."""
    script = "echo 2 > a; echo up; read x; echo 3 > a"
    words = [*RALPH[1:], "sandbox", "shell", "x", "-c", script]
    first = pexpect.spawn(RALPH[0], words, timeout=30)
    first.expect("up")
    assert json.loads(sandbox("list", "--json").out)[0]["state"] == "in use"
    for words in (["shell", "x", "-c", "true"], ["diff"], ["keep"], ["discard"], ["keep", "a"]):
        assert_clear(sandbox(*words), 2, "x is in use by another ralph", "Leave that")
    sandbox("run", "--discard", "--", "true")  # tidies up, and not this
    first.sendline("")
    first.expect(pexpect.EOF)
    assert "+3" in sandbox("diff").out


def killed(project: Path, *words: str) -> None:
    mark = f"86{os.getpid()}.{time.time_ns() % 10**6}"
    running = Running(project, "sandbox", "shell", "x", *words, "-c", f"echo 2 > a; sleep {mark}")
    running.await_that(lambda: sleeps(mark))
    running.send(signal.SIGKILL)
    running.end()
    end = time.monotonic() + 30
    while sleeps(mark) and time.monotonic() < end:
        time.sleep(0.02)
    assert not sleeps(mark)


def sleeps(mark: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found += [pid] if line == f"sleep\0{mark}\0".encode() else []
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_shell_that_is_killed_loses_nothing(project: Path, backend: str) -> None:
    killed(project, "--backend", backend)
    assert json.loads(sandbox("list", "--json").out)[0]["state"] == "cut off"
    (project / "sub" / "b").write_text("person\n")
    sandbox("run", "--discard", "--backend", backend, "--", "true")  # tidies up, and not this
    assert "-1\n+2\n" in sandbox("diff").out
    assert json.loads(sandbox("list", "--json").out)[0]["state"] == "kept"
    assert sandbox("shell", "-c", "cat a; echo 3 > a").out == "2\n"
    assert sandbox("keep").code == 0
    assert (project / "a").read_text() == "3\n"
    assert (project / "sub" / "b").read_text() == "person\n"


CRASH = """
import os, sys
from ralph.sandbox.changes import commit, landing
from ralph.cli.main import run_command_line
write = commit.Commit.write
def die(self, path):
    if sys.argv[1] in path:
        os.kill(os.getpid(), 9)
    write(self, path)
landing.Commit.write = die
sys.exit(run_command_line(sys.argv[2:]))
"""


@needs_overlay
@pytest.mark.parametrize("where", ["commit.json", "sealed.json"])
def test_a_keep_that_is_killed_is_finished(project: Path, where: str) -> None:
    """Killed before the list is on disk nothing is applied; after that whoever comes next does the
    rest, and what was not asked for stays."""
    sandbox("shell", "x", "-c", "echo 2 > a; echo n > n")
    words = [sys.executable, "-c", CRASH, where, "sandbox", "keep", "x", "a"]
    assert subprocess.run(words, check=False, capture_output=True).returncode == -9
    began = where == "sealed.json"
    assert (project / "a").read_text() == ("2\n" if began else "1\n")
    done = sandbox("keep", "x", "n")
    assert done.code == 0, done.err
    assert ("A sandbox was killed while it was kept; that is finished" in done.err) == began
    assert (project / "n").read_text() == "n\n"
    assert layers() == ([] if began else ["kept-x"])


@needs_overlay
def test_clean_leaves_it_and_says_so(project: Path, tmp_path: Path) -> None:
    sandbox("shell", "x", "-c", "echo 2 > a")
    done = ralph("clean", "--older", "0")
    assert "Kept: x (sandbox): you named it: ralph sandbox discard x -C" in done.out
    assert layers() == ["kept-x"]
    os.rename(project, tmp_path / "moved")
    project.mkdir()
    shutil.rmtree(project)
    assert ralph("clean", "--older", "0", "-C", str(tmp_path)).code == 0
    assert layers() == []  # nobody can come back to it
    os.rename(tmp_path / "moved", project)


@needs_overlay
def test_names_are_completed(project: Path) -> None:
    sandbox("shell", "upgrade", "-c", "echo 2 > a")
    env = {**os.environ, "_RALPH_COMPLETE": "bash_complete", "COMP_WORDS": "ralph sandbox keep u"}
    done = subprocess.run(
        [*RALPH], env={**env, "COMP_CWORD": "3"}, capture_output=True, check=False
    )
    assert done.stdout.split(b",")[-1].strip() == b"upgrade"


@needs_overlay
def test_an_interactive_shell(project: Path) -> None:
    """It is the user's shell, on a terminal of its own; leaving it asks nothing."""
    words = [*RALPH[1:], "sandbox", "shell"]
    shell = pexpect.spawn(RALPH[0], words, timeout=30, env={**os.environ, "SHELL": "/bin/sh"})
    shell.expect("Sandbox try: overlay; network off")
    shell.expect("The project is not touched. Type exit to leave; what you did stays.")
    shell.sendline("echo $((40 + 2)) > answer; exit 5")
    shell.expect("added     answer")
    shell.expect("ralph sandbox keep try")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 5
    assert not (project / "answer").exists()
    assert sandbox("keep").code == 0
    assert (project / "answer").read_text() == "42\n"
