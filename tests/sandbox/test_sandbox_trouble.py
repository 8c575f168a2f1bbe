"""Sandboxes in trouble: files that do not come, full disks, kills; nothing is lost silently."""

import errno
import io
import os
import queue
import resource
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from fake_support import Fake, fake, policy_now
from sandbox_support import needs_overlay, policy

from ralph.errors import ConfigError, RalphError, StateError
from ralph.sandbox import layer_store
from ralph.sandbox.backends import guest, overlay, sbx, worktree
from ralph.sandbox.backends.guest import Guest, SandboxTool
from ralph.sandbox.backends.machine import KeptMachine
from ralph.sandbox.changes.landing import recover
from ralph.sandbox.interface import CommandResult
from ralph.sandbox.namespace import proxy

pytestmark = pytest.mark.slow


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def git(repo: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout


# ------------------------------------------------------------------ sbx


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    return fake(tmp_path, monkeypatch, "sbx")


@needs_overlay
@pytest.mark.parametrize("where", ["stop", "exec", "journal"])
def test_the_only_copy_is_never_removed(
    tool: Fake, repo: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """What could not be kept stays in the machine, which nobody uses before a person looked."""
    with sbx.open(str(repo), policy_now()) as box:
        box.bash("echo 1 > new")
        if where == "journal":
            monkeypatch.setattr("ralph.sandbox.changes.commit.Commit.write", full)
        else:
            tool.troubled(**{where: "no"})
        with pytest.raises(StateError, match="could not be kept") as caught:
            box.commit()
    (name,) = tool.machines()
    assert f"sbx exec -it {name} bash" in caught.value.remedy
    tool.troubled()
    with pytest.raises(ConfigError, match="only copy") as caught_again:
        sbx.open(str(repo), policy_now())
    assert f"sbx rm {name}" in caught_again.value.remedy
    assert list(tool.machines()) == [name]


@needs_overlay
def test_a_commit_that_had_begun_is_finished_by_the_next(
    tool: Fake, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sbx.open(str(repo), policy_now()) as box:
        box.bash("echo 1 > new")
        with monkeypatch.context() as broken:
            broken.setattr("ralph.sandbox.changes.apply.apply", full)
            with pytest.raises(StateError) as caught:
                box.commit()
    assert "finished by the next" in caught.value.remedy
    assert len(tool.machines()) == 1
    recover(str(repo), policy_now().state)
    assert (repo / "new").read_text() == "1\n"
    sbx.open(str(repo), policy_now()).close()


@needs_overlay
@pytest.mark.parametrize(
    ("code", "content"),
    [(1, b""), (0, b""), (2, b"whole"), (137, b"torn"), (0, b"torn"), (0, b"less"), (0, b"noise")],
)
def test_what_does_not_come_is_told(
    tool: Fake, repo: Path, monkeypatch: pytest.MonkeyPatch, code: int, content: bytes
) -> None:
    """tar's exit code counts, and everything that was listed has to come."""
    asked = Guest.ask

    def ask(self: Guest, verb: str, *words: str, **options: object) -> CommandResult:
        if verb != "pack":
            return asked(self, verb, *words, **options)  # type: ignore[arg-type]
        into = options["into"]
        assert isinstance(into, io.IOBase | io.BufferedRandom)
        if content == b"less":
            options["stdin"] = b"./a\0"
        if content in (b"", b"noise"):
            into.write(content * 5000)
            return CommandResult(code, b"", b"killed")
        done = asked(self, verb, *words, **options)  # type: ignore[arg-type]
        if content == b"torn":
            os.truncate(into.fileno(), 700)
        return CommandResult(code or done.code, b"", b"killed")

    with sbx.open(str(repo), policy_now()) as box:
        box.bash("seq 1000 > a; seq 1000 > b")
        monkeypatch.setattr(Guest, "ask", ask)
        with pytest.raises(RalphError, match="files of the sandbox are lost"):
            box.changes()
    assert len(tool.machines()) == 1


@needs_overlay
def test_a_file_that_vanishes_while_it_is_fetched(
    tool: Fake, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs in there may remove files meanwhile: it is looked again."""
    asked, lists = Guest.ask, iter(["ghost"])

    def ask(self: Guest, verb: str, *words: str, **options: object) -> CommandResult:
        done = asked(self, verb, *words, **options)  # type: ignore[arg-type]
        if verb == "look" and (ghost := next(lists, None)):
            line = f"f 644 0 0 1 7 1.5 2.5 {ghost}\0".encode()
            return CommandResult(done.code, done.output + line, done.error)
        return done

    with sbx.open(str(repo), policy_now()) as box:
        box.bash("echo 1 > a")
        monkeypatch.setattr(Guest, "ask", ask)
        assert [change.path for change in box.changes()] == ["a"]
        box.discard()
    assert tool.machines() == {}


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="torn"):
        guest.unpack(io.BytesIO(b""), str(tmp_path))


@needs_overlay
def test_a_file_that_cannot_be_brought(
    tool: Fake, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sbx, "_add", lambda _tar, whole, path: path != b"secret")
    (repo / "secret").write_text("1\n")
    with sbx.open(str(repo), policy_now()) as box:
        assert "secret" in box.capabilities.lacks
        assert box.commit().applied == ()
    assert (repo / "secret").read_text() == "1\n"


@pytest.mark.parametrize("name", ["makedirs", "open"])
def test_no_room_for_a_machines_lock(
    repo: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    given = policy_now()
    with monkeypatch.context() as broken:
        broken.setattr(f"ralph.sandbox.backends.machine.os.{name}", full)
        with pytest.raises(StateError, match="No space left"):
            KeptMachine(given, Guest(SandboxTool((), {}), "name", str(repo)))


# ------------------------------------------------------------------ worktree


def test_a_killed_worktree_is_pruned_by_the_next(repo: Path) -> None:
    box = worktree.open(str(repo), policy())
    box._keeper.close()
    box._place.leave()  # as after kill -9
    recover(str(repo), policy().state)
    assert "prunable" in git(repo, "worktree", "list", "--porcelain")
    with worktree.open(str(repo), policy()):
        assert "prunable" not in git(repo, "worktree", "list", "--porcelain")


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("to", ["file", "link"])
def test_a_directory_that_became_something_else(
    repo: Path, tmp_path: Path, to: str, staged: bool
) -> None:
    """A worktree has everything that the project has now, and what a link leads to is spared."""
    outside = tmp_path / "outside"
    for directory in (repo / "d", outside):
        directory.mkdir()
        (directory / "x").write_text(f"{directory.name}\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "Next")
    shutil.rmtree(repo / "d")
    if to == "file":
        (repo / "d").write_text("file\n")
    else:
        (repo / "d").symlink_to(outside)
    if staged:
        git(repo, "add", "-A")
    with worktree.open(str(repo), policy()) as box:
        there = Path(box.project) / "d"
        assert there.is_symlink() == (to == "link")
        assert (there / "x" if to == "link" else there).read_text() in ("file\n", "outside\n")
        assert box.changes() == ()
    assert (outside / "x").read_text() == "outside\n"


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError])
def test_a_file_that_cannot_be_read_is_left_alone(
    repo: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    """It is named, and never deleted."""
    (repo / "secret").write_text("1\n")
    (repo / "open").write_text("1\n")
    copy = shutil.copy2

    def copy2(source: bytes, to: bytes, *, follow_symlinks: bool) -> None:
        if source.endswith(b"secret"):
            raise error(errno.EACCES, "no")
        copy(source, to, follow_symlinks=follow_symlinks)

    monkeypatch.setattr("ralph.sandbox.backends.worktree.shutil.copy2", copy2)
    with worktree.open(str(repo), policy()) as box:
        assert box.capabilities.lacks == "files are missing that cannot be read: secret"
        assert set(os.listdir(box.project)) == {".git", "README.md", "open"}
        box.bash("echo 2 > open")
        assert box.commit().applied == ("open",)
    assert (repo / "secret").read_text() == "1\n"


def test_many_files_that_cannot_be_read() -> None:
    said = worktree.lacking([b"a", b"b\n", b"c", b"d", b"e"])
    assert said == r"files are missing that cannot be read: a, b\n, c and 2 more"


def test_no_room_for_a_worktree(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "new").write_text("1\n")
    monkeypatch.setattr("ralph.sandbox.backends.worktree.shutil.copy2", full)
    with pytest.raises(StateError, match="No space left"):
        worktree.open(str(repo), policy())
    assert git(repo, "worktree", "list").count("\n") == 1


# ------------------------------------------------------------------ overlay, proxy


@needs_overlay
@pytest.mark.parametrize("where", ["directory", "constructor", "proxy"])
def test_nothing_is_left_of_an_overlay_that_could_not_be_opened(
    repo: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """StateError with words; no descriptor, process or directory is left."""
    given = policy_now("example.invalid", "localhost:4711")
    overlay.open(str(repo), given).close()
    targets = {
        "directory": (layer_store.LayerDir, "directory"),
        "constructor": (overlay, "environment_of"),
        "proxy": (proxy.os, "posix_spawn"),  # type: ignore[attr-defined]
    }
    above = layer_store.sandboxes(given.state, str(repo))
    before = (set(os.listdir("/proc/self/fd")), set(os.listdir(above)))
    with monkeypatch.context() as broken:
        broken.setattr(*targets[where], full)
        with pytest.raises(StateError, match="No space left"):
            overlay.open(str(repo), given)
    assert (set(os.listdir("/proc/self/fd")), set(os.listdir(above))) == before


def test_a_proxy_without_descriptors_goes_on() -> None:
    """One that has no more is not the end of it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    address = listener.getsockname()
    begun = proxy.Proxy([listener.detach()], (), ())
    try:
        assert asked(address).startswith(b"HTTP/1.1 403")
        resource.prlimit(begun._pid, resource.RLIMIT_NOFILE, (10, 10))
        crowd = [socket.create_connection(address) for _ in range(30)]
        while len(os.listdir(f"/proc/{begun._pid}/fd")) < 10:
            time.sleep(0.01)
        for client in crowd:
            client.close()
        assert asked(address).startswith(b"HTTP/1.1 403")
    finally:
        begun.close()


def asked(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, 30) as client:
        client.sendall(b"CONNECT example.invalid:443 HTTP/1.1\r\n\r\n")
        return client.recv(1000)


def test_a_proxy_serves_only_so_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "_MOST_CLIENTS", 2)
    listener = socket.create_server(("127.0.0.1", 0))
    now: queue.Queue[int] = queue.Queue()
    peaks = []

    def serve(client: socket.socket) -> None:
        now.put(1)
        peaks.append(now.qsize())
        client.sendall(b"x")
        client.recv(1)
        now.get()

    threading.Thread(target=proxy._accept, args=(listener, serve), daemon=True).start()
    clients = [socket.create_connection(listener.getsockname(), 30) for _ in range(6)]
    assert [client.recv(1) for client in clients[:2]] == [b"x", b"x"], "both at once"
    for served, client in zip(clients, clients[2:], strict=False):
        served.close()
        assert client.recv(1) == b"x"
    for client in clients[-2:]:
        client.close()
    assert max(peaks) == 2
