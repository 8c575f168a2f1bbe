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
