"""What a person asks of a loop, in the session itself: begin, end, show."""

import json
import time
from collections.abc import Mapping

from ralph.hosts.protocol import session_of
from ralph.loops.session.state import CANCELLED, SessionLoop, aged, begun, ended, told_of
from ralph.loops.session.stop import begun_by
from ralph.loops.session.store import Store, Unreadable, load
from ralph.loops.session.words import SLASH, UnusableLoop, opening, parse, spelled

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    from ralph.hosts.protocol import Event

NONE = "There is no Ralph loop in this session."


class Asked:
    """One wish about the loop of a session."""

    def __init__(self, event: "Event", environ: Mapping[str, str], here: str) -> None:
        self._event, self._environ, self._here = event, environ, here
        self._session = session_of(event)

    def answer(self, command: str, words: str) -> str:
        """The host's line: context for the model, or why the prompt goes no further."""
        if not self._session:
            return _refused("the host names no session, and a loop belongs to one")
        try:
            return self._context(self._done(command, words))
        except UnusableLoop as error:
            return _refused(str(error))
        except Unreadable as error:
            return _refused(f"the state of this session's loop cannot be read: {error}")
        except OSError as error:
            return _refused(f"the state of this session's loop cannot be kept: {error}")

    def _done(self, command: str, words: str) -> str:
        if command == "cancel-ralph":
            return cancelled(self._session, self._environ)
        if command == "ralph-status":
            return shown(self._session, self._environ)
        wish = parse(words, ulw=command == "ulw-loop")
        loop = begun_by(
            begun(wish, self._session, time.time()), self._event, self._environ, self._here
        )
        start(loop, self._environ)
        return opening(wish, self._session, self._environ.get(SLASH, ""))

    def _context(self, words: str) -> str:
        name = self._event.get("hook_event_name")
        name = name if isinstance(name, str) and name else "UserPromptSubmit"
        return json.dumps(
            {"hookSpecificOutput": {"hookEventName": name, "additionalContext": words}}
        )


def start(loop: SessionLoop, environ: Mapping[str, str]) -> None:
    """Keep a loop that begins, in the place of one that has ended. UnusableLoop where one runs;
    OSError."""
    with Store(loop.session, environ) as store:
        try:
            old = store.read()
        except Unreadable:
            old = None  # nobody can go on with that
        if old is not None and aged(old, loop.started).running:
            raise UnusableLoop(
                f"a loop is running in this session already ({old.progress}). To end it: "
                f"{spelled('cancel-ralph', environ.get(SLASH, ''))}, or: "
                f"ralph loop cancel --session {loop.session}"
            )
        store.write(loop)


def cancelled(session: str, environ: Mapping[str, str], how: str = "") -> str:
    """End the loop of a session; what to say about it. OSError, Unreadable."""
    if load(session, environ) is None:  # nothing is made for it
        return NONE
    with Store(session, environ) as store:
        loop = store.read()
        if loop is None:
            return NONE
        now = aged(loop, time.time())
        if not now.running:
            return f"The Ralph loop of this session has ended already: {now.status}."
        store.write(ended(now, CANCELLED, " ".join(filter(None, ("cancelled", how)))))
        return (
            f"The Ralph loop of this session is CANCELLED at iteration {now.progress}. "
            "Its task need not be worked on any more."
        )


def shown(session: str, environ: Mapping[str, str]) -> str:
    """What there is to say about the loop of a session. Unreadable, OSError."""
    loop = load(session, environ)
    if loop is None:
        return NONE
    return told_of(aged(loop, time.time()))


def _refused(why: str) -> str:
    return json.dumps({"decision": "block", "reason": f"No Ralph loop: {why}"})
