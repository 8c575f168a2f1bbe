"""`ralph hook stop`: what holds an agent that wants to stop, so that it mends its work (R §5b).

The loop of the session, if it has one, is asked first (P). Then, in a project with the marker of
a run, the list of stories must be as the law has it and all work committed. The marker is within
the agent's reach, so this is a courtesy that saves an iteration: the host applies the same law
after the agent's exit, from its own memory (ADR 20).
"""

import os

from ralph.core.uncommitted import MARKER, commit_all
from ralph.hooks.host import (
    is_of_another_run,
    parsed,
    read_regular,
    scanned,
    serve,
    tell,
    upwards,
)
from ralph.hooks.session_loop import judge

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.core.review import Fields, Problem
    from ralph.hooks.host import Event

_MOST_HOLDS = (
    5  # in a row: after 8 the host of an agent goes on without asking, and loses its answer
)
_MOST_TOLD = 20  # problems
_LONGEST = 600  # characters of one


def main() -> int:
    """Answer the host; the exit code."""
    return serve(answer)


def answer(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """Empty to let the agent stop; otherwise the one line that holds it, or a word for people
    about the end of a loop. The first judge who objects has the say."""
    if event.get("hook_event_name") == "SubagentStop" or event.get("agent_id"):
        return ""  # who stops is a helper of the session, which goes on
    held, notice = judge(event, environ, here)
    return held or _of_stories(event, environ, here) or notice


def _of_stories(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """A run over stories: its list, then its repository."""
    project = project_of(event, environ, here)
    marker = _marker(project) if project else None
    if marker is None or is_of_another_run(marker, environ):
        return ""
    from ralph.hooks.uncommitted import Status

    status = Status(project, environ)  # git works while we do
    folder = _folder(marker)
    try:
        problems = problems_of(os.path.join(project, folder, "tasks.json"), marker)
    finally:
        paths = status.paths()
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


def _folder(marker: "Mapping[str, object]") -> str:
    given = marker.get("ralphDir")
    return given if isinstance(given, str) and given and "\0" not in given else "ralph"


# ------------------------------------------------------------------ checks 1, 2 and 2.5


def problems_of(path: str, marker: "Mapping[str, object]") -> "list[Problem]":
    """Everything that is wrong with the list, by the marker's snapshot of it."""
    from ralph.core.review import has_shape, inconsistent, malformed

    try:
        listing = _listing(read_regular(path))
    except OSError as error:
        return [("", f"tasks.json: it cannot be read: {error.strerror}.")]
    except ValueError as error:  # also what is not JSON
        return [("", f"tasks.json: {error}.")]
    problems = malformed(listing)
    if marker.get("skipReview") is True or not has_shape(listing):
        return problems
    before = _snapshot(marker)
    problems += inconsistent(listing, _cap(marker), before)
    return problems + _transitions(before, listing, marker)


def _listing(raw: bytes) -> object:
    """The list by the law's own reader, which is asked only where a quicker one may be wrong."""
    if b"NaN" not in raw and b"Infinity" not in raw:
        try:
            return scanned(raw)
        except ValueError:
            pass  # the law has words for it
    from ralph.core.review import parsed as read_by_law

    return read_by_law(raw)


def _transitions(
    before: "Fields | None", listing: "Mapping[str, object]", marker: "Mapping[str, object]"
) -> "list[Problem]":
    """Check 2.5, which needs to know what was before (R §5b)."""
    from ralph.core.review import MODES, illegal

    mode = marker.get("iterationMode")
    if before is None or not isinstance(mode, str) or mode not in MODES:
        what = "preIterationSnapshot" if before is None else "iterationMode"
        tell(f"warning: what this turn changed is not checked: {MARKER} has no {what} to go by")
        return []
    return list(illegal(before, listing, mode))


def _snapshot(marker: "Mapping[str, object]") -> "Fields | None":
    """Each story's fields before the turn; an empty one says that there were no stories."""
    given = marker.get("preIterationSnapshot")
    if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
        return None
    return given


def _cap(marker: "Mapping[str, object]") -> int:
    from ralph.core.review import DEFAULT_CAP

    cap = marker.get("reviewCap")
    return cap if isinstance(cap, int) and not isinstance(cap, bool) and cap >= 1 else DEFAULT_CAP


# ------------------------------------------------------------------ holding


def _may_hold(key: str, again: bool, environ: "Mapping[str, str]") -> bool:
    """Not for ever: an agent that cannot mend it is left to the checks after its exit."""
    from ralph.hooks.sessions import HELD, Busy, count_up

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
    from ralph.hooks.sessions import HELD, forget

    try:
        forget(key, environ, (HELD,))
    except OSError:
        pass  # then it is held less often


def held(folder: str, problems: "list[Problem]", paths: list[str]) -> str:
    """The host's line that holds a stop: what the model reads, and what people do."""
    import json

    parts, short = [], []
    if problems:
        parts.append(_about_list(folder, [words for _, words in problems]))
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
