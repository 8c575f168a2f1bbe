"""Figures and aims: what a measure found, and whether it is good enough."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Aim:
    """How good is good enough. `ratio` is the most that may be paid beside bash, or the floor."""

    most: float | None = None
    least: float | None = None
    ratio: float | None = None

    def words(self) -> str:
        """For the table: `≤ 1.5, ≤ 1.3 x`."""
        known = (
            ("≤ {:g}", self.most),
            ("≥ {:g}", self.least),
            ("≤ {:g} x", self.ratio),
        )
        return ", ".join(text.format(value) for text, value in known if value is not None)

    def met(self, figure: float, ratio: float | None) -> bool | None:
        """Whether a figure is good enough; None where nothing is asked, or nothing compared."""
        answers = [
            None if self.most is None else figure <= self.most,
            None if self.least is None else figure >= self.least,
            None if self.ratio is None or ratio is None else ratio <= self.ratio,
        ]
        known = [answer for answer in answers if answer is not None]
        return all(known) if known else None


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure for every contender that could be measured."""

    name: str
    unit: str
    figures: Mapping[str, float]
    aim: Aim = Aim()
    rounds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # what they come from

    @property
    def ratio(self) -> float | None:
        """Ralph beside bash in the same run, or beside the floor where bash has no figure."""
        ralph = self.figures.get("ralph")
        beside = self.figures.get("bash") or self.figures.get("floor")
        return ralph / beside if ralph is not None and beside else None

    @property
    def met(self) -> bool | None:
        """Whether Ralph's figure meets the aim."""
        ralph = self.figures.get("ralph")
        return None if ralph is None else self.aim.met(ralph, self.ratio)


def percentile(figures: list[float], share: float) -> float:
    """The figure that this share of all figures does not exceed."""
    ordered = sorted(figures)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
