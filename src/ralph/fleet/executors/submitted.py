"""An attempt that was submitted: what every executor of ours keeps of one, for all threads."""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from ralph.fleet.executors.following import Following
from ralph.fleet.messages import Message, job_text, text_of
from ralph.fleet.port import Beat, Event, Failed, Job, Said
from ralph.kernel.verdict import Cut
from ralph.processes.clock import boottime


class Submitted:
    """A handle, its events, and how it is followed."""

    def __init__(self, job: Job, *, stir: Callable[[], object]) -> None:
        self.job = job
        self.text = ""
        self.ended = threading.Event()
        self._stir = stir  # called when there is something to say to its machine
        self._following = Following(job, boottime())
        self._changed = threading.Condition()
        self._events: deque[Event] = deque()
        try:
            self.text = job_text(job)
        except ValueError as error:
            self.refused(Failed(f"the job cannot be sent: {error}"))

    @property
    def key(self) -> str:
        return self.job.key

    @property
    def host(self) -> str:
        return self._following.host

    @property
    def is_told(self) -> bool:
        """True once somebody has asked for its last event."""
        with self._changed:
            return self.ended.is_set() and not self._events

    @property
    def hurry(self) -> bool:
        return self._following.hurry

    @property
    def is_found(self) -> bool:
        """True once an incarnation of it is believed."""
        return bool(self._following.incarnation)

    @property
    def may_come_back(self) -> bool:
        """True of one that was lost, and not heard since."""
        return self._following.may_come_back

    def request(self) -> str:
        with self._changed:
            return text_of(self._following.request())

    def refusal(self, answer: Message) -> str | None:
        with self._changed:
            refusal = self._following.refusal(answer)
        return None if refusal is None else text_of(refusal)

    def heard(self, answer: Message) -> bool:
        """True if that was news, and more may follow soon. An agent that works on is none: it is
        asked as often as one that is silent."""
        with self._changed:
            return self._put(self._following.heard(answer, boottime()))

    def silent(self) -> None:
        with self._changed:
            self._put(self._following.silent(boottime()))

    def clear(self) -> None:
        with self._changed:
            self._put(self._following.clear(boottime()))

    def refused(self, failed: Failed) -> None:
        with self._changed:
            self._put(self._following.refused(failed))

    def cut(self, cut: Cut) -> None:
        with self._changed:
            self._put(self._following.cut(cut, boottime()))
        self._stir()

    def is_over(self) -> bool:
        with self._changed:
            return self._following.is_over(boottime())

    def may_begin(self) -> bool:
        with self._changed:
            return self._following.may_begin(boottime())

    def take(self, wait: float) -> Sequence[Event]:
        """What has happened since the last call."""
        with self._changed:
            if not self._events and not self.ended.is_set():
                self._changed.wait(max(0.0, wait))
            taken = tuple(self._events)
            self._events.clear()
            return taken

    def _put(self, events: list[Event]) -> bool:
        self._events.extend(events)
        if self._following.ended is not None:
            self.ended.set()
        if events:
            self._changed.notify_all()
        return not all(isinstance(event, Beat | Said) for event in events)
