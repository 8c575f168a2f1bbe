"""`python -m bench.forecasts`: are forecasts right as often as they say?

Runs Ralph itself, with the scripted agent, on work of several kinds: how many iterations it takes,
what each costs and how long it lasts is drawn from a distribution that Ralph knows nothing of. At
the start of each run and after every iteration the forecast is asked for, as `ralph status` does,
and compared with what then came. Eight times of ten the truth should lie in the interval.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ralph import PromptRun, TaskRun
from ralph.journal.forecast import Range
from ralph.journal.runs import account_of, find_run
from ralph.kernel.state import RunState
from ralph.runner.showing.forecasts import Forecasts, spent_before_turn
from ralph.testing.scripted_agent.install import install_agent

AMOUNTS = ("iterations", "seconds", "cost_usd")
_LONGEST = 40  # iterations
_TASKS = 5  # of each run over a backlog


@dataclass(frozen=True)
class Kind:
    """A kind of work: how many iterations one takes, how much its iterations differ from those of
    other work and among themselves, and what the run may use."""

    name: str
    iterations: Callable[[random.Random], int]
    between: float
    within: float
    tasks: int = 0  # 0: runs of the prompt loop
    limit: int = _LONGEST
    seconds: float = 0.05  # of an iteration: Ralph's own work beside it does not count then


def _geometric(share: float) -> Callable[[random.Random], int]:
    def draw(chance: random.Random) -> int:
        number = 1
        while chance.random() > share and number < _LONGEST:
            number += 1
        return number

    return draw


KINDS = (
    Kind("run: geometric, mean 4", _geometric(0.25), 0.2, 0.3),
    Kind("run: 2 to 8", lambda chance: chance.randint(2, 8), 0.4, 0.4),
    Kind("run: short or long", lambda chance: chance.choice((1, 2, 2, 8, 10)), 0.2, 0.6),
    Kind(
        "run: heavy tail",
        lambda chance: min(_LONGEST, 1 + int(chance.lognormvariate(1, 0.8))),
        0.3,
        0.5,
    ),
    Kind("run: cut off at 5", _geometric(0.25), 0.2, 0.3, limit=5),
    Kind("tasks: geometric, mean 2", _geometric(0.5), 0.3, 0.4, tasks=_TASKS, seconds=0.6),
    Kind(
        "tasks: 1 to 4", lambda chance: chance.randint(1, 4), 0.5, 0.3, tasks=_TASKS, seconds=0.25
    ),
)


@dataclass
class Score:
    """How often the truth lay in the interval, by amount; how often nobody could tell."""

    inside: dict[str, int] = field(default_factory=lambda: dict.fromkeys(AMOUNTS, 0))
    told: dict[str, int] = field(default_factory=lambda: dict.fromkeys(AMOUNTS, 0))
    asked: int = 0
    runs: int = 0

    def add(self, amount: str, interval: Range, truth: float) -> None:
        slack = 1e-6 * max(1.0, truth)
        self.told[amount] += 1
        self.inside[amount] += interval.low - slack <= truth <= interval.high + slack

    def merge(self, other: "Score") -> None:
        for amount in AMOUNTS:
            self.told[amount] += other.told[amount]
            self.inside[amount] += other.inside[amount]
        self.asked += other.asked
        self.runs += other.runs

    def row(self, name: str) -> str:
        shares = [
            f"{self.inside[amount] / self.told[amount]:.0%}" if self.told[amount] else "-"
            for amount in AMOUNTS
        ]
        told = f"{self.told['iterations']}/{self.asked}"
        return f"{name:<26}{self.runs:>5}{told:>12}" + "".join(f"{share:>12}" for share in shares)


class Stage:
    """A project with an agent, whose runs are watched as they go on."""

    def __init__(self, root: str, kind: Kind, seed: int) -> None:
        self.kind, self.chance = kind, random.Random(seed)  # noqa: S311  not a secret
        self.home = os.path.join(root, "home")
        self.project = os.path.join(root, "project")
        self.state = os.path.join(root, "state")
        self.bin = os.path.join(root, "bin")
        for path in (self.home, self.project):
            os.makedirs(path)
        self.environ = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": self.home,
            "RALPH_STATE_DIR": self.state,
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self._git("init", "--quiet")
        self._git("config", "user.name", "bench")
        self._git("config", "user.email", "bench@localhost")
        self.forecasts = Forecasts()
        self.score = Score()
        self.asked: list[tuple[RunState, Any]] = []

    def _git(self, *words: str) -> None:
        argv = ("git", "-C", self.project, *words)
        subprocess.run(argv, check=True, env=self.environ, capture_output=True)

    def turns(self, count: int, last: dict[str, Any]) -> list[dict[str, Any]]:
        """The turns of one piece of work."""
        draw = self.chance.lognormvariate
        price, pace = (mean * draw(0, self.kind.between) for mean in (0.2, self.kind.seconds))
        turns: list[dict[str, Any]] = []
        for number in range(count):
            cost, hang = price * draw(0, self.kind.within), pace * draw(0, self.kind.within)
            text = {"text": f"Still at it, step {number}."} if number < count - 1 else last
            turns.append({**text, "cost": round(cost, 4), "hang": round(hang, 4)})
        return turns

    def run(self) -> None:
        """One run; what was forecast in it is compared with what came of it."""
        self.asked = []
        truth = self._tasks() if self.kind.tasks else self._prompt()
        run = find_run(self.state, self.project, None, "status")
        end = account_of(run).state
        assert end.stop is not None
        self.score.runs += 1
        for state, forecast in self.asked:
            self.score.asked += 1
            done, whole = spent_before_turn(state), end.spent
            left: dict[str, float] = {"iterations": truth - done.iterations}
            if whole.iterations == truth:  # of what was cut off nobody knows the rest
                left |= {"seconds": whole.seconds - done.seconds}
                left |= {"cost_usd": whole.dollars - done.dollars}
            for amount in AMOUNTS:
                interval = getattr(forecast, amount)
                if interval is not None and amount in left:
                    self.score.add(amount, interval, left[amount])

    def _prompt(self) -> int:
        count = self.kind.iterations(self.chance)
        turns = self.turns(count, {"response": "DONE"})
        agent = install_agent(self.bin, turns)
        PromptRun(
            "Do it.",
            self.project,
            agent=agent,
            max_iterations=self.kind.limit,
            on_fact=self.hear,
            environ=self.environ,
            sandbox=False,
        ).run()
        return count

    def _tasks(self) -> int:
        number = self.score.runs
        names = [f"T-{number}-{each}" for each in range(self.kind.tasks)]
        os.makedirs(os.path.join(self.project, ".ralph"), exist_ok=True)
        with open(
            os.path.join(self.project, ".ralph", "tasks.jsonl"), "a", encoding="utf-8"
        ) as file:
            for name in names:
                stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                task = {"id": name, "title": f"Task {name}", "status": "pending"}
                file.write(json.dumps({**task, "createdAt": stamp, "updatedAt": stamp}) + "\n")
        self._git("add", ".")
        self._git("commit", "--quiet", "-m", f"Tasks of run {number}")
        turns: list[dict[str, Any]] = []
        for name in names:
            last = {"text": "<promise>COMPLETE</promise>", "files": {f"{name}.txt": "done\n"}}
            more = self.turns(self.kind.iterations(self.chance), last)
            turns += [
                {"files": {f"{name}.{n}.txt": "step\n"}, **turn} for n, turn in enumerate(more)
            ]
        agent = install_agent(self.bin, turns)
        TaskRun(
            self.project,
            agent=agent,
            max_iterations=_LONGEST,
            on_fact=self.hear,
            environ=self.environ,
            sandbox=False,
        ).run()
        return len(turns)

    def hear(self, fact: dict[str, Any]) -> None:
        """Ask for a forecast at the start, and whenever an iteration is over."""
        if fact["type"] not in ("started", "settled"):
            return
        run = find_run(self.state, self.project, None, "status")
        account = account_of(run)
        if account.state.stop is not None:
            return
        if found := self.forecasts(run, account.started, account.state):
            self.asked.append((account.state, found))


def measured(kind: Kind, runs: int, seed: int) -> Score:
    """The score of so many runs of a kind, one after the other."""
    with tempfile.TemporaryDirectory(prefix="ralph-forecasts-") as root:
        stage = Stage(root, kind, seed)
        for _ in range(runs):
            stage.run()
        return stage.score


def main(words: list[str]) -> int:
    """Measure what the command line asks for, and print a table; 0 if the aim is met."""
    parser = argparse.ArgumentParser("bench.forecasts", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--runs",
        type=int,
        default=30,
        metavar="N",
        help="of the prompt loop, of each kind; a third of that over backlogs (default 30)",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="other work (default 1)")
    parser.add_argument("--only", default="", metavar="WORD", help="the kinds whose name has it")
    wishes = parser.parse_args(words)
    total = Score()
    print(
        f"{'kind of work':<26}{'runs':>5}{'told/asked':>12}" + "".join(f"{a:>12}" for a in AMOUNTS)
    )
    for kind in KINDS:
        if wishes.only in kind.name:
            runs = -(-wishes.runs // 3) if kind.tasks else wishes.runs
            score = measured(kind, runs, wishes.seed)
            total.merge(score)
            print(score.row(kind.name), flush=True)
    print(total.row("together"))
    shares = [total.inside[a] / total.told[a] for a in AMOUNTS if total.told[a]]
    good = bool(shares) and all(0.7 <= share <= 0.92 for share in shares)
    print(f"aim: 70 to 92 % of truths inside the 80 % interval: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
