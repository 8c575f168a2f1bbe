"""Prices by genai-prices, for models that our own table does not list."""

import builtins
from typing import Any

import pytest

from ralph.agents.more_prices import more_listed
from ralph.agents.prices import known_models, listed
from ralph.agents.providers import model_of

OPENROUTER = {"OPENAI_BASE_URL": "https://openrouter.ai/api/v1"}
LOCAL = {"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}


@pytest.mark.parametrize(
    ("model", "environ", "entry"),
    [
        ("anthropic:claude-3-haiku-20240307", {}, "claude-3-haiku"),
        ("openai:gpt-4.1", {}, "gpt-4.1"),
        ("openai-chat:gpt-4.1", {}, "gpt-4.1"),
        ("openai-chat:deepseek/deepseek-chat", OPENROUTER, "deepseek/deepseek-chat"),
        ("openai-chat:deepseek/deepseek-chat", LOCAL, "deepseek/deepseek-chat"),
        (
            "openai-chat:deepseek-chat",
            {"OPENAI_BASE_URL": "https://api.deepseek.com/v1"},
            "deepseek-chat",
        ),
        ("openai-chat:llama3:8b", LOCAL, None),
        ("openai-chat:no/such-model", LOCAL, None),
        ("openai-chat:deepseek/deepseek-chat", {}, "deepseek/deepseek-chat"),
        ("openai:no-such-model", {}, None),
    ],
)
def test_a_model_is_looked_up_at_its_service(
    model: str, environ: dict[str, str], entry: str | None
) -> None:
    found = more_listed(model_of(model), environ)
    assert (found and found.model) == entry
    if found:
        prices = found.prices
        assert 0 < prices.cache_read <= prices.input <= prices.cache_write
        assert prices.input < prices.output
        assert found.by.startswith("genai-prices ")


def test_of_several_prices_the_highest_stands() -> None:
    """ADR 22: long prompts cost more, and so does a model when its introduction is over."""
    long = more_listed(model_of("anthropic:claude-haiku-5-5"), {})
    early = more_listed(model_of("google:gemini-3.8-flash"), {})
    assert long
    assert long.prices.input == 0.5
    assert early
    assert early.prices.output == 7.5


HISTORIC = "claude-sonnet-4-5"  # requests that its higher price was for are refused by now


@pytest.mark.parametrize("name", [n for n in known_models() if n.startswith("claude-")])
def test_our_table_says_the_same_of_anthropic(name: str) -> None:
    ours, theirs = listed(name), more_listed(model_of(f"anthropic:{name}"), {})
    assert ours
    assert theirs
    assert (ours.prices == theirs.prices) is (name != HISTORIC)


def test_nobody_knows_more_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:  # noqa: ANN401  whatever import takes
        if name == "genai_prices":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert more_listed(model_of("openai:gpt-4.1"), {}) is None
