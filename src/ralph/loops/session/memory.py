"""The numbers that hooks remember of a session: a small file each in the state directory.

A session's id only goes into a digest, so that no id leads out of the folder, and no session can
touch what another one left.
"""

import os
from _collections_abc import Callable, Iterator  # `os` has it; `collections` is slow

from ralph.files.state_home import state_home
from ralph.hosts.protocol import Environ

ALERTED = "alerted"  # the highest threshold of the context window that was told
HELD = "held"  # how often in a row a stop was held
_KINDS = (ALERTED, HELD)
_DIGEST = 32  # characters
_MANY = 200  # files; fewer are in nobody's way
_OLD = 30 * 86_400  # seconds: no session that lives is silent for so long


class Busy(Exception):  # noqa: N818  it says what happened
    """Another hook of the same session is at this very number."""


def folder_of(environ: Environ) -> str:
    """The folder of all sessions; OSError where there can be none. A relative state directory is
    the project's, wherever the agent went since."""
    chosen, project = environ.get("RALPH_STATE_DIR", ""), environ.get("CLAUDE_PROJECT_DIR", "")
    if chosen and os.path.isabs(project):
        return os.path.join(project, chosen, "sessions")
    if root := state_home(environ):
        return os.path.join(root, "sessions")
    raise OSError("there is no state directory: set RALPH_STATE_DIR or HOME")


def replaced(session: str, kind: str, new: Callable[[int], int], environ: Environ) -> int:
    """Put another number in a number's place; returns the one before. Busy, OSError."""
    descriptor = _opened(session, kind, environ)
    try:
        try:
            number = int(os.pread(descriptor, 8, 0))
        except ValueError:
            number = 0  # nonsense is nothing
        os.pwrite(descriptor, b"%-7d\n" % new(number), 0)
        return number
    finally:
        os.close(descriptor)


def forget(session: str, environ: Environ, kinds: tuple[str, ...] = _KINDS) -> None:
    """Forget this session's own numbers, wherever they are. OSError where they stay."""
    for folder in _folders(environ):
        for kind in kinds:
            try:
                os.unlink(os.path.join(folder, file_name(session, kind)))
            except (FileNotFoundError, NotADirectoryError):
                pass


def sweep(environ: Environ, now: float) -> None:
    """Forget sessions that nobody has heard of for a month, where there are many. OSError."""
    endings = tuple(f".{kind}" for kind in _KINDS)
    with os.scandir(folder_of(environ)) as found:
        numbers = [entry for entry in found if entry.name[_DIGEST:] in endings]
    for entry in numbers if len(numbers) > _MANY else ():
        try:
            if now - entry.stat(follow_symlinks=False).st_mtime > _OLD:
                os.unlink(entry.path)
        except FileNotFoundError:
            pass  # another session begins beside us


def file_name(session: str, kind: str) -> str:
    """The name of a session's file: no id leads out of the folder."""
    from _blake2 import blake2b  # not from hashlib, which loads OpenSSL

    digest = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=_DIGEST // 2)
    return f"{digest.hexdigest()}.{kind}"


def _opened(session: str, kind: str, environ: Environ) -> int:
    """The file of a number, which nobody else has now. Whoever has it is about to answer: there
    is nothing to wait for."""
    import fcntl

    failure = OSError("there is no place for it")
    for folder in _folders(environ):
        try:
            made(folder)
            if folder == _temporary(environ):
                _refuse_shared(folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(os.path.join(folder, file_name(session, kind)), flags, 0o600)
        except OSError as error:
            failure = error
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise Busy from error
        except OSError:
            pass  # some file systems have no locks: then two may tell the same
        return descriptor
    raise failure


def _folders(environ: Environ) -> Iterator[str]:
    """The places of numbers: in a sandbox the state directory may be hidden or read only."""
    try:
        yield folder_of(environ)
    except OSError:
        pass  # there is none
    yield _temporary(environ)


def _temporary(environ: Environ) -> str:
    place = environ.get("TMPDIR", "")
    # In it the folder is ours alone, or it is not used.
    return os.path.join(place if os.path.isabs(place) else "/tmp", f"ralph-{os.getuid()}")  # noqa: S108


def made(folder: str) -> None:
    """Make a folder for sessions where it is missing. OSError."""
    if os.path.isdir(folder):
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    # Hidden from git: the state directory may lie in a workspace.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.path.join(folder, ".gitignore"), flags, 0o600)
    try:
        os.write(descriptor, b"*\n")
    finally:
        os.close(descriptor)


def _refuse_shared(folder: str) -> None:
    """Raise PermissionError where others can write too."""
    import stat

    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(1, "it is not a folder for us alone", folder)
