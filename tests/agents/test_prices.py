"""The bundled prices: what is found by a model's name, and what must not be (ADR 22)."""

import re

import pytest

from ralph.agents.prices import AS_OF, Listed, known_models, listed, price_words
from ralph.agents.providers import PROVIDERS, model_of
from ralph.kernel.limits import Prices


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("gpt-5.5", "gpt-5.5"),
        ("gpt-5.5-2026-04-23", "gpt-5.5"),
        ("gpt-5.5-20260423", "gpt-5.5"),
        ("gpt-5-pro-2025-10-06", "gpt-5-pro"),
        ("gpt-6.1-sol-2026-09-29", "gpt-6.1-sol"),
        ("GPT-5.5 ", "gpt-5.5"),
        ("openai/gpt-5.5", "gpt-5.5"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini-2.5-flash-09-2025", "gemini-2.5-flash"),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("anthropic/claude-opus-5", "claude-opus-5"),
    ],
)
def test_a_model_is_found_by_its_name_with_or_without_a_date(asked: str, found: str) -> None:
    price = listed(asked)
    assert price is not None
    assert price.model == found


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "gpt",
        "gpt-5-turbo",
        "gpt-5-",
        "gpt-5.9",
        "gpt-5.5-pro-max",
        "gpt-5.5-2026",
        "gpt-5.5-2026-04-23-fast",
        "gpt-5.5 pro",
        "azure/gpt-5.5",
        "openrouter/openai/gpt-5.5",
        "gemini-2.5-pro-preview-06-05",
        "pro",
        "auto",
        "claude-opus-4-9",
        "claude-sonnet-5-5[1m]",
        "sonnet",
        "anthropic:claude-opus-5",
        "ｇｐｔ-5",
    ],
)
def test_another_model_is_never_taken_for_a_known_one(asked: str) -> None:
    """ADR 22: names are compared whole; a wrong price is worse than none."""
    assert listed(asked) is None


def test_a_name_that_begins_like_another_has_a_price_of_its_own() -> None:
    small, large = listed("gpt-5"), listed("gpt-5-pro")
    assert small is not None
    assert large is not None
    assert small.prices.output < large.prices.output


@pytest.mark.parametrize("model", known_models())
def test_every_entry_is_a_plausible_price(model: str) -> None:
    price = listed(model)
    assert price is not None
    each = price.prices
    assert price.model == model
    assert 0 < each.cache_read <= each.input <= each.cache_write < each.output < 1000


def test_an_agent_is_offered_models_of_its_own() -> None:
    gpt, gemini = known_models("codex"), known_models("gemini")
    assert (*gpt, *gemini) == tuple(m for m in known_models() if not m.startswith("claude-"))
    assert "gpt-5.5" in gpt
    assert "gemini-2.5-pro" in gemini
    assert known_models("amp") == ()
    own = known_models("ralph-agent")
    assert {"anthropic:claude-sonnet-5-5", "openai:gpt-5.5", "google:gemini-2.5-pro"} < {*own}
    assert [model_of(name).name for name in own] == [*known_models()]


def test_a_price_with_steps_is_the_highest() -> None:
    """ADR 22: "never less than it costs": above 200,000 tokens Gemini's Pro costs twice."""
    assert listed("gemini-2.5-pro") == Listed("gemini-2.5-pro", Prices(2.5, 15.0, 0.25, 2.5))


def test_the_usual_model_of_each_service_has_a_price() -> None:
    for service in PROVIDERS.values():
        assert not service.default_model or listed(service.default_model)


def test_where_the_prices_come_from_is_one_line() -> None:
    price = listed("gpt-5.4-mini-2026-03-17")
    assert price is not None
    said = price_words(price)
    assert said == (f"gpt-5.4-mini by the table of {AS_OF}: $0.75 in, $4.5 out per million tokens")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", AS_OF)
