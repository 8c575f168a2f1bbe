"""`ralph hook stop`: holds an agent that wants to stop, so that it fixes its work (R §5b).

The loop of the session, if it has one, is asked first (P). Then, in a project with the marker of
a run, the list of stories must be as the law has it and all work committed. The marker is within
the agent's reach, so this is a courtesy that saves an iteration: the host applies the same law
after the agent's exit, from its own memory (ADR 20).
"""

import os

from ralph.git.uncommitted_text import MARKER, commit_all, foreign
from ralph.hosts.protocol import (
    Environ,
    Event,
    cwd_of,
    is_of_another_run,
    parsed,
    read_regular,
    scanned,
    serve,
    tell,
    text_in,
    upwards,
)
from ralph.loops.session.memory import folder_of
from ralph.loops.session.store import Store, Unreadable, load

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.loops.session.git_status import GitStatus

# In a row: after 8 the host of an agent goes on without asking, and loses its answer.
_MOST_HOLDS = 5
_MOST_TOLD = 20  # problems
_LETS_GO = "the stop is not held by a loop"
_HOLDS = '{"decision"'  # how a line of ours begins that holds; others only tell
_LONGEST = 600  # characters of one


def main() -> int:
    return serve(answer)


def answer(event: Event, environ: Environ, here: str) -> str:
    """Empty to let the agent stop; otherwise the one line that holds it, or only tells people how
    the loop of this session ended. That loop comes first."""
    if event.get("hook_event_name") == "SubagentStop" or event.get("agent_id"):
        return ""  # who stops is a helper of the session, which goes on
    loop = _of_loop(event, environ, here)
    if loop.startswith(_HOLDS):
        return loop
    return _of_stories(event, environ, here) or loop


def _of_loop(event: Event, environ: Environ, here: str) -> str:
    """The line that holds a stop, or shows in the session how its loop ended; mostly none. Whatever
    is missing or broken lets the agent stop, and says why (ADR 30)."""
    session = text_in(event, "session_id")
    if not session:
        try:
            names = os.listdir(folder_of(environ))
        except OSError:
            return ""
        if any(name.endswith(".loop") for name in names):  # who has none does not want to know
            tell(f"{_LETS_GO}, because the event has no session_id")
        return ""
    try:
        loop = load(session, environ)
        if loop is None or not loop.running:
            return ""
        from ralph.loops.session.answer import Stopping

        with Store(session, environ) as store:
            loop = store.read()
            if loop is None or not loop.running:
                return ""
            return Stopping(loop, event, environ, here).answered(store)
    except Unreadable as error:
        tell(f"{_LETS_GO}, because its state cannot be read: {error}")
    except OSError as error:
        tell(f"{_LETS_GO}, because its state cannot be used: {error}")
    return ""


def _of_stories(event: Event, environ: Environ, here: str) -> str:
    """Judges a run over stories: its list, then its repository."""
    named = environ.get("CLAUDE_PROJECT_DIR", "")
    project = upwards(cwd_of(event, here), MARKER) or (named and upwards(named, MARKER))
    marker = _marker(project) if project else None
    if marker is None or is_of_another_run(marker, environ):
        return ""
    from ralph.loops.session.git_status import GitStatus

    host_commits = marker.get("hostCommits") is True  # where the agent cannot
    status = None if host_commits else GitStatus(project, environ)  # git works while we do
    try:
        folder, problems = _judged(project, marker)
    finally:
        paths = _uncommitted(status, marker.get("leftAlone")) if status is not None else []
    key = text_in(event, "session_id") or f"in {project}"
    again = event.get("stop_hook_active") is True
    if not problems and not paths:
        _forget_holds(key, environ)
        return ""
    if not _may_hold(key, again, environ):
        return ""
    return held(folder, problems, paths)


def _uncommitted(status: "GitStatus", left_alone: object) -> list[str]:
    """The uncommitted paths, but for those that a person had not committed before the run."""
    output, why = status.output()
    if why:
        tell(f"uncommitted changes are not looked for: {why}")
    alone = left_alone if isinstance(left_alone, list) else []
    return [path for path in foreign(output) if path not in alone]


def _marker(project: str) -> dict[str, object] | None:
    """The marker's fields; None, and a word about it, where that cannot be known."""
    try:
        marker = parsed(read_regular(os.path.join(project, MARKER)))
        if isinstance(marker, dict):
            return marker
        why = "it is not an object"
    except OSError as error:
        why = f"it cannot be read: {error.strerror}"
    except ValueError as error:
        why = str(error)
    tell(f"the stop is not checked, because of {os.path.join(project, MARKER)}: {why}")
    return None


def _judged(project: str, marker: dict[str, object]) -> tuple[str, list[str]]:
    """The folder of the stories, and all that is wrong with their list by what the marker says."""
    from ralph.review.law import LARGEST, Marked, problems

    marked = Marked(marker)
    try:
        path = os.path.join(project, marked.folder, "tasks.json")
        listing = _listing(read_regular(path, LARGEST))
    except OSError as error:
        return marked.folder, [f"tasks.json: it cannot be read: {error.strerror}."]
    except ValueError as error:  # also what is not JSON
        return marked.folder, [f"tasks.json: {error}."]
    if marked.lacks and not marked.skip_review:
        lacks = f"{MARKER} has no {marked.lacks} to go by"
        tell(f"warning: what this turn changed is not checked: {lacks}")
    return marked.folder, [words for _, _, words in problems(listing, marked)]


def _listing(raw: bytes) -> object:
    """The list by the law's own reader, which is asked only where a quicker one may be wrong."""
    if b"NaN" not in raw and b"Infinity" not in raw:
        try:
            return scanned(raw)
        except ValueError:
            pass  # the law has words for it
    from ralph.review.law import parsed as read_by_law

    return read_by_law(raw)


def _may_hold(key: str, again: bool, environ: Environ) -> bool:
    """Holds are not for ever: an agent that cannot fix it is left to the checks after its exit."""
    from ralph.loops.session.memory import HELD, Busy, replaced

    if not again:
        _forget_holds(key, environ)
    try:
        times = replaced(key, HELD, lambda before: before + 1, environ) + 1
    except Busy:
        return True
    except OSError as error:
        if again:
            tell(f"the stop is let go: how often it was held cannot be counted: {error}")
        return not again
    if times > _MOST_HOLDS:
        tell(f"the stop is let go after {_MOST_HOLDS} holds in a row; what is wrong is for the run")
    return times <= _MOST_HOLDS


def _forget_holds(key: str, environ: Environ) -> None:
    from ralph.loops.session.memory import HELD, forget

    try:
        forget(key, environ, (HELD,))
    except OSError:
        pass  # then it is held less often


def held(folder: str, problems: list[str], paths: list[str]) -> str:
    """The host's line that holds a stop: words for the model, and for people."""
    import json

    parts, short = [], []
    if problems:
        told = [f"- {text[:_LONGEST]}" for text in problems[:_MOST_TOLD]]
        if len(problems) > _MOST_TOLD:
            told.append(f"- and {len(problems) - _MOST_TOLD} more")
        parts.append("\n".join([f"Put {folder}/tasks.json right:", *told]))
        short.append(f"{len(problems)} in {folder}/tasks.json")
    if paths:
        parts.append(commit_all(folder, paths))
        short.append("uncommitted changes")
    return json.dumps(
        {
            "decision": "block",
            "reason": "\n\n".join(["You cannot stop yet.", *parts, "Then stop again."]),
            "systemMessage": f"Ralph held the stop: {', '.join(short)}.",
        }
    )
