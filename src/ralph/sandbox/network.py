"""The hosts that a sandbox may call: what people allow by `--network`, and an agent's provider."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from ralph.agents.providers import OWN, model_of
from ralph.errors import ConfigError
from ralph.sandbox.interface import ON, Network

_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?(:[0-9]{1,9})?")
_LARGEST_PORT = 65535
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


def network_of(text: str) -> Network:
    """`off`, `on`, or hosts with commas between; ValueError for anything else."""
    if text in ("off", "on"):
        return ON if text == "on" else Network()
    hosts = [host.strip() for host in text.split(",") if host.strip()]
    why = next(filter(None, map(_wrong, hosts)), "" if hosts else f"{text!r} is no host")
    if why:
        raise ValueError(f"{why}: say off, on, or hosts as in pypi.org,*.npmjs.org:443.")
    return Network(hosts=tuple(hosts))


def _wrong(host: str) -> str:
    """The reason why something on the list can be no host; "" if it can be one."""
    if host.lower() in ("on", "off"):
        return f"{host!r} stands alone and in small letters"
    if host.startswith("[") or host.count(":") > 1:
        return f"{host!r}: an address of IPv6 cannot be on the list, only its name"
    if not _HOST.fullmatch(host):
        return f"{host!r} is no host"
    name, colon, port = host.partition(":")
    if colon and not 0 < int(port) <= _LARGEST_PORT:
        example = f"--network {name}:8080"
        return f"{host!r}: {port!r} is no port, which is from 1 to {_LARGEST_PORT} ({example})"
    return ""


def on_the_network(
    name: str, wish: Network | None, whom: str, allow: str = "--network on"
) -> Network:
    """The network of a sandbox that cannot keep anybody off it; a wish for less is refused."""
    if wish not in (None, ON):
        raise ConfigError(
            f"{name} cannot keep {whom} off the network",
            f"Use overlay, or say that it may call everybody: {allow}",
        )
    return ON


def hosts_of(
    kind: str, env: Mapping[str, str], flags: Iterable[str], model: str = ""
) -> tuple[str, ...]:
    """Hosts, some with a port, that this kind of agent calls in this environment. Our own calls one
    place, that of its model."""
    urls = [env[name] for name in _NAMED_BY.get(kind, ()) if name in env]
    if kind == OWN and model:
        service = model_of(model).provider
        urls.append(env.get(service.url_variable) or service.url)
    urls += [url for flag in flags for url in _IN_FLAGS.findall(flag)]
    found = [*_PROVIDERS.get(kind, ())]
    for url in urls:
        with suppress(ValueError):
            parts = urlsplit(url)
            port = parts.port or _PORTS.get(parts.scheme)
            if parts.hostname and port:
                found.append(f"{parts.hostname}:{port}")
    return tuple(dict.fromkeys(found))
