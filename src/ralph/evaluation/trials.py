"""The trials of a suite: which there are, and in which order they are made."""

from collections.abc import Iterable, Sequence
from typing import Any

from ralph.evaluation.verdict import ERROR, Verdict
from ralph.files.digest import digest_of
from ralph.kernel.value import value


@value
class Trial:
    """One agent, one task, once. Its number is the same whenever the suite is."""

    number: int
    task: str
    agent: str
    repeat: int  # from 1 on

    def words(self) -> str:
        """`claude: slugify #2`."""
        return f"{self.agent}: {self.task} #{self.repeat}"


@value
class Result:
    """A trial that has ended."""

    trial: Trial
    verdict: Verdict
    run: str = ""  # the id of its run; "" where none began
    ended: float = 0.0

    @property
    def counts(self) -> bool:
        """False for an error: the trial can be made again."""
        return self.verdict.outcome != ERROR


@value
class TaskCheck:
    """What was found about a task before its first trial."""

    task: str
    passes_at_start: bool = False  # then it measures nothing
    problem: str = ""  # why it cannot be tried on this machine


@value
class Standing:
    """How far an evaluation is."""

    planned: tuple[Trial, ...]
    results: dict[int, Result]
    checks: dict[str, TaskCheck]
    limit: str = ""  # that ended it before all was done

    @property
    def missing(self) -> list[Trial]:
        """Trials without a result."""
        done = {number for number, result in self.results.items() if result.counts}
        return [trial for trial in self.planned if trial.number not in done]

    @property
    def possible(self) -> list[Trial]:
        """Those of them that can be made on this machine."""
        return [trial for trial in self.missing if not self.checks[trial.task].problem]


def trials_of(tasks: Sequence[str], agents: Sequence[str], repeats: int) -> list[Trial]:
    """All trials, by their numbers."""
    named = [(t, a, r + 1) for t in tasks for a in agents for r in range(repeats)]
    return [Trial(number, *each) for number, each in enumerate(named, 1)]


def shuffled(trials: Iterable[Trial], seed: int) -> list[Trial]:
    """In an order by chance, and the same for the same seed: a machine that gets slower, or a
    service that gets busier, then favours no agent. Every repeat comes after the one before."""

    def lot(trial: Trial) -> tuple[int, str]:
        return trial.repeat, digest_of([f"{seed} {trial.number}".encode()])

    return sorted(trials, key=lot)


def as_json(result: Result) -> dict[str, Any]:
    """A result as it is kept and printed."""
    trial, verdict = result.trial, result.verdict
    told: dict[str, Any] = {name: getattr(verdict, name) for name in Verdict.__match_args__}
    named: dict[str, Any] = {name: getattr(trial, name) for name in Trial.__match_args__}
    told["tampered"] = [*verdict.tampered]
    return {
        **named,
        "run": result.run,
        "ended": result.ended,
        "verdict": told.pop("outcome"),
    } | told


def from_json(told: dict[str, Any]) -> Result:
    """A result that was kept. KeyError or TypeError for anything else."""
    trial = Trial(*(told[name] for name in Trial.__match_args__))
    fields = [name for name in Verdict.__match_args__ if name != "outcome"]
    given = {name: told[name] for name in fields if name in told}
    given["tampered"] = tuple(told.get("tampered", ()))
    return Result(trial, Verdict(str(told["verdict"]), **given), told["run"], told["ended"])
