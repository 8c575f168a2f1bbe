"""`ralph hook prompt`: what a person types passes as it is; loops of a session will begin here."""

from ralph.hooks.host import serve

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hooks.host import Event


def main() -> int:
    """Answer the host; the exit code."""
    return serve(answer)


def answer(_event: "Event", _environ: "Mapping[str, str]", _here: str) -> str:
    """Nothing: whatever a hook prints here, the model reads."""
    return ""
