"""The conformance kit for sandboxes: what every backend must do, tried for real.

    python -m kits.sandbox.kit [--json] [--fake] [BACKEND ...]

prints a table; with `--fake`, for srt, sbx and docker too, on fakes of their tools.

As a library: `CHECKS` are functions of a `Stage`; one raises AssertionError where the backend is
wrong, and `NotApplicable` where the backend says that it cannot do this.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from kits.agent.bench import NotApplicable
from kits.sandbox.containment import CHECKS as CONTAINMENT
from kits.sandbox.going_on import CHECKS as GOING_ON
from kits.sandbox.keeping import CHECKS as KEEPING
from kits.sandbox.stage import Stage, text_of
from kits.sandbox.tools import install_fake
from ralph.errors import ConfigError
from ralph.kernel.value import value
from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.interface import Change, ChangeKind, FileType

BACKENDS = ("overlay", "worktree", "direct")
FAKED = ("srt", "sbx", "docker")
ODD = ("new\nline", "\udcff\udcfe", "-dash", "a b'\"$(id)", "é中🙂")
_SOON = 5.0


def _kinds(sandbox: OpenSandbox) -> dict[str, ChangeKind]:
    """The changes but for git's own."""
    found = sandbox.changes()
    return {c.path: c.kind for c in found if c.path.partition("/")[0] != ".git"}


def probes(stage: Stage) -> None:
    """The probe says that it is usable, and why; it leaves nothing in the project."""
    before = sorted(os.listdir(stage.project))
    can = stage.backend.probe(stage.project, stage.policy)
    assert can.usable, can.why
    assert can.why
    assert sorted(os.listdir(stage.project)) == before


def files(stage: Stage) -> None:
    """`fs` reads, writes, lists and deletes."""
    with stage.open() as sandbox:
        assert sandbox.fs.read("kept") == b"as it was\n"
        sandbox.fs.write("new/dir/file", b"\0\xff")
        assert sandbox.fs.read("new/dir/file") == b"\0\xff"
        assert sandbox.fs.list("new") == ("dir",)
        sandbox.fs.delete("gone")
        assert "gone" not in sandbox.fs.list()
        assert sandbox.bash("ls new/dir; ls -d gone").output == b"file\n"


def files_stay_within(stage: Stage) -> None:
    """`fs` never follows a link or `..` out of the project."""
    with stage.open() as sandbox:
        sandbox.bash(f"ln -s {stage.directory} out; ln -s kept link")
        for path in ("out/state", "../state", "/etc/passwd", "link", ""):
            try:
                sandbox.fs.read(path)
            except (OSError, ValueError):
                continue
            raise AssertionError(f"{path!r} was read")
        sandbox.fs.write("link", b"own\n")
        assert sandbox.fs.read("kept") == b"as it was\n"
        sandbox.discard() if sandbox.capabilities.rollback else sandbox.fs.delete("out")


def commands(stage: Stage) -> None:
    """`bash` gives exit code, output and errors; programs that are not there are 127."""
    with stage.open() as sandbox:
        done = sandbox.bash("echo out; echo err >&2; pwd; exit 7")
        assert done.code == 7, done
        assert done.output == f"out\n{sandbox.project}\n".encode(), done
        assert done.error == b"err\n", done
        assert sandbox.bash("kill -9 $$").code == 128 + signal.SIGKILL
        assert sandbox.bash("nosuchprogram").code == 127
        try:
            sandbox.spawn(["nosuchprogram"])
        except FileNotFoundError:
            return
        raise AssertionError("a program that is not there was started")


def code(stage: Stage) -> None:
    """`eval` runs Python; a language without a runner is refused."""
    with stage.open() as sandbox:
        assert sandbox.eval("print(6 * 7)").output == b"42\n"
        assert sandbox.eval("raise SystemExit(3)").code == 3
        try:
            sandbox.eval("x", "cobol")
        except ConfigError:
            return
        raise AssertionError("cobol was run")


def git(stage: Stage) -> None:
    """`git` is the real one, on the project as the sandbox sees it."""
    with stage.open() as sandbox:
        sandbox.fs.write("new", b"x")
        assert sandbox.git("status", "--porcelain").output == b"?? new\n"
        assert b"Begin" in sandbox.git("log", "--oneline").output


def streams(stage: Stage) -> None:
    """`spawn` feeds standard input and hands output on as it comes."""
    output = bytearray()
    with stage.open() as sandbox:
        child = sandbox.spawn(["tr", "a-z", "A-Z"], output.extend, stdin=b"x" * 300_000)
        assert child.wait(lambda: None).code == 0
    assert output == b"X" * 300_000


def every_kind(stage: Stage) -> None:
    """`changes` knows added, modified, deleted, mode and symlink, and nothing that is the same."""
    with stage.open() as sandbox:
        sandbox.bash(
            "echo new > added; echo three >> edited; rm -r gone; chmod 755 script; "
            "ln -s kept link; mkdir empty"
        )
        assert _kinds(sandbox) == {
            "added": ChangeKind.ADDED,
            "edited": ChangeKind.MODIFIED,
            "empty": ChangeKind.ADDED,
            "gone": ChangeKind.DELETED,
            "gone/deep": ChangeKind.DELETED,
            "gone/deep/file": ChangeKind.DELETED,
            "link": ChangeKind.SYMLINK,
            "script": ChangeKind.MODE,
        }


def shows(stage: Stage) -> None:
    """Each change has a diff."""
    with stage.open() as sandbox:
        sandbox.fs.write("new", b"text\n")
        sandbox.bash("ln -s kept link")
        assert "+text" in sandbox.diff(Change("new", ChangeKind.ADDED))
        assert "kept" in sandbox.diff(Change("link", ChangeKind.SYMLINK, FileType.LINK))


def odd_names(stage: Stage) -> None:
    """Names with newlines and bytes that are no UTF-8 are changed, told and kept."""
    with stage.open() as sandbox:
        for name in ODD:
            sandbox.fs.write(name, b"x")
        assert set(_kinds(sandbox)) == set(ODD)
        sandbox.commit()
    assert set(ODD) <= set(os.listdir(stage.project))


def odd_things(stage: Stage) -> None:
    """A socket, where one can be made, and a pipe are told, never read, and never kept."""
    with stage.open() as sandbox:
        sandbox.bash("mkfifo pipe")
        done = sandbox.eval("import socket; socket.socket(socket.AF_UNIX).bind('socket')")
        made = {"pipe"} if b"PermissionError" in done.error else {"pipe", "socket"}
        found = {c.path: c.entry for c in sandbox.changes()}
        assert {name for name in found if found[name] is FileType.OTHER} == made, found
        if sandbox.capabilities.rollback:
            failed = {spared.path for spared in sandbox.commit(everything=True).failed}
            assert failed == made, failed


def undone(stage: Stage) -> None:
    """After `rm -rf` of the project, `discard` leaves all as it was; or it is refused."""
    with stage.open() as sandbox:
        if not sandbox.capabilities.rollback:
            try:
                sandbox.discard()
            except ConfigError:
                raise NotApplicable("it has no rollback, and refuses to discard") from None
            raise AssertionError("it says that it discarded")
        sandbox.bash("rm -rf ./* && echo x > other")
        assert sandbox.fs.list()[-1] == "other"
        sandbox.discard()
    assert stage.text("gone/deep/file") == "soon gone\n"
    assert stage.text("other") is None


def kept(stage: Stage) -> None:
    """`commit` applies every kind of change."""
    with stage.open() as sandbox:
        sandbox.bash(
            "echo new > added; echo three >> edited; rm -r gone; chmod 755 script; "
            "ln -s kept link; mkdir -p a/b; echo x > a/b/c; rm kept; mkdir kept; echo y > kept/in"
        )
        done = sandbox.commit()
    assert not done.spared, done
    assert stage.text("added") == "new\n"
    assert stage.text("edited") == "one\ntwo\nthree\n"
    assert stage.text("a/b/c") == "x\n"
    assert stage.text("kept/in") == "y\n"
    assert not os.path.exists(os.path.join(stage.project, "gone"))
    assert os.readlink(os.path.join(stage.project, "link")) == "kept"
    assert os.stat(os.path.join(stage.project, "script")).st_mode & 0o777 == 0o755


def spares(stage: Stage) -> None:
    """What a person changed meanwhile is never overwritten, and is named."""
    stage.needs("rollback")
    with stage.open() as sandbox:
        sandbox.bash("echo agent > edited; rm kept; echo agent > both; echo agent > script")
        stage.put("edited", "person\n")
        stage.put("kept", "person\n")
        stage.put("both", "person\n")
        done = sandbox.commit()
    assert {spared.path for spared in done.changed} == {"edited", "kept", "both"}, done
    assert {stage.text(name) for name in ("edited", "kept", "both")} == {"person\n"}
    assert stage.text("script") == "agent\n"
    with open(os.path.join(done.saved, "edited"), encoding="utf-8") as file:
        assert file.read() == "agent\n"


def holds(stage: Stage) -> None:
    """Settings, CI files and links out of the project are held, unless all is asked for."""
    stage.needs("rollback")
    script = (
        "mkdir -p .claude .github/workflows; echo x > .claude/settings.json; "
        "echo x > .github/workflows/ci.yml; echo x > .gitlab-ci.yml; ln -s /etc out"
    )
    expected = {".claude/settings.json", ".github/workflows", ".github/workflows/ci.yml"}
    expected |= {".gitlab-ci.yml", "out"}
    for everything in (False, True):
        with stage.open() as sandbox:
            sandbox.bash(script)
            done = sandbox.commit(everything=everything)
        assert {spared.path for spared in done.held} == (set() if everything else expected), done
        assert (stage.text(".gitlab-ci.yml") is not None) == everything


def nothing_stays(stage: Stage) -> None:
    """No process and no mount outlives it, and the state directory keeps no layer."""
    mark = f"86{os.getpid()}.{int(time.time() * 1000) % 100_000}"
    mounts = text_of("/proc/self/mountinfo")
    with stage.open() as sandbox:
        sandbox.bash(f"setsid -f sleep {mark}; (setsid sleep {mark} & ) &")
    end = time.monotonic() + _SOON
    while _running(mark) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _running(mark), _running(mark)
    assert text_of("/proc/self/mountinfo") == mounts
    left = [f for _, names, found in os.walk(stage.state) for f in (*names, *found)]
    assert not {"upper", "work", "tree"} & set(left), left


def _running(mark: str) -> list[str]:
    pids = filter(str.isdigit, os.listdir("/proc"))
    return [pid for pid in pids if text_of(f"/proc/{pid}/cmdline") == f"sleep\0{mark}\0"]


CHECKS: tuple[Callable[[Stage], None], ...] = (
    probes,
    files,
    files_stay_within,
    commands,
    code,
    git,
    streams,
    every_kind,
    shows,
    odd_names,
    odd_things,
    undone,
    kept,
    spares,
    holds,
    nothing_stays,
    *KEEPING,
    *GOING_ON,
    *CONTAINMENT,
)


@value
class Outcome:
    """How one check went: passed, not applicable, or FAILED, with the reason."""

    backend: str
    check: str
    state: str
    why: str = ""


def tried(backend: str, check: Callable[[Stage], None], environ: Mapping[str, str]) -> Outcome:
    """One check of one backend, in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="ralph-kit-") as directory:
        try:
            check(Stage(backend, os.path.realpath(directory), environ))
        except NotApplicable as reason:
            return Outcome(backend, check.__name__, "not applicable", str(reason))
        except Exception as error:  # noqa: BLE001  the table goes on
            return Outcome(backend, check.__name__, "FAILED", f"{type(error).__name__}: {error}")
    return Outcome(backend, check.__name__, "passed")


def main(arguments: list[str], environ: Mapping[str, str], out: TextIO) -> int:
    """Print the table; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m kits.sandbox.kit")
    parser.add_argument("backends", nargs="*", metavar="BACKEND")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.add_argument("--fake", action="store_true", help="put fakes of the tools on PATH")
    options = parser.parse_args(arguments)
    failed = False
    with tempfile.TemporaryDirectory(prefix="ralph-fakes-") as directory:
        if options.fake:
            environ = faked(directory, environ)
        for backend in options.backends or (*BACKENDS, *(FAKED if options.fake else ())):
            for check in CHECKS:
                one = tried(backend, check, environ)
                failed = failed or one.state == "FAILED"
                row = {name: getattr(one, name) for name in ("backend", "check", "state", "why")}
                line = f"{one.backend:<9} {one.check:<18} {one.state:<15} {one.why}".rstrip()
                print(json.dumps(row) if options.json else line, file=out, flush=True)
    return 1 if failed else 0


def faked(directory: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with fakes of srt, sbx and docker, which are put into the directory."""
    for name in FAKED:
        install_fake(directory, name)
    path = f"{directory}{os.pathsep}{environ['PATH']}"
    return {**environ, "PATH": path, "RALPH_SANDBOX_SETTLE": "0"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ, sys.stdout))
