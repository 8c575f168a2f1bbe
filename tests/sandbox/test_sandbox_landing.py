"""A layer after its sandbox: sealed, landed, thrown away; killed between any two steps, or where
the disk is full and the project gone."""

import errno
import fcntl
import os
import shutil
import stat
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from sandbox_support import needs_overlay, policy, tree

from ralph.kernel.facts import Landed
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command
from ralph.sandbox import catalog, layer_store
from ralph.sandbox.backends import overlay, worktree
from ralph.sandbox.changes import apply, landing
from ralph.sandbox.changes.commit import Commit
from ralph.sandbox.interface import CommitResult
from ralph.sandbox.run_layers import RunLayers

NAME = "run-001"


class Killed(BaseException):
    """We are gone, and tidy up nothing."""


def sealed(project: Path, script: str) -> str:
    """The place of a layer that waits for its landing."""
    sandbox = overlay.open(str(project), replace(policy(), name=NAME))
    done = sandbox.bash(script)
    assert done.code == 0, done
    assert sandbox.seal()
    return os.path.join(layer_store.sandboxes(policy().state, str(project)), NAME)


def land(path: str, tmp_path: Path, *, keep: bool = True) -> Landed:
    return landing.land(path, 1.0, keep=keep, thrown=str(tmp_path / "thrown"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tree(tmp_path / "project", a="1\n", d__x="1\n")


def kill_at(patch: pytest.MonkeyPatch, where: object, name: str, *, after: bool) -> None:
    """The next call of this function is our last, once it has done its work or before."""
    do = getattr(where, name)

    def die(*given: object, **named: object) -> object:
        if after:
            do(*given, **named)
        raise Killed

    patch.setattr(where, name, die)


STEPS: list[tuple[object, str, bool]] = [
    (landing, "_landed", False),
    (landing, "_applied", False),
    (apply, "apply", True),
    (apply, "save", True),
    (landing, "_answer", False),
    (landing, "_answer", True),
    (layer_store, "forget_journal", False),
    (layer_store, "forget_journal", True),
]


@needs_overlay
@pytest.mark.parametrize("other", ["resume", "another"])
@pytest.mark.parametrize(("where", "name", "after"), STEPS, ids=lambda v: getattr(v, "__name__", v))
def test_a_landing_that_is_killed_lands_once(
    project: Path, tmp_path: Path, where: object, name: str, after: bool, other: str
) -> None:
    """In the loop: "killed in the middle: resume finishes or undoes it"."""
    path = sealed(project, "echo 2 > a; rm -r d; echo x > .envrc; echo new > n")
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, where, name, after=after)
        with pytest.raises(Killed):
            land(path, tmp_path)
    if other == "another":  # somebody starts something else before the run goes on
        assert len(landing.recover(str(project), policy().state)) <= 1
        (project / "n").write_text("a person's\n") if (project / "n").exists() else None
    begun = (project / "n").exists()
    landed = land(path, tmp_path)
    assert (landed.kept, landed.held, landed.spared) == (True, (".envrc",), ())
    assert (project / "a").read_text() == "2\n"
    assert not (project / "d").exists()
    if other == "another" and begun:
        assert (project / "n").read_text() == "a person's\n"
    assert (Path(landed.saved) / ".envrc").read_text() == "x\n"
    assert land(path, tmp_path, keep=False) == landed, "asked again, the same answer"
    assert not os.path.exists(os.path.join(path, layer_store.JOURNAL))


@needs_overlay
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ["_throw_away", "_answer"])
def test_what_is_thrown_away_is_seen_even_after_a_kill(
    project: Path, tmp_path: Path, name: str, after: bool
) -> None:
    path = sealed(project, "echo 2 > a")
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, landing, name, after=after)
        with pytest.raises(Killed):
            land(path, tmp_path, keep=False)
    landed = land(path, tmp_path, keep=False)
    assert (landed.kept, landed.count) == (False, 1)
    assert (Path(landed.saved) / "a").read_text() == "2\n"
    assert (project / "a").read_text() == "1\n"


@needs_overlay
def test_a_project_that_is_gone_when_its_layer_lands(project: Path, tmp_path: Path) -> None:
    path = sealed(project, "echo 2 > a; echo n > n; rm -r d")
    shutil.rmtree(project)
    landed = land(path, tmp_path)
    assert {text.partition(":")[0] for text in landed.spared} == {"a", "n"}
    assert (Path(landed.saved) / "n").read_text() == "n\n"
    assert not project.exists()


def full(*_: object) -> str:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@needs_overlay
def test_no_room_for_what_is_spared(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer itself is left then: nothing is lost."""
    monkeypatch.setattr(apply, "save", full)
    with overlay.open(str(project), policy()) as sandbox:
        sandbox.bash("echo x > .envrc; echo 2 > a")
        kept = sandbox.commit()
    assert kept.applied == ("a",)
    assert (Path(kept.saved) / ".envrc").read_text() == "x\n"


@needs_overlay
def test_a_commit_that_fails_in_the_middle_is_finished_by_the_next(project: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "_close_directories", full)
        with overlay.open(str(project), policy()) as sandbox:
            sandbox.bash("echo 2 > a; echo x > n")
            with pytest.raises(OSError, match="No space"):
                sandbox.commit()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landing, "_applied", full)
        assert landing.recover(str(project), policy().state) == ()
    (kept,) = landing.recover(str(project), policy().state)
    assert (kept.applied, kept.spared) == (("a", "n"), ())
    assert os.listdir(layer_store.sandboxes(policy().state, str(project))) == ["places"]


@needs_overlay
@pytest.mark.parametrize("text", ["", "{", '{"changes": 3}'])
def test_a_journal_that_cannot_be_read_loses_nothing(project: Path, text: str) -> None:
    """What had begun is not thrown away: it waits for a person, and that is said."""
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, apply, "apply", after=False)
        with overlay.open(str(project), policy()) as sandbox:
            sandbox.bash("echo x > n; chmod 0 .")
            with pytest.raises(Killed):
                sandbox.commit()
    (above,) = Path(layer_store.sandboxes(policy().state, str(project))).glob(
        f"*/{layer_store.JOURNAL}"
    )
    above.write_text(text)
    (kept,) = landing.recover(str(project), policy().state)
    assert "cannot be read" in kept.failed[0].why
    assert (Path(kept.saved) / "n").read_text() == "x\n"
    assert not (project / "n").exists()
    assert landing.recover(str(project), policy().state) == ()
    assert os.listdir(layer_store.sandboxes(policy().state, str(project))) == ["places"]


@needs_overlay
@pytest.mark.parametrize("both", [False, True], ids=["journal", "both"])
def test_a_sealed_layer_whose_lists_cannot_be_read(
    project: Path, tmp_path: Path, both: bool
) -> None:
    """The two lists are the same; without either, what the turn did waits for a person."""
    path = Path(sealed(project, "echo x > n"))
    (path / layer_store.JOURNAL).write_text("{")
    if both:
        (path / layer_store.SEALED).write_text("{")
        assert landing.recover(str(project), policy().state) == ()
    landed = land(str(path), tmp_path)
    assert landed.kept == (not both)
    assert (Path(landed.saved if both else project) / "n").read_text() == "x\n"
    assert ["cannot be read" in text for text in landed.spared] == [True] * both


@pytest.mark.parametrize(
    "backend", [pytest.param(overlay, marks=needs_overlay), worktree], ids=["overlay", "worktree"]
)
def test_what_is_changed_is_saved_where_it_cannot_be_kept(
    repo: Path, backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input: "state directory full"; what a turn did is not lost, with any backend."""
    tree(repo, a="1\n")
    subprocess.run(["git", "add", "--all"], check=True)
    subprocess.run(["git", "commit", "--quiet", "--message", "Begin"], check=True)
    monkeypatch.setattr(Commit, "write", full)
    with backend.open(str(repo), policy()) as sandbox:
        sandbox.bash("echo 2 > a")
        with pytest.raises(OSError, match="No space"):
            sandbox.commit()
        saved = sandbox.rescue().removeprefix("What was changed is in ")
    assert (Path(saved) / "a").read_text() == "2\n"
    assert (repo / "a").read_text() == "1\n"
    assert os.listdir(layer_store.sandboxes(policy().state, str(repo))) == ["places"]
    assert b"prunable" not in subprocess.check_output(["git", "worktree", "list"])


def test_a_place_that_has_an_owner_is_left_alone(tmp_path: Path) -> None:
    state, project = str(tmp_path / "state"), str(tmp_path / "project")
    mine = layer_store.claim(state, project, "mine")
    assert list(layer_store.abandoned(state, project)) == []
    assert os.path.exists(mine.path)
    mine.leave()
    assert list(layer_store.abandoned(state, project)) == [mine.path]


def test_a_place_of_somebody_else_is_in_nobodys_way(tmp_path: Path) -> None:
    state, project = str(tmp_path / "state"), str(tmp_path / "project")
    mine = layer_store.claim(state, project, "mine")
    mine.leave()
    odd = Path(layer_store.sandboxes(state, project)) / "odd"
    (odd / "lock").mkdir(parents=True)
    assert list(layer_store.abandoned(state, project)) == [mine.path]
    assert not os.path.exists(mine.path)
    assert odd.exists()


def test_a_place_is_left_once(tmp_path: Path) -> None:
    """Left again, it closes nothing: the number of its lock may be another file's."""
    mine = layer_store.claim(str(tmp_path / "state"), str(tmp_path), "mine")
    mine.leave()
    others = [os.open(tmp_path, os.O_RDONLY) for _ in range(8)]
    mine.leave()
    for other in others:
        os.close(other)  # OSError if it is closed


def test_a_place_that_was_removed_while_one_waited_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = layer_store.claim(str(tmp_path / "state"), str(tmp_path), "mine")
    found.leave()
    do = fcntl.flock

    def wait(lock: int, how: int) -> None:
        layer_store.remove(found.path)
        do(lock, how)

    monkeypatch.setattr(fcntl, "flock", wait)
    assert layer_store.reclaimed(found.path) is None


def test_a_tree_of_any_depth_and_mode_is_removed(tmp_path: Path) -> None:
    """Neither recursion nor one descriptor for every level."""
    outside = tree(tmp_path / "outside", kept="1\n")
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.symlink(outside, "link", dir_fd=here)
        os.mkdir("d", dir_fd=here)
        above, here = here, os.open("d", os.O_RDONLY, dir_fd=here)
        os.fchmod(above, 0o500)
        os.close(above)
    os.close(here)
    layer_store.remove(str(top))
    assert not os.path.lexists(top)
    assert (outside / "kept").exists()
    assert stat.S_IMODE(outside.stat().st_mode) != 0


@needs_overlay
def test_a_conflict_where_the_kind_changed_is_told_once(project: Path) -> None:
    """Settled: "`--keep` never overwrites what a person changed meanwhile and names it"."""
    with overlay.open(str(project), policy()) as sandbox:
        sandbox.bash("rm a; mkdir a; echo in > a/in; rm -r d; echo file > d")
        (project / "a").write_text("a person's\n")
        (project / "d" / "new").write_text("a person's\n")
        kept = sandbox.commit()
    assert paths(kept) == ["a", "a/in", "d", "d/new"]
    assert (project / "a").read_text() == "a person's\n"
    assert (project / "d" / "new").read_text() == "a person's\n"


@needs_overlay
def test_what_a_guardrail_changed_is_kept_unless_it_was_cut(project: Path, tmp_path: Path) -> None:
    told: list[str] = []
    layers = RunLayers(catalog.backend("overlay"), str(project), policy(), str(tmp_path), (), 5.0)
    layers.tell = told.append

    def checked(script: str, cut: Cut | None = None) -> int:
        said = bytearray()
        child = layers.check(
            Command(("sh", "-c", script), str(project), policy().environ), said.extend
        )
        return child.wait(lambda: cut if said else None).code

    assert checked("echo 2 > a; echo ready; sleep 60", Cut("late", grace=0.05)) > 128
    assert ((project / "a").read_text(), told) == ("1\n", [])
    assert checked("echo 3 > a; echo x > .envrc; exit 4") == 4
    assert (project / "a").read_text() == "3\n"
    assert [words.partition(";")[0] for words in told] == [
        "Not kept of what a guardrail changed: .envrc"
    ]
    layers.close()


def paths(kept: CommitResult) -> list[str]:
    return sorted(spared.path for spared in kept.spared)


@needs_overlay
def test_sockets_in_a_layer_in_memory(project: Path) -> None:
    """Bad input: "sockets and devices in the tree"."""
    with overlay.open(str(project), policy(memory=1024 * 1024)) as sandbox:
        sandbox.eval("import socket; socket.socket(socket.AF_UNIX).bind('socket')")
        sandbox.bash("mkfifo pipe; echo 2 > a")
        kept = sandbox.commit()
    assert (kept.applied, paths(kept)) == (("a",), ["pipe", "socket"])
