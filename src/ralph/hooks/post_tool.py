"""`ralph hook post-tool`: tells the model how full its context window is (R §5a).

After every tool call the size of the transcript is taken for the tokens that the model has read.
Each threshold is told once a session; whoever jumps over several is told the highest.
"""

import os

from ralph.hooks.host import Malformed, serve, tell

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hooks.host import Event

THRESHOLDS = (90, 80, 70, 60, 50)  # percent
_WINDOW = 200_000  # tokens
_CHARACTERS = 4  # a token
_NOTICE = (
    "Keep an eye on the space that is left, and plan to finish the task you are at within this "
    "session. Follow-up work that you find belongs into tasks.json as new stories: the next "
    "iteration picks them up."
)
_WARNING = (
    "Finish the task you are at and commit soon. Start no other task. If work is left, add "
    "stories for it to tasks.json, and write what you know about it into progress.txt, so that "
    "the next iteration has all of it."
)
_CRITICAL = (
    "Wrap up now, and do NOT start new work: (1) add stories to tasks.json for the work that is "
    "left, (2) write details, insights and notes for your successor into progress.txt, (3) commit "
    "all changes, (4) stop. The next iteration goes on from there."
)


def main() -> int:
    """Answer the host; the exit code."""
    return serve(answer)


def answer(event: "Event", environ: "Mapping[str, str]", _: str) -> str:
    """What the model shall read after this call, as the host wants it; mostly nothing."""
    session = event.get("session_id")
    if not isinstance(session, str) or not session:
        raise Malformed("the event has no session_id")
    if event.get("agent_id"):  # a sub-agent has a window of its own, and another transcript
        return ""
    percent = used(event.get("transcript_path"), environ)
    reached = next((level for level in THRESHOLDS if percent >= level), 0)
    if not reached or not _is_news(session, reached, environ):
        return ""
    return (
        '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"'
        f'{alert(reached, percent)}"}}}}'
    )


def used(transcript: object, environ: "Mapping[str, str]") -> int:
    """How much of the window is used, in percent, by the size of the transcript (R §5a); 0 where
    there is none yet."""
    try:
        size = os.stat(transcript).st_size if isinstance(transcript, str) else 0
    except (OSError, ValueError):
        return 0
    return size * 100 // (_CHARACTERS * window(environ))


def window(environ: "Mapping[str, str]") -> int:
    """The context window in tokens; what is no number above 0 is the default."""
    try:
        given = int(environ.get("CLAUDE_CONTEXT_WINDOW", ""))
    except ValueError:
        return _WINDOW
    return given if given > 0 else _WINDOW


def _is_news(session: str, reached: int, environ: "Mapping[str, str]") -> bool:
    from ralph.hooks.sessions import ALERTED, Busy, raise_to

    try:
        return raise_to(session, ALERTED, reached, environ)
    except Busy:
        return False  # a hook beside us tells it, or the next one does
    except OSError as error:
        tell(f"no word about the context window, since none could be remembered: {error}")
        return False


def alert(reached: int, percent: int) -> str:
    """The words for a threshold; none of them needs to be quoted in JSON."""
    name, words = ("NOTICE", _NOTICE)
    if reached >= 90:
        name, words = ("CRITICAL", _CRITICAL)
    elif reached >= 70:
        name, words = ("WARNING", _WARNING)
    about = f"about {percent}%" if percent <= 100 else "more than 100%"
    return f"{name}: {about} of the context window is used (past {reached}%). {words}"
