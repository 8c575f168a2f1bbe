"""A merge train: tasks that are proven each alone are put on top of one another, and the gates run
once, on the last tree. Where they fail, halves are tried until it is known with whom.

    train = Train(("T-1", "T-2", "T-3"))
    while train.trial:
        fine = passes(train.cars[: train.trial])
        train = train.passed() if fine else train.failed()
    land(train.lands), send_back(train.guilty), board_again(train.again)
"""

from ralph.kernel.value import replace, value


@value
class Train:
    """What is known of tasks in their order. Only what has passed as a whole may land."""

    cars: tuple[str, ...]
    good: int = 0  # so many of the first pass together
    bad: int = 0  # so many of the first do not; 0: nobody knows
    named: tuple[str, ...] = ()  # whose own checks failed, and who left for that
    hint: int = 0  # so many of the first are up to one whose own check failed

    @property
    def trial(self) -> int:
        """How many of the first are to be tried together next; 0 once nothing is left to find out:
        all of them, then those up to one whose own check failed, or the half of what may hold the
        one that fails."""
        if not self.bad:
            return len(self.cars) if self.good < len(self.cars) else 0
        if self.good < self.hint < self.bad:
            return self.hint
        return (self.good + self.bad) // 2 if self.bad - self.good > 1 else 0

    def passed(self) -> "Train":
        """The trial has passed."""
        return replace(self, good=self.trial)

    def failed(self, culprit: str = "") -> "Train":
        """The trial has failed, perhaps by the own check of a `culprit` alone. If that is the last,
        it leaves, and the others are tried again. Another one may be an innocent victim of who is
        behind it, so it is tried without those first."""
        place = self.cars.index(culprit) + 1 if culprit else 0
        if place < self.trial:
            return replace(self, bad=self.trial, hint=place)
        others = (*self.cars[: place - 1], *self.cars[place:])
        return Train(others, self.good, named=(*self.named, culprit))

    @property
    def lands(self) -> tuple[str, ...]:
        """Those that land together."""
        return self.cars[: self.good]

    @property
    def guilty(self) -> tuple[str, ...]:
        """Those that go back to their agents."""
        return (*self.named, *self.cars[self.bad - 1 : self.bad]) if self.bad else self.named

    @property
    def again(self) -> tuple[str, ...]:
        """Those behind the guilty one: nothing is known of them."""
        return self.cars[self.bad :] if self.bad else ()
