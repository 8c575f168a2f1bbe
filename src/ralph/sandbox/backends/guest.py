"""A machine of its own, which a command-line tool reaches: its programs and its files. It lists
them, and what differs comes as an archive."""

import base64
import errno
import os
import re
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import IO

from ralph.errors import ConfigError
from ralph.files.state_dir import lstat
from ralph.kernel.value import value
from ralph.sandbox.changes.by_descriptor import NEW, FileTree, parts_of
from ralph.sandbox.changes.manifest import Listing, Stamp
from ralph.sandbox.interface import CommandResult, FileType

_PROGRAM = os.path.join(os.path.dirname(__file__), "guest.sh")
_WHY = {44: errno.ENOENT, 45: errno.ELOOP, 46: errno.EISDIR}
_NUMBER = re.compile(rb"[0-9]+")
_NOT_FOUND, _LATE = 127, 124
_KINDS = {b"f": FileType.FILE, b"d": FileType.DIRECTORY, b"l": FileType.LINK}
_FIELDS = 8
PATIENCE = 20.0  # seconds for a question
LONG = 1800.0  # for what may have to fetch an image first


@value
class SandboxTool:
    """A command-line tool that manages sandboxes."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    remove: tuple[str, ...] = ("rm",)

    def ask(
        self,
        *words: str,
        stdin: bytes = b"",
        patience: float = PATIENCE,
        into: IO[bytes] | None = None,
    ) -> CommandResult:
        """Run it to its end; 127 if it is not there, 124 if it does not answer."""
        try:
            done = subprocess.run(
                (*self.words, *words),
                env=dict(self.environ),
                input=stdin,
                stdout=subprocess.PIPE if into is None else into,
                stderr=subprocess.PIPE,
                check=False,
                timeout=patience,
            )
        except subprocess.TimeoutExpired:
            return CommandResult(_LATE, b"", b"it does not answer")
        except OSError as error:
            return CommandResult(_NOT_FOUND, b"", (error.strerror or str(error)).encode())
        return CommandResult(done.returncode, done.stdout or b"", done.stderr)

    def must(self, doing: str, *words: str, patience: float = PATIENCE) -> bytes:
        """The output of a run. ConfigError with its last words if it fails."""
        done = self.ask(*words, patience=patience)
        if done.code:
            typed = " ".join((*self.words, *words[:3]))
            raise ConfigError(f"{self.words[0]} cannot {doing}: {told(done)}", f"See: {typed} ...")
        return done.output

    def is_installed(self) -> bool:
        return shutil.which(self.words[0], path=self.environ.get("PATH")) is not None


def told(done: CommandResult) -> str:
    lines = (done.error.strip() or done.output.strip()).decode("utf-8", "replace").splitlines()
    return lines[-1].strip() if lines else f"exit code {done.code}"


class Guest:
    """One sandbox of a tool, and the project in it."""

    def __init__(self, tool: SandboxTool, name: str, project: str) -> None:
        self.tool = tool
        self.name = name
        self.project = project
        self._known: set[str] = set()  # programs that were found
        with open(_PROGRAM, encoding="utf-8") as file:
            self._program = file.read()

    def stop(self) -> None:
        self.tool.must("stop the sandbox", "stop", self.name, patience=LONG)

    def command(self, argv: Iterable[str], *flags: str) -> tuple[str, ...]:
        """The words to type to run a program in it."""
        return (*self.tool.words, "exec", *flags, "-w", self.project, self.name, *argv)

    def ask(
        self,
        verb: str,
        *arguments: str,
        root: bool = False,
        stdin: bytes | None = None,
        into: IO[bytes] | None = None,
    ) -> CommandResult:
        """Have our program in there answer."""
        flags = (*(("-i",) if stdin is not None else ()), *(("-u", "root") if root else ()))
        program = ("sh", "-c", self._program, "guest", verb, *arguments)
        words = self.command(program, *flags)[len(self.tool.words) :]
        return self.tool.ask(*words, stdin=stdin or b"", patience=LONG, into=into)

    def must(self, verb: str, *, stdin: bytes | None = None) -> bytes:
        """The same. ConfigError if it fails."""
        done = self.ask(verb, stdin=stdin)
        if done.code:
            raise ConfigError(
                f"the sandbox {self.name} does not work: {told(done)}",
                f"Remove it: {' '.join(self.tool.words)} rm {self.name}",
            )
        return done.output

    def find(self, program: str) -> None:
        """OSError if a program is not there."""
        if program not in self._known:
            if self.ask("has", encoded(os.fsencode(program))).code:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
            self._known.add(program)

    def running(self) -> frozenset[bytes] | None:
        """All that runs in there at this moment, but for the question; None if it cannot tell."""
        done = self.ask("running", root=True)
        own, *others = done.output.splitlines() or [b""]
        if done.code or not own:
            return None
        return frozenset(one.strip() for one in others if _NUMBER.findall(one)[:1] != [own])


def encoded(path: bytes) -> str:
    return base64.b64encode(path).decode("ascii")


class GuestFiles:
    """The project's files in a guest, as `FileTree` has them."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    def read(self, path: str) -> bytes:
        return self._asked("read", path)

    def write(self, path: str, data: bytes, mode: int | None = None) -> None:
        wanted = "" if mode is None else f"{mode:o}"
        self._asked("write", path, wanted, stdin=data)

    def list(self, path: str = "") -> tuple[str, ...]:
        names = self._asked("list", path, whole=True).split(b"\0")
        return tuple(sorted(os.fsdecode(name) for name in names if name))

    def delete(self, path: str) -> None:
        self._asked("delete", path)

    def _asked(
        self, verb: str, path: str, *more: str, stdin: bytes | None = None, whole: bool = False
    ) -> bytes:
        steps = parts_of(path) or ([b"."] if whole else [])
        if not steps:
            raise ValueError("the project itself is not a file")
        done = self._guest.ask(verb, encoded(b"/".join(steps)), *more, stdin=stdin)
        if number := _WHY.get(done.code):
            raise OSError(number, os.strerror(number), path)
        if done.code:
            raise OSError(errno.EIO, told(done), path)
        return done.output


def parse_listing(output: bytes) -> Listing:
    """Parse a listing by `find`; lines that are none of it are left out."""
    found = {}
    for line in output.split(b"\0"):
        fields = line.split(b" ", _FIELDS)
        if len(fields) == _FIELDS + 1 and fields[1].isdigit():
            kind, mode, user, group, *content, path = fields
            entry = _KINDS.get(kind, FileType.OTHER)
            kept = () if entry is FileType.DIRECTORY else tuple(content)
            found[path] = Stamp(entry, int(mode, 8), (user, group), kept)
    return found


def wanted(paths: list[bytes], now: Listing) -> list[bytes]:
    """Paths for `tar`; what is no file, directory or link is not fetched."""
    return [path for path in paths if path in now and now[path].entry is not FileType.OTHER]


def unpack(archive: IO[bytes], into: str) -> None:
    """Put files, directories and links of an archive into a directory, and nowhere else: it comes
    from the sandbox, and may hold anything. Modes come later. OSError for one that is torn."""
    tree = FileTree(into)
    try:
        with tarfile.open(fileobj=archive, mode="r|") as members:
            for member in members:
                if not parts_of(member.name):
                    continue
                with tree.above(member.name, make=True) as (above, name):
                    if member.isdir():
                        with suppress(FileExistsError):  # something in it came first
                            os.mkdir(name, 0o700, dir_fd=above)
                    elif member.issym():
                        os.symlink(os.fsencode(member.linkname), name, dir_fd=above)
                    elif member.isreg() and (data := members.extractfile(member)) is not None:
                        with os.fdopen(os.open(name, NEW, 0o600, dir_fd=above), "wb") as file:
                            shutil.copyfileobj(data, file)
                        times = (member.mtime, member.mtime)
                        os.utime(name, times, dir_fd=above, follow_symlinks=False)
    except tarfile.TarError as error:
        raise OSError(errno.EIO, f"the archive is torn: {error}") from error


def like_the_project(
    paths: Iterable[bytes], project: str, fetched: str, before: Listing, now: Listing
) -> None:
    """Give what was fetched the owner that it has here, and the mode unless that was changed."""
    for path in sorted(paths, reverse=True):  # the inner before the outer, which may be shut then
        there, here = (lstat(os.path.join(os.fsencode(top), path)) for top in (fetched, project))
        if there is None:
            continue
        whole = os.path.join(os.fsencode(fetched), path)
        old, new = before.get(path), now[path]
        owner = here or os.stat(project)
        if os.geteuid() == 0:
            os.chown(whole, owner.st_uid, owner.st_gid, follow_symlinks=False)
        same = old is not None and (old.entry, old.mode) == (new.entry, new.mode)
        mode = stat.S_IMODE(here.st_mode) if here is not None and same else new.mode
        if new.entry is not FileType.LINK:
            os.chmod(whole, mode)
