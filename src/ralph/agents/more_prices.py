"""Prices of models that our own table does not list, by genai-prices where that is installed.

Of prices that depend on the length of a prompt, or that are announced, the highest stands.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ralph.agents.prices import Listed
from ralph.agents.providers import Model
from ralph.kernel.limits import Prices

_MILLION = 1_000_000
# Now, and when everything that is announced is in force.
_WHEN: tuple[dict[str, datetime], ...] = (
    {},
    {"genai_request_timestamp": datetime(2100, 1, 1, tzinfo=UTC)},
)
_SORTS = ("output_tokens", "cache_read_tokens", "cache_write_tokens")  # beside plain input


def more_listed(model: Model, environ: Mapping[str, str]) -> Listed | None:
    """The price of this model at its service; None where nobody knows it, or nothing can tell."""
    try:
        import genai_prices
    except ImportError:
        return None
    service = model.provider
    place = environ.get(service.url_variable, "")
    wheres: tuple[dict[str, str], ...] = ({"provider_id": service.name},)
    if service.name == "openai-chat":  # which many others speak
        wheres = ({"provider_api_url": place},) if place else ({"provider_id": "openai"},)
        wheres += ({"provider_id": "openrouter"},) if "/" in model.name else ()
    for where in wheres:
        try:
            entry, prices = _prices(genai_prices, model.name, where)
        except (LookupError, ValueError):
            continue
        return Listed(entry, prices, f"genai-prices {genai_prices.__version__}")
    return None


def _prices(library: Any, name: str, where: Mapping[str, str]) -> tuple[str, Prices]:  # noqa: ANN401  it may not be there
    """The entry that this is, and the price of a million tokens of each sort."""

    def price(when: dict[str, datetime], **more: int) -> tuple[str, float]:
        usage = library.Usage(input_tokens=_MILLION, **more)
        found = library.calc_price(usage, name, **where, **when)
        asked = found.output_price if "output_tokens" in more else found.input_price
        return found.model.id, float(asked)

    sorts = ({}, *({sort: _MILLION} for sort in _SORTS))
    entries = [[price(when, **more) for when in _WHEN] for more in sorts]
    return entries[0][0][0], Prices(*(max(each for _, each in prices) for prices in entries))
