"""Limits of money: who has set one, and whether anybody can count against it (ADR 22)."""

from ralph.adapters.agents import AgentModule
from ralph.settings.load import Loaded
from ralph.settings.paths import dotted, leaves
from ralph.settings.schema import Settings


def uncounted(
    settings: Settings, module: AgentModule, name: str, kind: str, *, priced: bool
) -> tuple[str, str] | None:
    """Why nobody can count what the agent costs, and what to do about it; None if they can."""
    if module.REPORTS == "":
        return f"{name} reports no cost", "Use --max-time or -m instead."
    if module.REPORTS == "tokens" and not priced:
        return f"{name} reports no cost, only tokens", _price_remedy(kind)
    if not settings.stream_agent_output:
        return f"without its stream {name} reports no cost", "Use --stream-agent-output."
    return None


def limit_of_money(loaded: Loaded, names: tuple[str, ...]) -> str | None:
    """The first limit of money that someone has set, as they would find it."""
    said = {dotted(path): amount for path, amount in leaves(dict(loaded.merged))}
    for name in names:
        if said.get(name) is not None:
            origin = loaded.origins[name]
            return origin if origin.startswith("--") else f"{origin}: {name}"
    return None


def _price_remedy(kind: str) -> str:
    from ralph.core.pricelist import known_models

    set_them = 'Set agent.prices, for example {"input": 1.25, "output": 10}'
    models = ", ".join(known_models(kind))
    if not models:
        return f"{set_them}, or use --max-time."
    return f"{set_them}, or name with --model one whose price is known: {models}."
