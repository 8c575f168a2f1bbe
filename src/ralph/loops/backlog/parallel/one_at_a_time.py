"""Lets one worker at a time through, whoever waits or goes away."""

import threading


class OneAtATime:
    """For the threads of one process."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._inside = ""

    def enter(self, worker: str) -> None:
        """Wait until nobody else is in it."""
        with self._free:
            self._free.wait_for(lambda: self._inside in ("", worker))
            self._inside = worker

    def leave(self, worker: str) -> None:
        """Let the next one in; nothing if one is not in it."""
        with self._free:
            if self._inside == worker:
                self._inside = ""
                self._free.notify_all()
