"""Answers as JSON, and errors that say what to do about them."""

from typing import Any

import msgspec
from starlette.responses import Response

from ralph.errors import RalphError
from ralph.text.plain import safe
from ralph.web.security import Refusal


def as_json(data: Any) -> bytes:  # noqa: ANN401  what JSON can hold
    """The value in JSON. What agents have printed may hold halves of characters."""
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(data)).encode()


def reply(data: Any, status: int = 200) -> Response:  # noqa: ANN401
    return Response(as_json(data), status, media_type="application/json")


def refused(why: Refusal) -> Response:
    response = reply({"error": why.error, "remedy": why.remedy}, why.status)
    if why.status == 400:  # what follows on this connection may be anything
        response.headers["Connection"] = "close"
    if why.status == 405:
        response.headers["Allow"] = "GET, HEAD, POST"
    return response


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, error: str, remedy: str = "") -> None:
        super().__init__(error)
        self.why = Refusal(status, error, remedy)


def refusal_of(error: RalphError) -> Refusal:
    """An error for people, as an answer: what they asked for cannot be done now."""
    return Refusal(409, safe(error.message), safe(error.remedy))
