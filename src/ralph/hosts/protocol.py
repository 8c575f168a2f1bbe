"""What a hook and the agent's host say to each other: an event on stdin, an answer on stdout.

Letting go is no output, and words for people go to stderr. The exit code is 0 whatever happens,
except where the guard refuses a call: hosts take 2 for a refusal, and others for a crash.
"""

import os

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Event = dict[str, Any]
    Hook = Callable[[Event, Mapping[str, str], str], str]  # event, environment, here -> answer

KEPT = "RALPH_START"  # set by a run that keeps what was not committed when it began
_MOST_INPUT = 64 << 20  # bytes
_BLANKS = " \t\r\n"  # of JSON


class Malformed(Exception):  # noqa: N818  it says what happened
    """The event is not what a host sends."""


def serve(hook: "Hook") -> int:
    """Ask a hook about the event on stdin, and tell the host its answer; the exit code, 0."""
    try:
        _hold_streams()
        answer = hook(event_of(sent()), os.environ, directory())
        if answer:
            _write(1, f"{answer}\n".encode())
    except Malformed as error:
        tell(f"the hook lets go, because {error}")
    except BaseException as error:  # noqa: BLE001  a hook of ours never stands in the way
        tell(f"the hook lets go, because it failed itself: {error!r}")
    return 0


def _hold_streams() -> None:
    """A closed 0, 1 or 2 would go to the next file we open, and the answer into it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def sent() -> bytes:
    """What came on stdin; nothing where it cannot be read, which is malformed too."""
    try:
        return read_all(0)
    except (OSError, ValueError):
        return b""


def read_all(descriptor: int, most: int = _MOST_INPUT) -> bytes:
    """Everything, up to the largest event there may be: ValueError, in words, beyond."""
    pieces = []
    size = 0
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise ValueError(f"it is larger than {most >> 20} MB")
    return b"".join(pieces)


def read_regular(path: str, most: int = _MOST_INPUT) -> bytes:
    """A file's content; OSError or ValueError, in words, where a link, a pipe or a folder stands
    in its place, or what is too long."""
    import stat

    kind = os.lstat(path).st_mode
    if not stat.S_ISREG(kind):
        raise ValueError("it is a symbolic link" if stat.S_ISLNK(kind) else "it is not a file")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        return read_all(descriptor, most)
    finally:
        os.close(descriptor)


def event_of(raw: bytes) -> "Event":
    """The event, which is an object; Malformed where it is none."""
    try:
        event = parsed(raw)
    except ValueError as error:
        raise Malformed("the event is not JSON") from error
    if not isinstance(event, dict):
        raise Malformed("the event is not an object")
    return event


class _AsJson:
    """How the decoder's own C code is told to read as `json.loads` does."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def parsed(raw: bytes) -> object:
    """What JSON says; ValueError where it is none."""
    try:
        return scanned(raw)
    except ValueError:
        import json

        try:
            return json.loads(raw.decode("utf-8"))
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error


def scanned(raw: bytes) -> object:
    """What JSON says, by the C code of `json` alone: that package takes as long to import as
    Python to start. ValueError, and no more words, for whatever that code cannot read."""
    text = raw.decode("utf-8")
    try:
        from _json import make_scanner

        begin = len(text) - len(text.lstrip(_BLANKS))
        found, end = make_scanner(_AsJson)(text, begin)  # type: ignore[arg-type]
    except (AttributeError, ImportError, RecursionError, StopIteration, SystemError) as error:
        raise ValueError from error  # or this Python's code is another
    if text[end:].strip(_BLANKS):
        raise ValueError
    return found


def directory() -> str:
    """Where this process is; `/` if that is gone."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def upwards(start: str, names: tuple[str, ...]) -> str:
    """The nearest directory, from here upwards, that has one of these; empty if none has."""
    where = os.path.abspath(start)
    while True:
        if any(os.path.lexists(os.path.join(where, name)) for name in names):
            return where
        parent = os.path.dirname(where)
        if parent == where:
            return ""
        where = parent


def is_of_another_run(marker: object, environ: "Mapping[str, str]") -> bool:
    """Whether a marker names a run, and this is a session of none, or of another (R §3): what a
    person does in the same project is the person's."""
    run = marker.get("run") if isinstance(marker, dict) else None
    return run is not None and run != environ.get("RALPH_RUN")


def tell(words: str) -> None:
    """Words for people; nobody may be listening."""
    try:
        _write(2, f"[ralph] {words}\n".encode("utf-8", "replace"))
    except OSError:
        pass


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def session_of(event: "Event") -> str:
    """The id of the session; empty where the host names none."""
    session = event.get("session_id")
    return session if isinstance(session, str) else ""


def transcript_of(event: "Event") -> str:
    """Where the host says that the transcript is; empty where it says nothing."""
    path = event.get("transcript_path")
    return path if isinstance(path, str) and "\0" not in path else ""


def project_of(event: "Event", environ: "Mapping[str, str]", here: str) -> str:
    """The project as the host names it, else where the agent is."""
    for given in (environ.get("CLAUDE_PROJECT_DIR"), event.get("cwd"), here):
        if isinstance(given, str) and given.startswith("/") and "\0" not in given:
            return given
    return here


def is_of_claude(event: "Event") -> bool:
    """Whether the host is the one with a cap on held stops."""
    return event.get("hook_event_name") == "Stop" and "turn_id" not in event
