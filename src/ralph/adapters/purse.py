"""The money of a run that several workers share: each turn has a lease, and nobody's lease can be
spent by another, so that together they spend no more than one worker could."""

import threading


class Purse:
    """Of `limit` dollars, or of any number. Every method may be called by any worker."""

    def __init__(self, limit: float | None, workers: int, spent: float = 0.0) -> None:
        self._limit = limit
        self._workers = workers
        self._spent = spent
        self._leases: dict[str, float] = {}
        self._lock = threading.Lock()

    @property
    def limit(self) -> float | None:
        """What all of them may spend."""
        return self._limit

    @property
    def spent(self) -> float:
        """What all of them have paid."""
        return self._spent

    def left(self) -> float | None:
        """What is not paid yet, leases aside; None without a limit."""
        return None if self._limit is None else max(0.0, self._limit - self._spent)

    def lease(self, worker: str, most: float | None) -> float | None:
        """What this worker's next turn may cost: its share of what is free, and at most so much.
        One that it holds already is given back first."""
        with self._lock:
            self._leases.pop(worker, None)
            if self._limit is None:
                return most
            free = max(0.0, self._limit - self._spent - sum(self._leases.values()))
            share = free / max(1, self._workers - len(self._leases))
            self._leases[worker] = share if most is None else min(share, most)
            return self._leases[worker]

    def held(self, worker: str) -> float | None:
        """The lease of a turn that is under way."""
        return self._leases.get(worker)

    def paid(self, worker: str, dollars: float) -> None:
        """A turn is over: what it cost is gone, the rest of its lease is free again."""
        with self._lock:
            self._leases.pop(worker, None)
            self._spent += dollars
