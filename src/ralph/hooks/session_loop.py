"""The loop of a session, when its agent wants to stop (P §Exit interception).

Whatever is missing or broken lets the agent stop, and says why (ADR 30).
"""

import os

from ralph.hooks.host import tell
from ralph.hooks.loops import Store, Unreadable, folder_of, load

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.core.loop_state import Loop
    from ralph.hooks.host import Event

_LETS_GO = "the stop is not held by a loop"


def session_of(event: "Event") -> str:
    """The id of the session; empty where the host names none."""
    session = event.get("session_id")
    return session if isinstance(session, str) else ""


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
    from ralph.hooks.verdicts import Stopping

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


def transcript_of(event: "Event") -> str:
    """Where the host says that the transcript is; empty where it says nothing."""
    path = event.get("transcript_path")
    return path if isinstance(path, str) and "\0" not in path else ""


def project_of(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """The project as the host names it, else where the agent is."""
    for given in (environ.get("CLAUDE_PROJECT_DIR"), event.get("cwd"), here):
        if isinstance(given, str) and given.startswith("/") and "\0" not in given:
            return given
    return here


def is_of_claude(event: "Event") -> bool:
    """Whether the host is the one with a cap on held stops."""
    return event.get("hook_event_name") == "Stop" and "turn_id" not in event


def begun_by(loop: "Loop", event: "Event", environ: "Mapping[str, str]", here: str) -> "Loop":
    """A loop that begins with this event: what the transcript holds by now is none of its."""
    from ralph.core.value import replace
    from ralph.hooks.changes import fingerprint
    from ralph.hooks.transcript import size_of

    transcript, project = transcript_of(event), project_of(event, environ, here)
    return replace(
        loop,
        transcript=transcript,
        offset=size_of(transcript),
        project=project,
        before=fingerprint(project, environ),
    )
