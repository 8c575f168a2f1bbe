"""Judges the checks of a commit: is its CI green? Pure (ADR 43)."""

from collections.abc import Iterable

from ralph.forge.port import Check, CheckState
from ralph.kernel.value import value
from ralph.text.words import duration, listed

_MOST_NAMED = 5


@value
class Terms:
    """What counts as green, of the settings in `ci`."""

    required: tuple[str, ...] = ()  # none: all that there are
    neutral: str = "pass"
    skipped: str = "pass"
    start: float = 120.0


@value
class Green:
    """Everything that counts has passed."""

    words: str


@value
class Pending:
    """Not decided yet."""

    words: str


@value
class Red:
    """These have failed."""

    checks: tuple[Check, ...]

    @property
    def words(self) -> str:
        return f"failed: {_names(self.checks)}"


@value
class Nobody:
    """Nobody will say anything of this commit: that is never green."""

    words: str


Judged = Green | Pending | Red | Nobody


def judged(checks: tuple[Check, ...], terms: Terms, quiet: float) -> Judged:
    """What these checks of one commit come to. `quiet` is how many seconds ago it was pushed, or
    the checks last changed. Red as soon as one has failed: the agent need not wait for the rest."""
    required = tuple(dict.fromkeys(terms.required))
    counted = [check for check in checks if check.name in required or not required]
    if failed := tuple(check for check in counted if _has_failed(check, terms)):
        return Red(failed)
    if running := [check for check in counted if check.state is CheckState.PENDING]:
        return Pending(f"waiting for {_names(running)}")
    missing = [name for name in required if name not in {check.name for check in checks}]
    if counted and not missing:
        return Green(f"{_names(counted)} passed")
    names = listed(missing, _MOST_NAMED)
    others = any(check.state is CheckState.PENDING for check in checks)
    if others or quiet < terms.start:
        return Pending(f"waiting for {names or 'a first check'} to begin")
    late = f"has begun within {duration(terms.start)}"
    if checks:
        return Nobody(f"no check {names} {late}; there is {_names(checks)}")
    return Nobody(
        f"no CI here: no check {names} {late}" if names else f"no CI here: no check {late}"
    )


def _has_failed(check: Check, terms: Terms) -> bool:
    match check.state:
        case CheckState.FAILED:
            return True
        case CheckState.NEUTRAL:
            return terms.neutral == "fail"
        case CheckState.SKIPPED:
            return terms.skipped == "fail"
        case _:
            return False


def _names(checks: Iterable[Check]) -> str:
    return listed([check.name for check in checks], _MOST_NAMED)
