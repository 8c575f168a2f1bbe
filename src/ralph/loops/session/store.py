"""Where loops of sessions are kept: one JSON file a session, beside what else hooks remember.

It is written whole, by renaming, and changed by one process at a time. Nothing goes into the
workspace, and nothing into the temporary directory, where the next one would not find it.
"""

import os

from ralph.hosts.protocol import parsed, read_regular
from ralph.loops.session.memory import file_name, made, state_root

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from ralph.loops.session.state import SessionLoop

_KIND = "loop"
_PATIENCE = 5.0  # seconds; whoever changes a loop is about to be done
_PAUSE = 0.01


class Unreadable(Exception):  # noqa: N818  it says what happened
    """What is kept of a loop cannot be understood; the words say why."""


def folder_of(environ: "Mapping[str, str]") -> str:
    """The folder of all sessions; OSError where there can be none. A relative state directory is
    the project's, wherever the agent went since."""
    chosen, project = environ.get("RALPH_STATE_DIR", ""), environ.get("CLAUDE_PROJECT_DIR", "")
    if chosen and not os.path.isabs(chosen) and os.path.isabs(project):
        return os.path.join(project, chosen, "sessions")
    if not (root := state_root(environ)):
        raise OSError("there is no state directory: set RALPH_STATE_DIR or HOME")
    return os.path.join(root, "sessions")


def load(session: str, environ: "Mapping[str, str]") -> "SessionLoop | None":
    """The loop of a session, None if there is none. Unreadable, OSError."""
    return _loaded(os.path.join(folder_of(environ), file_name(session, _KIND)), session)


def every(environ: "Mapping[str, str]") -> "Iterator[SessionLoop | Unreadable]":
    """All loops there are, the latest first, and words about what cannot be read. OSError."""
    folder = folder_of(environ)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(f".{_KIND}")]
    except FileNotFoundError:
        return
    found: list[SessionLoop] = []
    for name in sorted(names):
        try:
            loop = _loaded(os.path.join(folder, name))
        except Unreadable as error:
            yield error
        else:
            found += [loop] if loop is not None else []
    yield from sorted(found, key=lambda loop: loop.started, reverse=True)


def _loaded(path: str, session: str = "") -> "SessionLoop | None":
    try:
        raw = read_regular(path)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    from ralph.hosts.lean_imports import import_values

    import_values()
    from ralph.loops.session.state import loop_of

    try:
        if not raw.strip():
            raise ValueError("it is empty")
        loop = loop_of(parsed(raw))
    except ValueError as error:
        raise Unreadable(f"{path}: {error}") from error
    if session and loop.session != session:
        raise Unreadable(f"{path}: it is of another session")
    return loop


class Store:
    """The loop of one session, which nobody else changes while this is open (`with`). OSError
    where it cannot be, TimeoutError where somebody else does not let it go."""

    def __init__(self, session: str, environ: "Mapping[str, str]") -> None:
        self._session = session
        self._folder = folder_of(environ)
        self._path = os.path.join(self._folder, file_name(session, _KIND))
        self._lock = -1

    def __enter__(self) -> "Self":
        made(self._folder)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Let others change it, for as long as something takes."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def take_again(self) -> None:
        """Nobody else from here on."""
        self._take()

    def read(self) -> "SessionLoop | None":
        """The loop as it is now. Unreadable."""
        return _loaded(self._path, self._session)

    def write(self, loop: "SessionLoop") -> None:
        """Keep the loop; it survives a kill from here on. OSError where the old one stays."""
        import json

        from ralph.loops.session.state import record_of

        data = f"{json.dumps(record_of(loop))}\n".encode()
        draft = f"{self._path}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(draft, flags, 0o600)
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            finally:
                os.close(descriptor)
            os.rename(draft, self._path)
        except OSError:
            _remove(draft)
            raise

    def _take(self) -> None:
        import fcntl
        import time

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._lock = os.open(f"{self._path}-lock", flags, 0o600)
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    self.let_go()
                    raise TimeoutError("another process is at it and does not end") from None
                time.sleep(_PAUSE)
            except OSError:
                return  # some file systems have no locks
            else:
                return


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it was never made, or stays
