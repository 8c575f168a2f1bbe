"""The arithmetic of a lease, on both sides; whoever uses it says what time it is (ADR 49).

Each side reads only its own clock, which counts the time of a suspended machine too. The machine
stamps its answers; a renewal names the stamp of an answer that the coordinator has received. The
machine may go on until that stamp + the lease, and the coordinator counts from when it received the
answer, which is later: so a message that is late, lost or out of order makes the machine end
earlier, and never the coordinator.
"""

from ralph.kernel.value import replace, value

RATE = 0.02  # by how much one of the two clocks may run faster
SLACK = 1.0  # seconds more, for whoever waits
_KILLING = 2.0  # seconds at most in which a machine ends an attempt by force


@value
class Held:
    """The lease of an attempt, at its machine."""

    until: float | None = None  # by the machine's clock; None: it was never granted
    seconds: float = 0.0  # of the renewal that it comes from

    def renewed(self, stamp: float, seconds: float, now: float) -> "Held":
        """Held for so many seconds from a stamp of ours. It never becomes shorter; one that is over
        stays over, and a stamp from the future is none of ours."""
        until = stamp + seconds
        if stamp > now or until <= now or self.is_over(now):
            return self
        return self if self.until is not None and until <= self.until else Held(until, seconds)

    def is_over(self, now: float) -> bool:
        """True if nothing of the attempt may be alive; one that was never granted has nothing."""
        return self.until is not None and now >= self.until

    def is_killing(self, now: float) -> bool:
        """True if it is time to end the attempt by force, so that it has ended when it is over."""
        return self.until is not None and now >= self.until - min(self.seconds / 5, _KILLING)


@value
class Lent:
    """The same lease, at the coordinator."""

    seconds: float  # of each renewal
    stamp: float | None = None  # of the newest answer; by the machine's clock, as it was told
    heard: float = 0.0  # when that was received, by ours
    over: float | None = None  # by ours: from then on nothing of it lives; None: it was never lent

    def hearing(self, stamp: float, left: float | None, now: float) -> "Lent":
        """An answer was received. `left` is how long the machine held its lease then, which someone
        before us may have lent."""
        lent = self if left is None else self._until(now + self._longest(left))
        if lent.stamp is not None and stamp <= lent.stamp:
            return lent  # an older one, out of order
        return replace(lent, stamp=stamp, heard=now)

    def lending(self) -> "Lent":
        """A renewal that names the newest stamp is about to be sent."""
        assert self.stamp is not None
        return self._until(self.heard + self._longest(self.seconds))

    def held_from(self, now: float) -> "Lent":
        """Someone may have lent it before `now`, and we have heard of nobody who holds it."""
        return self._until(now + self._longest(self.seconds))

    def is_over(self, now: float) -> bool:
        """True if it was lent, and nothing of the attempt can be alive any more."""
        return self.over is not None and now > self.over

    def _until(self, over: float) -> "Lent":
        return self if self.over is not None and over <= self.over else replace(self, over=over)

    @staticmethod
    def _longest(seconds: float) -> float:
        """What takes so many seconds by the other clock takes no longer by ours."""
        return seconds / (1 - RATE) + SLACK
