"""The money of a run that several workers share: each turn has a lease, and nobody's lease can be
spent by another, so that together they spend no more than one worker could."""

import threading


class Budget:
    """Of `limit` dollars, or of any number. Every method may be called by any worker.

    `dearest` is what a turn has cost so far at most; None, while nobody knows, lets only one turn
    begin until it is known.
    """

    def __init__(
        self,
        limit: float | None,
        workers: int,
        spent: float = 0.0,
        dearest: float | None = 0.0,
    ) -> None:
        self._limit = limit
        self._workers = workers
        self._spent = spent
        self._dearest = dearest
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

    def lease(self, worker: str) -> bool:
        """Put a share of what is free aside for this worker's next turn, and at least what a turn
        may cost; False where that has to wait for others. Whoever holds one keeps it."""
        if self._limit is None:
            return True
        with self._lock:
            if worker not in self._leases:
                free = max(0.0, self._limit - self._spent - sum(self._leases.values()))
                if self._leases and (self._dearest is None or free < self._dearest):
                    return False
                share = free / max(1, self._workers - len(self._leases))
                self._leases[worker] = max(share, min(free, self._dearest or 0.0))
            return True

    def held(self, worker: str) -> float | None:
        """The lease of a turn that is under way, or is about to begin."""
        return self._leases.get(worker)

    def paid(self, worker: str, dollars: float) -> None:
        """A turn is over: what it cost is gone, the rest of its lease is free again."""
        with self._lock:
            self._leases.pop(worker, None)
            self._spent += dollars
            self._dearest = max(self._dearest or 0.0, dollars)

    def give_back(self, worker: str) -> None:
        """No turn came of the lease, if there is one."""
        with self._lock:
            self._leases.pop(worker, None)
