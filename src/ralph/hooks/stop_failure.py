"""`ralph hook stop-failure`: a turn ended by an error of the model's service. Nothing is held, and
nothing counted; a loop of the session stays, and its state says what happened."""

from ralph.hosts.protocol import serve, tell

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hosts.protocol import Event
    from ralph.loops.session.state import SessionLoop


def main() -> int:
    """Answer the host; the exit code."""
    return serve(answer)


def answer(event: "Event", environ: "Mapping[str, str]", _here: str) -> str:
    """Nothing: such a stop cannot be held."""
    from ralph.hosts.protocol import session_of
    from ralph.loops.session.store import Store, Unreadable, load

    session = session_of(event)
    try:
        loop = load(session, environ) if session else None
        if loop is None or not loop.running:
            return ""
        with Store(session, environ) as store:
            loop = store.read()
            if loop is not None and loop.running:
                store.write(_failed(loop, event))
    except (OSError, Unreadable) as error:
        tell(f"the loop's state does not say that the turn failed: {error}")
    return ""


def _failed(loop: "SessionLoop", event: "Event") -> "SessionLoop":
    import time

    from ralph.kernel.value import replace

    said = event.get("last_assistant_message") or event.get("error") or "no more is known"
    why = f"an error of the model's service ended the turn: {str(said)[:300]}"
    return replace(loop, touched=time.time(), why=f"{why}; the loop goes on with the next prompt")
