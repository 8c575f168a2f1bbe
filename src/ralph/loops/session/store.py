"""The loops of sessions: one JSON file a session, beside what else hooks remember.

It is written whole, by renaming, and changed by one process at a time. Nothing goes into the
workspace, and nothing into the temporary directory, where the next one would not find it.
"""

import os
import sys
from _collections_abc import Iterator  # `os` has it; `collections` is slow

from ralph.hosts.protocol import Environ, parsed, read_regular
from ralph.loops.session.memory import file_name, folder_of, made

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Self

    from ralph.loops.session.state import SessionLoop
else:
    ModuleType = type(sys)

_KIND = "loop"
_PATIENCE = 5.0  # seconds; whoever changes a loop is about to be done


class Unreadable(Exception):  # noqa: N818  it says what happened
    """The file of a loop cannot be understood; the words say why."""


def load(session: str, environ: Environ) -> "SessionLoop | None":
    """The loop of a session, None if there is none. Unreadable, OSError."""
    return _loaded(os.path.join(folder_of(environ), file_name(session, _KIND)), session)


def loop_in(path: str) -> "SessionLoop":
    """The loop that is kept in a file. Unreadable, also where there is none."""
    loop = _loaded(path)
    if loop is None:
        raise Unreadable(f"{path} is not there")
    return loop


def every(environ: Environ) -> "Iterator[SessionLoop | Unreadable]":
    """All loops there are, the latest first, and words about what cannot be read. OSError."""
    folder = folder_of(environ)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    found: list[SessionLoop] = []
    for name in names:
        try:
            loop = _loaded(os.path.join(folder, name)) if name.endswith(f".{_KIND}") else None
        except Unreadable as error:
            yield error
        else:
            found += [loop] if loop is not None else []
    yield from sorted(found, key=lambda loop: loop.started, reverse=True)


def _loaded(path: str, session: str = "") -> "SessionLoop | None":
    try:
        raw = read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    _import_values()
    from ralph.loops.session.state import loop_of

    try:
        if not raw.strip():
            raise ValueError("it is empty")
        loop = loop_of(parsed(raw))
        if session and loop.session != session:
            raise ValueError("it is of another session")
    except ValueError as error:
        raise Unreadable(f"{path}: {error}") from error
    return loop


class Store:
    """The loop of one session, which nobody else changes while this is open (`with`). OSError
    where it cannot be, TimeoutError where somebody else does not let it go."""

    def __init__(self, session: str, environ: Environ) -> None:
        self._session = session
        self._folder = folder_of(environ)
        self._path = os.path.join(self._folder, file_name(session, _KIND))
        self._lock = -1

    def __enter__(self) -> "Self":
        made(self._folder)
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()

    def take(self) -> None:
        """Keep others from changing it, from here on."""
        from fcntl import LOCK_EX

        from ralph.files.append import lock

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._lock = os.open(f"{self._path}-lock", flags, 0o600)
        try:
            taken = lock(self._lock, LOCK_EX, _PATIENCE)
        except OSError:
            return  # some file systems have no locks
        if not taken:
            self.let_go()
            raise TimeoutError("another process is at it and does not end")

    def let_go(self) -> None:
        """Let others change it, for as long as something takes."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

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
            with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
                file.write(data)
            os.rename(draft, self._path)
        except OSError:
            try:
                os.unlink(draft)
            except OSError:
                pass  # it was never made, or stays
            raise


class _Later(ModuleType):
    """Stands in for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> object:
        return getattr(__import__(self.__name__), name)


def _import_values() -> None:
    """Import `dataclasses`, of which values are made, without `inspect`: that takes a sixth of a
    stop's time, for signatures that nobody asks for."""
    if "dataclasses" in sys.modules or "inspect" in sys.modules:
        return
    sys.modules["inspect"] = _Later("inspect")
    try:
        import dataclasses  # noqa: F401  it keeps the stand-in
    finally:
        if isinstance(sys.modules.get("inspect"), _Later):
            del sys.modules["inspect"]  # whoever else asks gets the real one
