"""The places where Ralph keeps things: `.ralph/` in the workspace, and the state directory."""

import errno
import os
import stat
from _thread import get_native_id  # a thread, for itself
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TextIO

from ralph.errors import ConfigError, StateError, failing
from ralph.files.digest import digest_of
from ralph.files.safe_open import create, open_regular
from ralph.files.state_home import state_home
from ralph.kernel.tasks.task import Backlog, Task

_READ_AGAIN = "the prompt is read again before each turn; use a file, or -f - to read stdin once"
_LARGEST = 64 << 20  # bytes of a prompt
_GITIGNORE = "*\n!settings.json\n!tasks.jsonl\n!progress.jsonl\n!learning.jsonl\n"


def ensure_ralph_dir(workspace: str) -> str:
    """`.ralph/`, made on first use with the .gitignore that hides all but what git keeps."""
    directory = os.path.join(workspace, ".ralph")
    ignore = os.path.join(directory, ".gitignore")
    try:
        try:
            os.mkdir(directory)  # and not the workspace, if that is gone
        except FileExistsError:  # several may make it at once
            if not os.path.isdir(directory):
                raise
        if not os.path.exists(ignore) or not os.path.getsize(ignore):
            write_atomically(ignore, _GITIGNORE)
        if not os.access(directory, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ConfigError(
            f"cannot write {directory}: {error.strerror}",
            "Free some space." if error.errno == errno.ENOSPC else "Try: chmod u+w .ralph",
        ) from error
    return directory


def ralph_dir_problem(workspace: str) -> str:
    """The reason why `.ralph/` cannot be written, and what to do about it; "" if it can be."""
    try:
        ensure_ralph_dir(workspace)
    except ConfigError as error:
        return error.words
    return ""


def writable_dir(workspace: str, fallback: str) -> str:
    """`.ralph/`, or the fallback where it cannot be written."""
    try:
        return ensure_ralph_dir(workspace)
    except ConfigError:
        return fallback


def shown_path(path: str, workspace: str) -> str:
    """A path as people in the workspace write it."""
    return path.removeprefix(os.path.join(workspace, ""))


def write_atomically(path: str, text: str, mode: int = 0o644) -> None:
    """Replace a file's content; on a full disk or Ctrl+C the old one stands untouched."""
    with replacing(path, mode) as file:
        file.write(text)


@contextmanager
def replacing(path: str, mode: int = 0o644) -> Iterator[TextIO]:
    """A file to write, that takes the place of another one when all is well; else that stands
    untouched. An existing file keeps its mode, since it may hold secrets, and a link stays a link.
    """
    path = os.path.realpath(path)
    if os.path.exists(path):
        mode = stat.S_IMODE(os.stat(path).st_mode)
    temporary = f"{path}.{get_native_id()}.tmp"  # beside it: a rename must not cross file systems
    try:
        descriptor = create(temporary, mode)  # whoever foresees its name may have put a link there
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, mode)
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def state_root(environ: Mapping[str, str]) -> str:
    """`$RALPH_STATE_DIR`, else `ralph` in the XDG state directory."""
    if root := state_home(environ):
        return root
    raise StateError(
        "there is no home directory to keep the journal in",
        "Choose a place for it: export RALPH_STATE_DIR=/some/where",
    )


def project_dir(root: str, workspace: str) -> str:
    """One directory a workspace: `basename-<8 hex of the real path>`."""
    real = os.path.realpath(workspace)
    which = digest_of([os.fsencode(real)], size=4)
    return os.path.join(root, f"{os.path.basename(real) or 'root'}-{which}")


def ensure_state_root(root: str) -> None:
    """Make the state directory, for this user only."""
    with writing_state(root):
        os.makedirs(root, mode=0o700, exist_ok=True)


def make_run_dir(project: str, run: str) -> str:
    """Make `runs/<run>` in the project's state directory, for this user only, and never for git:
    the state directory may lie in a workspace."""
    path = os.path.join(project, "runs", run)
    with writing_state(project):
        os.makedirs(path, mode=0o700)
        os.mkdir(os.path.join(path, "signals"), mode=0o700)
        ignore = os.path.join(project, ".gitignore")
        if not os.path.exists(ignore) or not os.path.getsize(ignore):
            with suppress(FileExistsError), os.fdopen(create(ignore, 0o644), "wb") as file:
                file.write(b"*\n")  # what is lost with the machine's power is made again
    return path


def link_run(run_dir: str, project: str) -> None:
    """Let a run be found from the workspace that it was started in, wherever it is kept."""
    runs = os.path.join(project, "runs")
    link = os.path.join(runs, os.path.basename(run_dir))
    with writing_state(project):
        os.makedirs(runs, mode=0o700, exist_ok=True)
        if not os.path.exists(link):
            os.symlink(run_dir, link)


def writing_state(directory: str) -> AbstractContextManager[None]:
    """Raise an OSError within as the error for a state directory that cannot be written."""
    remedy = "Free or unlock it, or choose another: export RALPH_STATE_DIR=/some/where"
    return failing(f"cannot write the state directory {directory}", remedy, StateError)


def lstat(path: str | bytes) -> os.stat_result | None:
    """`os.lstat`; None for what is not there or cannot be looked at."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def stamp_of(path: str) -> tuple[int, int] | None:
    """When a file was changed, and its size: equal if it is as it was. None if it is gone."""
    found = lstat(path)
    return (found.st_mtime_ns, found.st_size) if found else None


def is_inside(path: str, directory: str) -> bool:
    """True if a path lies in a directory, or is it."""
    inner, outer = os.path.realpath(path), os.path.realpath(directory)
    return os.path.commonpath((inner, outer)) == outer


def prompt_text(text: str) -> Callable[[], Backlog]:
    """`--prompt`: a backlog of one task that never changes."""
    backlog = _one_task(text, "the prompt")
    return lambda: backlog


class PromptFile:
    """`--prompt-file`: read anew before each turn (H §Loop Behavior)."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.path = os.path.abspath(path)  # a run that goes on may be somewhere else

    def __call__(self) -> Backlog:
        try:
            if stat.S_ISFIFO(os.stat(self._path).st_mode):
                return Backlog(problem=f"{self._path} is a pipe: {_READ_AGAIN}")
            with open_regular(self._path) as file:
                return _decoded(file.read(_LARGEST + 1), f"the prompt file {self._path}")
        except OSError as error:
            return Backlog(problem=f"cannot read the prompt file {self._path}: {error.strerror}")


def prompt_input(stream: TextIO | None) -> Callable[[], Backlog]:
    """`--prompt-file -`: standard input, read once; None where it is closed."""
    where = "the prompt on standard input"
    try:
        backlog = _decoded(stream.buffer.read() if stream is not None else b"", where)
    except OSError as error:
        backlog = Backlog(problem=f"cannot read {where}: {error.strerror}")
    return lambda: backlog


def _decoded(data: bytes, where: str) -> Backlog:
    if len(data) > _LARGEST:
        return Backlog(problem=f"{where} is larger than {_LARGEST >> 20} MB: no agent reads that")
    try:
        return _one_task(data.decode("utf-8-sig"), where)
    except UnicodeDecodeError as error:
        return Backlog(problem=f"{where} is not UTF-8 text (byte {error.start})")


def _one_task(text: str, where: str) -> Backlog:
    if not text.strip():
        return Backlog(problem=f"{where} is empty: write down what the agent should do")
    if "\0" in text:
        return Backlog(problem=f"{where} contains a NUL byte: it is not text")
    title = text.strip().splitlines()[0][:80]
    return Backlog((Task("prompt", title, text),))
