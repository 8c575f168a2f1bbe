"""A sandbox from its opening to its end: open, run a command, look at what it changed, discard."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.place import HERE, BenchError

_BY_HAND = ("bash", os.path.join(HERE, "sandbox.sh"))
_COMMAND = ("touch", "new")
_IN_A_DIRECTORY = 200


class Cycle:
    """A project of so many files, over which sandboxes are opened."""

    def __init__(self, root: str, environ: dict[str, str], files: int) -> None:
        self._environ = environ
        self._root = root
        self._project = os.path.join(root, f"project-{files}")
        _fill(self._project, files)

    def ralph(self) -> float:
        """Milliseconds that Ralph takes."""
        from ralph.sandbox.backends import overlay
        from ralph.sandbox.interface import SandboxPolicy

        policy = SandboxPolicy(self._environ, os.path.join(self._root, "state"), home=self._root)
        began = time.perf_counter()
        with overlay.open(self._project, policy) as sandbox:
            code = sandbox.run(*_COMMAND).code
            changes = sandbox.changes()
            shown = [sandbox.diff(change) for change in changes]
            sandbox.discard()
        took = 1000 * (time.perf_counter() - began)
        if code or [change.path for change in changes] != ["new"] or len(shown) != 1:
            raise BenchError(f"the sandbox did not do its work: exit {code}, {changes}")
        return took

    def by_hand(self) -> float:
        """Milliseconds that a script takes which makes no promise."""
        argv = (*_BY_HAND, self._project, os.path.join(self._root, "layer"))
        began = time.perf_counter()
        done = subprocess.run(argv, env=self._environ, capture_output=True, text=True, check=False)
        took = 1000 * (time.perf_counter() - began)
        if done.returncode:
            raise BenchError(f"sandbox.sh failed:\n{done.stderr}")
        return took


@contextmanager
def sandboxes(root: str, environ: dict[str, str]) -> Iterator[str]:
    """Why there can be none here, or "" and the process that makes them, for the time being."""
    from ralph.sandbox.backends import overlay
    from ralph.sandbox.interface import SandboxPolicy

    can = overlay.probe(root, SandboxPolicy(environ, os.path.join(root, "state")))
    try:
        yield "" if can.usable else can.why
    finally:
        overlay.LAUNCHER.close()


def _fill(project: str, files: int) -> None:
    for number in range(files):
        directory = os.path.join(project, str(number // _IN_A_DIRECTORY))
        if number % _IN_A_DIRECTORY == 0:
            os.makedirs(directory)
        with open(os.path.join(directory, str(number)), "w", encoding="ascii") as file:
            file.write("content\n")
