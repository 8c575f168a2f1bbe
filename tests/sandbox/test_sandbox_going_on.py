"""A sandbox that is worked in, kept in parts, left, come back to and discarded is what a model of
dicts says, whatever a person does in the project meanwhile."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sandbox_support import needs_overlay, policy, tree

from kits.thorough import examples
from ralph.kernel.value import replace
from ralph.sandbox import catalog, kept
from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.interface import Change, CommitResult, FileType, SandboxPolicy

Step = tuple[str, str]
PATHS = ("a", "b", "d/a", "d/b", "d/e/a", "n/a", "n/n/b")
HOWS = ("write", "write", "delete", "person", "keep", "keep_left", "leave", "cut_off")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(HOWS), st.sampled_from(PATHS)),
        st.tuples(st.sampled_from(("keep_all", "discard", "leave")), st.just("")),
    ),
    max_size=14,
)
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@b")
MEMORY = 16 * 1024 * 1024


class Stage:
    """A sandbox with a name, and what it and the project should have."""

    def __init__(self, project: Path, backend: str, own: SandboxPolicy) -> None:
        self.project = project
        self.backend = catalog.backend(backend)
        self.policy = own
        self.memory = bool(own.memory)
        self.has = {path: path for path in ("a", "b", "d/a", "d/b", "d/e/a")}  # the project
        self.layer: dict[str, str | None] = {}
        self.taken: set[str] = set()  # paths of the layer that a person has changed since
        self.count = 0
        tree(project, **{path.replace("/", "__"): text for path, text in self.has.items()})
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "Begin")):
            subprocess.run(["git", *IDENTITY, *words], cwd=project, check=True)
        self.box = self.opened()

    def opened(self) -> OpenSandbox:
        return self.backend.open(str(self.project), kept.named(self.policy, "one"))

    def one(self) -> kept.KeptSandbox:
        return kept.find(self.policy.state, str(self.project), "one")

    @property
    def seen(self) -> dict[str, str]:
        """What the sandbox should show, where nobody else has changed it."""
        both = {**self.has, **self.layer}
        return {p: t for p, t in both.items() if t is not None and p not in self.taken}

    def step(self, how: str, path: str) -> None:
        getattr(self, how)(path)
        self.check()

    def write(self, path: str) -> None:
        self.count += 1
        text = f"box {self.count}"
        self.box.fs.write(path, text.encode())
        self.layer[path] = text

    def delete(self, path: str) -> None:
        if path in self.seen:
            self.box.fs.delete(path)
            self.layer[path] = None

    def person(self, path: str) -> None:
        """What is in the layer is changed in the project too; elsewhere a worktree would not see
        it, and an overlay would."""
        if path in self.layer:
            self.count += 1
            whole = self.project / path
            whole.parent.mkdir(parents=True, exist_ok=True)
            whole.write_text(f"person {self.count}")
            self.has[path] = f"person {self.count}"
            self.taken.add(path)

    def applied(self, done: CommitResult, paths: set[str]) -> None:
        wanted = {p for p in self.layer if not paths or any(within(p, top) for top in paths)}
        for path in wanted - self.taken:
            text = self.layer.pop(path)
            if text is None:
                self.has.pop(path, None)
            else:
                self.has[path] = text
        assert not done.held
        assert not done.failed
        files = {one.path for one in done.changed if not (self.project / one.path).is_dir()}
        assert files <= self.taken

    def keep(self, path: str) -> None:
        self.applied(self.box.keep(paths=[path]), {path})

    def keep_all(self, _: str) -> None:
        self.applied(self.box.keep(), set())

    def keep_left(self, path: str) -> None:
        """By whoever comes back to it and does not open it."""
        self.box.seal()
        top = path.partition("/")[0]
        if {change.path for change in self.sealed() if within(change.path, top)}:
            done, left = kept.keep(self.one(), self.policy, [top])
            self.applied(done, {top})
            if not left:
                self.layer, self.taken = {}, set()
        self.box = self.opened()

    def sealed(self) -> list[Change]:
        with kept.taken(self.one(), self.policy) as commit:
            return [*commit.changes]

    def leave(self, _: str) -> None:
        self.box.seal()
        self.box = self.opened()

    def cut_off(self, _: str) -> None:
        if self.memory:
            return
        self.box.close()
        assert self.one().state == kept.CUT_OFF
        self.box = self.opened()

    def discard(self, _: str) -> None:
        self.box.close()
        kept.discard(self.one(), self.policy)
        self.layer, self.taken = {}, set()
        self.box = self.opened()

    def check(self) -> None:
        project = {p: (self.project / p).read_text() for p in PATHS if (self.project / p).is_file()}
        assert project == self.has
        self.check_files()
        changes = self.box.changes()
        files = {c.path for c in changes if c.entry is not FileType.DIRECTORY}
        wanted = {p for p, text in self.layer.items() if self.has.get(p) != text} - self.taken
        assert {path for path in files if not path.startswith(".git/")} - self.taken == wanted

    def check_files(self) -> None:
        for path, text in self.seen.items():
            assert self.box.fs.read(path).decode() == text, path


def within(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


@contextmanager
def staged(backend: str, memory: int) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory() as place:
        project = Path(os.path.realpath(place)) / "project"
        project.mkdir()
        stage = Stage(project, backend, replace(policy(memory), state=f"{place}/state"))
        try:
            yield stage
        finally:
            stage.box.close()


@pytest.mark.parametrize(
    ("backend", "memory"),
    [
        pytest.param("overlay", 0, marks=needs_overlay),
        pytest.param("overlay", MEMORY, marks=needs_overlay),
        ("worktree", 0),
    ],
    ids=["overlay", "memory", "worktree"],
)
@given(STEPS)
@example([("write", "n/a"), ("keep_all", ""), ("delete", "n/a"), ("keep_all", "")])
@example([("delete", "d/a"), ("leave", ""), ("person", "d/a"), ("leave", ""), ("keep_all", "")])
@example([("write", "a"), ("keep", "a"), ("write", "a"), ("person", "a"), ("keep_left", "a")])
@example([("delete", "a"), ("keep", "a"), ("write", "a"), ("cut_off", "a"), ("keep_all", "")])
@example([("write", "a"), ("keep", "a"), ("write", "a"), ("leave", ""), ("keep_all", "")])
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_it_is_what_the_model_says(backend: str, memory: int, steps: list[Step]) -> None:
    """Interface: run, keep these paths, go on, come back, discard."""
    with staged(backend, memory) as stage:
        for how, path in steps:
            if how == "keep" and not any(within(path, p) for p in stage.layer):
                continue
            stage.step(how, path)


@pytest.mark.parametrize("backend", [pytest.param("overlay", marks=needs_overlay), "worktree"])
@pytest.mark.parametrize("leaves", [False, True], ids=["kept in it", "kept when it was left"])
def test_what_was_kept_is_the_project_s_again(backend: str, leaves: bool) -> None:
    """An overlay shows what a person makes of it from then on; a worktree, which does not, never
    takes it back."""
    with staged(backend, 0) as stage:
        stage.write("a")
        stage.write("n/n/b")
        if leaves:
            stage.keep_left("a")
            stage.keep_left("n")
        else:
            stage.keep_all("")
        (stage.project / "a").write_text("person")
        (stage.project / "n/n/b").unlink()
        (stage.project / "n/n").rmdir()
        stage.leave("")
        if backend == "overlay":
            assert stage.box.fs.read("a") == b"person"
            assert "b" not in stage.box.fs.list("n")
        assert stage.box.changes() == ()
        stage.box.fs.write("a", b"box")
        done = stage.box.keep()
        text = (stage.project / "a").read_text()
        assert text == ("box" if backend == "overlay" else "person"), done


@needs_overlay
@pytest.mark.parametrize("memory", [(0, MEMORY, 0), (MEMORY, 0, MEMORY)], ids=["disk", "memory"])
def test_a_layer_moves_between_the_disk_and_memory(memory: tuple[int, ...]) -> None:
    """Where the disk can hold it no longer, or can by now."""
    with staged("overlay", memory[0]) as stage:
        stage.write("n/a")
        stage.delete("d/a")
        stage.box.bash("chmod 700 . d; ln -s a link; mkdir empty")
        for size in memory[1:]:
            stage.box.seal()
            stage.policy = replace(stage.policy, memory=size)
            stage.box = stage.opened()
            stage.check_files()
            assert stage.box.capabilities.why.startswith(
                "changes are kept in memory" if size else "changes are kept on disk"
            )
            said = stage.box.bash("stat -c %a . d; readlink link; ls -d empty").output
            assert said == b"700\n700\na\nempty\n"
            stage.write("b")
        found = {change.path for change in stage.box.changes()}
        assert found == {".", "b", "d", "d/a", "empty", "link", "n", "n/a"}
        assert not stage.box.keep().spared
        assert (stage.project / "d").stat().st_mode & 0o777 == 0o700
