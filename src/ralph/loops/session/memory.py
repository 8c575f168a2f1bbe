"""What hooks remember of a session: a small number a file, in `sessions/` of the state directory.

A session's id only goes into a digest, so that no id leads out of the folder, and no session can
touch what another one left.
"""

import os

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALERTED = "alerted"  # the highest threshold of the context window that was told
HELD = "held"  # how often in a row a stop was held
_KINDS = (ALERTED, HELD)
_DIGEST = 32  # characters
_MANY = 200  # files; fewer are in nobody's way
_OLD = 30 * 86_400  # seconds: no session that lives is silent for so long


class Busy(Exception):  # noqa: N818  it says what happened
    """Another hook of the same session is at this very number."""


def state_root(environ: "Mapping[str, str]") -> str:
    """The state directory, by the same rules as everywhere (ADR 9); empty if there is none."""
    chosen = environ.get("RALPH_STATE_DIR")
    if chosen:
        return os.path.abspath(chosen)
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(environ.get("HOME") or _home(), ".local", "state")
    return os.path.join(base, "ralph") if os.path.isabs(base) else ""


def _home() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def raise_to(session: str, kind: str, number: int, environ: "Mapping[str, str]") -> bool:
    """Remember a number that is higher than what is remembered; whether it is. Busy, OSError."""
    descriptor = _opened(session, kind, environ)
    try:
        higher = number > _number(descriptor)
        if higher:
            os.pwrite(descriptor, b"%-7d\n" % number, 0)
        return higher
    finally:
        os.close(descriptor)


def count_up(session: str, kind: str, environ: "Mapping[str, str]") -> int:
    """Add one, and what it is now. Busy, OSError."""
    descriptor = _opened(session, kind, environ)
    try:
        number = _number(descriptor) + 1
        os.pwrite(descriptor, b"%-7d\n" % number, 0)
        return number
    finally:
        os.close(descriptor)


def forget(session: str, environ: "Mapping[str, str]", kinds: tuple[str, ...] = _KINDS) -> None:
    """Forget this session's own numbers, wherever they are. OSError where they stay."""
    for folder in _folders(environ):
        for kind in kinds:
            try:
                os.unlink(os.path.join(folder, file_name(session, kind)))
            except (FileNotFoundError, NotADirectoryError):
                pass


def sweep(environ: "Mapping[str, str]", now: float) -> None:
    """Forget sessions that nobody has heard of for a month, where there are many. OSError."""
    folder = _usual(environ)
    with os.scandir(folder) as found:
        numbers = [entry for entry in found if _is_number(entry.name)]
    for entry in numbers if len(numbers) > _MANY else ():
        try:
            if now - entry.stat(follow_symlinks=False).st_mtime > _OLD:
                os.unlink(entry.path)
        except FileNotFoundError:
            pass  # another session begins beside us


def _is_number(name: str) -> bool:
    digest, _, kind = name.partition(".")
    return kind in _KINDS and len(digest) == _DIGEST


def file_name(session: str, kind: str) -> str:
    """The name of a session's file: no id leads out of the folder."""
    from _blake2 import blake2b  # not from hashlib, which loads OpenSSL

    digest = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=_DIGEST // 2)
    return f"{digest.hexdigest()}.{kind}"


def _opened(session: str, kind: str, environ: "Mapping[str, str]") -> int:
    """The file of a number, which nobody else has now. Whoever has it is about to answer: there
    is nothing to wait for."""
    import fcntl

    failure = OSError("there is no place for it")
    for folder in _folders(environ):
        try:
            _make(folder, own=folder != _usual(environ))
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


def _folders(environ: "Mapping[str, str]") -> "Iterator[str]":
    """Where numbers may be: in a sandbox the state directory may be hidden or read only."""
    if usual := _usual(environ):
        yield usual
    temporary = environ.get("TMPDIR", "")
    if not os.path.isabs(temporary):
        temporary = "/tmp"  # noqa: S108  the folder in it is ours alone, or it is not used
    yield os.path.join(temporary, f"ralph-{os.getuid()}")


def _usual(environ: "Mapping[str, str]") -> str:
    root = state_root(environ)
    return os.path.join(root, "sessions") if root else ""


def made(folder: str) -> None:
    """Make a folder for sessions where it is missing. OSError."""
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _hide(folder)


def _make(folder: str, *, own: bool) -> None:
    """Make a folder where it is missing; `own`: where others write too, it must be ours alone."""
    made(folder)
    if own:
        import stat

        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(1, "it is not a folder for us alone", folder)


def _hide(folder: str) -> None:
    """From git: the state directory may lie in a workspace."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.path.join(folder, ".gitignore"), flags, 0o600)
    try:
        os.write(descriptor, b"*\n")
    finally:
        os.close(descriptor)


def _number(descriptor: int) -> int:
    """What is remembered; nonsense is nothing."""
    try:
        return int(os.pread(descriptor, 8, 0))
    except ValueError:
        return 0
