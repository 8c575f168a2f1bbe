"""The scripts that validate tasks: their interpreters and their protection."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress

from ralph.gates.protect import Protector
from ralph.git.digest import git_output
from ralph.kernel.facts import Fact, Settled
from ralph.kernel.verdict import Accept, Park

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
        """The words before the script; () for one that runs by itself, None where nothing does."""
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
            said = b""
            with suppress(OSError, subprocess.TimeoutExpired):
                said = subprocess.run(
                    (node, "--version"),
                    env=self._env,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=_MOMENT,
                ).stdout
            found = re.match(rb"v([0-9]{1,9})\.([0-9]{1,9})", said)
            version = (int(found[1]), int(found[2])) if found else (0, 0)
            self._with_types[key] = version >= _FIRST_WITH_TYPES
        return self._with_types[key]


class ScriptGuard:
    """Protects the scripts that prove tasks: no turn may change what judges it. They are looked for
    when a task begins: one that is not there by then may be the task's own product."""

    def __init__(
        self, scripts: Callable[[], tuple[str, ...]], workspace: str, protector: Protector
    ) -> None:
        self._scripts, self._workspace, self._protector = scripts, workspace, protector
        self._task_is_over = True
        self.look()
        self._task_is_over = True

    def look(self) -> None:
        """Protect those that are there now, if another task begins."""
        if self._task_is_over:
            here, scripts = self._workspace, self._scripts()
            there = tuple(s for s in scripts if os.path.exists(os.path.join(here, s)))
            self._protector.protect_also(there)
            self._task_is_over = False

    def on_fact(self, fact: Fact) -> None:
        """Done or parked: the next one begins anew."""
        if isinstance(fact, Settled) and isinstance(fact.verdict, Accept | Park):
            self._task_is_over = True

    def on_events(self, events: object) -> None: ...


def _extension(script: str) -> str:
    return os.path.splitext(script)[1].lower()
