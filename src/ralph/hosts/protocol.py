"""An event on stdin, an answer on stdout: how an agent's host talks to a hook.

Letting go is no output, and words for people go to stderr. The exit code is 0 whatever happens,
except where the guard refuses a call: hosts take 2 for a refusal, and others for a crash.
"""

import os
from _collections_abc import Callable, Iterator, Mapping  # `os` has it; `collections` is slow

Event = Mapping[str, object]
Environ = Mapping[str, str]
Hook = Callable[[Event, Environ, str], str]  # event, environment, here -> answer

HOOKS = {  # `ralph hook NAME`, a module with a `main() -> int`; docs/plugin.md tells about them
    "stop": "Hold an agent whose loop is not done, or whose stories or changes are not in order.",
    "prompt": "Begin, end and show the loop of a session.",
    "pre-tool": "Judge a shell command before it runs, where the guard is on.",
    "post-tool": "Tell the model how full its context window is.",
    "session-start": "Forget what the hooks remember of this session.",
    "stop-failure": "Let a turn end that failed, and tell its loop.",
}
AGENTS = ("claude", "codex", "gemini")  # the hosts
KEPT = "RALPH_START"  # set by a run that keeps what was not committed when it began
_MOST_INPUT = 64 << 20  # bytes
_BLANKS = " \t\r\n"  # of JSON


def module_of(hook: str) -> str:
    """The module of a hook."""
    return f"ralph.hooks.{hook.replace('-', '_')}"


class Malformed(Exception):  # noqa: N818  it says what happened
    """The event is not what a host sends."""


def serve(hook: Hook) -> int:
    """Ask a hook about the event on stdin, and tell the host its answer; the exit code, 0."""
    try:
        # A closed 0, 1 or 2 would go to the next file we open, and the answer into it.
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)
        answer = hook(event_of(sent()), os.environ, directory())
        if answer:
            _write(1, f"{answer}\n".encode())
    except Malformed as error:
        tell(f"the hook lets go, because {error}")
    except BaseException as error:  # noqa: BLE001  a hook of ours never stands in the way
        tell(f"the hook lets go, because it failed itself: {error!r}")
    return 0


def sent() -> bytes:
    """The content of stdin; nothing where it cannot be read, which is malformed too."""
    try:
        return _all_of(0, _MOST_INPUT)
    except (OSError, ValueError):
        return b""


def read_regular(path: str, most: int = _MOST_INPUT) -> bytes:
    """A file's content; OSError or ValueError, in words, where a link, a pipe or a folder stands
    in its place, or what is too long."""
    import stat

    kind = os.lstat(path).st_mode
    if not stat.S_ISREG(kind):
        raise ValueError("it is a symbolic link" if stat.S_ISLNK(kind) else "it is not a file")
    return _content(path, most, os.O_NOFOLLOW)


def json_in(path: str) -> object:
    """A file's JSON; None where it cannot be read, or is none."""
    try:
        return parsed(_content(path, _MOST_INPUT))
    except (OSError, ValueError):
        return None


def _content(path: str, most: int, flags: int = 0) -> bytes:
    # Not blocking: a pipe would keep us waiting.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        return _all_of(descriptor, most)
    finally:
        os.close(descriptor)


def _all_of(descriptor: int, most: int) -> bytes:
    pieces = []
    size = 0
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise ValueError(f"it is larger than {most >> 20} MB")
    return b"".join(pieces)


class _AsJson:
    """Options by which the decoder's own C code reads as `json.loads` does."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def parsed(raw: bytes) -> object:
    """The content of JSON; ValueError where it is none."""
    try:
        return scanned(raw)
    except ValueError:
        import json

        try:
            return json.loads(raw.decode("utf-8"))
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error


def scanned(raw: bytes) -> object:
    """The content of JSON, by the C code of `json` alone: that package takes as long to import as
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
    """The directory of this process; `/` if that is gone."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def parents(start: str) -> Iterator[str]:
    """A directory, and all above it."""
    where, above = "", os.path.abspath(start)
    while above != where:
        where, above = above, os.path.dirname(above)
        yield where


def upwards(start: str, name: str) -> str:
    """The nearest directory, from here upwards, that has an entry of this name; empty if none."""
    found = (where for where in parents(start) if os.path.lexists(os.path.join(where, name)))
    return next(found, "")


def tell(words: str) -> None:
    """Write words for people; nobody may be listening."""
    try:
        _write(2, f"[ralph] {words}\n".encode("utf-8", "replace"))
    except OSError:
        pass


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def event_of(raw: bytes) -> Event:
    """The event, which is an object; Malformed where it is none."""
    try:
        event = parsed(raw)
    except ValueError as error:
        raise Malformed("the event is not JSON") from error
    if not isinstance(event, dict):
        raise Malformed("the event is not an object")
    return event


def text_in(event: Event, field: str) -> str:
    """A field's text; empty where the host sends none."""
    text = event.get(field)
    return text if isinstance(text, str) else ""


def session_of(event: Event) -> str:
    """The id of the session; Malformed where the host names none."""
    if session := text_in(event, "session_id"):
        return session
    raise Malformed("the event has no session_id")


def transcript_of(event: Event) -> str:
    """The path of the transcript; empty where the host names none."""
    path = text_in(event, "transcript_path")
    return "" if "\0" in path else path


def cwd_of(event: Event, here: str) -> str:
    """The agent's directory as the host names it, else this process's."""
    cwd = text_in(event, "cwd")
    return cwd if cwd.startswith("/") and "\0" not in cwd else here


def project_of(event: Event, environ: Environ, here: str) -> str:
    """The project as the host names it, else the agent's directory."""
    named = environ.get("CLAUDE_PROJECT_DIR", "")
    return named if named.startswith("/") else cwd_of(event, here)


def is_of_claude(event: Event, name: str = "Stop") -> bool:
    """True if it is this event of claude, the host with a cap on held stops."""
    return event.get("hook_event_name") == name and "turn_id" not in event


def is_of_another_run(marker: object, environ: Environ) -> bool:
    """True if a marker names a run, and this is a session of none, or of another (R §3): what a
    person does in the same project is the person's."""
    run = marker.get("run") if isinstance(marker, dict) else None
    return run is not None and run != environ.get("RALPH_RUN")
