"""`make faults`: kill and cut off the parts of fleets at work, many times. What is left, and has
each task landed exactly once, by one agent at a time?"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from faults.fleet.rounds import CUT, ROUTES, Outcome, played
from faults.fleet.stage import install
from kits.machines.network import UnableError

_EPILOG = """examples:
  make faults FAULTS="--kills 1" FLEET="--kills 200 --cuts 50"
  PYTHONPATH=tests/e2e:tests python -m faults.fleet --kills 20 --cuts 5 --jobs 2 --seed 7
  PYTHONPATH=tests/e2e:tests python -m faults.fleet --route keeper --kills 10

exit codes: 0 all is as it must be, 1 something is not, 2 nothing can be tried here
"""
_HAND = 5  # of what is done to one run
_KINDS = {  # of what can be wrong, by words of the objection
    "two agents of a task alive": "two agents were alive",
    "tasks that landed otherwise than once": ": landed",
    "agents left": "an agent lives",
    "processes left": "a process is left",
    "worktrees left": "a worktree is left",
    "refs left": "a ref is left",
}


def main(words: list[str]) -> int:
    """Do as the command line asks; the exit code."""
    wishes = _read(words)
    try:
        with tempfile.TemporaryDirectory(prefix="ralph-fleet-") as place:
            outcomes = list(_all_played(wishes, install(Path(place))))
    except UnableError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("faults: interrupted; everything that was started is ended", file=sys.stderr)
        return 130
    print(summary(outcomes, wishes.tasks))
    return int(any(outcome.wrong for outcome in outcomes))


def _read(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "faults.fleet",
        description="Kill and cut off the parts of fleets at work; each task must land once.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kills = [route for route in ROUTES if route != CUT]
    add = parser.add_argument
    add("--kills", type=int, default=40, metavar="N", help="of all routes together (default 40)")
    add("--cuts", type=int, default=10, metavar="N", help="partitions (default 10)")
    add("--route", action="append", choices=kills, metavar="ROUTE", help=", ".join(kills))
    add("--jobs", type=int, default=2, metavar="N", help="runs at once (default 2)")
    add("--tasks", type=int, default=8, metavar="N", help="of each run (default 8)")
    add("--seed", type=int, default=1, metavar="N", help="other chances (default 1)")
    wishes = parser.parse_args(words)
    if min(wishes.kills, wishes.cuts) < 0 or min(wishes.jobs, wishes.tasks) < 1:
        parser.error("no number may be less than 0, and those of jobs and tasks not 0")
    wishes.routes = wishes.route or kills
    return wishes


def _all_played(wishes: argparse.Namespace, packages: Path) -> Iterator[Outcome]:
    """Runs until everything was done so often; what a run has no time for is done to another."""
    chance = random.Random(wishes.seed)
    left = Counter(wishes.routes[n % len(wishes.routes)] for n in range(wishes.kills))
    left[CUT] += wishes.cuts
    seed, began = wishes.seed * 1000, time.monotonic()
    dealt: dict[Future[Outcome], list[str]] = {}
    with ThreadPoolExecutor(wishes.jobs) as pool:
        try:
            while +left or dealt:
                while +left and len(dealt) < wishes.jobs:
                    hand = chance.sample([*left.elements()], min(_HAND, left.total()))
                    left -= Counter(hand)
                    seed += 1
                    dealt[pool.submit(_kept_if_wrong, packages, seed, hand, wishes.tasks)] = hand
                for future in wait(dealt, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    left += Counter(dealt.pop(future)) - outcome.done
                    print(_line(outcome, time.monotonic() - began), flush=True)
                    yield outcome
        finally:
            pool.shutdown(cancel_futures=True)


def _kept_if_wrong(packages: Path, seed: int, hand: list[str], tasks: int) -> Outcome:
    root = Path(tempfile.mkdtemp(prefix=f"ralph-fleet-{seed}-"))
    outcome = Outcome(seed, wrong=["it was not played"])
    try:
        outcome = played(root, packages, seed, hand, tasks)
    finally:
        if outcome.wrong:
            outcome.wrong.append(f"see {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)
    return outcome


def _line(outcome: Outcome, passed: float) -> str:
    done = ", ".join(f"{name} {count}" for name, count in sorted(outcome.done.items()))
    wrong = "".join(f"\n    {each}" for each in outcome.wrong)
    ends = f"; ended by itself with {outcome.ends}" if outcome.ends else ""
    return f"{passed:6.0f} s  run {outcome.seed}, {outcome.seconds:.0f} s: {done}{ends}{wrong}"


def summary(outcomes: list[Outcome], tasks: int) -> str:
    """The figures of all runs."""
    done = sum((outcome.done for outcome in outcomes), Counter[str]())
    cuts, kills = done[CUT], done.total() - done[CUT]
    by_route = ", ".join(f"{name} {done[name]}" for name in ROUTES if name != CUT and done[name])
    agents = sum(outcome.agents for outcome in outcomes)
    unfinished = sum(outcome.unfinished for outcome in outcomes)
    lines = [
        f"{len(outcomes)} runs of {tasks} tasks, {kills} kills ({by_route}), {cuts} partitions",
        f"{agents} agents, {unfinished} of them ended before their time",
        *(
            f"{sum(words in each for outcome in outcomes for each in outcome.wrong):6} {kind}"
            for kind, words in _KINDS.items()
        ),
        f"{sum(bool(outcome.wrong) for outcome in outcomes):6} runs with anything wrong",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
