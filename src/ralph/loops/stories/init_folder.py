"""Makes the folder of stories, for `ralph prd init` (R §10). Only the standard library stands
behind it: the plugin's script does the same in a clone where no package is installed."""

import errno
import json
import os
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ralph.errors import ConfigError
from ralph.git.branch import current_branch, is_branch, is_branch_name, planned_branch
from ralph.git.ignore import NAME as GITIGNORE
from ralph.git.ignore import ignore, is_ignored
from ralph.git.uncommitted import uncommitted
from ralph.git.uncommitted_text import MARKER
from ralph.loops.stories.file import PRD, TASKS, write_synced
from ralph.loops.stories.folder import RALPH_DIR, fresh_files
from ralph.runner.arguments import proper, shown
from ralph.text.words import listed

HELP = """\
Create ralph/ with its templates: prd.md, tasks.json, progress.txt, prompt.md.

Nothing that is there is overwritten. .ralph-active, which is there while a run goes on, is
added to .gitignore.

Examples:
  ralph prd init                     ralph/ in the current directory
  ralph prd init --name login        on a new branch ralph/login, if all is committed
  ralph prd init -d ../shop --json

A file that is there is kept. Exit codes: 0, or 2 when nothing was made.
"""
NAME_HELP = "The feature: ralph/NAME is made and checked out, if nothing is uncommitted."
# What file systems without links say.
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK)
_NEXT = f"""
Next:
  1. Say what is wanted: write {RALPH_DIR}/{PRD} and the stories in {RALPH_DIR}/{TASKS},
     or let Claude Code ask you about it: /ralph:ralph-plan
  2. See that the stories are right:  ralph prd check
  3. Commit them:                     git add {RALPH_DIR} {GITIGNORE} && git commit -m "Plan"
  4. Let it work:                     ralph prd run

There is one run per directory. For features in parallel give each a worktree of
its own: git worktree add ../NAME -b ralph/NAME
"""


def initialized(
    project: str, environ: Mapping[str, str], name: str | None = None, *, in_json: bool = False
) -> str:
    """Make what is missing in a project, and what is to be said about it. ConfigError, and then
    everything is as it was."""
    _refuse_hopeless(project)
    if name is not None and not name.strip():
        raise ConfigError("--name is blank", "Name the feature: ralph prd init --name login")
    branch = "" if name is None else f"ralph/{proper(name, '--name')}"
    dirty = uncommitted(project, environ) if branch else None
    done = _made(project, branch, environ)
    if done["branchName"] and is_branch_name(branch, project, environ):
        done["checkedOut"], done["branch"] = _checked_out(branch, project, environ, dirty)
    return json.dumps(done) if in_json else "\n".join(_told(done, name))


def _refuse_hopeless(project: str) -> None:
    """Say what cannot work before anything is made."""
    folder = os.path.join(project, RALPH_DIR)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise ConfigError(f"{folder} is not a folder", f"Move it away: mv {RALPH_DIR} {RALPH_DIR}~")
    for path in (folder if os.path.isdir(folder) else project, project):
        if not os.access(path, os.W_OK | os.X_OK):
            raise ConfigError(f"{path} cannot be written", f"Try: chmod u+w {path}")
    ignore_file = os.path.join(project, GITIGNORE)
    if os.path.lexists(ignore_file) and not os.path.isfile(ignore_file):
        raise ConfigError(f"{ignore_file} is not a file", "Move it away.")


def _made(project: str, branch: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Make what is missing, all or nothing."""
    folder = os.path.join(project, RALPH_DIR)
    was_there = os.path.isdir(folder)
    made: list[str] = []
    files = fresh_files(project, time.strftime("%Y-%m-%d"), branch)
    try:
        os.makedirs(folder, exist_ok=True)
        made.extend(n for n, text in files.items() if _added(os.path.join(folder, n), text))
        has_line = is_ignored(project, MARKER, environ)
        if not has_line:
            ignore(project, MARKER)
    except BaseException as error:
        for path in (os.path.join(folder, name) for name in made):
            with suppress(OSError):  # the trouble that led here is the one to tell
                os.unlink(path)
        if not was_there:
            with suppress(OSError):
                os.rmdir(folder)
        if not isinstance(error, OSError):
            raise
        remedy = "Free some space." if error.errno == errno.ENOSPC else f"Try: ls -la {project}"
        where = error.filename or folder
        raise ConfigError(f"cannot write {where}: {error.strerror}", remedy) from error
    return {
        "folder": folder,
        "made": made,
        "kept": [name for name in files if name not in made],
        "gitignore": "there" if has_line else "added",
        "branchName": branch if branch and TASKS in made else None,
        "checkedOut": False,
    }


def _checked_out(
    branch: str, project: str, environ: Mapping[str, str], dirty: list[str] | None
) -> tuple[bool, str]:
    """Check the branch out, as a new one where nothing is uncommitted: whether it is, and what is
    to be said about it."""
    switch = f"git switch -c {shlex.quote(branch)}"
    if dirty is None:
        return False, f"There is no git repository here for the branch {branch}. Try: git init"
    if current_branch(project, environ) == branch:
        return True, f"The branch {branch} is checked out"
    if is_branch(branch, project, environ):
        go = f"git switch {shlex.quote(branch)}"
        return False, f"There is a branch {branch} already. Work on it: {go}"
    if dirty:
        words = f"Not on {branch} yet, for this is not committed: {listed(dirty, 3)}"
        return False, f"{words}. Take it along: {switch}"
    try:
        planned = planned_branch(branch, project, environ)
        planned.make(project, environ)
    except ConfigError as error:
        return False, f"Not on {branch} yet: {error.message}. Later: {switch}"
    return True, f"Made the branch {branch} and checked it out; before: {planned.before}"


def _added(path: str, content: bytes) -> bool:
    """Write a file with all its content, or not at all; False if there is one already."""
    if os.path.lexists(path):
        return False
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        write_synced(temporary, content, "xb")
        try:
            os.link(temporary, path)  # a rename would overwrite what somebody else just made
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.rename(temporary, path)
        return True
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def _told(done: Mapping[str, Any], name: str | None) -> list[str]:
    lines = []
    if done["made"]:
        lines.append(f"Made {_listed(done['made'])}")
    if done["kept"]:
        lines.append(f"Kept as they were: {_listed(done['kept'])}")
    if done["gitignore"] == "added":
        lines.append(f"Added {MARKER} to {GITIGNORE}")
    if name is not None and TASKS in done["kept"]:
        lines.append(f"--name changed nothing: branchName stands in {RALPH_DIR}/{TASKS}")
    elif "branch" in done:
        lines.append(shown(done["branch"]))
    elif name is not None:
        lines.append(shown(f"Note that git has no branches of the name {done['branchName']!r}"))
    return [*lines, _NEXT.rstrip()]


def _listed(names: list[str]) -> str:
    return ", ".join(f"{RALPH_DIR}/{name}" for name in names)
