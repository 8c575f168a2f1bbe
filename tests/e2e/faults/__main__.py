"""`make faults`: kill runs by every route, as every user, many times; who is left?"""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from faults.kills import Kill, kill, kill_group
from faults.places import Installation, UnableError, make_installation, users
from faults.routes import ROUTES, Route
from faults.runs import COMMANDS, Ralph

_EPILOG = """examples:
  make faults
  make faults FAULTS="--kills 20 --jobs 8"
  make faults FAULTS="--command supervise --kills 20"
  make faults FAULTS="--route stop --route 'Ctrl+C' --user ordinary"

exit codes: 0 nobody was left, 1 somebody was or something went wrong, 2 nothing can be tried here
"""
_HEAD = (
    f"{'route':18} {'user':10} {'kills':>6} {'survivors':>10} {'wrong':>6} {'seconds':>8} slowest"
)
_ENOUGH = 3  # complaints about one row
_AT_ONCE = 6 * (os.cpu_count() or 1)  # they mostly wait


@dataclass(frozen=True)
class Row:
    """What came of the kills by one route, as one user."""

    route: str
    user: str
    kills: int = 0
    survivors: int = 0
    wrong: int = 0
    seconds: float = 0.0
    slowest: float = 0.0  # from when an agent was at work to the end of its run

    def plus(self, found: Kill) -> "Row":
        """With one more kill."""
        return replace(
            self,
            kills=self.kills + 1,
            survivors=self.survivors + found.survivors,
            wrong=self.wrong + bool(found.wrong),
            slowest=max(self.slowest, found.seconds),
        )

    def __str__(self) -> str:
        return (
            f"{self.route:18} {self.user:10} {self.kills:6} {self.survivors:10} {self.wrong:6} "
            f"{self.seconds:8.1f} {self.slowest:7.1f}"
        )


def main(words: list[str]) -> int:
    """Kill as the command line asks; the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    try:
        wishes = _read(words)
        with make_installation() as installation:
            return _kill_all(wishes, installation)
    except UnableError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"faults: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("faults: interrupted; everything that was started is ended", file=sys.stderr)
        return 130


def _read(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "faults",
        description="Kill real runs of a hostile agent by every route; nobody may be left.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = users(os.environ)
    routes, names = [route.name for route in ROUTES], [user.name for user in known]
    add = parser.add_argument
    add("--command", choices=COMMANDS, default="run", help="which runs to kill (default run)")
    add("--kills", type=_count, default=200, metavar="N", help="by each route (default 200)")
    add("--jobs", type=_count, default=_AT_ONCE, metavar="N", help=f"at once (default {_AT_ONCE})")
    add("--route", action="append", choices=routes, metavar="ROUTE", help=", ".join(routes))
    add("--user", action="append", choices=names, metavar="USER", help=", ".join(names))
    wishes = parser.parse_args(words)
    wishes.users = [user for user in known if user.name in (wishes.user or names)]
    wanted = [route for route in ROUTES if route.name in (wishes.route or routes)]
    wishes.routes = [route for route in wanted if wishes.command in route.commands]
    if not wishes.routes:
        parser.error(f"ralph {wishes.command} has no {' or '.join(wishes.route)}")
    return wishes


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("one at least")
    return int(text)


def _kill_all(wishes: argparse.Namespace, installation: Installation) -> int:
    cancelled = threading.Event()
    ralphs = [
        Ralph(installation, user, installation.python_of(user), wishes.command, cancelled)
        for user in wishes.users
    ]
    if os.geteuid() != 0:
        print("Only as this user: root could try an ordinary user too.")
    controls = [_control(ralph) for ralph in ralphs]
    print(_HEAD, flush=True)
    rows = []
    for route in wishes.routes:
        for ralph in ralphs:
            rows.append(_row(ralph, route, wishes.kills, wishes.jobs))
            print(rows[-1], flush=True)
    total = Row("all", "", *(sum(values) for values in zip(*map(_figures, rows), strict=True)))
    print(replace(total, slowest=max(row.slowest for row in rows)))
    return int(not all(controls) or any(row.survivors or row.wrong for row in rows))


def _figures(row: Row) -> tuple[int, int, int, float]:
    return row.kills, row.survivors, row.wrong, row.seconds


def _control(ralph: Ralph) -> int:
    """How many outlive what others do to end them: none would mean that this test cannot fail."""
    left = kill_group(ralph.installation, ralph.user)
    print(f"As {ralph.user.name}, with {ralph.python}.", end=" ")
    print(f"Control: a plain kill of the agent's group leaves {left} processes.", flush=True)
    return left


def _row(ralph: Ralph, route: Route, kills: int, jobs: int) -> Row:
    row = Row(route.name, ralph.user.name)
    began, complaints = time.monotonic(), 0
    for number, found in enumerate(_at_once(ralph, route, kills, jobs), 1):
        row = replace(row.plus(found), seconds=time.monotonic() - began)
        complaints += not found.ok
        if not found.ok and complaints <= _ENOUGH:
            _complain(row, number, found)
        _show_progress(row, kills)
    return row


def _at_once(ralph: Ralph, route: Route, kills: int, jobs: int) -> Iterator[Kill]:
    """Each kill as it is done. Whatever ends this early ends every run that is under way."""
    pool = ThreadPoolExecutor(jobs)
    try:
        waiting = [pool.submit(kill, ralph, route) for _ in range(kills)]
        for done in as_completed(waiting):
            yield done.result()
    except BaseException:
        ralph.cancelled.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _complain(row: Row, number: int, found: Kill) -> None:
    left = f"processes left: {found.survivors}" if found.survivors else ""
    words = "; ".join(filter(None, (left, found.wrong)))
    place = f"; see {found.kept}"
    print(f"{row.route}, {row.user}, kill {number}: {words}{place}", file=sys.stderr, flush=True)


def _show_progress(row: Row, kills: int) -> None:
    if sys.stdout.isatty():
        end = "\r" if row.kills < kills else "\r\x1b[K"
        print(row, end=end, flush=True)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
