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
