"""Adds lines to `.gitignore` and to a clone's own list of ignored files."""

import os
from collections.abc import Mapping

from ralph.files.safe_open import open_regular
from ralph.git.digest import git_output, git_path

NAME = ".gitignore"


def is_ignored(project: str, name: str, environ: Mapping[str, str]) -> bool:
    """True if a line names it, or git ignores it for any other reason."""
    lines = _content(project).decode("utf-8", "replace").splitlines()
    if {line.strip() for line in lines} & {name, f"/{name}"}:
        return True
    asked = ("check-ignore", "--quiet", "--no-index", "--", name)
    return git_output(project, environ, *asked) is not None


def ignore(project: str, name: str) -> None:
    """Add a line for it. OSError where that is not possible."""
    had = _content(project)
    newline = b"" if not had or had.endswith(b"\n") else b"\n"
    with open(os.path.join(project, NAME), "ab") as file:
        file.write(newline + name.encode() + b"\n")


def ignore_here(project: str, name: str, environ: Mapping[str, str]) -> None:
    """Let git ignore it in this clone, without a change to commit; do nothing where that fails."""
    path = git_path(project, environ, "info/exclude")
    if path is None:
        return
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "ab") as file:
            file.write(b"\n" * (file.tell() > 0) + name.encode() + b"\n")
    except OSError:
        return


def _content(project: str) -> bytes:
    try:
        with open_regular(os.path.join(project, NAME)) as file:
            return file.read()
    except FileNotFoundError:
        return b""
