"""The places of the workers that are at work. One that waits for CI leaves its place to another,
and needs one again before it takes a turn."""

from contextlib import AbstractContextManager, nullcontext


class Places:
    """So many places. With a `lock` any worker may call it."""

    def __init__(self, size: int, lock: AbstractContextManager[object] = nullcontext()) -> None:
        self._size, self._lock = size, lock
        self._here: set[str] = set()
        self._resting: set[str] = set()

    def enter(self, worker: str) -> None:
        """Whoever is sent has a place."""
        with self._lock:
            self._here.add(worker)

    def rest(self, worker: str) -> None:
        with self._lock:
            self._resting.add(worker)

    def take(self, worker: str) -> bool:
        """Have a place again; False while others have all of them."""
        with self._lock:
            if worker in self._resting:
                if len(self._here) - len(self._resting) >= self._size:
                    return False
                self._resting.discard(worker)
            return True

    def leave(self, worker: str) -> None:
        with self._lock:
            self._here.discard(worker)
            self._resting.discard(worker)

    def resting(self) -> int:
        """How many wait for others."""
        return len(self._resting)
