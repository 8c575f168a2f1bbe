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

    from ralph.guard.judge import Verdict, Where
else:
    import _signal as signal  # the other makes enums of it all

if __name__ == "__main__":
    # Under -I neither the current directory nor this one is on the path; the package is needed.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ralph.git.uncommitted_text import MARKER  # noqa: E402  the package may lie above
from ralph.hosts.protocol import (  # noqa: E402
    KEPT,
    Environ,
    Malformed,
    directory,
    event_of,
    is_of_another_run,
    json_in,
    parents,
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


def refusal(raw: bytes, environ: Environ, here: str) -> str | None:
    """The reason why the call is refused, or None; always None where the guard is off."""
    try:
        event = event_of(raw)
        tool, cwd = event.get("tool_name"), event.get("cwd", here)
        if not isinstance(tool, str):
            raise Malformed("the event names no tool")
        if not isinstance(cwd, str) or not cwd.startswith("/") or "\0" in cwd:
            raise Malformed("the event's cwd is no directory")
    except Malformed as error:
        on, _ = guarded(here, environ)
        if not on:
            tell(f"the hook lets go, because {error}")
        return f"guard: refused, because {error}" if on else None
    on, project = guarded(cwd, environ)
    if not on or tool not in _SHELL_TOOLS:
        return None
    given = event.get("tool_input")
    command = given.get("command") if isinstance(given, dict) else None
    if not isinstance(command, str):
        return "guard: refused, because the call has no command"
    level, allow = choices(project)
    strict = level == _STRICT or not environ.get(KEPT)
    where = surroundings(cwd, project, environ, strict=strict, command=command)
    verdict = verdict_on(command, where, allow)
    if verdict.allowed:
        return None
    part = f"\n  in: {verdict.command[:300]}" if verdict.command else ""
    return (
        f"guard: refused ({verdict.category}): {verdict.reason}{part}\n"
        "  Do it in another way, or leave it to a person; do not try to get around this."
        f"{allowing(verdict)}"
    )


def guarded(cwd: str, environ: Environ) -> tuple[bool, str]:
    """True if the guard is on in this directory; and the project's root.

    It is on where the marker of this run says mode `direct`, or one cannot be read, or with
    RALPH_GUARD=1; a marker that names another run is not for us.
    A marker further down does not turn off what one above it turned on.
    """
    for start in filter(None, (cwd, environ.get("CLAUDE_PROJECT_DIR", ""))):
        for where in parents(start):
            if _says_direct(os.path.join(where, MARKER), environ):
                return True, where
    return environ.get("RALPH_GUARD") == "1", project_of(cwd, environ)


def _says_direct(path: str, environ: Environ) -> bool:
    """A marker that cannot be read, or is none, means the worst; one of another run, nothing, and
    so does one of a run that says itself that it goes without (`--no-guard`)."""
    if not os.path.lexists(path):
        return False
    marker = json_in(path)
    if not isinstance(marker, dict):
        return True
    goes_without = marker.get("run") is not None and environ.get("RALPH_GUARD") == "0"
    if goes_without or is_of_another_run(marker, environ):
        return False
    mode = marker.get("mode")
    return not isinstance(mode, str) or mode == "direct"


def project_of(cwd: str, environ: Environ) -> str:
    """The project a directory belongs to: the agent's, the run's, the repository, or itself."""
    given = environ.get("CLAUDE_PROJECT_DIR", "")
    if given.startswith("/"):
        return given
    return upwards(cwd, MARKER) or next(filter(_is_project, parents(cwd)), cwd)


def _is_project(directory: str) -> bool:
    """True if settings or a repository lie here; git passes by a `.git` that is empty."""
    git = os.path.join(directory, ".git")
    if os.path.lexists(os.path.join(directory, _SETTINGS[0])):
        return True
    try:
        return bool(os.listdir(git))
    except OSError:
        return os.path.lexists(git)  # a file, or closed to us


def surroundings(
    cwd: str, project: str, environ: Environ, *, strict: bool, command: str
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
    found = upwards(cwd, ".git")
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


def choices(project: str) -> tuple[str, tuple[str, ...]]:
    """`guard.level` and `guard.allow`; what cannot be read allows nothing more."""
    chosen: dict[str, object] = {}
    for name in _SETTINGS:
        settings = json_in(os.path.join(project, name))
        guard = settings.get("guard") if isinstance(settings, dict) else None
        if isinstance(guard, dict):
            chosen |= {key: said for key, said in guard.items() if said is not None}
    patterns = chosen.get("allow")
    known = patterns if isinstance(patterns, list) else []
    standard = chosen.get("level", "standard") == "standard"
    allow = tuple(pattern for pattern in known if isinstance(pattern, str))
    return "standard" if standard else _STRICT, allow


def verdict_on(command: str, where: "Where", allow: tuple[str, ...] = ()) -> "Verdict":
    """The verdict on a command; one that takes too long is refused."""
    from ralph.guard.judge import judge, unreadable

    # Garbage is left alone meanwhile: to look for it in a large program takes longer than we may,
    # and what is raised while others are told of that is lost.
    collects = gc.isenabled()
    gc.disable()
    before = signal.signal(signal.SIGPROF, _give_up)

    def forget_time() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

    # Again and again: Python ignores what is raised in some places, such as a finalizer.
    signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS, _MOST_SECONDS)
    try:
        try:
            return judge(command, where, allow)
        finally:
            forget_time()
    except TooSlow:  # it may come while the time is being forgotten
        forget_time()
        return unreadable("it takes too long")
    finally:
        if collects:
            gc.enable()


def _give_up(*_: object) -> None:
    raise TooSlow


def allowing(verdict: "Verdict") -> str:
    """The way for a person to allow a refused call; empty where no pattern could say what it is."""
    pattern = verdict.pattern
    if not pattern or len(pattern) > _LONGEST_SHOWN or verdict.category in _NEVER_ALLOWED:
        return ""
    from json import dumps

    return f"\n  A person can allow it: add {dumps(pattern)} to guard.allow in {_SETTINGS[0]}."


if __name__ == "__main__":
    sys.exit(main())
