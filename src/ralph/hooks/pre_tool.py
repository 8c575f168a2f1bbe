"""`ralph hook pre-tool`: judges a Bash call before it is made (R §4, ADR 25).

The event comes as JSON on stdin. Exit 0 lets the call pass, exit 2 with a reason on stderr refuses
it; any other end would let it pass too, so everything that goes wrong here is a refusal. It also
runs by itself: `python -I -S pre_tool.py`.
"""

import gc
import os
import sys

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import Any

    from ralph.guard.judge import Verdict, Where
else:
    import _signal as signal  # the other makes enums of it all

if __name__ == "__main__":
    # Under -I neither the current directory nor this one is on the path; the package is needed.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ralph.git.uncommitted_text import MARKER  # noqa: E402  the package may lie above
from ralph.hosts.protocol import (  # noqa: E402
    KEPT,
    Malformed,
    directory,
    event_of,
    is_of_another_run,
    parsed,
    read_all,
    sent,
    tell,
    upwards,
)

_STRICT = "strict"
_SHELL_TOOLS = frozenset({"Bash", "run_shell_command"})
_MOST_SECONDS = 0.5  # of the processor; a host that waits too long lets the call pass
_SETTINGS = (".ralph/settings.json", ".ralph/settings.local.json")
_REFUSED = 2
_LONGEST_LINE = 4096
_NEVER_ALLOWED = frozenset({"remote-code", "reverse-shell", "evasion", "unreadable", "guard"})
_LONGEST_SHOWN = 200


class TooSlow(BaseException):
    """A command takes too long to follow; nothing on the way may catch it."""


def main() -> int:
    """Answer the host; the exit code."""
    try:
        reason = refusal(sent(), os.environ, directory())
    except BaseException as error:  # noqa: BLE001  a crash would let the call pass
        reason = f"the guard itself failed: {error!r}"
    if reason is None:
        return 0
    tell(reason)  # where nobody listens, the exit code has to do
    return _REFUSED


def refusal(raw: bytes, environ: "Mapping[str, str]", here: str) -> str | None:
    """Why the call is refused, or None. Nothing is where the guard is off."""
    try:
        event = _event(raw)
        cwd = _cwd(event, here)
    except Malformed as error:
        on, _ = guarded(here, environ)
        if not on:
            tell(f"the hook lets go, because {error}")
        return f"guard: refused, because {error}" if on else None
    on, project = guarded(cwd, environ)
    if not on or _tool(event) not in _SHELL_TOOLS:
        return None
    command = _command(event)
    if command is None:
        return "guard: refused, because the call has no command"
    chosen = choices(project)
    strict = chosen.level == _STRICT or not environ.get(KEPT)
    where = surroundings(cwd, project, environ, strict=strict, command=command)
    return _told(verdict_on(command, where, chosen.allow))


def _event(raw: bytes) -> "dict[str, Any]":
    event = event_of(raw)
    if not isinstance(event.get("tool_name"), str):
        raise Malformed("the event names no tool")
    return event


def _cwd(event: "dict[str, Any]", here: str) -> str:
    cwd = event.get("cwd", here)
    if not isinstance(cwd, str) or not cwd.startswith("/") or "\0" in cwd:
        raise Malformed("the event's cwd is no directory")
    return cwd


def _tool(event: "dict[str, Any]") -> str:
    return str(event["tool_name"])


def _command(event: "dict[str, Any]") -> str | None:
    given = event.get("tool_input")
    command = given.get("command") if isinstance(given, dict) else None
    return command if isinstance(command, str) else None


def guarded(cwd: str, environ: "Mapping[str, str]") -> tuple[bool, str]:
    """Whether the guard is on in this directory, and the project's root.

    It is on where the marker of this run says mode `direct`, or one cannot be read, or with
    RALPH_GUARD=1; a marker that names another run is not for us.
    A marker further down does not turn off what one above it turned on.
    """
    starts = [start for start in (cwd, environ.get("CLAUDE_PROJECT_DIR", "")) if start]
    for start in starts:
        found = upwards(start, (MARKER,))
        while found:
            if _says_direct(os.path.join(found, MARKER), environ):
                return True, found
            parent = os.path.dirname(found)
            found = upwards(parent, (MARKER,)) if parent != found else ""
    return environ.get("RALPH_GUARD") == "1", project_of(cwd, environ)


def project_of(cwd: str, environ: "Mapping[str, str]") -> str:
    """The project a directory belongs to: the agent's, the run's, the repository, or itself."""
    given = environ.get("CLAUDE_PROJECT_DIR", "")
    if given.startswith("/"):
        return given
    return upwards(cwd, (MARKER,)) or _with_repository_or_settings(cwd) or cwd


def _with_repository_or_settings(start: str) -> str:
    """The nearest directory that has one of them; git passes by a `.git` that is empty."""
    found = upwards(start, (".git", _SETTINGS[0]))
    try:
        empty = bool(found) and not os.listdir(os.path.join(found, ".git"))
    except OSError:
        empty = False  # a file, or there are only settings
    if not empty or os.path.lexists(os.path.join(found, _SETTINGS[0])):
        return found
    parent = os.path.dirname(found)
    return _with_repository_or_settings(parent) if parent != found else ""


def _says_direct(path: str, environ: "Mapping[str, str]") -> bool:
    """A marker that cannot be read, or is none, means the worst; one of another run, nothing, and
    so does one of a run that says itself that it goes without (`--no-guard`)."""
    marker = _json(path)
    if is_of_another_run(marker, environ) or _goes_without(marker, environ):
        return False
    mode = marker.get("mode") if isinstance(marker, dict) else None
    return not isinstance(mode, str) or mode == "direct"


def _goes_without(marker: object, environ: "Mapping[str, str]") -> bool:
    named = isinstance(marker, dict) and marker.get("run") is not None
    return named and environ.get("RALPH_GUARD") == "0"


def _json(path: str) -> object:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return parsed(read_all(descriptor))
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)


def surroundings(
    cwd: str, project: str, environ: "Mapping[str, str]", *, strict: bool, command: str
) -> "Where":
    """The world a command is judged in; links are resolved, so that `..` means what it says."""
    from ralph.guard.judge import Where

    home = environ.get("HOME") or os.path.expanduser("~")
    temps = ["/tmp", "/var/tmp", environ.get("TMPDIR", "")]  # noqa: S108  where others put theirs
    absolute = [temp for temp in temps if temp.startswith("/")]
    return Where(
        cwd=os.path.realpath(cwd),
        home=os.path.realpath(home),
        project=os.path.realpath(project),
        temps=tuple(dict.fromkeys([*absolute, *map(os.path.realpath, absolute)])),
        aliases=((project, os.path.realpath(project)), (home, os.path.realpath(home))),
        strict=strict,
        branch=_branch(cwd) if "push" in command else "",
    )


def _branch(cwd: str) -> str:
    """The branch that is checked out; "" where nobody can tell."""
    found = upwards(cwd, (".git",))
    if not found:
        return ""  # and not the branch of whatever directory the hook was started in
    git = os.path.join(found, ".git")
    head = _first_line(os.path.join(git, "HEAD"))
    if not head:  # a work tree, whose .git is a file
        linked = _first_line(git).removeprefix("gitdir: ")
        head = _first_line(os.path.join(os.path.dirname(git), linked, "HEAD")) if linked else ""
    name = head.removeprefix("ref: refs/heads/")
    return name if name != head else ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(_LONGEST_LINE).rstrip("\n")
    except (OSError, ValueError):
        return ""


class Choices:
    """What the settings say about the guard."""

    __slots__ = ("allow", "level")

    def __init__(self, allow: tuple[str, ...], level: str) -> None:
        self.allow, self.level = allow, level


def choices(project: str) -> Choices:
    """`guard.allow` and `guard.level`; what cannot be read allows nothing more."""
    allow: object = None
    level: object = None
    for name in _SETTINGS:
        settings = _json(os.path.join(project, name))
        guard = settings.get("guard") if isinstance(settings, dict) else None
        if isinstance(guard, dict):
            allow = guard.get("allow") if guard.get("allow") is not None else allow
            level = guard.get("level") if guard.get("level") is not None else level
    patterns = allow if isinstance(allow, list) else []
    known = tuple(pattern for pattern in patterns if isinstance(pattern, str))
    return Choices(known, "standard" if level in (None, "standard") else _STRICT)


def verdict_on(command: str, where: "Where", allow: tuple[str, ...] = ()) -> "Verdict":
    """The verdict on a command; one that takes too long is refused."""
    from ralph.guard.judge import judge, unreadable

    # Garbage is left alone meanwhile: to look for it in a large program takes longer than we may,
    # and what is raised while others are told of that is lost.
    collects = gc.isenabled()
    gc.disable()
    before = signal.signal(signal.SIGPROF, _give_up)
    # Again and again: Python ignores what is raised in some places, such as a finalizer.
    signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS, _MOST_SECONDS)
    try:
        try:
            return judge(command, where, allow)
        finally:
            _forget_time(before)
    except TooSlow:  # it may come while the time is being forgotten
        _forget_time(before)
        return unreadable("it takes too long")
    finally:
        if collects:
            gc.enable()


def _forget_time(before: "Any") -> None:  # noqa: ANN401  what `signal.signal` gave
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def _give_up(*_: object) -> None:
    raise TooSlow


def _told(verdict: "Verdict") -> str | None:
    if verdict.allowed:
        return None
    part = f"\n  in: {verdict.command[:300]}" if verdict.command else ""
    return (
        f"guard: refused ({verdict.category}): {verdict.reason}{part}\n"
        "  Do it in another way, or leave it to a person; do not try to get around this."
        f"{allowing(verdict)}"
    )


def allowing(verdict: "Verdict") -> str:
    """How a person allows what was refused; nothing where a pattern could not say what it is."""
    pattern = verdict.pattern
    if not pattern or len(pattern) > _LONGEST_SHOWN or verdict.category in _NEVER_ALLOWED:
        return ""
    from json import dumps

    return f"\n  A person can allow it: add {dumps(pattern)} to guard.allow in {_SETTINGS[0]}."


if __name__ == "__main__":
    sys.exit(main())
