"""Blobs of files that grow, as a backlog's records do: each commit holds all of them.

Git would compress them anew for every commit. Here what was compressed once serves again, and the
object is the same: an id by the content, and a stream of which only the end is new.
"""

import os
import stat
from collections.abc import Iterable

from ralph.files.safe_open import regular
from ralph.files.state_dir import lstat
from ralph.git.repository import NOTHING, Entry, nul_split
from ralph.git.view import View

_LARGEST = 32 << 20  # of one, which is kept in memory
_CHANGING = ("text", "eol", "crlf", "ident", "filter", "working-tree-encoding")
_OWN_WAYS = r"^core\.(sharedrepository|fsync.*|createobject|(loose)?compression)$"
_SETTINGS = {"core.autocrlf=false", "core.filemode=true"}


class _Deflated:
    """A file as zlib has it, without the end of the stream."""

    def __init__(self) -> None:
        import zlib

        self.data, self._pieces = b"", bytearray()
        self._stream = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)

    def add(self, data: bytes) -> None:
        """Take in all of a file that begins with what was taken in before."""
        import zlib

        self._pieces += self._stream.compress(data[len(self.data) :])
        self._pieces += self._stream.flush(zlib.Z_SYNC_FLUSH)
        self.data = data

    def loose(self, header: bytes) -> bytes:
        """The object with this header: that is a block of its own, which is not compressed."""
        import zlib

        size = len(header)
        stored = b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + header
        check = zlib.adler32(self.data, zlib.adler32(header))
        return b"\x78\x01" + stored + self._pieces + b"\x03\0" + check.to_bytes(4, "big")


class GrowingFiles:
    """Writes what a commit holds of such files. Whatever is not plain is left to git."""

    def __init__(self, view: View, run_dir: str) -> None:
        self._view, self._run_dir = view, run_dir
        self._known: dict[str, _Deflated] = {}
        self._is_plain: dict[tuple[str, ...], bool] = {}  # as far as settings and attributes go

    def entries(self, paths: Iterable[str]) -> dict[str, Entry]:
        """What git would keep of these files as they are now."""
        names = tuple(paths)
        found = [lstat(self._view.place.path(name)) for name in names]
        small = all(each is None or each.st_size <= _LARGEST for each in found)
        if names and small and self._are_plain(names):
            try:
                return {name: self._entry(name) for name in names}
            except OSError:
                pass  # git says what is wrong
        return self._view.entries(names, self._run_dir)

    def _are_plain(self, names: tuple[str, ...]) -> bool:
        """True if git would keep the bytes as they are, and loose objects as it usually does."""
        if names not in self._is_plain:
            view = self._view
            words = ("check-attr", "-z", *_CHANGING, "--", *names)
            attributes = nul_split(view.ask(*words))[2::3]
            self._is_plain[names] = (
                _SETTINGS.issubset(view.place.settings)
                and {"unspecified", "unset"}.issuperset(attributes)
                and view.run("config", "--get-regexp", _OWN_WAYS).code == 1
            )
        return self._is_plain[names]

    def _entry(self, name: str) -> Entry:
        path = self._view.place.path(name)
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return NOTHING, self._view.place.zeros
        with os.fdopen(regular(file, path), "rb") as opened:
            mode = os.fstat(file).st_mode
            data = opened.read()
        return "100755" if mode & stat.S_IXUSR else "100644", self._written(name, data)

    def _written(self, name: str, data: bytes) -> str:
        """The id of a file's blob, which git has from now on."""
        import hashlib

        kind = hashlib.sha1 if len(self._view.place.zeros) == 40 else hashlib.sha256
        header = b"blob %d\0" % len(data)
        digest = kind(header)
        digest.update(data)
        identifier = digest.hexdigest()
        known = self._known.get(name)
        if known is None or not data.startswith(known.data):
            known = self._known[name] = _Deflated()
        known.add(data)
        folder = os.path.join(self._view.place.common, "objects", identifier[:2])
        path = os.path.join(folder, identifier[2:])
        if not os.path.lexists(path):
            os.makedirs(folder, exist_ok=True)
            temporary = os.path.join(folder, f"tmp_obj_{os.getpid()}")  # as git would tidy it up
            new = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o444)
            with os.fdopen(new, "wb") as opened:
                opened.write(known.loose(header))
            os.replace(temporary, path)
        return identifier
