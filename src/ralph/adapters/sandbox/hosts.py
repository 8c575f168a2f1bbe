"""Whom an agent has to call to work at all: its provider, or whom its settings name instead."""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

_PROVIDERS = {
    "claude": ("*.anthropic.com", "*.claude.com", "claude.ai"),
    "codex": ("*.openai.com", "chatgpt.com"),
    "amp": ("ampcode.com", "*.ampcode.com"),
    "gemini": (
        "generativelanguage.googleapis.com",
        "cloudcode-pa.googleapis.com",
        "oauth2.googleapis.com",
        "accounts.google.com",
    ),
    "opencode": (
        "opencode.ai",
        "models.dev",
        "api.anthropic.com",
        "api.openai.com",
        "openrouter.ai",
        "generativelanguage.googleapis.com",
    ),
    "copilot": ("api.github.com", "github.com", "*.githubcopilot.com"),
    "cursor-agent": ("*.cursor.sh", "*.cursor.com"),
}
_NAMED = re.compile(r"_(?:BASE_URL|API_BASE|API_HOST|ENDPOINT)$|^AMP_URL$")
_IN_FLAGS = re.compile(r"base_url\s*=\s*[\"']?(https?://[^\"'\s]+)")
_PORTS = {"http": 80, "https": 443}


def hosts_of(kind: str, env: Mapping[str, str], flags: Iterable[str]) -> tuple[str, ...]:
    """Hosts, some with a port, that this kind of agent calls in this environment."""
    urls = (text for name, text in env.items() if _NAMED.search(name))
    found = (*_PROVIDERS.get(kind, ()), *_hosts((*urls, *_urls_in(flags))))
    return tuple(dict.fromkeys(found))


def _urls_in(flags: Iterable[str]) -> Iterator[str]:
    for flag in flags:
        yield from _IN_FLAGS.findall(flag)


def _hosts(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            continue
        if host and port:
            yield f"{host}:{port}"
