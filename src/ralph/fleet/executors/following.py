"""One attempt as the coordinator follows it: what to say to its machine next, what an answer means.
Pure: whoever carries the messages says what time it is, by a clock that counts a suspend too.
"""

import base64
from typing import Any

from ralph.fleet.lease import Lent
from ralph.fleet.messages import Message, is_number, launched_of, pulse_of, result_of
from ralph.fleet.port import (
    Away,
    Beat,
    CameBack,
    Done,
    Event,
    Failed,
    Job,
    Launched,
    Lost,
    Placed,
    Said,
)
from ralph.kernel.turn import Pulse
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut

_AWAY = 5.0  # seconds of silence that are worth a word, and between two of them
_FORGETTING = 5.0  # for which a machine may take to forget what we have heard


class Following:
    """It is granted to one incarnation of its key, once: Dask makes another where a worker is lost,
    while the first may still be at work. Someone before us may have granted it; so nobody else is
    granted it before that lease is over, unless it is `clear` that nobody has."""

    def __init__(self, job: Job, now: float) -> None:
        self.job = job
        self.incarnation = ""  # the one that we believe
        self.host = ""
        self.hurry = False  # there is more to be said, or to be had, at once
        self.ended: Done | Failed | Lost | None = None
        self._lent = Lent(job.lease).held_from(now)
        self._is_lent = False  # by us; or its machine has said that it holds a lease
        self._cut: Cut | None = None
        self._is_placed = False
        self._launched: Launched | None = None
        self._pulse: Pulse | None = None
        self._offset = 0
        self._heard = now
        self._told = 0.0  # when we last said that it is away; 0.0: it is not
        self._result: Done | Failed | None = None
        self.is_back = False  # it was lost, and was heard since
        self._last: tuple[Done | Failed, float] | None = None  # what is told once it is forgotten

    def request(self) -> Message:
        """What to say to a machine that has it, or may have it."""
        message: Message = {"key": self.job.key, "since": self._offset}
        if not self.incarnation:
            return message
        message["incarnation"] = self.incarnation
        if self._cut is not None:
            message["cut"] = {"why": self._cut.why, "grace": self._cut.grace}
        if self._last is not None:
            message["forget"] = True
        else:
            self._lent = self._lent.lending()
            self._is_lent = True
            message |= {"grant": True, "renew": self._lent.stamp, "lease": self.job.lease}
        return message

    def refusal(self, answer: Message) -> Message | None:
        """What to say to another incarnation than the believed one, so that it ends."""
        other = answer.get("incarnation")
        refused = self.ended is not None or (self.incarnation and other != self.incarnation)
        if not (refused and isinstance(other, str) and answer.get("state") == "waiting"):
            return None
        cut = {"why": "another attempt has it", "grace": 0.0}
        return {"key": self.job.key, "incarnation": other, "since": 0, "cut": cut}

    def heard(self, answer: Message, now: float) -> list[Event]:
        """What a machine's answer tells."""
        if self.ended is not None:
            return self._back(answer)
        if answer.get("known") is False and self._last is not None:
            return [self._end(self._last[0])]
        told = _Told.of(answer, self.job.lease)
        if told is None or not self._is_believed(told, now):
            return self.silent(now)
        self.host = told.host
        self._lent = self._lent.hearing(told.stamp, told.left, now)
        events: list[Event] = [Away(0.0)] if self._told else []
        self._heard, self._told = now, 0.0
        if told.state != "waiting":
            events += self._news(told, answer)
        if told.state == "ended":
            self._result = self._result or result_of(answer.get("result"))
            if not self.hurry and self._last is None:
                self._last, self.hurry = (self._result, now), True
            if answer.get("forgotten") is True:
                events.append(self._end(self._result))
        return events

    def _back(self, answer: Message) -> list[Event]:
        """One that was lost is heard again."""
        told = _Told.of(answer, self.job.lease)
        if told is None or told.incarnation != self.incarnation or not self.may_come_back:
            return []
        self.is_back = True
        return [CameBack(told.host)]

    @property
    def may_come_back(self) -> bool:
        """True of one that was lost, and not heard since."""
        return isinstance(self.ended, Lost) and not self.is_back

    def silent(self, now: float) -> list[Event]:
        """Nothing was heard, or nothing of the attempt that we believe."""
        self.hurry = False
        if self.ended is not None:
            return []
        if self._last is not None:
            late = now - self._last[1] > _FORGETTING
            return [self._end(self._last[0])] if late else []
        if not self._is_lent:
            self.incarnation = ""  # it was not granted: any other will do
            return self._ended_before(now)
        seconds = now - self._heard
        if self._lent.is_over(now):
            where = self.host or "its machine"
            why = f"nothing was heard of {where} for {seconds:.0f} seconds, so its lease is over"
            return [self._end(self._result or Lost(why))]
        if seconds > _AWAY and now - self._told > _AWAY:
            self._told = now
            return [Away(seconds)]
        return []

    def cut(self, cut: Cut, now: float) -> list[Event]:
        """Have it end."""
        if self._cut is None or cut.grace < self._cut.grace:
            self._cut = cut
        return [] if self._is_lent or self.ended is not None else self._ended_before(now)

    def clear(self, now: float) -> list[Event]:
        """Nobody has it."""
        if self.incarnation or self.ended is not None:
            return []
        self._lent = Lent(self.job.lease)
        return self._ended_before(now)

    def refused(self, failed: Failed) -> list[Event]:
        """Its machine took it and will not begin."""
        if self._is_lent or self.ended is not None:
            return []
        return [self._end(failed)]

    def may_begin(self, now: float) -> bool:
        """True while it may still be granted to anybody."""
        free = self._lent.over is None or self._lent.is_over(now)
        return free and self._cut is None and self.ended is None and not self._is_lent

    def is_over(self, now: float) -> bool:
        """True once nothing of it can be alive."""
        return self.ended is not None or (self._is_lent and self._lent.is_over(now))

    def _end(self, event: Done | Failed | Lost) -> Event:
        self.ended = event
        return event

    def _ended_before(self, now: float) -> list[Event]:
        """One that was cut before it was granted, once nobody else can have it."""
        if self._cut is None or not (self._lent.over is None or self._lent.is_over(now)):
            return []
        return [self._end(Failed(self._cut.why))]

    def _is_believed(self, told: "_Told", now: float) -> bool:
        """Whether an answer is of the attempt that we believe; the first that may be becomes it."""
        if not self.incarnation and (told.state != "waiting" or self.may_begin(now)):
            self.incarnation = told.incarnation
            self._is_lent = told.state != "waiting"
        return told.incarnation == self.incarnation

    def _news(self, told: "_Told", answer: Message) -> list[Event]:
        events: list[Event] = []
        if not self._is_placed:
            self._is_placed = True
            events.append(Placed(told.host))
        launched, pulse = launched_of(answer.get("launched")), pulse_of(answer.get("pulse"))
        if launched is not None and self._launched is None:
            self._launched = launched
            events.append(launched)
        stale = told.since != self._offset
        if told.data and not stale:
            self._offset += len(told.data)
            events.append(Said(told.data))
        self.hurry = told.size > self._offset and (stale or bool(told.data))
        if pulse is not None and pulse != self._pulse:
            self._pulse = pulse
            events.append(Beat(pulse))
        return events


@value
class _Told:
    """What every answer of an attempt holds."""

    incarnation: str
    host: str
    state: str
    stamp: float
    left: float | None
    since: int
    data: bytes
    size: int

    @staticmethod
    def of(answer: Message, longest: float) -> "_Told | None":
        """None if it cannot be understood, as that of an attempt that is not known there. Nobody
        has lent it for longer than the `longest`."""
        texts = [answer.get(name) for name in ("incarnation", "host", "state", "stream")]
        if not all(isinstance(text, str) for text in texts) or not texts[0]:
            return None
        numbers: list[Any] = [answer.get(name) for name in ("stamp", "left", "since", "size")]
        stamp, left, since, size = numbers
        if not (is_number(stamp) and (left is None or is_number(left))):
            return None
        left = None if left is None else min(left, longest)
        if not isinstance(since, int) or not isinstance(size, int):
            return None
        try:
            data = base64.b64decode(str(texts[3]), validate=True)
        except ValueError:
            return None
        incarnation, host, state, _ = map(str, texts)
        return _Told(incarnation, host, state, stamp, left, since, data, size)
