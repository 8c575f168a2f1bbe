"""What the workers of a run share: its money, the places to work at, and the station."""

import threading
from functools import partial

from ralph.journal.ledger import read_ledger
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.places import Places
from ralph.loops.backlog.parallel.policy import WorkerContext
from ralph.loops.backlog.parallel.ride import Load, Order
from ralph.loops.backlog.parallel.station import Station
from ralph.loops.backlog.plan import MONEY, TaskWork
from ralph.runner.plan import Plan

_RECENT = 50  # turns that tell what one may cost


def context_of(worker: str, budget: Budget, places: Places) -> WorkerContext:
    """The same as one of the workers has them."""
    return WorkerContext(worker, budget, partial(places.take, worker), partial(places.rest, worker))


def shared(plan: Plan[TaskWork], spent: float) -> tuple[Budget, Places, Station[Load, Order]]:
    """All of it, for a run that has `spent` so many dollars."""
    costs = [entry.cost_usd or 0.0 for entry in read_ledger(plan.project)]
    asked_for = any(plan.loaded.origins.get(name) is not None for name in MONEY)
    # A limit that somebody has set is worth a first turn alone, if no turn has a price yet.
    dearest = max(costs[-_RECENT:], default=0.0) or (None if asked_for else 0.0)
    limit = plan.work.bounds.within.dollars
    budget = Budget(limit, plan.workers, spent, dearest, threading.Lock())
    places = Places(plan.workers, threading.Lock())
    return budget, places, Station(plan.settings.loop.train)
