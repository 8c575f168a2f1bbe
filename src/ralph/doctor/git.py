"""Git, as Ralph needs it: for commits, for progress, and to know whose hooks will run."""

import os
import shlex
from contextlib import suppress

from ralph.doctor.checks import Check, ok, warning
from ralph.doctor.machine import PATIENCE, Machine, ProgramAnswer, version_numbers
from ralph.errors import ConfigError
from ralph.forge.commands import runner
from ralph.forge.found import forge_of, origin_of

_OLDEST = (2, 31)  # knows `rev-parse --path-format`


def git_program(machine: Machine) -> Check:
    """A git that is here, and new enough."""
    path = machine.which("git")
    if path is None:
        return warning(
            "git",
            "not on PATH: no commits, and no way to see a stalled run",
            "Install it, for example: sudo apt-get install git",
        )
    answer = machine.ask(path, "--version")
    found = f"{answer.version or 'of an unknown version'} at {path}"
    if answer.trouble:
        return warning("git", f"{path} {answer.trouble}", f"See what is wrong: {path} --version")
    if answer.version and version_numbers(answer.version) < _OLDEST:
        text = f"{found}: it cannot tell where a worktree's hooks are"
        return warning("git", text, "Install git 2.31 or newer.")
    return ok("git", found)


def git_identity(machine: Machine) -> Check | None:
    """The author of commits; git itself says, so that every place it looks at counts."""
    # Without this setting git makes an identity up from the host's name, or refuses.
    answer = _git(machine, "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT")
    if answer is None:
        return None
    if not answer.trouble:
        return ok("identity", answer.said.rpartition(">")[0] + ">")
    if "ident" not in answer.trouble:  # a broken configuration, say
        return warning("identity", f"git: {answer.trouble}", "Try: git var GIT_AUTHOR_IDENT")
    return warning(
        "identity",
        "user.name and user.email are not both set: git may refuse to commit",
        'git config --global user.name "Your Name" && '
        "git config --global user.email you@example.com",
    )


def git_repository(machine: Machine) -> Check | None:
    """A repository here that git is willing to work in."""
    answer = _git(machine, "rev-parse", "--show-toplevel")
    if answer is None:
        return None
    if not answer.trouble:
        return ok("repository", answer.said.removesuffix("\n"))
    if "dubious ownership" in answer.trouble:
        trust = f"git config --global --add safe.directory {shlex.quote(machine.workspace)}"
        return warning("repository", "belongs to somebody else, so git refuses it", trust)
    if "not a git repository" not in answer.trouble:
        return warning("repository", f"git: {answer.trouble}", "Try: git status")
    lacks = "commits and the detection of stalled runs need one"
    return warning("repository", f"{machine.workspace} is in none: {lacks}", "git init")


def git_forge(machine: Machine) -> Check | None:
    """The forge that pull requests would go to, and where its token is from."""
    answer = _git(machine, "remote", "get-url", "origin")
    if answer is None or answer.trouble or not origin_of(answer.said).host:
        return None
    run = runner(machine.workspace, machine.environ, PATIENCE)
    try:
        found = forge_of(machine.environ, machine.workspace, run=run)
    except ConfigError as error:
        return ok("forge", f"{error.message}; --pr needs it. {error.remedy}")
    where = f"{found.repository} at {found.name}"
    return ok("forge", f"{where}, with the token from {found.service.source}")


def git_hooks(machine: Machine) -> Check | None:
    """The hooks that git will run when Ralph or the agent commits."""
    answer = _git(machine, "rev-parse", "--path-format=absolute", "--git-path", "hooks")
    if answer is None or answer.trouble:
        return None
    directory = answer.said.removesuffix("\n")
    names = []
    with suppress(OSError):
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            if os.path.isfile(path) and os.access(path, os.X_OK) and not name.endswith(".sample"):
                names.append(name)
    if not names:
        return ok("git hooks", "none is active")
    return ok("git hooks", f"{', '.join(names)} in {directory}; they run at commits too")


def _git(machine: Machine, *arguments: str) -> ProgramAnswer | None:
    path = machine.which("git")
    if path is None:
        return None
    env = {**machine.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    return machine.ask(path, *arguments, env=env)


GIT = (git_program, git_identity, git_repository, git_forge)
