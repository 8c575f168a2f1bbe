"""Finds programs. `shutil` does too, but brings four libraries for archives along, which costs
every start of a run more than to find its agent."""

import os


def which(program: str, path: str | None) -> str | None:
    """The file that is run for a program by this search path; without one, by the usual one."""
    if os.path.dirname(program):
        return program if _is_program(program) else None
    path = os.environ.get("PATH", os.defpath) if path is None else path
    files = (os.path.join(folder, program) for folder in (path.split(os.pathsep) if path else ()))
    return next(filter(_is_program, files), None)


def _is_program(file: str) -> bool:
    return os.access(file, os.X_OK) and not os.path.isdir(file)
