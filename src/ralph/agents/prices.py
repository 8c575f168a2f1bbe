"""List prices by model, for agents that report tokens and no cost (ADR 22).

Dollars for a million tokens, as the providers list them for standard processing. Where a price
depends on something that tokens do not tell, the higher one stands: a limit that is reached too
late costs money. So introductory prices are left out, and Gemini's Pro models have the price above
200,000 tokens, since their CLI uses the whole window. Codex keeps below 272,000 tokens by itself,
where the prices of OpenAI would double. What is written to a cache is kept there for five minutes.
"""

import re

from ralph.kernel.limits import Prices, per_million
from ralph.kernel.value import value

AS_OF = "2026-11-15"

_DATE = r"-(?:20\d\d-?[01]\d-?[0-3]\d|[01]\d-20\d\d)$"

# Models, and their prices for input, output, reading from the cache and writing to it.
_ROWS = (
    # Anthropic.
    ("claude-fable-5-2 claude-mythos-5-2", 8.00, 40.00, 0.20, 10.00),
    ("claude-opus-5-5", 4.00, 20.00, 0.20, 5.00),
    ("claude-sonnet-5-5", 2.00, 10.00, 0.10, 2.50),
    ("claude-haiku-5-5", 0.50, 2.50, 0.05, 0.625),  # above 100,000 tokens
    ("claude-fable-5-1", 10.00, 50.00, 0.25, 12.50),
    ("claude-fable-5", 10.00, 50.00, 1.00, 12.50),
    ("claude-opus-5", 5.00, 25.00, 0.50, 6.25),
    ("claude-sonnet-5", 2.00, 10.00, 0.20, 2.50),
    ("claude-opus-4-8 claude-opus-4-7 claude-opus-4-6 claude-opus-4-5", 5.00, 25.00, 0.50, 6.25),
    ("claude-sonnet-4-6 claude-sonnet-4-5 claude-sonnet-4", 3.00, 15.00, 0.30, 3.75),
    ("claude-haiku-4-5", 1.00, 5.00, 0.10, 1.25),
    ("claude-opus-4-1 claude-opus-4", 15.00, 75.00, 1.50, 18.75),
    # OpenAI: writing to the cache costs as much as input up to GPT-5.5, and a quarter more since.
    ("gpt-6.1-sol", 2.00, 10.00, 0.10, 2.50),
    ("gpt-6.1-terra", 1.00, 5.00, 0.05, 1.25),
    ("gpt-6-astra", 10.00, 50.00, 1.00, 12.50),
    ("gpt-6-sol", 2.00, 10.00, 0.20, 2.50),
    ("gpt-6-luna", 0.10, 0.50, 0.01, 0.125),
    ("gpt-5.6 gpt-5.6-sol", 5.00, 30.00, 0.50, 6.25),  # two names of one model
    ("gpt-5.6-terra", 2.00, 12.00, 0.20, 2.50),
    ("gpt-5.6-luna", 0.20, 1.20, 0.02, 0.25),
    ("gpt-5.5", 5.00, 30.00, 0.50, 5.00),
    ("gpt-5.5-pro", 30.00, 180.00, 30.00, 30.00),
    ("gpt-5.4", 2.50, 15.00, 0.25, 2.50),
    ("gpt-5.4-mini", 0.75, 4.50, 0.075, 0.75),
    ("gpt-5.4-nano", 0.20, 1.25, 0.02, 0.20),
    ("gpt-5.4-pro", 30.00, 180.00, 30.00, 30.00),
    ("gpt-5.3-codex gpt-5.2 gpt-5.2-codex", 1.75, 14.00, 0.175, 1.75),
    ("gpt-5.2-pro", 21.00, 168.00, 21.00, 21.00),
    ("gpt-5.1 gpt-5.1-codex gpt-5.1-codex-max", 1.25, 10.00, 0.125, 1.25),
    ("gpt-5.1-codex-mini", 0.25, 2.00, 0.025, 0.25),
    ("gpt-5 gpt-5-codex", 1.25, 10.00, 0.125, 1.25),
    ("gpt-5-mini", 0.25, 2.00, 0.025, 0.25),
    ("gpt-5-nano", 0.05, 0.40, 0.005, 0.05),
    ("gpt-5-pro", 15.00, 120.00, 15.00, 15.00),
    # Google: output includes thinking; an implicit cache is written for the price of input.
    ("gemini-3.8-flash gemini-3.7-flash", 1.50, 7.50, 0.15, 1.50),
    ("gemini-3.5-flash", 1.50, 9.00, 0.15, 1.50),
    ("gemini-3.1-pro-preview gemini-3.1-pro-preview-customtools", 4.00, 18.00, 0.40, 4.00),
    ("gemini-3.1-flash-lite gemini-3.1-flash-lite-preview", 0.25, 1.50, 0.025, 0.25),
    ("gemini-3-pro-preview", 4.00, 18.00, 0.40, 4.00),
    ("gemini-3-flash-preview", 0.50, 3.00, 0.05, 0.50),
    ("gemini-2.5-pro", 2.50, 15.00, 0.25, 2.50),
    ("gemini-2.5-flash", 0.30, 2.50, 0.03, 0.30),
    ("gemini-2.5-flash-lite", 0.10, 0.40, 0.01, 0.10),
)
_SERVICES = {"claude-": "anthropic", "gpt-": "openai", "gemini-": "google"}  # as our own agent has
_LIST = {name: prices for names, *prices in _ROWS for name in names.split()}


@value
class Listed:
    """The price of a model's tokens, and the entry of the list that says so."""

    model: str
    prices: Prices
    by: str = f"the table of {AS_OF}"


def listed(model: str) -> Listed | None:
    """The price of this very model, or of one that only a date tells apart; else None. Names are
    compared whole: `gpt-5` says nothing about `gpt-5-pro`."""
    name = model.strip().lower()
    for provider in ("anthropic/", "openai/", "google/", "models/"):
        name = name.removeprefix(provider)
    name = name if name in _LIST else re.sub(_DATE, "", name)
    return Listed(name, Prices(*_LIST[name])) if name in _LIST else None


def known_models(agent: str | None = None) -> tuple[str, ...]:
    """The names in the list, newest first; those that one agent can be asked for, or all."""
    if agent == "ralph-agent":
        families = _SERVICES.items()
        return tuple(f"{by}:{name}" for name in _LIST for start, by in families if start in name)
    family = {"codex": "gpt-", "gemini": "gemini-"}.get(agent) if agent else ""
    return () if family is None else tuple(name for name in _LIST if name.startswith(family))


def price_words(found: Listed) -> str:
    """The source of a run's prices, in a line for people."""
    return f"{found.model} by {found.by}: {per_million(found.prices)}"
