"""The measures. Each takes its rounds in turn, A B A B, so that a busy moment hits everybody."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TypeVar

from bench.contenders import Contender, filled
from bench.crew import Sleepers
from bench.fleet import WORKERS, rows
from bench.hooks import LOOP, LOOP_SIZES, SIZES, Hooked, ways
from bench.large import Repository
from bench.place import BenchError, Place
from bench.processes import Weight, weigh
from bench.rows import Aim, Row, percentile
from bench.sandbox import Cycle, sandboxes
from bench.tasks import Many

Figure = TypeVar("Figure")

_PROMPT = "Make the tests pass. Say <response>DONE</response> when they do."
_MB = 1_000_000


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    iterations: int = 200
    rounds: int = 5
    starts: int = 25
    slope: tuple[int, int] = (50, 1050)
    slope_rounds: int = 3
    looped: int = 300  # iterations while memory is watched
    stream: int = 200 * _MB
    stream_rounds: int = 5
    files: tuple[int, int] = (200, 100_000)  # in a project that a sandbox is opened over
    cycles: int = 60
    tasks: int = 100_000  # in a backlog
    nap: float = 4.0  # seconds of an agent that is one of several
    trivial: int = 1_000  # tasks in a row that take no time
    fleet: int = 1_000  # tasks of a simulation
    workers: tuple[int, ...] = WORKERS


QUICK = Sizes(
    50, 2, 5, (10, 60), 1, 50, 20 * _MB, 2, (200, 2_000), 5, 2_000, 0.5, 40, 200, (1, 8, 64)
)


@dataclass(frozen=True)
class Bench:
    """Everything a measure needs."""

    place: Place
    contenders: tuple[Contender, ...]
    sizes: Sizes

    def able(self, what: Callable[[Contender], tuple[str, ...]]) -> list[Contender]:
        """The contenders that have a command for this."""
        return [contender for contender in self.contenders if what(contender)]

    def run(self, command: tuple[str, ...], iterations: int, *, look: bool = False) -> Weight:
        """Run a loop from a clean beginning, and check that it did what was asked."""
        argv = filled(command, self.place.claude, iterations, _PROMPT)
        self.place.renew(git=True)
        weight = weigh(argv, self.place.environment(), agent=self.place.claude, look=look)
        self._check(argv, iterations)
        return weight

    def stream(self, command: tuple[str, ...], shown: str) -> tuple[float, Weight]:
        """Megabytes a second from the agent's start to the contender's end, and the rest."""
        argv = filled(command, self.place.claude, 1, _PROMPT)
        self.place.renew()
        env = {**self.place.environment(), "BENCH_BYTES": str(self.sizes.stream)}
        weight = weigh(argv, env, agent=self.place.claude, look=True, said=shown)
        self._check(argv, 1)
        seconds = (weight.ended - self.place.started()[0]) / 1e9
        self.place.forget()
        return self.sizes.stream / _MB / seconds, weight

    def _check(self, argv: tuple[str, ...], iterations: int) -> None:
        started = len(self.place.started())
        if started == iterations:
            return
        raise BenchError(
            f"{argv[0]} started the agent {started} times, not {iterations}. It says:\n"
            f"{self._words(argv)}"
        )

    def _words(self, argv: tuple[str, ...]) -> str:
        said = os.path.join(self.place.root, "said")
        self.place.renew()
        weight = weigh(argv, self.place.environment(), said=said)
        with open(said, encoding="utf-8", errors="replace") as file:
            return f"{file.read()[-2000:]}(exit {weight.code})"


def turnaround(bench: Bench) -> Iterator[Row]:
    """From one start of the agent to the next: what the loop puts between two turns."""

    def gaps(contender: Contender) -> list[float]:
        bench.run(contender.loop, bench.sizes.iterations)
        return [(after - before) / 1e6 for before, after in pairwise(bench.place.started())]

    found = _alternate(bench.contenders, bench.sizes.rounds, gaps)
    flat = {name: [gap for gaps in rounds for gap in gaps] for name, rounds in found.items()}
    halves = {name: tuple(map(median, rounds)) for name, rounds in found.items()}
    middle = {name: median(gaps) for name, gaps in flat.items()}
    late = {name: percentile(gaps, 0.9) for name, gaps in flat.items()}
    yield Row("agent start to next start", "ms", middle, Aim(most=1.5, ratio=1.3), halves)
    yield Row("  of ten the slowest", "ms", late)


def cpu(bench: Bench) -> Iterator[Row]:
    """Processor time of the whole tree for one more iteration: starting up is left out."""
    few, many = bench.sizes.slope

    def slope(contender: Contender) -> float:
        less = bench.run(contender.loop, few).cpu
        return 1000 * (bench.run(contender.loop, many).cpu - less) / (many - few)

    found = _alternate(bench.contenders, bench.sizes.slope_rounds, slope)
    yield _row("CPU an iteration, whole tree", "ms", found, Aim(most=2.0))


def memory(bench: Bench) -> Iterator[Row]:
    """The largest resident set of the looping process, and of a helper that it keeps."""

    def peak(contender: Contender) -> Weight:
        return bench.run(contender.loop, bench.sizes.looped, look=True)

    found = _alternate(bench.contenders, 1, peak)
    yield from _memory_rows("memory while looping", found, Aim(most=30))


def startup(bench: Bench) -> Iterator[Row]:
    """What a person waits for: the version, the help, the first turn."""
    place, times = bench.place, bench.sizes.starts

    def until_end(what: Callable[[Contender], tuple[str, ...]]) -> Callable[[Contender], float]:
        return lambda contender: weigh(what(contender), place.environment()).milliseconds

    def first(contender: Contender) -> float:
        weight = bench.run(contender.loop, 1)
        return (place.started()[0] - weight.began) / 1e6

    def version(contender: Contender) -> tuple[str, ...]:
        return contender.version

    def help_text(contender: Contender) -> tuple[str, ...]:
        return contender.help

    found = _alternate(bench.able(version), times, until_end(version))
    yield _row("--version", "ms", found, Aim(most=20))
    found = _alternate(bench.able(help_text), times, until_end(help_text))
    yield _row("--help", "ms", found, Aim(most=70))
    found = _alternate(bench.contenders, times, first)
    yield _row("run to first agent start", "ms", found, Aim(most=80))


def guard(bench: Bench) -> Iterator[Row]:
    """What every command of an agent waits for where the guard is on; the floor: Python alone."""
    place = bench.place
    event = os.path.join(place.root, "event.json")
    for name, command in _COMMANDS.items():
        with open(event, "w", encoding="utf-8") as file:
            call = {"tool_name": "Bash", "cwd": place.root, "tool_input": {"command": command}}
            json.dump(call, file)
        env = {**place.environment(), "RALPH_GUARD": "1"}

        def ask(contender: Contender, env: dict[str, str] = env) -> float:
            return weigh(contender.hook, env, sent=event).milliseconds

        found = _alternate(bench.able(_hook), bench.sizes.starts, ask)
        yield _row(f"guard, {name}", "ms", found, Aim(most=45))


def _hook(contender: Contender) -> tuple[str, ...]:
    return contender.hook


_COMMANDS = {
    "a command": "cd src && npm test 2>&1 | tail -20",
    "a refused one": "git push --force origin main",
    "100 lines of Python": "python3 - <<'E'\n" + "print('a line of a script')\n" * 100 + "E\n",
}


def hooks(bench: Bench) -> Iterator[Row]:
    """What a host waits for, as the plugin calls it; bash: what people write with jq."""
    place = bench.place
    place.renew()
    hooked = Hooked(place.run, place.environment())
    hooked.prepare()
    (ralph,) = (contender.hook[:-2] for contender in bench.contenders if contender.name == "ralph")
    hooked.begin_loops(ralph)
    kinds = (("post-tool", SIZES, 20), ("stop", SIZES, 45), (LOOP, LOOP_SIZES, 45))
    for hook, sizes, most in kinds:
        asked, aim = ways(hook, ralph), Aim(most=most)
        for size in sizes:
            found: dict[str, list[float]] = {name: [] for name in asked}
            for _ in range(bench.sizes.starts):
                for name, argv in asked.items():
                    found[name].append(hooked.ask(argv, hook, size))
            by_command = {"ralph": found.pop("command")}
            yield _row(f"{hook} hook, {size} MB", "ms", found, aim)
        yield _row(f"  as `ralph hook {hook}`", "ms", by_command)


def stream(bench: Bench) -> Iterator[Row]:
    """A long stream-json, parsed and saved, the display to nobody; bash only saves it."""
    size = f"{bench.sizes.stream // _MB} MB stream-json"
    shown = "shown"  # in the workspace
    yield from _streamed(bench, size, _stream, os.devnull, Aim(least=350))
    yield from _streamed(bench, "  shown, to a file", _stream_shown, shown)
    yield from _streamed(bench, "  with --json, to a file", _stream_json, shown)


def _streamed(
    bench: Bench,
    name: str,
    command: Callable[[Contender], tuple[str, ...]],
    out: str,
    aim: Aim = Aim(),
) -> Iterator[Row]:
    def measure(contender: Contender) -> tuple[float, Weight]:
        return bench.stream(command(contender), out)

    found = _alternate(bench.able(command), bench.sizes.stream_rounds, measure)
    speeds = {who: [speed for speed, _ in rounds] for who, rounds in found.items()}
    weights = {who: [weight for _, weight in rounds] for who, rounds in found.items()}
    yield _row(name, "MB/s", speeds, aim)
    if aim != Aim():
        yield from _memory_rows("  memory meanwhile", weights, Aim(most=40))


def _stream(contender: Contender) -> tuple[str, ...]:
    return contender.stream


def _stream_shown(contender: Contender) -> tuple[str, ...]:
    """Bash saves what others show: to measure it again would say nothing."""
    return contender.stream if contender.name != "bash" else ()


def _stream_json(contender: Contender) -> tuple[str, ...]:
    return contender.stream_json


def sandbox(bench: Bench) -> Iterator[Row]:
    """Open, run, diff and discard, over a small project and over a large one."""
    place, (few, many) = bench.place, bench.sizes.files
    place.renew()
    with sandboxes(place.run, place.environment()) as trouble:
        if trouble:
            yield Row(f"sandbox: {trouble}", "ms", {})
            return
        small, large = (Cycle(place.run, place.environment(), files) for files in (few, many))
        ways = {"ralph": small.ralph, "bash": small.by_hand}
        ways |= {"ralph, large": large.ralph, "bash, large": large.by_hand}
        small.ralph()  # which starts the process that makes the others
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(bench.sizes.cycles):
            for name, way in ways.items():
                found[name].append(way())
    yield from _sandbox_rows(found, few, many)


def _sandbox_rows(found: Mapping[str, list[float]], few: int, many: int) -> Iterator[Row]:
    name = "sandbox: open-run-diff-discard"
    at_first = {who: found[who] for who in ("ralph", "bash")}
    at_last = {who: found[f"{who}, large"] for who in ("ralph", "bash")}
    yield _row(f"{name}, {few:,} files", "ms", at_first, Aim(most=15))
    yield Row("  at best", "ms", {who: min(rounds) for who, rounds in at_first.items()})
    yield _row(f"{name}, {many:,} files", "ms", at_last)
    yield Row("  at best", "ms", {who: min(rounds) for who, rounds in at_last.items()})
    growth = {who: median(at_last[who]) / median(at_first[who]) for who in at_first}
    yield Row(f"  {many:,} beside {few:,} files", "x", growth, Aim(most=2))


def tasks(bench: Bench) -> Iterator[Row]:
    """The next task of a large backlog, and one edit of it; the floor: its lines decoded."""
    place, times, size = bench.place, bench.sizes.rounds, f"{bench.sizes.tasks:,} tasks"
    place.renew()
    many = Many(os.getcwd(), place.environment(), bench.sizes.tasks)

    def ask(contender: Contender) -> float:
        return many.command(contender.next_task)

    found = _alternate(bench.able(lambda contender: contender.next_task), times, ask)
    yield _row(f"tasks next, {size}", "ms", found, Aim(most=1000))
    picked = {"ralph": [many.pick() for _ in range(times)]}
    yield _row("  read and picked in process", "ms", picked, Aim(most=1000))
    able = bench.able(lambda contender: contender.edit_task)
    edits = _alternate(able, times, lambda contender: many.edit(contender.edit_task))
    yield _row(f"tasks edit, {size}", "ms", {n: [took for took, _ in e] for n, e in edits.items()})
    grown = {name: [float(size) for _, size in each] for name, each in edits.items()}
    yield _row("  written to the file", "bytes", grown, Aim(most=1000))


def parallel(bench: Bench) -> Iterator[Row]:
    """Twelve tasks by four workers, beside one after the other; the agents only sleep."""
    place, seconds = bench.place, bench.sizes.nap
    place.renew()
    sleepers = Sleepers(os.getcwd(), place.environment(), 12, seconds)
    (words,) = (c.next_task[:-3] for c in bench.contenders if c.name == "ralph")
    alone, crew = sleepers.run(words, 1), sleepers.run(words, 4)
    yield Row(f"12 tasks of {seconds:g} s, one at a time", "s", {"ralph": alone})
    yield Row("  by 4 workers", "s", {"ralph": crew})
    yield Row("  speed-up", "x", {"ralph": alone / crew}, Aim(least=3.6))


def large(bench: Bench) -> Iterator[Row]:
    """A task, and a run with a commit, in a large repository; the floor: one `git status`."""
    size = bench.sizes.files[1]
    repository, words = _repository(bench, size)
    found: dict[str, list[float]] = {"status": [], "task": [], "five more": [], "run": []}
    for _ in range(bench.sizes.rounds):
        found["status"].append(repository.status())
        found["task"].append(repository.tasks(words, 1))
        found["five more"].append((repository.tasks(words, 6) - found["task"][-1]) / 5)
        found["run"].append(repository.run(words))
    floor = {"floor": found["status"]}
    name = f"a task of `tasks run`, {size:,} files"
    yield _row(name, "ms", floor | {"ralph": found["task"]}, Aim(ratio=4))
    yield _row("  each one more", "ms", floor | {"ralph": found["five more"]}, Aim(ratio=4))
    yield _row("`run` with a commit", "ms", floor | {"ralph": found["run"]}, Aim(ratio=3))


def many(bench: Bench) -> Iterator[Row]:
    """Many trivial tasks in a row: what the last tenth of them takes, and what git keeps."""
    tasks = bench.sizes.trivial
    repository, words = _repository(bench, 200)
    took = repository.tasks(words, tasks)
    gaps, tenth = repository.gaps(), tasks // 10
    yield Row(f"{tasks:,} trivial tasks", "s", {"ralph": took / 1000})
    first, last = median(gaps[:tenth]), median(gaps[-tenth:])
    yield Row("  of the first tenth each", "ms", {"ralph": first})
    yield Row("  of the last tenth each", "ms", {"ralph": last})
    yield Row("  last beside first", "x", {"ralph": last / first}, Aim(most=1.2))
    yield Row("  kept in .git", "MB", {"ralph": repository.megabytes()}, Aim(most=25))


def fleet(bench: Bench) -> Iterator[Row]:
    """A large backlog by many workers, in virtual time; the floor: merged one at a time."""
    bench.place.renew()
    yield from rows(bench.place.run, bench.sizes.fleet, bench.sizes.workers)


def _repository(bench: Bench, files: int) -> tuple[Repository, tuple[str, ...]]:
    bench.place.renew()
    (words,) = (c.next_task[:-3] for c in bench.contenders if c.name == "ralph")
    place = os.path.join(bench.place.run, "repository")
    return Repository(place, bench.place.environment(), files), words


MEASURES: Mapping[str, Callable[[Bench], Iterator[Row]]] = {
    "turnaround": turnaround,
    "cpu": cpu,
    "memory": memory,
    "startup": startup,
    "guard": guard,
    "hooks": hooks,
    "stream": stream,
    "sandbox": sandbox,
    "tasks": tasks,
    "parallel": parallel,
    "large": large,
    "many": many,
    "fleet": fleet,
}


def _alternate(
    contenders: Iterable[Contender], times: int, measure: Callable[[Contender], Figure]
) -> dict[str, list[Figure]]:
    """Measure everybody once, then everybody once more, and so on."""
    found: dict[str, list[Figure]] = {contender.name: [] for contender in contenders}
    for _ in range(times):
        for contender in contenders:
            found[contender.name].append(measure(contender))
    return found


def _row(name: str, unit: str, found: Mapping[str, list[float]], aim: Aim = Aim()) -> Row:
    figures = {contender: median(rounds) for contender, rounds in found.items() if rounds}
    rounds = {contender: tuple(rounds) for contender, rounds in found.items()}
    return Row(name, unit, figures, aim, rounds)


def _memory_rows(name: str, found: Mapping[str, list[Weight]], aim: Aim) -> Iterator[Row]:
    peaks = {who: [w.memory for w in ws if w.memory is not None] for who, ws in found.items()}
    yield _row(name, "MB", peaks, aim)
    helpers = {who: [w.helper for w in ws if w.helper is not None] for who, ws in found.items()}
    if any(helpers.values()):
        yield _row(f"{name}: its keeper", "MB", helpers, Aim(most=12))
