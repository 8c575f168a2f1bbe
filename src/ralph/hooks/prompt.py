"""`ralph hook prompt`: begins, ends and shows the loop of a session (P §User-facing CLI).

The host sends what a person typed as it is, with the session's id: no shell sees the task.
Whatever else is typed passes.
"""

from ralph.hosts.protocol import Environ, Event, serve

_COMMANDS = frozenset({"ralph-loop", "ulw-loop", "cancel-ralph", "ralph-status"})


def main() -> int:
    return serve(answer)


def answer(event: Event, environ: Environ, here: str) -> str:
    """Context for the model, or why the prompt does not reach it; nothing for other prompts."""
    name, words = command_of(event.get("prompt"))
    if not name:
        return ""
    from ralph.loops.session.commands import answered

    return answered(name, words, event, environ, here)


def command_of(prompt: object) -> tuple[str, str]:
    """The loop's command that a prompt is, and what follows it; empty where it is none. Before it
    may stand the plugin's name: `/ralph:ralph-loop`."""
    if not isinstance(prompt, str) or not (text := prompt.lstrip()).startswith("/"):
        return "", ""
    word = text.split(maxsplit=1)[0]
    name = word[1:].removeprefix("ralph:")  # another plugin's loop is another's
    return (name, text[len(word) :]) if name in _COMMANDS else ("", "")
