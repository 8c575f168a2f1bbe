"""The agents of a run beside its first one: they go on where that one cannot, or cost less."""

import os

import msgspec

from ralph.agents.kinds import INSTALLED_BY, installed
from ralph.errors import ConfigError
from ralph.kernel.ports import Agent, Watch
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.value import replace, value
from ralph.runner.invocation import Invocation
from ralph.runner.money import limit_of_money, uncounted
from ralph.runner.plan import Plan, Work
from ralph.runner.planning import PlanTerms, planned, roster_of
from ralph.settings.schema import AgentSettings, FallbackSettings

_FALLBACKS, _STEP_DOWN = "agent.fallbacks", "loop.stepDown"
_PRICES = 'Give it prices, for example "prices": {"input": 1.25, "output": 10}'


@value
class ByPlace:
    """Several agents; each order names the place of the one that it is for. A turn that nobody
    judges is taken by the next one at once."""

    agents: tuple[Agent, ...]
    fallbacks: int

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        turn = self.agents[order.place].take_turn(order, watch)
        for place in range(order.place + 1, self.fallbacks + 1):
            failure = turn.failure
            is_theirs = failure is not None and (failure.passes or failure.refused)
            if order.role is not Role.MESSAGE or not is_theirs:
                break
            following = self.agents[place].take_turn(replace(order, place=place), watch)
            turn = _together(turn, following)
        return turn


def _together(before: Turn, turn: Turn) -> Turn:
    """A turn, with what the one before it has cost."""
    known = not (before.uncounted or turn.uncounted)
    cost = (before.cost_usd or 0.0) + (turn.cost_usd or 0.0) if known else None
    return replace(turn, cost_usd=cost, usage=before.usage + turn.usage)


def with_fallbacks(plan: Plan[Work], invocation: Invocation, terms: PlanTerms) -> Plan[Work]:
    """The plan with the agents that its settings name beside the first, each checked as that one
    is. ConfigError if one could not take a turn, or not be counted against a limit of money."""
    settings, others = plan.settings, list[Plan[Work]]()
    limit = limit_of_money(plan.loaded, terms.money)
    for fallback in settings.agent.fallbacks:
        agent = _settings_of(fallback, plan)
        other = _another(plan, invocation, terms, _FALLBACKS, agent)
        if limit and (why := _uncounted(other)):
            raise ConfigError(f"{_FALLBACKS}: {limit}: {why}", f"{_PRICES}, or take it out.")
        others.append(other)
    if step := settings.loop.step_down:
        if plan.limits.dollars is None:
            remedy = "Set maxCost (--max-cost), or take it out."
            raise ConfigError(f"{_STEP_DOWN} needs a limit of money, and there is none", remedy)
        agent = msgspec.structs.replace(settings.agent, model=step.model)
        other = _another(plan, invocation, terms, _STEP_DOWN, agent)
        if why := _uncounted(plan) or _uncounted(other):
            raise ConfigError(f"{_STEP_DOWN}: {why}", "Set agent.prices, or take it out.")
        others.append(other)
    return replace(plan, others=tuple(others), roster=roster_of(settings))


def _settings_of(fallback: FallbackSettings, plan: Plan[Work]) -> AgentSettings:
    """The settings of one that goes on. What it does not say of itself is as for the first agent
    where the command is the same, and otherwise as if nobody had said it."""
    agent, own = plan.settings.agent, msgspec.structs.asdict(fallback)
    if fallback.command == (agent.command or plan.command[0]):
        own |= {"flags": fallback.flags or agent.flags, "kind": fallback.kind or agent.kind}
    else:
        own |= {"prompt_via": None}
    return msgspec.structs.replace(agent, **own)


def _another(
    plan: Plan[Work], invocation: Invocation, terms: PlanTerms, where: str, agent: AgentSettings
) -> Plan[Work]:
    """The plan as another agent takes turns in it."""
    settings = msgspec.structs.replace(plan.settings, agent=agent)
    loaded = msgspec.structs.replace(plan.loaded, settings=settings)
    terms = replace(terms, heals=True, money=())
    try:
        return planned(plan.loop_name, plan.work, invocation, loaded, plan.backlog, terms=terms)
    except ConfigError as error:
        remedy = "Change it, or take it out."
        if agent.command in INSTALLED_BY and not installed(agent.command, invocation.environ):
            remedy = f"Install it: {INSTALLED_BY[agent.command]}, or take it out."
        raise ConfigError(f"{where}: {error.message}", remedy) from error


def _uncounted(plan: Plan[Work]) -> str:
    """The reason why the cost of its turns cannot be counted; "" if it can."""
    name, priced = os.path.basename(plan.command[0]), plan.prices is not None
    why = uncounted(plan.settings, plan.cli, name, plan.kind, priced=priced)
    return why[0] if why else ""
