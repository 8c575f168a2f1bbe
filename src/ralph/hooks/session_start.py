"""`ralph hook session-start`: forgets what hooks remember of this session, and of no other.

So every threshold of the context window is told anew (R §5a), whatever began: a new session, a
resumed one, or one that was cleared or made compact.
"""

from ralph.hosts.protocol import Environ, Event, serve, session_of, tell


def main() -> int:
    return serve(answer)


def answer(event: Event, environ: Environ, _here: str) -> str:
    """Nothing: whatever a hook prints here, the model reads."""
    from time import time

    from ralph.loops.session.memory import forget, sweep

    session = session_of(event)
    try:
        forget(session, environ)
    except OSError as error:
        tell(f"the thresholds of the context window stay as they are: {error}")
    try:
        sweep(environ, time())
    except OSError:
        pass  # there is nothing to sweep, or the next session does
    return ""
