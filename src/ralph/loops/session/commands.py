"""Begins, ends and shows the loop of a session, as a person asks in the session itself."""

import json
import time

from ralph.hosts.protocol import Environ, Event, is_of_claude, project_of, text_in, transcript_of
from ralph.kernel.value import replace
from ralph.loops.session.git_status import fingerprint
from ralph.loops.session.state import CANCELLED, SessionLoop, aged, told_of
from ralph.loops.session.store import Store, Unreadable, load
from ralph.loops.session.transcript import size_of
from ralph.loops.session.words import SLASH, UnusableLoop, Wish, opening, parse, spelled

NONE = "There is no Ralph loop in this session."


def answered(command: str, words: str, event: Event, environ: Environ, here: str) -> str:
    """The host's line: context for the model, or why the prompt goes no further."""
    session = text_in(event, "session_id")
    try:
        if not session:
            raise UnusableLoop("the host names no session, and a loop belongs to one")
        if command == "cancel-ralph":
            said = cancelled(session, environ)
        elif command == "ralph-status":
            loop = load(session, environ)
            said = NONE if loop is None else told_of(aged(loop, time.time()))
            if is_of_claude(event, "UserPromptSubmit"):  # which shows it: no turn is needed
                return json.dumps({"decision": "block", "reason": said})
        else:
            wish = parse(words, ulw=command == "ulw-loop")
            start(wish, session, event, environ, here)
            said = opening(wish, session, environ.get(SLASH, ""))
    except UnusableLoop as error:
        why = str(error)
    except Unreadable as error:
        why = f"the state of this session's loop cannot be read: {error}"
    except OSError as error:
        why = f"the state of this session's loop cannot be kept: {error}"
    else:
        name = text_in(event, "hook_event_name") or "UserPromptSubmit"
        return json.dumps(
            {"hookSpecificOutput": {"hookEventName": name, "additionalContext": said}}
        )
    return json.dumps({"decision": "block", "reason": f"No Ralph loop: {why}"})


def start(wish: Wish, session: str, event: Event, environ: Environ, here: str) -> None:
    """Begin a loop with this event, in the place of one that has ended. What the transcript holds
    by now is none of its. UnusableLoop where one runs; OSError."""
    transcript, project = transcript_of(event), project_of(event, environ, here)
    now = time.time()
    loop = SessionLoop(
        session,
        wish,
        started=now,
        touched=now,
        since=now,
        project=project,
        transcript=transcript,
        offset=size_of(transcript),
        before=fingerprint(project, environ),
    )
    with Store(session, environ) as store:
        try:
            old = store.read()
        except Unreadable:
            old = None  # nobody can go on with that
        if old is not None and aged(old, now).running:
            raise UnusableLoop(
                f"a loop is running in this session already ({old.progress}). To end it: "
                f"{spelled('cancel-ralph', environ.get(SLASH, ''))}, or: "
                f"ralph loop cancel --session {session}"
            )
        store.write(loop)


def cancelled(session: str, environ: Environ, how: str = "") -> str:
    """End the loop of a session; returns words about it. OSError, Unreadable."""
    if load(session, environ) is None:  # nothing is made for it
        return NONE
    with Store(session, environ) as store:
        loop = store.read()
        if loop is None:
            return NONE
        now = aged(loop, time.time())
        if not now.running:
            return f"The Ralph loop of this session has ended already: {now.status}."
        store.write(replace(now, status=CANCELLED, why=f"cancelled {how}".strip()))
        return (
            f"The Ralph loop of this session is CANCELLED at iteration {now.progress}. "
            "Its task need not be worked on any more."
        )
