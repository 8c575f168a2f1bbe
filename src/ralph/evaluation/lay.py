"""Lays the hidden files of a task over the current directory: `python -I -S lay.py FOLDER`.

The work is the agent's: a link in the way of a file would lead it elsewhere, so whatever is in the
way is removed. Standard library only; a check calls it.
"""

import os
import shutil
import sys


def lay(source: str, target: str) -> None:
    """Copy all that is below one directory to another, whatever stands there."""
    for name in sorted(os.listdir(source)):
        there, here = os.path.join(source, name), os.path.join(target, name)
        is_folder = os.path.isdir(there)
        if os.path.lexists(here) and not (is_folder and _is_folder(here)):
            if _is_folder(here):
                shutil.rmtree(here)
            else:
                os.unlink(here)
        if is_folder:
            os.makedirs(here, exist_ok=True)
            lay(there, here)
        else:
            shutil.copy2(there, here)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


if __name__ == "__main__":
    lay(sys.argv[1], os.getcwd())
