"""The protocols of models' services, one module each: a talk in, a request out; events in, a reply
out. Pure.

Each has `request(model, key, talk)`, where the key is (its variable, its value), and
`reply(events)`, which raises `Trouble` where the stream is an error or breaks off.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Protocol as Interface

from ralph.own_agent.talk import Json, Reply, Request, Talk

Key = tuple[str, str]


class Protocol(Interface):
    """A module of this package."""

    def request(self, model: str, key: Key, talk: Talk) -> Request: ...
    def reply(self, events: Iterable[Json]) -> Reply: ...


def protocol(name: str) -> Protocol:
    module: Protocol = import_module(f"{__package__}.{name}")
    return module
