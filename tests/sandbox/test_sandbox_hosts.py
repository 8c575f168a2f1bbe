"""Whom an agent may call without being allowed by name."""

import pytest

from ralph.sandbox.network import hosts_of


@pytest.mark.parametrize(
    ("kind", "env", "flags", "more"),
    [
        ("claude", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:4000/v1"}, (), ("127.0.0.1:4000",)),
        ("claude", {"ANTHROPIC_BASE_URL": "https://gateway.example"}, (), ("gateway.example:443",)),
        ("claude", {"OPENAI_BASE_URL": "http://localhost:1"}, (), ()),
        ("claude", {"ANTHROPIC_BASE_URL": "nonsense"}, (), ()),
        ("claude", {"ANTHROPIC_BASE_URL": "http://x:99999"}, (), ()),
        ("codex", {"DOCKER_ENDPOINT": "http://localhost:2375"}, (), ()),
        ("codex", {}, ('model_providers.x={base_url="http://h:8080/v1"}',), ("h:8080",)),
        ("text", {"ANTHROPIC_BASE_URL": "http://localhost:1"}, (), ()),
    ],
)
def test_only_what_names_its_own_provider_counts(
    kind: str, env: dict[str, str], flags: tuple[str, ...], more: tuple[str, ...]
) -> None:
    usual = hosts_of(kind, {}, ())
    assert hosts_of(kind, env, flags) == (*usual, *more)


@pytest.mark.parametrize(
    ("model", "env", "host"),
    [
        ("anthropic:m", {}, "api.anthropic.com:443"),
        ("openai:m", {"ANTHROPIC_BASE_URL": "http://localhost:1"}, "api.openai.com:443"),
        ("google:m", {}, "generativelanguage.googleapis.com:443"),
        ("openai-chat:m", {"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}, "127.0.0.1:11434"),
        ("openai-chat:a/b", {"OPENAI_BASE_URL": "https://openrouter.ai/api"}, "openrouter.ai:443"),
    ],
)
def test_our_own_agent_calls_the_service_of_its_model(
    model: str, env: dict[str, str], host: str
) -> None:
    assert hosts_of("ralph-agent", env, (), model) == (host,)
