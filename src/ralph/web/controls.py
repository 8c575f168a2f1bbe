"""The controls of the page: each checks what it was sent, and leaves a request to the run."""

from collections.abc import Callable, Mapping
from typing import Any

from ralph.journal.runs import Run
from ralph.kernel.world import Origin
from ralph.runner import steering
from ralph.web.replies import ApiError

Said = Mapping[str, Any]


def _stop(run: Run, said: Said) -> str:
    now = said.get("now", False)
    if not isinstance(now, bool):
        raise ApiError(400, "`now` is true or false")
    return steering.stop(run, Origin.WEB, now=now)


def _pause(run: Run, said: Said) -> str:
    return steering.pause(run, Origin.WEB)


def _resume(run: Run, said: Said) -> str:
    return steering.resume(run, Origin.WEB)


def _note(run: Run, said: Said) -> str:
    return steering.note(run, _word(said, "text"), Origin.WEB, _word(said, "task", ""))


def _answer(run: Run, said: Said) -> str:
    task, text = _word(said, "task"), _word(said, "text")
    return steering.answer(run, task, text, Origin.WEB)


CONTROLS: Mapping[str, Callable[[Run, Said], str]] = {
    "stop": _stop,
    "pause": _pause,
    "resume": _resume,
    "note": _note,
    "answer": _answer,
}


def _word(said: Said, name: str, usual: str | None = None) -> str:
    word = said.get(name, usual)
    if not isinstance(word, str):
        raise ApiError(400, f"`{name}` is a text")
    return word
