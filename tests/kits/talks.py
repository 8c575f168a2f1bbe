"""Talks, and what the scripted model says in each protocol."""

from collections.abc import Iterable, Iterator

from ralph.own_agent.protocols import Protocol, protocol
from ralph.own_agent.talk import Answer, Answers, Call, Reply, Talk, Tool, Words
from ralph.testing.scripted_model.protocols import PROTOCOLS, Json

NAMES = ("anthropic", "responses", "chat", "google")
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}
TOOL = Tool("read", "Read a file.", {"type": "object", "properties": {}, "required": []})


def speaks(name: str) -> Protocol:
    return protocol(name)


def said(name: str, turn: Json) -> Iterator[Json]:
    """The events of a turn, as its service sends them."""
    stream, _ = PROTOCOLS["gemini" if name == "google" else name]
    return (value for _, value in stream(turn, {"model": "m"}) if isinstance(value, dict))


def heard(name: str, turn: Json) -> Reply:
    return speaks(name).reply(said(name, turn))


def asked(name: str, talk: Talk, secret: str = "s3cret") -> tuple[Json, Json]:
    """The headers and the body of a request."""
    request = speaks(name).request("m", (KEYS.get(name, "OPENAI_API_KEY"), secret), talk)
    return dict(request.headers), request.body


def answered(reply: Reply, *outputs: str, is_error: bool = False) -> Answers:
    pairs = zip(reply.calls, outputs, strict=True)
    return Answers(tuple(Answer(call, output, is_error) for call, output in pairs))


def talk(*entries: object, **more: object) -> Talk:
    return Talk("Be good.", (Words("Do it."), *entries), **more)  # type: ignore[arg-type]


def call(name: str = "read", **given: object) -> Call:
    return Call("c1", name, dict(given))


def last(events: Iterable[Json], many: int) -> list[Json]:
    """All events but so many at the end."""
    return list(events)[:-many]
