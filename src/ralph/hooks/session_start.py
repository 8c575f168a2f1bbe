"""`ralph hook session-start`: forgets what hooks remember of this session, and of no other.

So every threshold of the context window is told anew (R §5a), whatever began: a new session, a
resumed one, or one that was cleared or made compact.
"""

from ralph.hosts.protocol import Malformed, serve, tell

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hosts.protocol import Event


def main() -> int:
    """Answer the host; the exit code."""
    return serve(answer)


def answer(event: "Event", environ: "Mapping[str, str]", _: str) -> str:
    """Nothing: whatever a hook prints here, the model reads."""
    from time import time

    from ralph.loops.session.memory import forget, sweep

    session = event.get("session_id")
    if not isinstance(session, str) or not session:
        raise Malformed("the event has no session_id")
    try:
        forget(session, environ)
    except OSError as error:
        tell(f"the thresholds of the context window stay as they are: {error}")
    try:
        sweep(environ, time())
    except OSError:
        pass  # there is nothing to sweep, or the next session does
    return ""
