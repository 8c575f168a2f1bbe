"""Finds the program that runs a validate script, by its extension (B §Validation Function)."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from ralph.git.digest import git_output

_MOMENT = 2.0  # seconds for a program to say its version
_OWN = os.path.join("node_modules", ".bin")  # the project's programs
_NODE = ("node", "--experimental-strip-types", "--no-warnings")
_FIRST_WITH_TYPES = (22, 6)
_RUNNERS = {  # the first that is installed
    ".py": (("python3",), ("python",)),
    ".ts": (("tsx",), ("ts-node",), ("bun", "run"), ("deno", "run", "--allow-all"), _NODE),
    ".js": (("node",), ("bun", "run")),
    ".mjs": (("node",), ("bun", "run")),
    ".sh": (("sh",),),
}


class Runners:
    """Programs that can run scripts in a workspace; the project's own come before the machine's.

    Where checks run in a `fresh` worktree, only those programs of the project count that git keeps.
    """

    def __init__(self, env: Mapping[str, str], workspace: str, *, fresh: bool = False) -> None:
        self._env, self._workspace, self._fresh = env, workspace, fresh
        self._with_types: dict[tuple[str, int], bool] = {}  # by the program and its time

    def of(self, script: str) -> tuple[str, ...] | None:
        """The words before the script; () for one that runs by itself, None where nothing runs
        it."""
        wanted = _RUNNERS.get(_extension(script))
        if wanted is None:
            return ()
        return next((found for words in wanted if (found := self._found(words))), None)

    def problem(self, script: str) -> str:
        """The reason why nothing here can run the script, and what would; "" if something can."""
        if self.of(script) is not None:
            return ""
        names = [words[0] for words in _RUNNERS[_extension(script)]]
        if names[-1] == "node":
            names[-1] = "node {}.{} or later".format(*_FIRST_WITH_TYPES)
        where = " in a new worktree (loop.setup can install it)" if self._fresh else ""
        return f"nothing to run {script} with is installed{where}: {', '.join(names)}"

    def _found(self, words: tuple[str, ...]) -> tuple[str, ...]:
        own = shutil.which(words[0], path=os.path.join(self._workspace, _OWN))
        if own is not None:
            asked = ("ls-files", "-z", "--", f"{_OWN}/{words[0]}")
            if not self._fresh or git_output(self._workspace, self._env, *asked):
                return (own, *words[1:])
        found = shutil.which(words[0], path=self._env.get("PATH", os.defpath))
        if found is None or (words == _NODE and not self._reads_types(found)):
            return ()
        return words

    def _reads_types(self, node: str) -> bool:
        """Asked once for each program; one that does not answer at once does not."""
        key = node, os.stat(node).st_mtime_ns
        if key not in self._with_types:
            self._with_types[key] = _version(node, self._env) >= _FIRST_WITH_TYPES
        return self._with_types[key]


def _extension(script: str) -> str:
    return os.path.splitext(script)[1].lower()


def _version(node: str, env: Mapping[str, str]) -> tuple[int, int]:
    try:
        said = subprocess.run(
            (node, "--version"),
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_MOMENT,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    version = re.match(rb"v([0-9]{1,9})\.([0-9]{1,9})", said)
    return (int(version[1]), int(version[2])) if version else (0, 0)
