"""`.gitignore`: one line more, once."""

import os
from collections.abc import Mapping

from ralph.adapters.git import git_output
from ralph.adapters.safe_open import open_regular

NAME = ".gitignore"


def is_ignored(project: str, name: str, environ: Mapping[str, str]) -> bool:
    """Whether a line names it, or git leaves it alone for whatever other reason."""
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


def _content(project: str) -> bytes:
    try:
        with open_regular(os.path.join(project, NAME)) as file:
            return file.read()
    except FileNotFoundError:
        return b""
