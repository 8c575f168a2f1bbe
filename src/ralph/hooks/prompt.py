"""`ralph hook prompt`: begins, ends and shows the loop of a session (P §User-facing CLI).

The host sends what a person typed as it is, with the session's id: no shell sees the task.
Whatever else is typed passes.
"""

from ralph.hosts.protocol import serve

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hosts.protocol import Event

_COMMANDS = frozenset({"ralph-loop", "ulw-loop", "cancel-ralph", "ralph-status"})


def main() -> int:
    """Answer the host; the exit code."""
    return serve(answer)


def answer(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """What the model shall read beside the prompt, or why the prompt does not reach it. Nothing
    where a person typed something else."""
    name, words = command_of(event.get("prompt"))
    if not name:
        return ""
    from ralph.loops.session.commands import Asked

    return Asked(event, environ, here).answer(name, words)


def command_of(prompt: object) -> tuple[str, str]:
    """The loop's command that a prompt is, and what follows it; empty where it is none. Before it
    may stand the plugin's name: `/ralph:ralph-loop`."""
    if not isinstance(prompt, str) or not (text := prompt.lstrip()).startswith("/"):
        return "", ""
    word = text.split(maxsplit=1)[0]
    name = word[1:].removeprefix("ralph:")  # another plugin's loop is another's
    return (name, text[len(word) :]) if name in _COMMANDS else ("", "")
