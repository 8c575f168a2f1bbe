"""The money of a run that several workers share: each turn leases a part that no other can spend,
so that together they spend no more than one worker could."""

from contextlib import AbstractContextManager, nullcontext


class Budget:
    """A budget of `limit` dollars, or without limit. With a `lock` any worker may call it.

    `dearest` is the highest cost of a turn so far. While it is None, nobody knows, and only one
    turn may begin.
    """

    def __init__(
        self,
        limit: float | None,
        workers: int,
        spent: float = 0.0,
        dearest: float | None = 0.0,
        lock: AbstractContextManager[object] = nullcontext(),
    ) -> None:
        self.limit = limit
        self.spent = spent
        self._workers = workers
        self._dearest = dearest
        self._leases: dict[str, float] = {}
        self._lock = lock

    def left(self) -> float | None:
        """The money not paid yet, leases aside; None without a limit."""
        return None if self.limit is None else max(0.0, self.limit - self.spent)

    def lease(self, worker: str) -> bool:
        """Reserve a share of what is free for this worker's next turn, and at least what a turn
        may cost; False if it has to wait for others. A worker keeps the lease it holds."""
        if self.limit is None:
            return True
        with self._lock:
            if worker not in self._leases:
                free = max(0.0, self.limit - self.spent - sum(self._leases.values()))
                if self._leases and (self._dearest is None or free < self._dearest):
                    return False
                share = free / max(1, self._workers - len(self._leases))
                self._leases[worker] = max(share, min(free, self._dearest or 0.0))
            return True

    def held(self, worker: str) -> float | None:
        """The lease of a turn that is under way, or is about to begin."""
        return self._leases.get(worker)

    def paid(self, worker: str, dollars: float) -> None:
        """End a turn: what it cost is gone, the rest of its lease is free again."""
        with self._lock:
            self._leases.pop(worker, None)
            self.spent += dollars
            self._dearest = max(self._dearest or 0.0, dollars)

    def give_back(self, worker: str) -> None:
        """Free a lease of which no turn came, if there is one."""
        with self._lock:
            self._leases.pop(worker, None)
