"""`python -m bench`: measure, print a table, write JSON."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from bench.contenders import Contender, bash, floor, other, ralph
from bench.machine import Machine, Moment, too_busy
from bench.measures import MEASURES, QUICK, Bench, Sizes
from bench.place import HERE, BenchError, Place, make_place
from bench.processes import adopt_orphans
from bench.report import Report
from bench.rows import Row

_EPILOG = """examples:
  make bench
  python -m bench --quick --only turnaround --only stream
  python -m bench --contender peer='peer-loop --agent {agent} --max {iterations} {prompt}'
"""


def main(words: list[str]) -> int:
    """Measure what the command line asks for; the exit code."""
    wishes = _read(words)
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGHUP, _interrupted)
    try:
        _measure_all(wishes)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"bench: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted, nothing was written", file=sys.stderr)
        return 130
    return 0


def _read(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "bench",
        description="Measure what ralph costs beside a bare bash loop, in one run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", action="append", choices=MEASURES, metavar="MEASURE", help=", ".join(MEASURES))
    add("--quick", action="store_true", help="small sizes: a look, not a figure to quote")
    add("--iterations", type=_count, metavar="N", help="of the turnaround (default 200)")
    add(
        "--contender",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="one more to measure; {agent}, {iterations} and {prompt} are filled in",
    )
    add("--ralph", metavar="COMMAND", help="another ralph than the one beside this interpreter")
    add("--dir", help="where to work (default: the first of /var/tmp, /tmp that is a real disk)")
    default = os.path.join(HERE, "results.json")
    add("--json", default=default, metavar="FILE", help="where to write (bench/results.json)")
    return parser.parse_args(words)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError("two iterations at least: a gap lies between two starts")
    return int(text)


def _measure_all(wishes: argparse.Namespace) -> None:
    _refuse_other_systems()
    contenders = (floor(), bash(), ralph(wishes.ralph), *map(other, wishes.contender))
    file = os.path.abspath(wishes.json)
    if not os.access(os.path.dirname(file), os.W_OK):
        raise BenchError(f"--json {wishes.json}: its directory cannot be written")
    before = Moment.now()
    _say(too_busy(before))
    adopt_orphans()
    with make_place(wishes.dir) as place:
        version = _version(contenders[2])
        bench = Bench(place, contenders, _sizes(wishes))
        rows = tuple(_rows(bench, wishes.only or list(MEASURES)))
        machine = Machine.between(before, Moment.now())
        report = _report(version, machine, place, rows, contenders)
    print(report.table())
    print(f"\n{report.ralph}; {machine.words()}; files on {report.disk}")
    with open(file, "w", encoding="utf-8") as out:
        out.write(f"{report.as_json()}\n")
    _say(f"bench: the rounds are in {os.path.relpath(file)}")


def _refuse_other_systems() -> None:
    if sys.platform != "linux":
        raise BenchError("it reads /proc, so it runs on Linux only")


def _version(contender: Contender) -> str:
    done = subprocess.run(contender.version, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{contender.version[0]} does not run:\n{done.stderr[-2000:]}")
    return done.stdout.strip()


def _sizes(wishes: argparse.Namespace) -> Sizes:
    sizes = QUICK if wishes.quick else Sizes()
    return replace(sizes, iterations=wishes.iterations) if wishes.iterations else sizes


def _rows(bench: Bench, names: list[str]) -> Iterator[Row]:
    for name, measure in MEASURES.items():
        if name in names:
            _say(f"bench: {name} ...")
            yield from measure(bench)


def _report(
    version: str,
    machine: Machine,
    place: Place,
    rows: tuple[Row, ...],
    contenders: tuple[Contender, ...],
) -> Report:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    names = tuple(contender.name for contender in contenders)
    return Report(now, version, machine, place.file_system, rows, names)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    if line:
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
