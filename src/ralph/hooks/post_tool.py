"""`ralph hook post-tool`: tells the model how full its context window is (R §5a).

After every tool call the size of the transcript is taken for the tokens that the model has read.
Each threshold is told once a session; whoever jumps over several is told the highest.
"""

import os

from ralph.hosts.protocol import Malformed, serve, tell

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hosts.protocol import Event

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
    """Answer the host; the exit code."""
    return serve(answer)


def answer(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """What the model shall read after this call, as the host wants it; mostly nothing."""
    session = event.get("session_id")
    if not isinstance(session, str) or not session:
        raise Malformed("the event has no session_id")
    if event.get("agent_id"):  # a sub-agent has a window of its own, and another transcript
        return ""
    percent = used(event, environ)
    reached = next((level for level in THRESHOLDS if percent >= level), 0)
    if not reached or not _is_news(session, reached, environ):
        return ""
    cwd = event.get("cwd")
    stories = has_stories(cwd if isinstance(cwd, str) and cwd else here)
    return (
        '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"'
        f'{alert(reached, percent, stories=stories)}"}}}}'
    )


def used(event: "Event", environ: "Mapping[str, str]") -> int:
    """How much of the window is used, in percent, by the size of the transcript (R §5a); 0 where
    there is none yet."""
    transcript = event.get("transcript_path")
    try:
        size = os.stat(transcript).st_size if isinstance(transcript, str) else 0
    except (OSError, ValueError):
        return 0
    return size * 100 // (_CHARACTERS * window(event, environ)) if size else 0


def window(event: "Event", environ: "Mapping[str, str]") -> int:
    """The context window in tokens: what the environment says, else what the model's name or its
    host states. What is no number above 0 says nothing."""
    given = _number(environ.get("CLAUDE_CONTEXT_WINDOW", ""))
    if given:
        return given
    models = (event.get("model"), environ.get("ANTHROPIC_MODEL"))
    if any(isinstance(model, str) and "[1m]" in model.lower() for model in models):
        return _MILLION
    return _stated_in(event.get("transcript_path")) or _WINDOW


def _stated_in(transcript: object) -> int:
    """What codex says beside its count of tokens; 0 where nobody says anything."""
    try:
        descriptor = os.open(str(transcript), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return 0
    try:
        tail = os.pread(descriptor, _TAIL, max(0, os.fstat(descriptor).st_size - _TAIL))
    except OSError:
        return 0
    finally:
        os.close(descriptor)
    before, found, after = tail.rpartition(_STATED)
    if not found or before.endswith(b"\\"):  # somebody's words about it
        return 0
    return _number(after[:12].partition(b",")[0].partition(b"}")[0].decode("ascii", "replace"))


def _number(text: str) -> int:
    try:
        return max(0, int(text))
    except ValueError:
        return 0


def has_stories(start: str) -> bool:
    """Whether a session here works for a list of stories, and another will follow."""
    from ralph.hosts.protocol import upwards

    return bool(upwards(start, (os.path.join("ralph", "tasks.json"), _MARKER)))


def _is_news(session: str, reached: int, environ: "Mapping[str, str]") -> bool:
    from ralph.loops.session.memory import ALERTED, Busy, raise_to

    try:
        return raise_to(session, ALERTED, reached, environ)
    except Busy:
        return False  # a hook beside us tells it, or the next one does
    except OSError as error:
        tell(f"no word about the context window, since none could be remembered: {error}")
        return False


def alert(reached: int, percent: int, *, stories: bool) -> str:
    """The words for a threshold; none of them needs to be quoted in JSON."""
    name = "CRITICAL" if reached >= 90 else "WARNING" if reached >= 70 else "NOTICE"
    words = (_STORIES if stories else _ANYWHERE)[name]
    about = f"about {percent}%" if percent <= 100 else "more than 100%"
    return f"{name}: {about} of the context window is used (past {reached}%). {words}"
