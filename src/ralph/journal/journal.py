"""The journal: one line a fact, appended in one write, chained by hashes (ADR 9)."""

import json
import os
import threading
from contextlib import AbstractContextManager, suppress

from ralph.errors import StateError, failing
from ralph.files.digest import digest_of
from ralph.files.safe_open import open_regular
from ralph.journal.codec import decode_fact, encode
from ralph.kernel.facts import Decided, Fact
from ralph.text.redact import redacted_json

JOURNAL = "journal.jsonl"  # in a run's directory
SEED = "ralph"  # what the first line is chained to
_SYNC_EVERY = 0.1  # seconds


class FileJournal:
    """Appends facts. Each record survives `kill -9`; the disk has it by the end of the run."""

    def __init__(self, path: str, last_hash: str = SEED) -> None:
        self.path = path
        self._hash = last_hash
        with _writing(path):
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = os.fstat(self._file).st_size
        self._sync = _Syncer(self._file)

    def record(self, fact: Fact) -> None:
        body = redacted_json(encode(fact))
        self._hash = chained(body, self._hash)
        data = memoryview(f'{body[:-1]},"hash":"{self._hash}"}}\n'.encode())
        self._size += len(data)
        with _writing(self.path):
            while data:
                data = data[os.write(self._file, data) :]
        if isinstance(fact, Decided):
            self._sync.ask()

    def intact(self) -> bool:
        """True if the file is the one that we write to, and nobody made it longer or shorter.

        Cheap enough for every turn. An edit that changes neither is found when it is read.
        """
        try:
            there, ours = os.stat(self.path), os.fstat(self._file)
        except OSError:
            return False
        return os.path.samestat(there, ours) and there.st_size == self._size

    def close(self) -> None:
        """Wait until the disk has everything."""
        self._sync.close()
        os.close(self._file)


class _Syncer:
    """One thread that calls fdatasync, so that the loop never waits for the disk.

    It does so at most ten times a second: turns of a millisecond need no sync each.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._asked = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="fdatasync", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the machine has none to give just now
                _sync(self._descriptor)
                return
            self._thread = thread
        self._asked.set()

    def close(self) -> None:
        if self._thread is not None:
            self._closing.set()
            self._asked.set()
            self._thread.join()
        _sync(self._descriptor)

    def _work(self) -> None:
        while not self._closing.is_set():
            self._asked.wait()
            self._asked.clear()
            _sync(self._descriptor)
            self._closing.wait(_SYNC_EVERY)


def _sync(descriptor: int) -> None:
    with suppress(OSError):  # a pipe cannot sync; a disk that is ill is named by the next write
        getattr(os, "fdatasync", os.fsync)(descriptor)


def read_journal(path: str, *, trim: bool = False) -> tuple[list[Fact], str]:
    """All facts, and the last hash. A torn last line is dropped, with `trim` from the file too, so
    that the next one begins where it should; an edited one is named."""
    reading = failing(f"cannot read the journal {path}", "", StateError)
    with reading, open_regular(path) as file:
        *lines, torn = file.read().decode("utf-8", "surrogateescape").split("\n")
    chain = HashChain(path)
    facts = [chain.take(line) for line in lines]
    if trim and torn:
        size = os.path.getsize(path)
        os.truncate(path, size - len(torn.encode("utf-8", "surrogateescape")))
    return facts, chain.hash


class HashChain:
    """Follows a journal line by line, each checked against the hash of the one before (ADR 9)."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = 0
        self.hash = SEED  # of the last line

    def take(self, line: str) -> Fact:
        """The fact in the next line, which comes without its newline. StateError names a line that
        was changed, or that tells no fact."""
        self._number += 1
        where = f"{self._path}:{self._number}"
        body, _, tail = line.rpartition(',"hash":"')
        self.hash = chained(f"{body}}}", self.hash)
        if tail != f'{self.hash}"}}':
            raise StateError(
                f"{where}: this line was changed after it was written",
                "What follows cannot be trusted. The lines themselves: ralph logs --raw",
            )
        try:
            return decode_fact(json.loads(f"{body}}}"))
        except (ValueError, RecursionError) as error:
            raise StateError(f"{where}: {error}", "Perhaps a newer ralph wrote it.") from error


def chained(body: str, last: str) -> str:
    """The hash of a line, given its body and the hash of the line before."""
    return digest_of([f"{last}{body}".encode("utf-8", "surrogateescape")], size=8)


def _writing(path: str) -> AbstractContextManager[None]:
    remedy = "Free some space or make it writable. Everything up to now is kept there."
    return failing(f"cannot write the journal {path}", remedy, StateError)
