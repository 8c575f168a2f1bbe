"""The services that Ralph's own agent can call: `anthropic:NAME`, `openai:NAME`, and so on."""

import re
from collections.abc import Mapping

from ralph.errors import ConfigError
from ralph.kernel.value import value

OWN = "ralph-agent"  # its name as a command, and its kind


@value
class Provider:
    """A service and the protocol that it speaks."""

    name: str
    protocol: str  # a module of own_agent/protocols
    keys: tuple[str, ...]  # variables that pay; the first that is set wins
    url_variable: str  # leads to another place that speaks the protocol
    url: str
    default_model: str = ""  # "": there is none


@value
class Model:
    """A model, and the service that has it."""

    provider: Provider
    name: str

    def __str__(self) -> str:
        return f"{self.provider.name}:{self.name}"


_OPENAI = (("OPENAI_API_KEY",), "OPENAI_BASE_URL", "https://api.openai.com/v1")
_ALL = (
    Provider(
        "anthropic",
        "anthropic",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
        "claude-sonnet-5-5",
    ),
    Provider("openai", "responses", *_OPENAI, "gpt-6.1-sol"),
    Provider("openai-chat", "chat", *_OPENAI),
    Provider(
        "google",
        "google",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
        "gemini-3.8-flash",
    ),
)
PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in _ALL}
KEYS = tuple(dict.fromkeys(key for provider in _ALL for key in provider.keys))
_NAME = r"[A-Za-z0-9_.:/@+~-]+"  # what may stand in a URL, too
_USAGE = "Write anthropic:NAME, openai:NAME, openai-chat:NAME or google:NAME."


def model_of(text: str) -> Model:
    """The model that a text names; a ConfigError says how to write one."""
    service, _, name = text.partition(":")
    provider = PROVIDERS.get(service)
    if provider is None or not re.fullmatch(_NAME, name.strip()):
        raise ConfigError(f"{text!r} names no model", _USAGE)
    return Model(provider, name.strip())


def default_model(environ: Mapping[str, str]) -> Model | None:
    """The usual model of the first service that a key in the environment pays for."""
    for provider in _ALL:
        if provider.default_model and payer(provider, environ):
            return Model(provider, provider.default_model)
    return None


def payer(provider: Provider, environ: Mapping[str, str]) -> str:
    """The variable with the key; "" if none is set. A service in another place may need none."""
    return next((name for name in provider.keys if environ.get(name)), "")


def access(model: Model, environ: Mapping[str, str]) -> tuple[str, tuple[str, str]]:
    """Where a model is called, and the variable and the key that pay; both are "" where none is
    needed. ConfigError where it cannot be called."""
    provider, variable = model.provider, payer(model.provider, environ)
    place, usual = environ.get(provider.url_variable), provider.keys[0]
    if place and not _is_address(place):
        remedy = "Write http://HOST... or https://HOST..."
        raise ConfigError(f"{provider.url_variable} is no URL of HTTP", remedy)
    key = environ.get(variable, "").strip()  # the line end of a file comes along easily
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"{variable} is no key: it holds odd characters", "Copy it anew.")
    if not key and not place:
        raise ConfigError(
            f"no key for {model}: {usual} is not set",
            f"Set it: export {usual}=...\nOr, for a service in another place, which may need "
            f"none: export {provider.url_variable}=http://...",
        )
    return place or provider.url, (variable, key)


def _is_address(url: str) -> bool:
    """True for a URL of HTTP that can be called; one with a password is none."""
    from urllib.parse import urlsplit  # a run with another agent does without

    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        odd = parts.port == 0 or parts.username is not None or " " in url
    except ValueError:
        return False
    is_plain = url.isascii() and url.isprintable() and not odd
    return parts.scheme in ("http", "https") and bool(host) and is_plain
