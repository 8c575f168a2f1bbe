"""Where turns are taken, by the settings: a fleet, and the remote that its machines reach."""

import json
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from ralph.agents.kinds import is_path_from
from ralph.errors import ConfigError
from ralph.fleet.lease import Lent
from ralph.fleet.port import MOST_BYTES, Executor
from ralph.fleet.security import address_of, is_loopback, security_of
from ralph.fleet.trees import forget_runs, of_runs
from ralph.git.branch import slug
from ralph.git.remote import last_line
from ralph.git.repository import Repository, call, clean_environ
from ralph.kernel.value import replace, value
from ralph.processes.clock import boottime
from ralph.text.redact import redact
from ralph.text.secrets import secrets_of
from ralph.text.words import counted, duration, listed

if TYPE_CHECKING:
    from ralph.settings.load import Loaded

LOCAL, NONE = "local", "none"
_NEEDED = (  # settings of a turn; the others are judged where the run is
    *("agent", "sandbox", "network", "sandboxShow", "guard", "protect", "secrets"),
    *("streamAgentOutput", "endGrace"),
    *("pr", "ci"),  # which hide the forge's keys from agents
)
_OF_THE_LOOP = ("setup", "stepDown")
_PASSWORD = re.compile(r"(?i)//[^/@]*:[^/@]*@|^https?://([^/@]{16,}@|[^?]*\?)")  # or a token
_LEASES = (2.0, 86_400.0)  # seconds: the least and the most
_LARGEST = MOST_BYTES // 2  # of the settings; the rest of a job is small


@value
class Fleet:
    """A fleet, and all that a turn there needs to be told."""

    address: str  # `local` for processes of this machine
    remote: str  # a URL or a path
    lease: float
    settings: str  # of a turn, as JSON; no secrets
    tls: str = ""  # the directory with the certificates
    left: tuple[str, ...] = ()  # variables of agent.env.set that do not travel
    executor: Executor | None = None  # once it is connected

    @contextmanager
    def connected(self, environ: Mapping[str, str], slots: int) -> "Iterator[Fleet]":
        """The same with whoever dispatches. ConfigError where it cannot be reached."""
        with closing(self._executor(environ, slots)) as executor:
            yield replace(self, executor=executor)

    def _executor(self, environ: Mapping[str, str], slots: int) -> Executor:
        if self.address == LOCAL:
            from ralph.fleet.executors.local import LocalExecutor

            return LocalExecutor(slots)
        from ralph.fleet.executors.dask import DaskExecutor

        return DaskExecutor(self.address, security_of(self.address, self.tls, environ))

    def words(self) -> str:
        """For people, before the first turn."""
        here = self.address == LOCAL
        where = "in processes of this machine" if here else f"at {self.address}"
        left = f"; not sent: {listed(self.left)} (agent.env.set)" if self.left else ""
        judged = "checks run and work is merged here"
        return f"Turns are taken {where}, with code by git from {self.remote}{left}; {judged}"

    def lacks(self, wanted: int) -> Iterator[str]:
        """For people, where it has too few slots for so many tasks at a time."""
        if not (slots := self.slots):
            start = f"Start one, on each machine: ralph fleet worker --scheduler {self.address}"
            yield f"The fleet has no workers: the run waits for them. {start}"
            if wanted == 1:
                yield "It works on one task at a time, also when they come; --parallel N: on N"
        elif slots < wanted:
            yield f"The fleet has {counted(slots, 'slot')}: other tasks wait until one is free"

    @property
    def slots(self) -> int:
        """How many attempts can be under way at once, as far as is known now."""
        return self.dispatcher.slots()

    @property
    def dispatcher(self) -> Executor:
        assert self.executor is not None, "it is connected"
        return self.executor

    def look_at_remote(self, workspace: str, environ: Mapping[str, str]) -> None:
        """ConfigError where git cannot reach it: a name that is wrong is no network that comes
        back, so nothing is begun."""
        environ = {**clean_environ(environ), "LC_ALL": "C"}
        done = call(("ls-remote", "--quiet", "--", self.remote, "HEAD"), workspace, environ)
        if done.code != 0:
            why = last_line(done.said).rstrip(".") or f"git exited with code {done.code}"
            look = f"Look: git ls-remote {shlex.quote(self.remote)}"
            raise ConfigError(
                f"git cannot reach {self.remote}, by which the machines get the code: {why}",
                f"{look}. Or name another remote, a URL or a path: fleet.remote",
            )

    def earlier(self, repository: Repository, runs: Collection[str]) -> "Earlier":
        """What machines may still have of runs that were killed, and with which nobody goes on."""
        if self.address == LOCAL or not runs:  # what is here has ended with its run
            return Earlier(frozenset(), 0.0, 0.0)
        refs = of_runs(repository, self.remote, runs)
        tasks = frozenset(ref.split("/")[-2] for ref in refs)
        longest = Lent(self.lease).held_from(0.0).over or 0.0
        return Earlier(tasks, longest, boottime() + longest)

    def forget(self, repository: Repository, runs: Collection[str]) -> None:
        """Delete what attempts of runs that are over have left on the remote."""
        forget_runs(repository, self.remote, runs)


@value
class Earlier:
    """Attempts of runs that were killed: until their leases are over, agents may be alive."""

    tasks: frozenset[str]  # as refs name them
    seconds: float
    until: float  # by the clock that counts a suspend too

    def words(self) -> list[str]:
        """For people, before the first turn."""
        if not self.tasks:
            return []
        what = f"{listed(sorted(self.tasks))}: a machine may have it from a run that was killed"
        return [f"{what}; it begins when that lease is over, within {duration(self.seconds)}"]

    def is_over(self, task: str) -> bool:
        """True if no agent of an earlier run can be at a task."""
        return slug(task) not in self.tasks or boottime() > self.until


def fleet_of(
    loaded: "Loaded", workspace: str, environ: Mapping[str, str], command: str
) -> Fleet | None:
    """The fleet of the settings, if they name one. ConfigError where it cannot be used."""
    settings = loaded.settings.fleet
    if settings.address in (None, NONE):
        return None
    least, most = _LEASES
    if not least <= settings.lease <= most:
        what = "short for a network" if settings.lease < least else "long to wait for what is lost"
        message = f"fleet.lease: {settings.lease:g} s is too {what}"
        raise ConfigError(message, f"Take {least:g} to {most:g} s.")
    if command == "none":
        message = "no agent is named, and there is none here to tell which one is meant"
        raise ConfigError(message, "Name one that the machines have: --agent claude")
    address = settings.address
    if address != LOCAL:
        security_of(address, settings.tls, environ)
        address = str(address_of(address))
    remote = remote_of(loaded, workspace, environ)
    told, left = _settings(loaded, command, workspace if address == LOCAL else "")
    return Fleet(address, remote, settings.lease, told, settings.tls or "", left)


def remote_of(loaded: "Loaded", workspace: str, environ: Mapping[str, str]) -> str:
    """The URL of the remote that all machines of the fleet reach; "" without a fleet. ConfigError
    where it cannot be used."""
    settings = loaded.settings.fleet
    if settings.address in (None, NONE):
        return ""
    here = settings.address == LOCAL or is_loopback(address_of(settings.address).host)
    _refuse_submodules(workspace, environ)
    return _remote(settings.remote, workspace, environ, here=here)


def _refuse_submodules(workspace: str, environ: Mapping[str, str]) -> None:
    """What an agent does in one would stay on its machine."""
    said = call(("ls-files", "--stage", ":/"), workspace, clean_environ(environ)).output
    links = [line for line in said.splitlines() if line.startswith(b"160000 ")]
    if links:
        path = os.fsdecode(links[0].partition(b"\t")[2])
        message = f"{path} is a submodule, and what is done in it would stay on another machine"
        raise ConfigError(message, "Take the turns here: --fleet none")


def _remote(name: str | None, workspace: str, environ: Mapping[str, str], *, here: bool) -> str:
    """The URL of the remote that all machines reach."""

    def asked(*words: str) -> str:
        said = call(words, workspace, {**clean_environ(environ), "LC_ALL": "C"})
        return os.fsdecode(said.output).strip("\n") if said.code == 0 else ""

    if name is None and here:
        if url := asked("rev-parse", "--path-format=absolute", "--git-common-dir"):
            return url
        raise ConfigError(
            f"{workspace} is in no git repository",
            "Go to a project, or name it: ralph fleet doctor -C DIR",
        )
    url = asked("remote", "get-url", "--push", name or "origin")
    if not url and name is None:
        raise ConfigError(
            "the machines of a fleet get the code by git, and there is no remote called origin",
            'Add it: git remote add origin URL. Or name another: "fleet": {"remote": "URL"}',
        )
    url = url or name or ""
    if os.path.exists(os.path.join(workspace, url)) and "://" not in url:
        url = os.path.join(workspace, url)
    if url.startswith("-"):
        raise ConfigError(
            f"fleet.remote: {url} would be an option of git", "Name a remote, a URL or a path."
        )
    if _PASSWORD.search(url) or redact(url) != url:
        raise ConfigError(
            "fleet.remote holds a password, which every machine and the scheduler would see",
            "Take a URL without one; each machine has its own key or credential helper.",
        )
    return url


def _from(here: str, command: str) -> str:
    """A command that means the same elsewhere on this machine."""
    return os.path.join(here, command) if here and is_path_from(here, command) else command


def _settings(loaded: "Loaded", command: str, here: str) -> tuple[str, tuple[str, ...]]:
    """What a turn needs of the settings, as JSON, and the variables that are left out. `here` is
    where agents are that are named by their ways from it; "" if that is the work tree there."""
    merged: Mapping[str, Any] = loaded.merged
    told: dict[str, Any] = {name: merged[name] for name in _NEEDED if name in merged}
    told["sandbox"] = loaded.settings.sandbox
    agent = dict(told.get("agent") or {})
    agent["command"] = _from(here, agent.get("command") or command)
    if others := agent.get("fallbacks"):
        agent["fallbacks"] = [
            {**each, "command": _from(here, each["command"])} if each.get("command") else each
            for each in others
        ]
    env = dict(agent.get("env") or {})
    given: dict[str, str] = dict(env.get("set") or {})
    secret = secrets_of(given)
    left = tuple(name for name, text in given.items() if text in secret)
    env["set"] = {name: text for name, text in given.items() if name not in left}
    told["agent"] = {**agent, "env": env}
    loop: Mapping[str, Any] = merged.get("loop") or {}
    told["loop"] = {name: loop[name] for name in _OF_THE_LOOP if loop.get(name) is not None}
    text = json.dumps(told)
    if redact(text) != text:
        raise ConfigError(
            "the settings of the agent hold a secret, which every machine would see",
            "Take it out of agent.flags: each machine has logins and variables of its own.",
        )
    if len(text.encode()) > _LARGEST:
        raise ConfigError("the settings of the agent are too long to send", "Shorten agent.flags.")
    return text, left
