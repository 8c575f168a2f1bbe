"""The remote repository that work is pushed to: its branches, and pushes that only go forward."""

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ralph.errors import ConfigError, ForgeError
from ralph.git.repository import GitResult, call, clean_environ, is_repository
from ralph.kernel.value import value

if TYPE_CHECKING:
    from ralph.kernel.ports import Committed

ORIGIN = "origin"
_BRANCHES = "refs/heads/"
_LOOK = "See what git says: git ls-remote origin"
# What git and ssh say where it is the way that fails, and not the repository.
_ON_THE_WAY = (
    *("could not resolve", "connection ", "timed out", "unable to access", "early eof"),
    *("the remote end hung up", "network is unreachable", "requested url returned error: 5"),
)
_OBJECTS = ("fatal:", "error:", "remote: error:", "! ")  # how git begins such a line
_IN_VAIN = "error: failed to push some refs"  # which says nothing of why
_USER = re.compile(r"(?<=//)[^/@]*@")  # of a URL, with a password or a token
_PATIENCE = 30.0  # seconds before it is tried again


@value
class Remote:
    """`origin`, at the address that it had when the run began."""

    workspace: str
    environ: Mapping[str, str]
    url: str

    @staticmethod
    def of(workspace: str, environ: Mapping[str, str]) -> "Remote":
        """ConfigError where there is none."""
        url = _url(workspace, environ)
        if not url and not is_repository(workspace):
            message = f"{workspace} is in no git repository, so there is nothing to push"
            raise ConfigError(message, "Work in a clone of one: git clone URL")
        if not url:
            message = f"{workspace} has no remote repository called {ORIGIN} to push to"
            raise ConfigError(message, "Add it: git remote add origin URL")
        return Remote(workspace, environ, url)

    def heads(self, *branches: str) -> dict[str, str]:
        """The commits of these branches there, by name, or of all."""
        self._refuse_detour()
        names = [f"{_BRANCHES}{branch}" for branch in branches]
        done = self._git("ls-remote", "--heads", ORIGIN, *names)
        if done.code != 0:
            raise trouble(f"git cannot look at {ORIGIN}: {last_line(done.said)}", done.said)
        lines = (line.split("\t") for line in os.fsdecode(done.output).splitlines())
        found = {name.removeprefix(_BRANCHES): commit for commit, name in lines}
        # A pattern matches at the end of a name: `main` finds `old/main`.
        return {name: found[name] for name in branches or found if name in found}

    def push(
        self, commit: str, branch: str, carry_out: "Callable[[str], Committed]"
    ) -> tuple[bool, str]:
        """Let a branch there be at a commit. `carry_out` runs the words of a git command with the
        user's hooks. Returns success, or why not: that there is somebody else's work."""
        there = self.heads(branch).get(branch, "")
        if there == commit:
            return True, f"{branch} was there"
        if there and not self.follows(there, commit):
            return False, (
                f"{branch} on {ORIGIN} holds commits that this work does not ({there[:12]}): look "
                f"at them, then merge them here, or delete it: git push {ORIGIN} --delete {branch}"
            )
        done = carry_out(f"push --quiet {ORIGIN} {commit}:{_BRANCHES}{branch}")
        if not done.ok:
            again = f"To see all: git push {ORIGIN} {commit[:12]}:{_BRANCHES}{branch}"
            raise trouble(f"git push: {last_line(done.said)}", done.said, again)
        return True, branch

    def fetch(self, branch: str, commit: str) -> None:
        """Have the commit of a branch here."""
        if self._git("cat-file", "-e", f"{commit}^{{commit}}").code == 0:
            return
        self._refuse_detour()
        done = self._git("fetch", "--quiet", "--no-tags", ORIGIN, f"{_BRANCHES}{branch}")
        if done.code != 0:
            raise trouble(f"git cannot fetch {branch}: {last_line(done.said)}", done.said)

    def follows(self, older: str, newer: str) -> bool:
        """True if the newer commit holds the older one, and both are here."""
        return self._git("merge-base", "--is-ancestor", older, newer).code == 0

    def _refuse_detour(self) -> None:
        """Raise a ForgeError if somebody, who may be an agent, has led `origin` elsewhere."""
        now = _url(self.workspace, self.environ)
        if now != self.url:
            here, first = _USER.sub("", now) or "nowhere", _USER.sub("", self.url)
            message = f"{ORIGIN} leads to {here} now, and led to {first} at first"
            raise ForgeError(message, "Put it back: git remote set-url origin URL")

    def _git(self, *words: str) -> GitResult:
        return _git(self.workspace, self.environ, *words)


def trouble(message: str, said: str, remedy: str = _LOOK) -> ForgeError:
    """The error of a git that has spoken with `origin`; what failed on the way may pass."""
    passes = any(words in said.lower() for words in _ON_THE_WAY)
    return ForgeError(message, remedy, retry_after=_PATIENCE if passes else None)


def last_line(said: str) -> str:
    """The line of git that says what is wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_IN_VAIN)] or lines
    fatal = [line for line in lines if line.startswith(_OBJECTS)]
    return (fatal or lines[-1:] or ["no reason given"])[0]


def _url(workspace: str, environ: Mapping[str, str]) -> str:
    said = _git(workspace, environ, "remote", "get-url", "--push", ORIGIN)
    return os.fsdecode(said.output).strip() if said.code == 0 else ""


def _git(workspace: str, environ: Mapping[str, str], *words: str) -> GitResult:
    return call(words, workspace, {**clean_environ(environ), "LC_ALL": "C"})
