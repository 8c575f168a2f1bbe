"""`ralph hook post-tool`: tells the model how full its context window is (R §5a).

After every tool call the size of the transcript is taken for the tokens that the model has read.
Each threshold is told once a session; whoever jumps over several is told the highest.
"""

import os

from ralph.files.safe_open import open_regular
from ralph.hosts.protocol import Environ, Event, cwd_of, serve, session_of, tell, upwards

THRESHOLDS = (90, 80, 70, 60, 50)  # percent
_WINDOW = 200_000  # tokens
_MILLION = 1_000_000
_MARKER = ".ralph-active"  # of a run, whose folder may have another name
_CHARACTERS = 4  # a token
_TAIL = 1 << 16  # bytes of a transcript in which codex says its window
_STATED = b'"model_context_window":'
# R §5a, where the next session goes on with a list of stories.
_STORIES = {
    "NOTICE": "Keep an eye on the space that is left, and plan to finish the task you are at "
    "within this session. Follow-up work that you find belongs into tasks.json as new stories: "
    "the next iteration picks them up.",
    "WARNING": "Finish the task you are at and commit soon. Start no other task. If work is left, "
    "add stories for it to tasks.json, and write what you know about it into progress.txt, so "
    "that the next iteration has all of it.",
    "CRITICAL": "Wrap up now, and do NOT start new work: (1) add stories to tasks.json for the "
    "work that is left, (2) write details, insights and notes for your successor into "
    "progress.txt, (3) commit all changes, (4) stop. The next iteration goes on from there.",
}
_ANYWHERE = {
    "NOTICE": "Keep an eye on the space that is left, and plan to finish what you are at within "
    "this session.",
    "WARNING": "Finish what you are at soon, and start nothing else. If work is left, write down "
    "what is known about it.",
    "CRITICAL": "Wrap up now, and do NOT start new work: leave the files in a state that others "
    "can go on with, and say what is done, what is left and what you know about it.",
}


def main() -> int:
    return serve(answer)


def answer(event: Event, environ: Environ, here: str) -> str:
    """The words that the model shall read after this call, as the host wants them; mostly none."""
    session = session_of(event)
    if event.get("agent_id"):  # a sub-agent has a window of its own, and another transcript
        return ""
    percent = used(event, environ)
    reached = next((level for level in THRESHOLDS if percent >= level), 0)
    if not reached or not _is_news(session, reached, environ):
        return ""
    # A session here works for a list of stories, and another will follow.
    where, list_of_stories = cwd_of(event, here), os.path.join("ralph", "tasks.json")
    stories = bool(upwards(where, list_of_stories) or upwards(where, _MARKER))
    name = "CRITICAL" if reached >= 90 else "WARNING" if reached >= 70 else "NOTICE"
    about = f"about {percent}%" if percent <= 100 else "more than 100%"
    words = f"{name}: {about} of the context window is used (past {reached}%)."
    return (
        '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"'
        f'{words} {(_STORIES if stories else _ANYWHERE)[name]}"}}}}'  # without a quote to escape
    )


def used(event: Event, environ: Environ) -> int:
    """The used part of the window, in percent, by the transcript's size (R §5a); 0 without one."""
    transcript = event.get("transcript_path")
    try:
        size = os.stat(transcript).st_size if isinstance(transcript, str) else 0
    except (OSError, ValueError):
        return 0
    return size * 100 // (_CHARACTERS * window(event, environ)) if size else 0


def window(event: Event, environ: Environ) -> int:
    """The context window in tokens, by the environment, else by the model's name or its host. What
    is no number above 0 says nothing."""
    given = _number(environ.get("CLAUDE_CONTEXT_WINDOW", ""))
    if given:
        return given
    models = (event.get("model"), environ.get("ANTHROPIC_MODEL"))
    if any(isinstance(model, str) and "[1m]" in model.lower() for model in models):
        return _MILLION
    return _stated_in(event.get("transcript_path")) or _WINDOW


def _stated_in(transcript: object) -> int:
    """The window that codex states beside its count of tokens; 0 where nobody says anything."""
    try:
        with open_regular(str(transcript)) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            tail = file.read(_TAIL)
    except (OSError, ValueError):
        return 0
    before, found, after = tail.rpartition(_STATED)
    if not found or before.endswith(b"\\"):  # somebody's words about it
        return 0
    return _number(after[:12].partition(b",")[0].partition(b"}")[0].decode("ascii", "replace"))


def _number(text: str) -> int:
    try:
        return max(0, int(text))
    except ValueError:
        return 0


def _is_news(session: str, reached: int, environ: Environ) -> bool:
    """True for the first one to tell this threshold; from here on it is told."""
    from ralph.loops.session.memory import ALERTED, Busy, replaced

    try:
        return replaced(session, ALERTED, lambda told: max(told, reached), environ) < reached
    except Busy:
        return False  # a hook beside us tells it, or the next one does
    except OSError as error:
        tell(f"no word about the context window, since none could be remembered: {error}")
        return False
