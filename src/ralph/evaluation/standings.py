"""What an evaluation found: each agent's rates, and what it took."""

from collections.abc import Sequence
from typing import Any

from ralph.evaluation.statistics import Rate, median, rate
from ralph.evaluation.trials import Result, Standing, TaskCheck, as_json
from ralph.evaluation.verdict import PASSED
from ralph.kernel.value import value

VERSION = 1  # of the JSON


@value
class AgentRates:
    """An agent over all tasks. Errors count for nothing."""

    agent: str
    passes: Rate  # of its trials
    falsehoods: Rate  # of the trials in which it said done
    cost_usd: float | None  # of all its trials; None: none told
    uncounted: int  # trials that did not tell
    seconds: float | None  # the median
    iterations: int
    errors: int
    tampered: int  # trials in which it changed what is protected


@value
class Cell:
    """An agent at a task."""

    task: str
    agent: str
    passed: int
    trials: int
    false_claims: int
    errors: int


@value
class Standings:
    """The whole of it."""

    suite: str
    evaluation: str
    began: float
    planned: int
    repeats: int
    agents: tuple[AgentRates, ...]
    tasks: tuple[TaskCheck, ...]
    cells: tuple[Cell, ...]
    results: tuple[Result, ...]
    limit: str = ""
    now: float = 0.0

    @property
    def without_result(self) -> int:
        """Trials that were not made, or had an error."""
        return self.planned - sum(result.counts for result in self.results)


def standings(about: tuple[str, str, float], standing: Standing, now: float) -> Standings:
    """The standings of an evaluation: of a suite's name, its own id, and when it began."""
    planned, results, checks = standing.planned, standing.results, standing.checks
    known = tuple(results[trial.number] for trial in planned if trial.number in results)
    agents = dict.fromkeys(trial.agent for trial in planned)
    tasks = dict.fromkeys(trial.task for trial in planned)
    return Standings(
        *about,
        planned=len(planned),
        repeats=max((trial.repeat for trial in planned), default=0),
        agents=tuple(_rates(name, [r for r in known if r.trial.agent == name]) for name in agents),
        tasks=tuple(checks.get(task, TaskCheck(task)) for task in tasks),
        cells=tuple(_cell(task, agent, known) for task in tasks for agent in agents),
        results=known,
        limit=standing.limit,
        now=now,
    )


def _rates(agent: str, results: Sequence[Result]) -> AgentRates:
    counted = [result.verdict for result in results if result.counts]
    claims = [verdict for verdict in counted if verdict.claimed]
    costs = [verdict.cost_usd for verdict in counted if verdict.cost_usd is not None]
    return AgentRates(
        agent,
        passes=rate(sum(verdict.outcome == PASSED for verdict in counted), len(counted)),
        falsehoods=rate(sum(verdict.false_claim for verdict in claims), len(claims)),
        cost_usd=round(sum(costs), 9) if costs else None,
        uncounted=len(counted) - len(costs),
        seconds=median([verdict.seconds for verdict in counted]),
        iterations=sum(verdict.iterations for verdict in counted),
        errors=len(results) - len(counted),
        tampered=sum(bool(verdict.tampered) for verdict in counted),
    )


def _cell(task: str, agent: str, results: Sequence[Result]) -> Cell:
    mine = [r for r in results if (r.trial.task, r.trial.agent) == (task, agent)]
    counted = [result.verdict for result in mine if result.counts]
    return Cell(
        task,
        agent,
        passed=sum(verdict.outcome == PASSED for verdict in counted),
        trials=len(counted),
        false_claims=sum(verdict.false_claim for verdict in counted),
        errors=len(mine) - len(counted),
    )


def as_document(found: Standings) -> dict[str, Any]:
    """The standings for programs."""
    return {
        "version": VERSION,
        "suite": found.suite,
        "evaluation": found.evaluation,
        "began": found.began,
        "repeats": found.repeats,
        "trials_planned": found.planned,
        "trials_without_result": found.without_result,
        "limit": found.limit or None,
        "agents": [_agent(rates) for rates in found.agents],
        "tasks": [
            {
                "task": check.task,
                "passes_at_start": check.passes_at_start,
                "problem": check.problem or None,
                "agents": [_of_cell(cell) for cell in found.cells if cell.task == check.task],
            }
            for check in found.tasks
        ],
        "trials": [as_json(result) for result in found.results],
    }


def _agent(rates: AgentRates) -> dict[str, Any]:
    passes, falsehoods = rates.passes, rates.falsehoods
    return {
        "agent": rates.agent,
        "trials": passes.of,
        "passed": passes.count,
        "pass_rate": round(passes.share, 4),
        "pass_interval": [round(passes.low, 4), round(passes.high, 4)],
        "claims": falsehoods.of,
        "false_claims": falsehoods.count,
        "false_claim_rate": round(falsehoods.share, 4),
        "false_claim_interval": [round(falsehoods.low, 4), round(falsehoods.high, 4)],
        "cost_usd": rates.cost_usd,
        "uncounted": rates.uncounted,
        "seconds": rates.seconds,
        "iterations": rates.iterations,
        "errors": rates.errors,
        "tampered": rates.tampered,
    }


def _of_cell(cell: Cell) -> dict[str, Any]:
    names = ("agent", "passed", "trials", "false_claims", "errors")
    return {name: getattr(cell, name) for name in names}
