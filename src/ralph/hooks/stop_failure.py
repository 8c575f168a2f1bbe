"""`ralph hook stop-failure`: a turn ended by an error of the model's service; nothing is held."""

from ralph.hooks.host import serve

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hooks.host import Event


def main() -> int:
    """Answer the host; the exit code."""
    return serve(answer)


def answer(_event: "Event", _environ: "Mapping[str, str]", _here: str) -> str:
    """Nothing: such a stop cannot be held."""
    return ""
