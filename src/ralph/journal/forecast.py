"""What is likely left of a run, by what earlier work took: a median and an 80 % interval (ADR 46).

All of it is a closed form, so that the same history gives the same forecast: nothing draws lots.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from ralph.kernel.limits import Limits, Spent
from ralph.kernel.value import replace, value
from ralph.text.words import counted, duration, money

LEAST = 5  # efforts that came to their end; of fewer nobody can tell
_NORMAL = 1.2816  # the 90th percentile of a normal distribution
_LEAST_LONGER = 2  # efforts that went on for longer than this one has
_ROUGH = 0.1  # of a mean: nothing is known more exactly
_TINY = 1e-9  # seconds or dollars: nothing
_SHARES = (0.1, 0.5, 0.9)
_BINS = 12
_HALVINGS = 16
_PRIOR = 1.0  # efforts' worth of trust in a hazard that is the same at every iteration
_FAR = 2000  # iterations
_LEAST_SIZED = 10  # efforts by which a trait shows whether it helps
_HELPS = 0.8  # of the spread at most is left where a trait helps


@value
class Effort:
    """What one unit took: a run of the prompt loop, a task, a story. `squares` are the sums of the
    squares of its iterations' seconds and costs, where they were counted one by one."""

    iterations: int
    seconds: float
    cost_usd: float | None = None
    ended: bool = True  # False: it was cut off, by a limit for example; it would have taken more
    kind: str = ""
    size: float = 0.0  # by its estimate; 0: it has none
    squares: tuple[float, float] | None = None


@value
class Begun:
    """A unit under way: what its iterations that are over have taken."""

    iterations: int = 0
    seconds: float = 0.0
    cost_usd: float | None = None


@value
class Waiting:
    """A unit that nobody has begun."""

    kind: str = ""
    size: float = 0.0


@value
class Range:
    """An amount that is not known yet: eight times of ten it lies between `low` and `high`."""

    low: float
    median: float
    high: float

    def times(self, factor: float) -> "Range":
        return Range(self.low * factor, self.median * factor, self.high * factor)

    def whole(self, least: int) -> "Range":
        """In whole numbers, `least` of them at least."""
        return Range(*(float(max(least, round(x))) for x in (self.low, self.median, self.high)))


NOTHING = Range(0.0, 0.0, 0.0)


@value
class Bound:
    """A limit of the run: True if it will likely hold, False if it likely will not."""

    words: str
    holds: bool | None


@value
class Forecast:
    """What is likely left, from the last iteration that is over. None is what nobody can tell."""

    observations: int  # efforts on which it stands
    unit: str = "run"  # of which these are: run, task, story
    iterations: Range | None = None
    seconds: Range | None = None
    cost_usd: Range | None = None
    after: Spent = Spent()  # what the iterations that are over have used: from there it counts
    bounds: tuple[Bound, ...] = ()
    why: str = ""  # why there is none

    @property
    def limit_holds(self) -> bool | None:
        """True if every limit will likely hold, False if one likely will not."""
        if not self.bounds or any(bound.holds is False for bound in self.bounds):
            return False if self.bounds else None
        return None if any(bound.holds is None for bound in self.bounds) else True


@value
class Share:
    """The expected amount of something, its variance, and how many observations say so."""

    mean: float
    variance: float
    observations: int

    @property
    def curve(self) -> tuple[float, float]:
        """The middle and the width of its logarithm, as if that were normal. Few observations say
        little of a spread, and of one that is not normal half of them."""
        log = math.log1p(self.variance / self.mean**2)
        few = _student((self.observations - 1) / 2) / _NORMAL
        return math.log(self.mean) - log / 2, few * math.sqrt(log)

    def range(self, among: int = 1) -> Range:
        """The amount, or the largest of so many like it."""
        if self.mean < _TINY:
            return NOTHING
        middle, width = self.curve
        places = (_where(_normal, share ** (1 / among), -9.0, 9.0) for share in _SHARES)
        return Range(*(math.exp(middle + width * place) for place in places))


def forecast(
    efforts: Sequence[Effort],
    *,
    waiting: Sequence[Waiting] = (),
    begun: Sequence[Begun] = (),
    workers: int = 1,
    unit: str = "run",
) -> Forecast:
    """What is left of these units, by what others took. It tells nothing of limits yet."""
    efforts = [each for each in efforts if each.iterations > 0]
    ended = [each for each in efforts if each.ended]
    made = Forecast(len(efforts), unit)
    if not waiting and not begun:
        return replace(made, iterations=NOTHING, seconds=NOTHING, cost_usd=NOTHING)
    if len(ended) < LEAST:
        cut = len(ended) < len(efforts)
        what = f"{plural(unit)} that came to their end" if cut else plural(unit)
        return replace(made, why=f"too few {what} to tell ({len(ended)} of {LEAST})")
    longer = [sum(each.iterations > mine.iterations for each in efforts) for mine in begun]
    if unit == "run" and min(longer, default=_LEAST_LONGER) < _LEAST_LONGER:
        return replace(made, why=f"longer than nearly all of {counted(len(efforts), 'run')}")
    lefts = [remaining(efforts, mine.iterations) for mine in begun]
    iterations = together(
        [
            *(left.range for left in lefts),
            *_waiting(ended, waiting, lambda each: float(each.iterations)),
        ]
    ).whole(len(begun) + len(waiting))
    seconds = _amount(efforts, waiting, begun, lefts, _SECONDS, workers=workers)
    cost = _amount(efforts, waiting, begun, lefts, _COST)
    return replace(made, iterations=iterations, seconds=seconds, cost_usd=cost)


# ------------------------------------------------------------------ iterations that are left


@value
class Remaining:
    """How many more iterations a unit takes: the chance of each number, from 1 on."""

    chances: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(n * chance for n, chance in enumerate(self.chances, 1))

    @property
    def variance(self) -> float:
        mean = self.mean
        return sum((n - mean) ** 2 * chance for n, chance in enumerate(self.chances, 1))

    @property
    def range(self) -> Range:
        return Range(*(float(self.at(share)) for share in _SHARES))

    def binned(self) -> list[tuple[float, float]]:
        """A few numbers that stand for all, each with its chance."""
        bins, weight, sum_ = list[tuple[float, float]](), 0.0, 0.0
        for number, chance in enumerate(self.chances, 1):
            weight, sum_ = weight + chance, sum_ + number * chance
            if weight >= 1 / _BINS:
                bins.append((sum_ / weight, weight))
                weight = sum_ = 0.0
        return [*bins, (sum_ / weight, weight)] if weight else bins

    def at(self, share: float) -> int:
        """The first number within which so large a share of all units has ended."""
        seen = 0.0
        for number, chance in enumerate(self.chances, 1):
            seen += chance
            if seen > share + 1e-9:
                return number
        return len(self.chances)


def remaining(efforts: Sequence[Effort], taken: int) -> Remaining:
    """The iterations that are left of a unit that has taken so many and is not done. An effort that
    was cut off tells only that it took more (a Kaplan-Meier curve); where few tell, one hazard for
    all iterations has a say."""
    usual = sum(each.ended for each in efforts) / sum(each.iterations for each in efforts)
    ends: dict[int, int] = {}
    gone: dict[int, int] = {}
    for each in efforts:
        gone[each.iterations] = gone.get(each.iterations, 0) + 1
        if each.ended:
            ends[each.iterations] = ends.get(each.iterations, 0) + 1
    there = sum(each.iterations > taken for each in efforts)
    chances, alive = [], 1.0
    for number in range(taken + 1, taken + _FAR):
        hazard = (ends.get(number, 0) + _PRIOR * usual) / (there + _PRIOR)
        chances.append(alive * hazard)
        alive *= 1 - hazard
        there -= gone.get(number, 0)
        if alive < 1e-4:
            break
    return Remaining((*chances[:-1], chances[-1] + alive))


# ------------------------------------------------------------------ time and money


@value
class _Amount:
    """Which amount of an effort, and of a unit that is under way."""

    of: Callable[[Effort], float | None]
    square: Callable[[Effort], float | None]
    own: Callable[[Begun], float | None]


_SECONDS = _Amount(
    lambda each: each.seconds,
    lambda each: each.squares[0] if each.squares else None,
    lambda mine: mine.seconds,
)
_COST = _Amount(
    lambda each: each.cost_usd,
    lambda each: each.squares[1] if each.squares else None,
    lambda mine: mine.cost_usd,
)


def _amount(
    efforts: Sequence[Effort],
    waiting: Sequence[Waiting],
    begun: Sequence[Begun],
    lefts: Sequence[Remaining],
    amount: _Amount,
    *,
    workers: int = 1,
) -> Range | None:
    """The amount that is left; None where too few efforts know theirs."""
    known = [each for each in efforts if amount.of(each) is not None]
    ended = [each for each in known if each.ended]
    if len(ended) < LEAST:
        return None
    shares = [
        _compound(left, _pace(known, amount, mine), len(ended))
        for mine, left in zip(begun, lefts, strict=True)
    ]
    rest = _waiting(ended, waiting, lambda each: amount.of(each) or 0.0)
    whole = together([*shares, *rest])
    if workers < 2:
        return whole
    # Nobody is done before the longest of those that are worked on at once.
    at_once = min(workers, len(waiting))
    apiece = _waiting(ended, waiting, lambda each: amount.of(each) or 0.0, at_once)
    longest = [*shares, *apiece]
    shared = whole.times(1 / workers)
    return Range(
        max(shared.low, *(each.low for each in longest)),
        max(shared.median, *(each.median for each in longest)),
        max(shared.high, *(each.high for each in longest)),
    )


@value
class _Pace:
    """What an iteration takes: its mean, the variance around it, and how far the mean is known."""

    mean: float
    within: float
    doubt: float


def _pace(efforts: Sequence[Effort], amount: _Amount, mine: Begun) -> _Pace:
    """What an iteration of this unit takes: as in other units, and the more like its own iterations
    the more there were."""
    totals = [(each.iterations, amount.of(each) or 0.0, amount.square(each)) for each in efforts]
    number, count = len(totals), sum(n for n, _, _ in totals)
    usual = sum(total for _, total, _ in totals) / count
    means = [total / n for n, total, _ in totals]
    middle = sum(means) / number
    spread = sum((mean - middle) ** 2 for mean in means) / (number - 1)
    if all(square is not None for _, _, square in totals) and count > number:
        around = sum((square or 0.0) - total**2 / n for n, total, square in totals)
        within = max(0.0, around) / (count - number)
        between = max(0.0, spread - within * sum(1 / n for n, _, _ in totals) / number)
    else:  # nobody has counted it one by one
        within = between = spread / 2
    rough = (_ROUGH * usual) ** 2
    within, between = max(within, rough), max(between, rough)
    doubt = between * (1 + 1 / number) + within / count
    own = amount.own(mine)
    if not mine.iterations or own is None or not doubt:
        return _Pace(usual, within, doubt)
    noise = within / mine.iterations
    trust = doubt / (doubt + noise)
    mean = usual + trust * (own / mine.iterations - usual)
    return _Pace(mean, within, doubt * (1 - trust))


def _compound(left: Remaining, pace: _Pace, observations: int) -> Range:
    """So many iterations, each of which takes so much: a mixture of what each number would take."""
    if pace.mean < _TINY:
        return NOTHING
    shares = [
        (chance, Share(n * pace.mean, n * pace.within + n**2 * pace.doubt, observations).curve)
        for n, chance in left.binned()
    ]
    low = min(middle - 4 * width for _, (middle, width) in shares)
    high = max(middle + 4 * width for _, (middle, width) in shares)

    def within(log: float) -> float:
        return sum(chance * _normal((log - middle) / width) for chance, (middle, width) in shares)

    return Range(*(math.exp(_where(within, share, low, high)) for share in _SHARES))


# ------------------------------------------------------------------ units that wait


def _waiting(
    ended: Sequence[Effort],
    waiting: Sequence[Waiting],
    of: Callable[[Effort], float],
    at_once: int = 0,
) -> list[Range]:
    """What all that wait take; with `at_once` only the longest of so many like the largest."""
    if not waiting:
        return []
    weigh = _weights(ended, of)
    parts = [(of(each), weigh(each)) for each in ended]
    number = len(parts)
    each = sum(amount for amount, _ in parts) / sum(weight for _, weight in parts)
    spread = sum((amount - each * weight) ** 2 / weight for amount, weight in parts)
    variance = max(spread / (number - 1), (_ROUGH * each) ** 2)
    weights = [weigh(unit) for unit in waiting]
    total = max(weights) if at_once else sum(weights)
    share = Share(each * total, variance * total * (1 + total / number), number)
    return [share.range(at_once or 1)]


def _weights(
    ended: Sequence[Effort], of: Callable[[Effort], float]
) -> Callable[[Effort | Waiting], float]:
    """How much a unit takes beside the usual one. Its estimate, or else its type, counts only where
    that would have made the forecasts of earlier units better, each by the others."""
    usual = sum(map(of, ended)) / len(ended)
    if usual < _TINY or len(ended) < _LEAST_SIZED:
        return lambda _: 1.0
    plain = sum((of(each) - usual) ** 2 for each in ended) * (len(ended) / (len(ended) - 1)) ** 2
    sized = [each for each in ended if each.size > 0]
    if len(sized) == len(ended):
        size = sum(each.size for each in ended) / len(ended)
        total, sizes = usual * len(ended), size * len(ended)
        missed = sum((of(e) - e.size * (total - of(e)) / (sizes - e.size)) ** 2 for e in ended)
        if missed < _HELPS**2 * plain:
            return lambda unit: unit.size / size if unit.size > 0 else 1.0
    kinds: dict[str, list[float]] = {}
    for each in ended:
        kinds.setdefault(each.kind, []).append(of(each))
    means = {kind: sum(some) / len(some) for kind, some in kinds.items() if len(some) >= LEAST}
    missed = sum(
        ((amount - means[kind]) * len(some) / (len(some) - 1)) ** 2
        if kind in means
        else (amount - usual) ** 2
        for kind, some in kinds.items()
        for amount in some
    )
    if missed < _HELPS**2 * plain:
        return lambda unit: means.get(unit.kind, usual) / usual or _ROUGH
    return lambda _: 1.0


def together(ranges: Iterable[Range]) -> Range:
    """The sum of amounts that have nothing to do with each other. With one more of them no bound
    becomes less."""
    ranges = list(ranges)
    median = sum(each.median for each in ranges)
    below = math.sqrt(sum((each.median - each.low) ** 2 for each in ranges))
    above = math.sqrt(sum((each.high - each.median) ** 2 for each in ranges))
    return Range(max(0.0, median - below), median, median + above)


# ------------------------------------------------------------------ limits


def judged(
    made: Forecast,
    limits: Limits,
    spent: Spent,
    *,
    units: int = 0,
    day: tuple[float, float] | None = None,
) -> Forecast:
    """The forecast with each limit of the run. `spent` is what the iterations that are over have
    used, `units` how many are left, `day` the money of a day and what others have spent of it."""
    dollars = spent.dollars
    checks: list[tuple[str, float | None, float, Range | None]] = [
        (
            counted(limits.iterations or 0, "iteration"),
            limits.iterations,
            spent.iterations,
            made.iterations,
        ),
        (duration(limits.seconds or 0), limits.seconds, spent.seconds, made.seconds),
        (_dollars(limits.dollars or 0), limits.dollars, dollars, made.cost_usd),
    ]
    if day is not None:
        checks.append((f"{_dollars(day[0])} a day", day[0], day[1] + dollars, made.cost_usd))
    bounds = [
        Bound(words, _holds(limit, used, left))
        for words, limit, used, left in checks
        if limit is not None and (left is not None or used > 0)  # else nothing counts against it
    ]
    if limits.tasks is not None and not made.why:
        bounds.append(Bound(counted(limits.tasks, "task"), units <= limits.tasks))
    return replace(made, after=spent, bounds=tuple(bounds))


def _dollars(limit: float) -> str:
    return f"${limit:.0f}" if limit == int(limit) else money(limit)


def _holds(limit: float, used: float, left: Range | None) -> bool | None:
    if left is None:
        return None
    if used + left.high <= limit:
        return True
    return False if used + left.median > limit else None


# ------------------------------------------------------------------ arithmetic


def plural(unit: str) -> str:
    return {"story": "stories"}.get(unit, f"{unit}s")


def _student(freedom: float) -> float:
    """The 90th percentile of Student's distribution."""
    z, v = _NORMAL, max(1.0, freedom)
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)


def _normal(place: float) -> float:
    """The share of a normal distribution below a place, in its deviations from the middle."""
    return (1 + math.erf(place / math.sqrt(2))) / 2


def _where(below: Callable[[float], float], share: float, low: float, high: float) -> float:
    """The place below which so large a share lies."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return (low + high) / 2
