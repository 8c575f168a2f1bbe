"""The lines of `ralph fleet status`."""

from collections.abc import Iterator, Sequence

from ralph import __version__
from ralph.fleet.cluster.asking import Worker
from ralph.text.plain import clean
from ralph.text.words import counted, duration


def lines(place: str, workers: Sequence[Worker]) -> Iterator[str]:
    """The fleet in a line, then each worker with what it is at."""
    slots = sum(worker.slots for worker in workers)
    busy = sum(len(worker.attempts) for worker in workers)
    has = f"{counted(len(workers), 'worker')}, {busy} of {counted(slots, 'slot')} busy"
    yield f"{place}: {has if workers else 'no workers'}"
    if not workers:
        yield f"  Start one, on each machine: ralph fleet worker --scheduler {place}"
    for worker in workers:
        yield f"  {_head(worker)}"
        yield from (f"    {_attempt(each)}" for each in worker.attempts)


def _head(worker: Worker) -> str:
    told, name = worker.told, clean(worker.name)
    host = clean(str(told.get("hostname", "")))
    parts = [f"{name} on {host}" if host else name, worker.address, counted(worker.slots, "slot")]
    if worker.trouble:
        return "  ".join((*parts, f"gives no answer: {clean(worker.trouble)}"))
    version = clean(str(told.get("version", "?")))
    other = f" (gets nothing of runs from here: {__version__})" if version != __version__ else ""
    parts.append(f"ralph {version}{other}")
    parts.append("draining" if worker.draining else "" if worker.attempts else "idle")
    return "  ".join(filter(None, parts))


def _attempt(attempt: dict[str, object]) -> str:
    since = attempt.get("seconds")
    words = [clean(str(attempt.get(name, "?"))) for name in ("task", "attempt", "run")]
    at = f"{words[0]}, attempt {words[1]} of run {words[2]}"
    return f"{at}, for {duration(since)}" if isinstance(since, (int, float)) else at
