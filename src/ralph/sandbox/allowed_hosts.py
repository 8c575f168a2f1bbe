"""The hosts that an agent has to call to work at all: its provider's, or those its settings name
instead."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
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
_ANTHROPIC = ("ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL")
_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_GOOGLE = ("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL")
_NAMED_BY = {  # kind -> variables that name another provider; no others: some lead to this machine
    "claude": _ANTHROPIC,
    "codex": _OPENAI,
    "gemini": _GOOGLE,
    "amp": ("AMP_URL",),
    "opencode": (*_ANTHROPIC, *_OPENAI, *_GOOGLE),
    "goose": (*_ANTHROPIC, *_OPENAI, *_GOOGLE, "OLLAMA_HOST"),
}
_IN_FLAGS = re.compile(r"base_url\s*=\s*[\"']?(https?://[^\"'\s]+)")
_PORTS = {"http": 80, "https": 443}


def hosts_of(kind: str, env: Mapping[str, str], flags: Iterable[str]) -> tuple[str, ...]:
    """Hosts, some with a port, that this kind of agent calls in this environment."""
    urls = [env[name] for name in _NAMED_BY.get(kind, ()) if name in env]
    urls += [url for flag in flags for url in _IN_FLAGS.findall(flag)]
    found = [*_PROVIDERS.get(kind, ())]
    for url in urls:
        with suppress(ValueError):
            parts = urlsplit(url)
            port = parts.port or _PORTS.get(parts.scheme)
            if parts.hostname and port:
                found.append(f"{parts.hostname}:{port}")
    return tuple(dict.fromkeys(found))
