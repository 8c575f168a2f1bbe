"""Prices of turns: the model asked for, what its tokens cost, limits nobody can count (ADR 22)."""

from collections.abc import Mapping

from ralph.agents.clis import Cli
from ralph.agents.kinds import split_flags, value_in
from ralph.agents.providers import OWN, model_of
from ralph.kernel.limits import Prices, per_million
from ralph.settings.load import Loaded
from ralph.settings.paths import dotted, leaves
from ralph.settings.schema import Settings


def asked_model(settings: Settings, cli: Cli, command: tuple[str, ...]) -> str | None:
    """`agent.model`, else what the agent's own arguments ask for."""
    arguments = (*command[1:], *split_flags(settings.agent.flags))
    return settings.agent.model or value_in(arguments, cli.model_flags)


def prices_of(
    settings: Settings, cli: Cli, command: tuple[str, ...], environ: Mapping[str, str]
) -> tuple[Prices | None, str]:
    """Prices of tokens, from the settings or the bundled list, with words about it (ADR 22)."""
    if settings.agent.prices:
        prices = settings.agent.prices.prices()
        return prices, f"agent.prices: {per_million(prices)}"
    model = asked_model(settings, cli, command)
    if model is None or not cli.reports:
        return None, ""
    from ralph.agents.prices import listed, price_words

    if cli.kind == OWN:
        from ralph.agents.more_prices import more_listed

        asked = model_of(model)
        found = listed(asked.name) or more_listed(asked, environ)
    else:
        found = listed(model)
    if found is None:
        return None, ""
    # An agent that reports cost may not know this model's; then the list does.
    return found.prices, price_words(found) if cli.reports == "tokens" else ""


def uncounted(
    settings: Settings, cli: Cli, name: str, kind: str, *, priced: bool
) -> tuple[str, str] | None:
    """The reason why the agent's cost cannot be counted, and a remedy; None if it can."""
    if cli.reports == "":
        return f"{name} reports no cost", "Use --max-time or -m instead."
    if cli.reports == "tokens" and not priced:
        remedy = 'Set agent.prices, for example {"input": 1.25, "output": 10}'
        others = _priced_others(kind) or "use --max-time"
        return f"{name} reports no cost, only tokens", f"{remedy}, or {others}."
    if not settings.stream_agent_output:
        return f"without its stream {name} reports no cost", "Use --stream-agent-output."
    return None


def _priced_others(kind: str) -> str:
    """How to come to a model whose price is known, in words."""
    from importlib.util import find_spec

    from ralph.agents.prices import known_models

    if kind == OWN:  # of all services there are too many to name
        more = "install the prices of more models: pip install 'ralph-engine[agent]'"
        return "" if find_spec("genai_prices") else more
    models = ", ".join(known_models(kind))
    return f"name with --model one whose price is known: {models}" if models else ""


def limit_of_money(loaded: Loaded, names: tuple[str, ...]) -> str | None:
    """The first limit of money that someone has set, as they would find it."""
    said = {dotted(path): amount for path, amount in leaves(dict(loaded.merged))}
    for name in names:
        if said.get(name) is not None:
            origin = loaded.origins[name]
            return origin if origin.startswith("--") else f"{origin}: {name}"
    return None
