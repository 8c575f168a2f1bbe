"""A program that uses a sandbox as a library and is killed leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kits.sandbox.kit import faked
from kits.sandbox.stage import overlay_is_usable

GUEST = """
import sys
from ralph import Sandbox
network = "off" if sys.argv[1] in ("overlay", "srt") else "on"
with Sandbox(".", backend=sys.argv[1], network=network) as box:
    box.fs.write("work", "x")
    with Sandbox(".", backend=sys.argv[1], network=network) as other:
        other.bash("echo y > other; mkdir -p n/m; chmod 000 n")
        other.keep(["other"] if sys.argv[1] != "direct" else None)
        places = [one._box.places for one in (box, other)]
        print(*places[0], *places[1], flush=True)
        script = "rm -r work; while :; do i=$(((i + 1) % 50)); echo x > file$i; done"
        box.bash("setsid sleep " + sys.argv[2] + " & " + script)
"""
needs_overlay = pytest.mark.skipif(
    not overlay_is_usable(), reason="this machine allows no namespaces"
)
BACKENDS = [
    pytest.param("overlay", marks=needs_overlay),
    pytest.param("srt", marks=needs_overlay),  # a fake of it
    "worktree",
    "direct",
]


def processes(mark: str) -> Iterator[str]:
    """Whatever runs with this word on its command line or in its environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        for name in ("cmdline", "environ"):
            try:
                if mark.encode() in Path(f"/proc/{pid}/{name}").read_bytes():
                    yield pid
            except OSError:
                continue


def soon(what: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while (found := what()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not found, found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "terminate"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_stays(repo: Path, backend: str, number: signal.Signals, tmp_path: Path) -> None:
    """Issue: no process, mount or directory, "also when the program is killed -9"."""
    mark = f"7{os.getpid()}.{number:02d}{len(backend)}"
    mounts = Path("/proc/self/mountinfo").read_text()
    program = subprocess.Popen(
        [sys.executable, "-c", GUEST, backend, mark],
        cwd=repo,
        env={**faked(str(tmp_path / "bin"), os.environ), "MARK": f"mark-{mark}"},
        stdout=subprocess.PIPE,
    )
    assert program.stdout is not None
    with program.stdout:
        places = program.stdout.readline().decode().split()
        assert all(map(os.path.isdir, places))
        assert len(places) == {"srt": 4, "direct": 0}.get(backend, 2)
        soon(lambda: not [*processes(f"sleep\0{mark}")])
        program.send_signal(number)
        program.wait()
    soon(lambda: [*processes(f"mark-{mark}")])
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert [place for place in places if os.path.exists(place)] == []
    state = Path(os.environ["RALPH_STATE_DIR"])
    layers = [path for path in state.glob("*/sandboxes/*") if path.is_dir()]
    assert layers == []
    worktrees = subprocess.run(["git", "worktree", "list"], capture_output=True, check=True)
    assert worktrees.stdout.count(b"\n") == 1
    assert (repo / "other").read_text() == "y\n"
    if backend != "direct":
        assert {path.name for path in repo.iterdir()} == {".git", "README.md", "other"}
    else:
        (repo / "n").chmod(0o700)


def test_a_layer_that_is_being_kept_or_has_a_name_stays(tmp_path: Path) -> None:
    """What tidies up leaves what somebody finishes or comes back to."""
    from ralph.sandbox import layer_store, tidier

    for name, stays in (("commit.json", True), ("kept.json", True), ("sealed.json", False)):
        place = layer_store.claim(str(tmp_path), str(tmp_path))
        place.directory("upper")
        Path(place.path, name).write_text('{"backend": "overlay"}')
        place.leave()
        tidier.tidy(place.path, str(tmp_path), [])
        assert os.path.isdir(place.path) is stays
