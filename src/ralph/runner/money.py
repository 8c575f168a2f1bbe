"""Prices of turns: the model asked for, what its tokens cost, and limits that nobody could
count (ADR 22)."""

from ralph.agents.kinds import AgentModule, split_flags, value_in
from ralph.errors import ConfigError
from ralph.kernel.limits import Prices, per_million
from ralph.settings.load import Loaded
from ralph.settings.paths import dotted, leaves
from ralph.settings.schema import Settings


def asked_model(settings: Settings, module: AgentModule, command: tuple[str, ...]) -> str | None:
    """`agent.model`, else what the agent's own arguments ask for."""
    arguments = (*command[1:], *split_flags(settings.agent.flags))
    return settings.agent.model or value_in(arguments, module.MODEL_FLAGS)


def prices_of(
    settings: Settings, module: AgentModule, command: tuple[str, ...]
) -> tuple[Prices | None, str]:
    """Prices of tokens, from the settings or the bundled list, with words about it (ADR 22)."""
    if settings.agent.prices:
        prices = settings.agent.prices.prices()
        return prices, f"agent.prices: {per_million(prices)}"
    model = asked_model(settings, module, command)
    if model is None or not module.REPORTS:
        return None, ""
    from ralph.agents.prices import listed, price_words

    found = listed(model)
    if found is None:
        return None, ""
    # An agent that reports cost may not know this model's; then the list does.
    return found.prices, price_words(found) if module.REPORTS == "tokens" else ""


def uncounted(
    settings: Settings, module: AgentModule, name: str, kind: str, *, priced: bool
) -> tuple[str, str] | None:
    """The reason why the agent's cost cannot be counted, and a remedy; None if it can."""
    if module.REPORTS == "":
        return f"{name} reports no cost", "Use --max-time or -m instead."
    if module.REPORTS == "tokens" and not priced:
        return f"{name} reports no cost, only tokens", _price_remedy(kind)
    if not settings.stream_agent_output:
        return f"without its stream {name} reports no cost", "Use --stream-agent-output."
    return None


def refuse_uncounted(limit: str | None, why: tuple[str, str] | None) -> None:
    """A limit that nobody counts against would be a lie (ADR 15)."""
    if limit is not None and why is not None:
        raise ConfigError(f"{limit}: {why[0]}", why[1])


def limit_of_money(loaded: Loaded, names: tuple[str, ...]) -> str | None:
    """The first limit of money that someone has set, as they would find it."""
    said = {dotted(path): amount for path, amount in leaves(dict(loaded.merged))}
    for name in names:
        if said.get(name) is not None:
            origin = loaded.origins[name]
            return origin if origin.startswith("--") else f"{origin}: {name}"
    return None


def _price_remedy(kind: str) -> str:
    from ralph.agents.prices import known_models

    set_them = 'Set agent.prices, for example {"input": 1.25, "output": 10}'
    models = ", ".join(known_models(kind))
    if not models:
        return f"{set_them}, or use --max-time."
    return f"{set_them}, or name with --model one whose price is known: {models}."
