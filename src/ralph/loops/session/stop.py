"""The loop of a session, when its agent wants to stop (P §Exit interception).

Whatever is missing or broken lets the agent stop, and says why (ADR 30).
"""

import os

from ralph.hosts.protocol import project_of, session_of, tell, transcript_of
from ralph.loops.session.store import Store, Unreadable, folder_of, load

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hosts.protocol import Event
    from ralph.loops.session.state import SessionLoop

_LETS_GO = "the stop is not held by a loop"


def judge(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """The line that holds a stop, or shows in the session how its loop ended; mostly none."""
    session = session_of(event)
    if not session:
        _tell_if_any(environ)
        return ""
    try:
        loop = load(session, environ)
        if loop is None or not loop.running:
            return ""
        return _judged(session, event, environ, here)
    except Unreadable as error:
        tell(f"{_LETS_GO}, because its state cannot be read: {error}")
    except OSError as error:
        tell(f"{_LETS_GO}, because its state cannot be used: {error}")
    return ""


def _judged(session: str, event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    from ralph.loops.session.answer import Stopping

    with Store(session, environ) as store:
        loop = store.read()
        if loop is None or not loop.running:
            return ""
        return Stopping(loop, event, environ, here).answered(store)


def _tell_if_any(environ: "Mapping[str, str]") -> None:
    """Only who has a loop somewhere wants to know."""
    try:
        names = os.listdir(folder_of(environ))
    except OSError:
        return
    if any(name.endswith(".loop") for name in names):
        tell(f"{_LETS_GO}, because the event has no session_id")


def begun_by(
    loop: "SessionLoop", event: "Event", environ: "Mapping[str, str]", here: str
) -> "SessionLoop":
    """A loop that begins with this event: what the transcript holds by now is none of its."""
    from ralph.kernel.value import replace
    from ralph.loops.session.changes import fingerprint
    from ralph.loops.session.transcript import size_of

    transcript, project = transcript_of(event), project_of(event, environ, here)
    return replace(
        loop,
        transcript=transcript,
        offset=size_of(transcript),
        project=project,
        before=fingerprint(project, environ),
    )
