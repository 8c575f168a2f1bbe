"""One kill of one run, and a look at who is left."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from faults.places import Installation, Place, User, make_place
from faults.processes import end_all, is_held, left
from faults.routes import GRACE, Route, wait
from faults.runs import Ralph, Run, WrongError

LIFE = 60.0  # seconds that the agent would live if nobody ended it: it harms nobody for long
LEFT_BEHIND = 4  # by the agent: every second one is always new, the others sit still


@dataclass(frozen=True)
class Kill:
    """What came of a kill."""

    survivors: int
    wrong: str = ""  # why it does not count, or how it ended otherwise than it must
    seconds: float = 0.0  # from when the agent was at work to the end of the run
    kept: Path | None = None  # where to look, if something is wrong

    @property
    def ok(self) -> bool:
        """Nobody is left, and everything went as it must."""
        return not self.survivors and not self.wrong


def kill(ralph: Ralph, route: Route) -> Kill:
    """Start a run in a place of its own, end it by this route, and look for whoever is left."""
    place = make_place(ralph.installation)
    kept = False
    try:
        place.configure(_settings(route, place), ralph.user)
        found = _killed(ralph, route, place)
        kept = not found.ok
        return replace(found, kept=place.directory) if kept else found
    finally:
        end_all(place.program, place.directory)
        if not kept:
            place.remove()


def _settings(route: Route, place: Place) -> dict[str, object]:
    flags = [str(number) for number in (LIFE, LEFT_BEHIND)]
    agent = {"command": str(place.program), "flags": flags, "kind": route.kind, "probe": False}
    return {"agent": agent, "maximumIterations": 1, "endGrace": GRACE, **route.settings}


def _killed(ralph: Ralph, route: Route, place: Place) -> Kill:
    began = time.monotonic()
    with Run(ralph, place, route.says) as run:
        try:
            run.await_agent()
            ready = time.monotonic()
            _refuse_early(route, place)
            route.take(run)
            run.await_end()
        except WrongError as error:
            return Kill(0, str(error))
        survivors = left(place.program, place.directory)
        ended = time.monotonic()
        if ended - began > LIFE:
            return Kill(survivors, "it came too late: the agent may have ended by itself")
        return Kill(survivors, _wrong(run, route), ended - ready)


def _refuse_early(route: Route, place: Place) -> None:
    """Before we kill, there must be someone; else finding nobody afterwards would prove nothing."""
    if route.take is not wait and not is_held(place.program):
        raise WrongError("it came too early: no agent is there")


def _wrong(run: Run, route: Route) -> str:
    """Why this was not the kill that it should be; or nothing."""
    if run.process.returncode != route.code:
        return f"exit code {run.process.returncode}, not {route.code}"
    if b"Traceback" in run.stderr():
        return "ralph shows a traceback"
    if run.stream().decode() != f"{route.says}\n":
        return "it came too early: the agent was not at work"
    try:
        return route.objection(run.facts())
    except WrongError as error:
        return str(error)


def kill_group(installation: Installation, user: User) -> int:
    """The control: how many are left when the same agent's group is killed, as others do it."""
    place = make_place(installation)
    try:
        place.configure({}, user)
        argv = (str(place.program), str(LIFE), str(LEFT_BEHIND))
        env = installation.environment(place.home)
        with user.start(argv, env, place.directory, subprocess.PIPE) as agent:
            assert agent.stdout is not None
            said = agent.stdout.readline()
            os.killpg(agent.pid, signal.SIGKILL)
        assert said == b"ready\n"
        return left(place.program, place.directory)
    finally:
        end_all(place.program, place.directory)
        place.remove()
