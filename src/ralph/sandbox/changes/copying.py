"""Copies of entries between trees: at once and whole, holes and all."""

import errno
import os
import stat
from contextlib import suppress

from ralph.sandbox.changes.by_descriptor import NEW, Reach

_SMALL = 128 * 1024  # bytes; one read is quicker than to look for holes
_CHUNK = 16 * 1024 * 1024
_NOT_THERE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM)
At = tuple[int, bytes]  # a directory that is open, and a name in it


def put(source: Reach, path: bytes, info: os.stat_result, to: At, temporary: bytes) -> None:
    """Make what stands in the source; a file or link appears at once and whole. A directory is
    ours alone until `Reach.close_directory`."""
    directory, name = to
    if stat.S_ISDIR(info.st_mode):
        try:
            os.mkdir(name, 0o700, dir_fd=directory)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                raise
        return
    try:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)  # of a commit that was cut off
        _make(source, path, info, (directory, temporary))
        if temporary != name:
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        if temporary != name:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
        raise


def _make(source: Reach, path: bytes, info: os.stat_result, to: At) -> None:
    directory, name = to
    owner = info.st_uid, info.st_gid
    if stat.S_ISLNK(info.st_mode):
        os.symlink(source.link(path), name, dir_fd=directory)
        if os.geteuid() == 0:  # whose sandboxes may change owners
            os.chown(name, *owner, dir_fd=directory, follow_symlinks=False)
        return
    reading = source.file(path)
    try:
        writing = os.open(name, NEW, 0o600, dir_fd=directory)
        try:
            copy(reading, writing, info.st_size)
            if os.geteuid() == 0:
                os.fchown(writing, *owner)
            os.fchmod(writing, source.mode(path, info))
            os.utime(writing, ns=(info.st_atime_ns, info.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def copy(reading: int, writing: int, size: int) -> None:
    """Copy the content of a file; a hole in it stays one."""
    if size <= _SMALL:
        _write(writing, os.read(reading, _SMALL + 1))
        return
    at = 0
    while at < size:
        end = size
        try:
            at = os.lseek(reading, at, os.SEEK_DATA)
            end = min(os.lseek(reading, at, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break  # a hole up to the end
        while at < end:
            length = min(_CHUNK, end - at)
            try:
                done = os.copy_file_range(reading, writing, length, at, at)
            except OSError as error:
                if error.errno not in _NOT_THERE:
                    raise
                done = _write(writing, os.pread(reading, min(length, 1024 * 1024), at), at)
            at += done or end - at  # it may be shorter by now
    os.ftruncate(writing, size)


def _write(writing: int, data: bytes, at: int = 0) -> int:
    left = memoryview(data)
    while left:
        done = os.pwrite(writing, left, at)
        left, at = left[done:], at + done
    return len(data)
