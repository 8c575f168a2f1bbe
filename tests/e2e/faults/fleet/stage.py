"""A fleet of three machines at work on a backlog: what can happen to it, and what is left of it."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kits.machines.checking import objections
from kits.machines.life import LifeLog
from kits.machines.network import AGENT, ROOT, USER_HOME, Host, Machines, Process, await_that

LEASE = 5
PORT = 8786
PROJECT = f"{USER_HOME}/project"
RALPH = (sys.executable, "-m", "ralph")
_WHO = "[user]\n\tname = Dev\n\temail = dev@localhost\n[init]\n\tdefaultBranch = main\n"
_GATE = "sleep 0.3; for each in done-*; do test -s $each || exit 1; done"
_TRAILER = "--format=%(trailers:key=Ralph-Task,valueonly)"


class Stage:
    """The first machine has the project and the run, the second the scheduler and a worker, the
    third another worker; a remote is on the switch."""

    def __init__(self, machines: Machines, life: LifeLog, tasks: int, packages: Path) -> None:
        self.machines, self.life = machines, life
        self._environment = {"PYTHONPATH": str(packages)}
        self.first, self.second, self.third = machines.hosts
        self.tasks = [f"T-{n}" for n in range(1, tasks + 1)]
        self.address = f"tls://{self.second.address}:{PORT}"
        self.processes: dict[str, Process] = {}

    def prepare(self) -> None:
        """Make certificates, the remote and the project."""
        certify(self.machines.root, self.machines.hosts)
        url = self.machines.remote()
        for host in self.machines.hosts:
            (host.home / ".gitconfig").write_text(_WHO, "utf-8")
        settings = {
            "agent": {"command": AGENT, "kind": "text", "probe": False},
            "fleet": {"lease": LEASE},
            "guardrails": [{"command": _GATE}],
            "endGrace": 0.2,
        }
        place = self.first.home / "project"
        (place / ".ralph").mkdir(parents=True)
        (place / ".ralph" / "settings.json").write_text(json.dumps(settings), "utf-8")
        lines = (json.dumps({"id": task, "title": f"Build {task}"}) for task in self.tasks)
        (place / ".ralph" / "tasks.jsonl").write_text("".join(f"{x}\n" for x in lines), "utf-8")
        for words in (
            ("init", "--quiet"),
            ("remote", "add", "origin", url),
            ("add", "--all"),
            ("commit", "--quiet", "--message", "Begin"),
            ("push", "--quiet", "origin", "HEAD"),
        ):
            self.first.call("git", *words, cwd=PROJECT)

    # -------------------------------------------------------------- who is there

    def start_scheduler(self) -> None:
        words = ("fleet", "up", "--workers", "0", "--host", self.second.address)
        tls = f"{USER_HOME}/.config/ralph/fleet"
        self._start("scheduler", self.second, *words, "--port", str(PORT), "--tls", tls)

    def start_worker(self, host: Host) -> None:
        words = ("fleet", "worker", "--scheduler", self.address, "--slots", "2")
        self._start(f"worker {host.name}", host, *words)

    def start_run(self) -> None:
        words = ("--parallel", "4", "--fleet", self.address)
        self._start("coordinator", self.first, "tasks", "run", *words, cwd=PROJECT)

    def resume(self) -> None:
        """Go on with the run; begin it if it was killed before there was one."""
        state = self.first.home / ".local" / "state" / "ralph"
        if any(state.glob("*/runs/*/journal.jsonl")):
            self._start("coordinator", self.first, "resume", cwd=PROJECT)
        else:
            self.start_run()

    def _start(self, name: str, host: Host, *words: str, cwd: str = "") -> None:
        with (self.machines.root / f"{name}.log").open("ab") as log:
            log.write(f"--- {time.monotonic():.3f} ralph {' '.join(words)}\n".encode())
            log.flush()
            process = host.run((*RALPH, *words), self._environment, cwd=cwd, stdout=log, stderr=log)
        self.processes[name] = process

    def said(self, name: str) -> str:
        """What a process has said so far, and those before it of that name."""
        return (self.machines.root / f"{name}.log").read_text("utf-8", "replace")

    # -------------------------------------------------------------- what is left

    def await_idle(self) -> None:
        """Wait until no attempt is at work anywhere, now that the run is over."""
        await_that(lambda: not self.attempts(), "the attempts end", 4 * LEASE)

    def attempts(self) -> dict[int, list[str]]:
        """The processes of machines that are at an attempt, or of an agent."""
        marks = ("ralph.fleet.machine.attempt", AGENT)
        return {
            pid: words
            for host in self.machines.hosts
            for pid, words in host.processes().items()
            if any(mark in word for word in words for mark in marks)
        }

    def end(self) -> None:
        """Have workers and scheduler end as people end them."""
        for name in ("worker host2", "worker host3", "scheduler"):
            if name in self.processes:
                self.processes[name].send(2)
        for name, process in self.processes.items():
            if name != "coordinator":
                process.wait(30)

    def wrong(self) -> list[str]:
        """Everything that is not as it must be, once all has ended."""
        landed = self.git("log", _TRAILER, "HEAD").split()
        worktrees = self.git("worktree", "list").splitlines()[1:]
        refs = [*self._refs(), *self._remote_refs()]
        left = [
            f"{host}: {words}"
            for host, all_ in self.machines.left().items()
            for words in all_.values()
        ]
        return objections(
            self.life.lines(),
            tasks=self.tasks,
            landed=landed,
            processes=left,
            worktrees=worktrees,
            refs=refs,
        )

    def git(self, *words: str) -> str:
        return self.first.call("git", *words, cwd=PROJECT)

    def _refs(self) -> Iterator[str]:
        for ref in self.git(
            "for-each-ref", "--format=%(refname)", "refs/ralph", "refs/heads"
        ).split():
            if ref != "refs/heads/main":
                yield f"project {ref}"

    def _remote_refs(self) -> Iterator[str]:
        served = self.machines.root / "served" / "project.git"
        words = ("git", "--git-dir", str(served), "for-each-ref", "--format=%(refname)")
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        yield from (f"remote {ref}" for ref in said.split() if ref != "refs/heads/main")


def install(place: Path, edits: Mapping[str, tuple[str, str]] = {}) -> Path:
    """Copy Ralph to an empty directory, as it is now but for these edits; what to put on the path.
    An edit of a module replaces a text that is in it once."""
    unwanted = shutil.ignore_patterns("__pycache__")
    copied = shutil.copytree(ROOT / "src" / "ralph", place / "ralph", ignore=unwanted)
    for name, (old, new) in edits.items():
        text = (copied / name).read_text("utf-8")
        assert text.count(old) == 1, f"{name} has changed: {old}"
        (copied / name).write_text(text.replace(old, new), "utf-8")
    _quietly(sys.executable, "-m", "compileall", "-q", str(place))
    return place


@contextmanager
def staged(root: Path, tasks: int, packages: Path) -> Iterator[Stage]:
    """A stage in an empty directory, for a Ralph that was installed."""
    with ExitStack() as stack:
        machines = stack.enter_context(Machines(root, programs=[packages]))
        life = stack.enter_context(LifeLog(machines.shared, root / "life.log"))
        stage = Stage(machines, life, tasks, packages)
        stage.prepare()
        yield stage


def certify(root: Path, hosts: list[Host]) -> None:
    """Make an authority, and give each host a certificate of it for its address."""
    authority = root / "authority"
    authority.mkdir()
    new = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    more = ("-nodes", "-days", "2", "-subj", "/CN=Test fleet")
    ca, ca_key = authority / "ca.pem", authority / "ca.key"
    _quietly(*new, *more, "-keyout", str(ca_key), "-out", str(ca))
    for host in hosts:
        place = host.home / ".config" / "ralph" / "fleet"
        place.mkdir(parents=True)
        (place / "ca.pem").write_bytes(ca.read_bytes())
        names = f"subjectAltName=IP:{host.address},DNS:{host.name}"
        words = ("-CA", str(ca), "-CAkey", str(ca_key), "-addext", names)
        own = ("-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem"))
        _quietly(*new, "-nodes", "-days", "2", "-subj", f"/CN={host.name}", *words, *own)
        os.chmod(place / "key.pem", 0o600)


def _quietly(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{argv}: {done.stderr}")
