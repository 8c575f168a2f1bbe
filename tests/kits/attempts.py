"""Attempts as whoever starts them sees them: real processes, a real remote, a scripted agent."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kits.work_tree import git, new_repository, work_of
from ralph import __version__
from ralph.fleet.port import Job
from ralph.fleet.trees import Remote, ResultFound, make_order, read_result, ref_of
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.kernel.facts import Ended
from ralph.kernel.turn import Order, Turn
from ralph.processes.clock import boottime
from ralph.testing.scripted_agent.install import install_agent

Json = dict[str, Any]
PROGRAM = ("-m", "ralph.fleet.machine.attempt")
# Not the name of a run in another process of the tests: whoever bears it is ended with it.
RUN = f"20261119-{os.getpid() % 10**6:06d}-abcd"
PATIENCE = 60.0  # seconds, for a machine that has other things to do


class Attempted:
    """An attempt that was started; nothing is lent to it yet."""

    def __init__(self, site: "Site", job: Job | None, command: tuple[str, ...]) -> None:
        self.job, self.messages = job, list[Json]()
        self._rest = b""
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **site.environ},
            bufsize=0,
        )
        if job is not None:
            self.tell(job=asdict(job), incarnation="one")

    def tell(self, **message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        with suppress(BrokenPipeError):
            self.process.stdin.write(data)

    def lend(self, seconds: float = 0.0) -> float:
        """Renew the lease; until when."""
        assert self.job
        until = boottime() + (seconds or self.job.lease)
        self.tell(until=until)
        return until

    def let_go(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def until(self, name: str) -> Json:
        """What it says under this name, once it does."""
        end = time.monotonic() + PATIENCE
        while not any(name in message for message in self.messages):
            assert time.monotonic() < end, (name, self.messages)
            assert self._hear(0.2) or self.process.poll() is None, (name, self.messages)
        return next(message[name] for message in self.messages if name in message)

    def result(self) -> Json:
        """Its last word, once it has ended."""
        assert self.process.stdout
        while not self.process.stdout.closed and self._hear(PATIENCE):
            pass
        self.process.wait(PATIENCE)
        return self.messages[-1] if self.messages else {}

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    def _hear(self, wait: float) -> bool:
        """Read what there is to read; False at its end."""
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], wait)[0]:
            assert wait < PATIENCE, self.messages
            return True
        chunk = os.read(self.process.stdout.fileno(), 65_536)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self.messages += map(json.loads, lines)
        return bool(chunk)


@dataclass
class Site:
    """A project, a remote that it shares with a machine, and that machine's home and agent."""

    root: Path
    turns: list[Json]
    settings: Json = field(default_factory=dict)
    kind: str = "claude"

    def __post_init__(self) -> None:
        self.project = new_repository(self.root / "project")
        self.work: WorkTree = work_of(self.project)
        git(self.root, "init", "--quiet", "--bare", "remote.git")
        self.remote = Remote(self.work.repository, str(self.root / "remote.git"))
        git(self.project, "push", "--quiet", self.remote.url, "HEAD:refs/heads/main")
        self.agent = install_agent(str(self.root / "bin"), self.turns, kind=self.kind)
        self.home = self.root / "machine"
        self.home.mkdir()
        self.environ = {
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_STATE_HOME": str(self.home / ".state"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "RALPH_STATE_DIR": str(self.home / "state"),
        }

    @property
    def cache(self) -> Path:
        """What the machine keeps of the remote."""
        (found,) = (self.home / ".cache" / "ralph" / "fleet").iterdir()
        return found

    @property
    def runs(self) -> Path:
        return self.home / "state" / "fleet"

    def again(self, *turns: Json) -> None:
        """Have the agent do something else from now on."""
        install_agent(str(self.root / "bin"), list(turns), kind=self.kind)

    def job(self, task: str = "T-1", attempt: int = 1, **how: Any) -> Job:  # noqa: ANN401
        """An order that is at its ref, and the job for it."""
        text = how.pop("prompt", "Do it.")
        listed = how.pop("task_list", None)
        order = make_order(
            self.work.repository,
            Order(text, 1, dollars=how.pop("dollars", None)),
            head=self.work.head(),
            work=self.work.tree(),
            task_list=listed,
            inside=how.pop("inside", ""),
        )
        run = how.pop("run", RUN)
        ref = ref_of(run, task, attempt)
        assert self.remote.put(ref, order)
        settings = {"agent": {"command": self.agent}, "sandbox": "direct", **self.settings}
        told = json.dumps({**settings, **how.pop("settings", {})})
        job = Job(__version__, run, task, attempt, ref, order, self.remote.url, 30.0, told)
        return Job(**{**asdict(job), **how})

    @contextmanager
    def started(self, job: Job | None, *python: str) -> Iterator[Attempted]:
        """An attempt; `python` are the words before its module, where another is to run it."""
        attempt = Attempted(self, job, (*(python or (sys.executable,)), *PROGRAM))
        try:
            yield attempt
        finally:
            attempt.end()

    def made(self, job: Job) -> Json:
        """The result of a job, with all the time in the world."""
        with self.started(job) as attempt:
            attempt.lend()
            return attempt.result()

    def found(self, job: Job) -> ResultFound:
        """The result at its ref."""
        self.remote.fetch(job.ref)
        (commit,) = self.remote.at(job.ref).values()
        return read_result(self.work.repository, commit, job.order)

    def turn(self, job: Job) -> Turn:
        last = self.found(job).facts[-1]
        assert isinstance(last, Ended)
        return last.turn

    def files(self, tree: str) -> dict[str, str]:
        """The files of a tree, but for those that the project had."""
        git_ = self.work.repository
        new = git_.changes(tree, self.work.tree())
        return {
            one.path: git_.ask("cat-file", "blob", one.identifier).decode()
            if one.identifier.strip("0")
            else "gone"
            for one in new
        }


def naming(text: str) -> list[int]:
    """The processes that have this in their environment or their command line, without zombies."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            said = Path(f"/proc/{name}/environ").read_bytes()
            said += Path(f"/proc/{name}/cmdline").read_bytes()
            if text.encode() in said:
                found.append(int(name))
    return found


def gone(text: str, within: float = 10.0) -> bool:
    """True once no process names this any more."""
    end = time.monotonic() + within
    while naming(text):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
