"""Lets one worker at a time through."""

import threading


class OneAtATime:
    """A lock for the threads of one process, held by a worker's name."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._inside = ""

    def enter(self, worker: str) -> None:
        with self._free:
            self._free.wait_for(lambda: self._inside in ("", worker))
            self._inside = worker

    def leave(self, worker: str) -> None:
        with self._free:
            if self._inside == worker:
                self._inside = ""
                self._free.notify_all()
