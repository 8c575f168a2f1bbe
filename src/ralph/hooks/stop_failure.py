"""`ralph hook stop-failure`: a turn ended by an error of the model's service. Nothing is held, and
nothing counted; a loop of the session stays, and its state says what happened."""

from ralph.hosts.protocol import Environ, Event, serve, tell, text_in


def main() -> int:
    return serve(answer)


def answer(event: Event, environ: Environ, _here: str) -> str:
    """Nothing: such a stop cannot be held."""
    from ralph.loops.session.store import Store, Unreadable, load

    session = text_in(event, "session_id")
    try:
        loop = load(session, environ) if session else None
        if loop is None or not loop.running:
            return ""
        from time import time

        from ralph.kernel.value import replace

        said = event.get("last_assistant_message") or event.get("error") or "no more is known"
        why = f"an error of the model's service ended the turn: {str(said)[:300]}"
        why = f"{why}; the loop goes on with the next prompt"
        with Store(session, environ) as store:
            loop = store.read()
            if loop is not None and loop.running:
                store.write(replace(loop, touched=time(), why=why))
    except (OSError, Unreadable) as error:
        tell(f"the loop's state does not say that the turn failed: {error}")
    return ""
