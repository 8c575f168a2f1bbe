"""The place of a trial: a git repository of its own, with the start state of its task."""

import glob
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping

from ralph.errors import ConfigError, StateError
from ralph.evaluation.lay import lay
from ralph.evaluation.schema import SuiteTask
from ralph.evaluation.suite import Suite
from ralph.files.state_dir import write_atomically
from ralph.git.repository import RALPH, call, clean_environ

_OWN = ".ralph"  # whose settings would be the task's, and not the suite's
# Files that are the truth of most projects, and what those commands read that run them.
_TESTS = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec)/|(?:^|/)(?:conftest\.py|test_[^/]*|[^/]*_tests?\.[^/]+"
    r"|[^/]*[.-](?:test|spec)\.[^/]+)$"
)
_READ_BY = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile"),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun"), ("package.json",)),
    **dict.fromkeys(("pytest", "tox", "nox"), ("pytest.ini", "tox.ini", "noxfile.py")),
}


def make_checkout(suite: Suite, task: SuiteTask, path: str, environ: Mapping[str, str]) -> None:
    """Make the start state of a task in a new directory."""
    try:
        os.makedirs(path)
        if task.repo is not None:
            _clone(suite.beside(task.repo), task.ref, path, environ)
        else:
            _lay_start(suite, task, path)
            _git(path, environ, "init", "--quiet", "--template=", "--initial-branch=main")
    except OSError as error:
        message = f"cannot make the checkout {path}: {error.strerror}"
        raise StateError(
            message, "Free some space, or: export XDG_CACHE_HOME=/some/where"
        ) from error
    for key, text in (("user.name", "Ralph eval"), ("user.email", "ralph@localhost")):
        _git(path, environ, "config", key, text)
    _git(path, environ, "add", "--all")
    commit = ("commit", "--quiet", "--allow-empty", "--no-verify", "-m", "Begin")
    _git(path, environ, "-c", "commit.gpgSign=false", *commit)


def _lay_start(suite: Suite, task: SuiteTask, path: str) -> None:
    if task.dir is not None:
        shutil.copytree(
            suite.beside(task.dir),
            path,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(".git"),
        )
    _write_files(path, task.files)
    shutil.rmtree(os.path.join(path, _OWN), ignore_errors=True)


def _write_files(path: str, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        where = os.path.join(path, name)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        write_atomically(where, text, 0o755 if text.startswith("#!") else 0o644)


def _clone(repository: str, ref: str, path: str, environ: Mapping[str, str]) -> None:
    """The history of a commit, and nothing that came after it: that may be the solution."""
    commit = commit_of(repository, ref, environ)
    _git(path, environ, "init", "--quiet", "--template=", "--initial-branch=main")
    _git(path, environ, "fetch", "--quiet", "--no-tags", repository, commit)
    _git(path, environ, "reset", "--quiet", "--hard", commit)
    shutil.rmtree(os.path.join(path, _OWN), ignore_errors=True)


def commit_of(repository: str, ref: str, environ: Mapping[str, str]) -> str:
    """The commit that a task begins with. ConfigError if there is none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    done = call(words, repository, clean_environ(environ))
    if done.code != 0:
        raise ConfigError(f"{repository} has no commit {ref}", "Fix repo or ref in the suite.")
    return done.output.decode().strip()


def _git(path: str, environ: Mapping[str, str], *words: str) -> None:
    done = call(words, path, {**clean_environ(environ), **RALPH})
    if done.code != 0:
        raise StateError(f"git {words[0]} in {path}: {done.said or done.code}", "Look there.")


# ------------------------------------------------------------------ the check


def protected(suite: Suite, task: SuiteTask, path: str) -> tuple[str, ...]:
    """Patterns of what is put back before the check: by the task, else its tests and what the
    check names or reads."""
    if task.protect is not None:
        return task.protect
    return tuple(glob.escape(name) for name in sorted({*_stood_on(task.check, path)}))


def _stood_on(check: str, path: str) -> Iterator[str]:
    for word in _words(check):
        names = (word, f"{word.replace('.', '/')}.py", *_READ_BY.get(word, ()))
        yield from (name for name in names if _is_there(path, name))
    for place, folders, found in os.walk(path):
        folders[:] = [name for name in folders if name not in (".git", "node_modules", ".venv")]
        inner = (os.path.relpath(os.path.join(place, name), path) for name in found)
        yield from filter(_TESTS.search, inner)


def _is_there(path: str, name: str) -> bool:
    inside = name and not os.path.isabs(name) and os.path.normpath(name).split(os.sep)[0] != ".."
    return (
        bool(inside) and os.path.normpath(name) != "." and os.path.lexists(os.path.join(path, name))
    )


def _words(check: str) -> list[str]:
    lexer = shlex.shlex(check, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return [*lexer]
    except ValueError:
        return check.split()


def make_hidden(suite: Suite, task: SuiteTask, path: str) -> str:
    """The files that only the check sees, in a folder of their own; "" if there are none."""
    if task.hidden_dir is None and not task.hidden_files:
        return ""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path, mode=0o700)
    if task.hidden_dir is not None:
        lay(suite.beside(task.hidden_dir), path)
    _write_files(path, task.hidden_files)
    return path
