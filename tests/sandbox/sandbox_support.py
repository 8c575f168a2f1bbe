"""A project and a sandbox over it, for tests."""

import os
from pathlib import Path

import pytest

from kits.sandbox.stage import overlay_is_usable
from ralph.sandbox.interface import Change, ChangeKind, FileType, SandboxPolicy

needs_overlay = pytest.mark.skipif(
    not overlay_is_usable(), reason="this machine allows no namespaces"
)


def policy(memory: int = 0) -> SandboxPolicy:
    """As the command line makes it, in the test's own world."""
    return SandboxPolicy(dict(os.environ), os.environ["RALPH_STATE_DIR"], memory=memory)


def tree(directory: Path, **files: str) -> Path:
    """A directory with these files; `__` in a name is a slash."""
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def file(path: str, kind: ChangeKind) -> Change:
    return Change(path, kind, FileType.FILE)


def directory(path: str, kind: ChangeKind) -> Change:
    return Change(path, kind, FileType.DIRECTORY)
