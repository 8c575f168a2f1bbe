"""`ralph hook stop`: what holds an agent that wants to stop, so that it mends its work (R §5b).

The loop of the session, if it has one, is asked first (P). Then, in a project with the marker of
a run, the list of stories must be as the law has it and all work committed. The marker is within
the agent's reach, so this is a courtesy that saves an iteration: the host applies the same law
after the agent's exit, from its own memory (ADR 20).
"""

import os

from ralph.git.uncommitted_text import MARKER, commit_all
from ralph.hosts.protocol import (
    is_of_another_run,
    parsed,
    read_regular,
    scanned,
    serve,
    tell,
    upwards,
)
from ralph.loops.session.stop import judge

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.hosts.protocol import Event

# In a row: after 8 the host of an agent goes on without asking, and loses its answer.
_MOST_HOLDS = 5
_MOST_TOLD = 20  # problems
_HOLDS = '{"decision"'  # how a line of ours begins that holds; others only tell
_LONGEST = 600  # characters of one


def main() -> int:
    """Answer the host; the exit code."""
    return serve(answer)


def answer(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """Empty to let the agent stop; otherwise the one line that holds it, or only tells people how
    the loop of this session ended. That loop comes first."""
    if event.get("hook_event_name") == "SubagentStop" or event.get("agent_id"):
        return ""  # who stops is a helper of the session, which goes on
    loop = judge(event, environ, here)
    if loop.startswith(_HOLDS):
        return loop
    return _of_stories(event, environ, here) or loop


def _of_stories(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """A run over stories: its list, then its repository."""
    project = project_of(event, environ, here)
    marker = _marker(project) if project else None
    if marker is None or is_of_another_run(marker, environ):
        return ""
    from ralph.hooks.uncommitted import GitStatus

    host_commits = marker.get("hostCommits") is True  # where the agent cannot
    status = None if host_commits else GitStatus(project, environ)  # git works while we do
    try:
        folder, problems = _judged(project, marker)
    finally:
        alone = marker.get("leftAlone")  # what a person had not committed before
        paths = status.paths() if status is not None else []
        paths = [path for path in paths if not isinstance(alone, list) or path not in alone]
    session = event.get("session_id")
    key = session if isinstance(session, str) and session else f"in {project}"
    again = event.get("stop_hook_active") is True
    if not problems and not paths:
        _forget_holds(key, environ)
        return ""
    if not _may_hold(key, again, environ):
        return ""
    return held(folder, problems, paths)


# ------------------------------------------------------------------ the project and its marker


def project_of(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """The nearest parent of the event's directory that has a marker, else of the project that the
    host names; empty where there is none."""
    cwd = event.get("cwd")
    if not isinstance(cwd, str) or not cwd.startswith("/") or "\0" in cwd:
        cwd = here
    named = environ.get("CLAUDE_PROJECT_DIR", "")
    return upwards(cwd, (MARKER,)) or (upwards(named, (MARKER,)) if named else "")


def _marker(project: str) -> "dict[str, object] | None":
    """What the marker says; None, and a word about it, where that cannot be known."""
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


# ------------------------------------------------------------------ checks 1, 2 and 2.5


def _judged(project: str, marker: "Mapping[str, object]") -> tuple[str, list[str]]:
    """The folder of the stories, and all that is wrong with their list by what the marker says."""
    from ralph.review.marker import Marked, problems
    from ralph.review.text import LARGEST

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
    from ralph.review.text import parsed as read_by_law

    return read_by_law(raw)


# ------------------------------------------------------------------ holding


def _may_hold(key: str, again: bool, environ: "Mapping[str, str]") -> bool:
    """Not for ever: an agent that cannot mend it is left to the checks after its exit."""
    from ralph.loops.session.memory import HELD, Busy, count_up

    if not again:
        _forget_holds(key, environ)
    try:
        times = count_up(key, HELD, environ)
    except Busy:
        return True
    except OSError as error:
        if again:
            tell(f"the stop is let go: how often it was held cannot be counted: {error}")
        return not again
    if times > _MOST_HOLDS:
        tell(f"the stop is let go after {_MOST_HOLDS} holds in a row; what is wrong is for the run")
    return times <= _MOST_HOLDS


def _forget_holds(key: str, environ: "Mapping[str, str]") -> None:
    from ralph.loops.session.memory import HELD, forget

    try:
        forget(key, environ, (HELD,))
    except OSError:
        pass  # then it is held less often


def held(folder: str, problems: list[str], paths: list[str]) -> str:
    """The host's line that holds a stop: what the model reads, and what people do."""
    import json

    parts, short = [], []
    if problems:
        parts.append(_about_list(folder, problems))
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


def _about_list(folder: str, words: list[str]) -> str:
    told = [f"- {text[:_LONGEST]}" for text in words[:_MOST_TOLD]]
    more = [f"- and {len(words) - _MOST_TOLD} more"] if len(words) > _MOST_TOLD else []
    return "\n".join([f"Put {folder}/tasks.json right:", *told, *more])
