"""One run of a fleet in which things are killed and cut off at random moments, and its end."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faults.fleet.stage import LEASE, Stage, staged
from kits.machines.checking import lives
from kits.machines.network import signalled

CUT = "cut"
PATIENCE = 240.0  # seconds for a run to come to its end, once nothing is done to it any more
_LOOK = 0.1
_PAUSE = (0.2, 3.0)  # seconds between what is done and the next
_START = (2.0, 6.0)  # seconds before the first
_AWAY = (0.2, 2.0)  # seconds that what was killed is away
_APART = (1.0, 2.4 * LEASE)  # seconds that a host is cut off
_MOST_ENDS = 12  # of the run's own accord, before it is done
_AGENT = "0.5 3.0"  # seconds that an agent works


@dataclass
class Outcome:
    """What was done to a run, and what came of it."""

    seed: int
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # exit codes of the run that nobody asked for
    agents: int = 0  # that began
    unfinished: int = 0  # of them, which were ended or died before their time
    seconds: float = 0.0


class Round:
    """A run under way. Whatever ends is started again, as a service manager and a person would."""

    def __init__(self, stage: Stage, chance: random.Random, outcome: Outcome) -> None:
        self.stage, self.chance, self.outcome = stage, chance, outcome

    def play(self, routes: Sequence[str]) -> None:
        """Do all of this to it, one after the other, then have it come to its end."""
        stage = self.stage
        (stage.machines.shared / "pace").write_text(_AGENT, "ascii")
        stage.start_scheduler()
        for host in (stage.second, stage.third):
            stage.start_worker(host)
        stage.start_run()
        self.pass_time(self.chance.uniform(*_START))
        for route in routes:
            if not self.pass_time(self.chance.uniform(*_PAUSE)):
                break
            if ROUTES[route](self):
                self.outcome.done[route] += 1
        if not self.is_done and self.pass_time(PATIENCE):
            self.outcome.wrong.append(f"it is not done after {PATIENCE:g} s")

    @property
    def is_done(self) -> bool:
        return self.stage.processes["coordinator"].started.poll() == 0

    def pass_time(self, seconds: float, *, without: str = "") -> bool:
        """Let it go on, and start again what has ended; False once the run is done."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.is_done or len(self.outcome.ends) > _MOST_ENDS:
                return False
            self._tend(without)
            time.sleep(_LOOK)
        return True

    def _tend(self, without: str) -> None:
        stage = self.stage
        for name, process in [*stage.processes.items()]:
            if not process.ended() or name == without:
                continue
            if name == "coordinator":
                self.outcome.ends.append(process.started.returncode)
                stage.resume()
            elif name == "scheduler":
                stage.start_scheduler()
            else:
                stage.start_worker(next(h for h in stage.machines.hosts if name.endswith(h.name)))

    # -------------------------------------------------------------- what is done to it

    def kill(self, name: str) -> bool:
        """Kill a process of ours, and start it again after a while."""
        process = self.stage.processes[name]
        if process.ended():
            return False
        process.kill()
        process.wait()
        self.pass_time(self.chance.uniform(*_AWAY), without=name)
        if name == "coordinator":
            self.stage.resume()
        return True

    def kill_coordinator(self) -> bool:
        return self.kill("coordinator")

    def kill_scheduler(self) -> bool:
        return self.kill("scheduler")

    def kill_worker(self) -> bool:
        return self.kill(self.chance.choice(("worker host2", "worker host3")))

    def kill_keeper(self) -> bool:
        return self._kill_one("keeper_main.py")

    def kill_attempt(self) -> bool:
        return self._kill_one("ralph.fleet.machine.attempt")

    def _kill_one(self, mark: str) -> bool:
        found = [
            pid
            for host in self.stage.machines.hosts
            for pid, words in host.processes().items()
            if any(word.endswith(mark) for word in words)
        ]
        return bool(found) and signalled(self.chance.choice(found), 9)

    def cut(self) -> bool:
        """Cut a host off for a while: also the run's own, and the scheduler's."""
        host = self.chance.choice(self.stage.machines.hosts)
        self.stage.machines.cut(host)
        self.pass_time(self.chance.uniform(*_APART))
        self.stage.machines.mend(host)
        return True


ROUTES: Mapping[str, Callable[[Round], bool]] = {
    "coordinator": Round.kill_coordinator,
    "scheduler": Round.kill_scheduler,
    "worker": Round.kill_worker,
    "keeper": Round.kill_keeper,
    "attempt": Round.kill_attempt,
    CUT: Round.cut,
}


def played(root: Path, packages: Path, seed: int, routes: Sequence[str], tasks: int) -> Outcome:
    """One run in an empty directory, with the same chances for the same seed."""
    outcome, began = Outcome(seed), time.monotonic()
    with staged(root, tasks, packages) as stage:
        Round(stage, random.Random(seed), outcome).play(routes)
        try:
            stage.await_idle()
            stage.end()
        except Exception as error:  # noqa: BLE001  it is what is wrong
            outcome.wrong.append(f"{type(error).__name__}: {error}")
        outcome.wrong += stage.wrong()
        known = lives(stage.life.lines())
    outcome.agents = len(known)
    outcome.unfinished = sum(not life.finished for life in known)
    outcome.seconds = time.monotonic() - began
    return outcome
