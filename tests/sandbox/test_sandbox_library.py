"""`from ralph import Sandbox` (B §Execution Environment)."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandbox_support import tree

import ralph
from kits.sandbox.stage import overlay_is_usable
from kits.thorough import examples
from ralph import RalphError, Sandbox
from ralph.sandbox.interface import ChangeKind

OVERLAY = overlay_is_usable()
needs_overlay = pytest.mark.skipif(not OVERLAY, reason="this machine allows no namespaces")
UNDOES = [pytest.param("overlay", marks=needs_overlay), "worktree"]
EVERY = [*UNDOES, "direct"]


@pytest.fixture
def project(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tree(repo, a="one\n", d__x="x\n")
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    subprocess.run(["git", "commit", "-qm", "more"], cwd=repo, check=True)
    monkeypatch.chdir(repo)
    return repo


def opened(project: Path, backend: str) -> Sandbox:
    return Sandbox(project, backend=backend, network="off" if backend == "overlay" else "on")


def left() -> set[str]:
    """What is in the state directory beside empty directories and locks."""
    found = {f for _, _, files in os.walk(os.environ["RALPH_STATE_DIR"]) for f in files}
    return found - {"places"}


def children() -> set[str]:
    listing = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    return set(listing.read_text().split()) if listing.exists() else set()


# ------------------------------------------------------------------ what it has


@pytest.mark.parametrize("backend", EVERY)
def test_fs(project: Path, backend: str) -> None:
    """B: "fs: VirtualFS": read, write, list, exists, delta."""
    with opened(project, backend) as box:
        assert box.fs.read("a") == "one\n"
        box.fs.write("new/f", "é\n")
        box.fs.write(Path("new/g"), b"\xff")
        assert box.fs.read("new/f") == "é\n"
        assert box.fs.read_bytes(project / "new" / "g") == b"\xff"
        assert box.fs.list("new") == ("f", "g")
        assert box.fs.exists("new/g")
        assert not box.fs.exists("new/h")
        assert not box.fs.exists("no/way")
        box.fs.delete("d")
        assert {(c.path, c.kind) for c in box.fs.delta()} == {
            ("d", ChangeKind.DELETED),
            ("d/x", ChangeKind.DELETED),
            ("new", ChangeKind.ADDED),
            ("new/f", ChangeKind.ADDED),
            ("new/g", ChangeKind.ADDED),
        }
        with pytest.raises(RalphError, match="UTF-8") as error:
            box.fs.read("new/g")
        assert error.value.remedy == "Use read_bytes."
        with pytest.raises(FileNotFoundError) as gone:
            box.fs.read("d/x")
        assert gone.value.filename == "d/x"
        with pytest.raises(IsADirectoryError):
            box.fs.read("new")


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "d/../../out", "link/out", "way", "a\0"])
def test_paths_outside_are_refused(project: Path, backend: str, path: str) -> None:
    """Names, `..` and links that lead out of the project, to read and to write."""
    outside = project.parent / "out"
    outside.write_text("secret")
    os.symlink(project.parent, project / "link")
    os.symlink(outside, project / "way")
    subprocess.run(["git", "add", "-A"], cwd=project, check=True)
    subprocess.run(["git", "commit", "-qm", "links"], cwd=project, check=True)
    with opened(project, backend) as box:
        with pytest.raises(RalphError, match=r"not in the project|not followed") as error:
            box.fs.read(path)
        assert error.value.remedy
        if path != "way":  # a link itself is replaced
            with pytest.raises(RalphError):
                box.fs.write(path, "mine")
    assert outside.read_text() == "secret"


@pytest.mark.parametrize("backend", EVERY)
def test_bash_eval_and_git(project: Path, backend: str) -> None:
    with opened(project, backend) as box:
        done = box.bash("echo out; echo err >&2; exit 3")
        assert (done.stdout, done.stderr, done.exit_code, done.ok) == ("out\n", "err\n", 3, False)
        assert box.bash("true").ok
        assert box.eval("print(6 * 7)").stdout == "42\n"
        assert box.eval("import sys; sys.exit(9)").exit_code == 9
        assert box.git("log", "-1", "--format=%s").stdout == "more\n"
        assert box.git("nosuch").exit_code == 1
        with pytest.raises(RalphError, match=f"{backend}.*'cobol'") as error:
            box.eval("x", "cobol")
        assert error.value.remedy == "Use python or typescript."
        for run, wrong in ((box.bash, "a\0b"), (box.eval, "\udcff"), (box.git, "\0")):
            with pytest.raises(RalphError, match="cannot hold a NUL byte"):
                run(wrong)
        late = box.bash("echo first; sleep 60", timeout=0.3)
        assert (late.stdout, late.exit_code, late.timed_out) == ("first\n", 124, True)
        assert not late.ok


def test_the_python_of_the_project(project: Path) -> None:
    """Its .venv, else python3 on PATH, else our own."""
    code = "import os, sys; print(os.environ.get('OWN'), sys.executable)"
    with opened(project, "direct") as box:
        assert box.eval(code).stdout.startswith("None ")
    own = project / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text(f'#!/bin/sh\nOWN=yes exec {sys.executable} "$@"\n')
    own.chmod(0o755)
    with opened(project, "direct") as box:
        assert box.eval(code).stdout.startswith("yes ")
    shutil.rmtree(project / ".venv")
    no_python = {**os.environ, "PATH": str(project / "nowhere")}
    with Sandbox(project, backend="direct", network="on", environ=no_python) as box:
        assert box.eval(code).stdout == f"None {sys.executable}\n"


@pytest.mark.parametrize("backend", UNDOES)
def test_keep_diff_and_discard(project: Path, backend: str) -> None:
    with opened(project, backend) as box:
        box.bash(
            "echo two > a; chmod 755 a; rm -r d; mkdir -p n .husky; echo n > n/f; echo h > .husky/h"
        )
        assert box.diff("a") == (
            "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"
        )
        assert box.diff().count("diff --git") == 4
        assert box.diff("README.md") == ""
        done = box.keep("n")
        assert (done.applied, done.spared) == (("n", "n/f"), ())
        assert (project / "n" / "f").read_text() == "n\n"
        assert (project / "a").read_text() == "one\n"
        (project / "a").write_text("person\n")
        done = box.keep()
        assert done.applied == ("d", "d/x")
        assert [one.path for one in done.changed] == ["a"]
        assert {one.path for one in done.held} == {".husky", ".husky/h"}
        assert (Path(done.saved) / ".husky" / "h").read_text() == "h\n"
        assert {c.path for c in box.fs.delta()} == {".husky", ".husky/h", "a"}
        assert box.keep([".husky"], held=True).applied == (".husky", ".husky/h")
        box.discard()
        assert box.changes() == ()
        assert box.fs.read("a") == "person\n"
        box.fs.write("late", "x")
    assert (project / "a").read_text() == "person\n"
    assert (project / ".husky" / "h").exists()
    assert not (project / "late").exists()
    assert not (project / "d").exists()


@needs_overlay
def test_a_commit_comes_with_keep(project: Path) -> None:
    """B: "git: real". On overlay it is the project's commit once it is kept, and whole."""
    with opened(project, "overlay") as box:
        box.bash("echo two > a && git commit -qam inside && echo late > b")
        assert box.git("log", "-1", "--format=%s").stdout == "inside\n"
        box.keep(
            [".git/HEAD", "a"]
            if any(c.path == ".git/HEAD" for c in box.changes())
            else [".git/index", "a"]
        )
    said = subprocess.run(["git", "log", "-1", "--format=%s"], capture_output=True, check=True)
    assert said.stdout == b"inside\n"
    state = subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True)
    assert state.stdout == b""
    assert not (project / "b").exists()


@pytest.mark.parametrize("backend", UNDOES)
def test_a_path_at_which_nothing_has_changed(project: Path, backend: str) -> None:
    with opened(project, backend) as box:
        box.fs.write("n", "x")
        with pytest.raises(RalphError, match=rf"{backend}.*nothing has changed at 'm'") as error:
            box.keep(["n", "m"])
        assert "changes()" in error.value.remedy
    assert not (project / "n").exists()


def test_direct_undoes_nothing_and_says_so(project: Path) -> None:
    with opened(project, "direct") as box:
        box.fs.write("n", "x")
        assert box.capabilities.rollback is False
        with pytest.raises(RalphError, match=r"direct.*cannot be undone") as error:
            box.discard()
        assert "ralph sandbox probe" in error.value.remedy
        with pytest.raises(RalphError, match="direct works in place"):
            box.keep(["n"])
        assert box.keep().applied == ("n",)
        assert box.changes() == ()
    assert (project / "n").exists()


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("wanted", "says", "remedy"),
    [
        ({"backend": "moon"}, "no sandbox 'moon'", "overlay"),
        ({"backend": "direct"}, "direct cannot keep a command off the network", 'network="on"'),
        ({"backend": "worktree"}, "worktree cannot keep a command off", 'network="on"'),
        ({"backend": "srt"}, "srt cannot be used", "ralph sandbox probe"),
        ({"backend": "sbx"}, "sbx cannot be used", "ralph sandbox probe"),
        ({"project": "/no/where"}, "/no/where is not a directory", "Name the project's directory."),
        ({"show": ["~/.nowhere"]}, ".nowhere", ""),
    ],
)
def test_what_cannot_be_had(project: Path, wanted: dict[str, str], says: str, remedy: str) -> None:
    """Issue: "errors name the backend and the remedy"."""
    if "backend" not in wanted and not OVERLAY:
        pytest.skip("this machine allows no namespaces")
    before = children()
    with pytest.raises(RalphError) as error, Sandbox(**{"project": ".", **wanted}):  # type: ignore[arg-type]
        pass
    assert says in error.value.message
    assert remedy in error.value.remedy
    assert children() <= before
    assert left() == set()


def test_hosts_are_checked_at_once() -> None:
    with pytest.raises(RalphError, match="is no host"):
        Sandbox(".", network=["a b"])


def test_it_has_to_be_open(project: Path) -> None:
    box = Sandbox(project, backend="direct", network="on")
    with pytest.raises(RalphError, match="not open") as error:
        box.bash("true")
    assert "with Sandbox" in error.value.remedy
    with box:
        assert box.bash("true").ok
        with pytest.raises(RalphError, match="open already"), box:
            pass
    with pytest.raises(RalphError, match="not open"):
        box.changes()
    with box:  # anew
        assert box.bash("true").ok


# ------------------------------------------------------------------ a guest in a program


@pytest.mark.parametrize("backend", EVERY)
def test_nothing_stays_and_nothing_is_printed(
    project: Path, backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = children()
    mounts = Path("/proc/self/mountinfo").read_text()
    descriptors = set(os.listdir("/proc/self/fd"))
    with opened(project, backend) as box:
        box.bash("echo out; setsid sleep 1000 & sleep 1000 &")
        box.keep()
        box.bash("echo more > b")
    assert children() <= before
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert set(os.listdir("/proc/self/fd")) <= descriptors
    assert left() == set()
    assert capfd.readouterr() == ("", "")
    worktrees = subprocess.run(["git", "worktree", "list"], capture_output=True, check=True)
    assert worktrees.stdout.count(b"\n") == 1


@pytest.mark.parametrize("backend", UNDOES)
def test_several_at_once_from_threads(project: Path, backend: str) -> None:
    """Each has its own; one that is shared takes turns; the last to be closed ends the helpers."""
    before = children()
    wrong: list[object] = []
    shared = opened(project, backend)

    def work(number: int) -> None:
        try:
            with opened(project, backend) as box:
                box.fs.write(f"mine{number}", str(number))
                shared.bash(f"echo {number} >> all")
                said = box.bash("sleep 0.1; cat mine*").stdout
                assert str(number) in said
                if number % 2:
                    assert box.keep().applied == (f"mine{number}",)
        except BaseException as error:  # noqa: BLE001  told in the other thread
            wrong.append(error)

    with shared:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(shared.fs.read("all").split()) == list("0123")
    assert not wrong, wrong
    assert children() <= before
    assert left() == set()
    assert {path.name for path in project.glob("mine*")} == {"mine1", "mine3"}


GUEST = """
import signal, sys
before = [signal.getsignal(n) for n in range(1, 32) if n not in (9, 19)]
from ralph import Sandbox
with Sandbox(sys.argv[1], backend=sys.argv[2], network=sys.argv[3]) as box:
    assert box.bash("echo hi").stdout == "hi\\n"
    box.fs.write("n", "x")
    assert box.keep().applied == ("n",)
assert [signal.getsignal(n) for n in range(1, 32) if n not in (9, 19)] == before
assert "click" not in sys.modules
print("done")
"""


@pytest.mark.parametrize("backend", EVERY)
def test_it_needs_no_click_and_handles_no_signal(project: Path, backend: str) -> None:
    network = "off" if backend == "overlay" else "on"
    words = [sys.executable, "-c", GUEST, str(project), backend, network]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_names_are_imported_when_they_are_asked_for() -> None:
    """`ralph` must start fast."""
    assert {"Sandbox", "RalphError"} <= set(ralph.__all__)
    code = "import sys, ralph; print('ralph.sandbox' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"


# ------------------------------------------------------------------ against a model

PATHS = ("a", "d/x", "n/a", "n/b")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("write", "write", "delete", "keep", "discard")), st.sampled_from(PATHS)
    ),
    max_size=10,
)


class Model:
    """What a project and its sandbox should have, as dicts."""

    def __init__(self) -> None:
        self.project: dict[str, str] = {"a": "one\n", "d/x": "x\n"}
        self.box: dict[str, str] = dict(self.project)

    @property
    def changed(self) -> set[str]:
        both = {*self.project, *self.box}
        return {path for path in both if self.project.get(path) != self.box.get(path)}

    def keep(self, path: str) -> None:
        self.project.pop(path, None)
        if path in self.box:
            self.project[path] = self.box[path]


def files_of(project: Path) -> Iterator[tuple[str, str]]:
    for path in PATHS:
        if (project / path).is_file():
            yield path, (project / path).read_text()


@pytest.mark.parametrize("backend", UNDOES)
@given(steps=STEPS)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_it_is_what_a_model_says(project: Path, backend: str, steps: list[tuple[str, str]]) -> None:
    """Issue: `fs`, `changes()`, `keep(paths)`, `discard()`."""
    tree(project, a="one\n", d__x="x\n")
    shutil.rmtree(project / "n", ignore_errors=True)
    model = Model()
    with opened(project, backend) as box:
        for number, (how, path) in enumerate(steps):
            if how == "write":
                box.fs.write(path, f"{number}")
                model.box[path] = f"{number}"
            elif how == "delete" and path in model.box:
                box.fs.delete(path)
                del model.box[path]
            elif how == "keep" and path in model.changed:
                assert path in box.keep(path).applied
                model.keep(path)
            elif how == "discard":
                box.discard()
                model.box = dict(model.project)
            assert dict(files_of(project)) == model.project
            delta = {change.path for change in box.fs.delta()} - {"n", "d"}
            assert delta == model.changed
            for name in PATHS:
                assert box.fs.exists(name) == (name in model.box)
    assert dict(files_of(project)) == model.project
