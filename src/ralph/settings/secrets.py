"""Secrets in a run's environment and settings, never to be told (ADR 13)."""

from collections.abc import Iterable, Mapping

from ralph.settings.schema import Settings
from ralph.text.secrets import secret_among, secret_flags, secret_urls, secrets_of


def secrets_in(
    environ: Mapping[str, str], settings: Settings, public: Iterable[str] = ()
) -> frozenset[str]:
    """Values that are secret; none that is part of what is `public`, such as the project's path."""
    flags = [word for flag in settings.agent.flags for word in flag.split()]
    found = secrets_of(environ) | secrets_of(settings.agent.env.set)
    return secret_among(found | secret_flags(flags) | secret_urls(settings.notify.urls), public)
