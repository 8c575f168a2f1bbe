"""Runs the user's command that installs what a new worktree needs and git does not keep."""

import os
from collections.abc import Callable

from ralph.agents.turn_files import logged
from ralph.errors import AbortedError, ConfigError
from ralph.files.state_dir import write_atomically
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, Exit, Starter

_DONE = "set-up"  # in a worker's run directory
_LAST_WORDS = 2000  # bytes


def set_up(
    command: Command, log: str, start: Starter, watch: Callable[[], Cut | None]
) -> tuple[Exit, str]:
    """Run the command; how it ended, and its last words."""
    with open(log, "w+b", 0) as file:
        ended = logged(start, command, file, lambda _: watch())
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_WORDS))
        return ended, file.read().decode("utf-8", "replace").strip()


def prepare_tree(
    command: Command, run_dir: str, start: Starter, watch: Callable[[], Cut | None]
) -> None:
    """Run the command in a worker's worktree, once; ConfigError with its last words if it fails."""
    done, log = os.path.join(run_dir, _DONE), os.path.join(run_dir, "setup.log")
    if os.path.exists(done):
        return
    ended, said = set_up(command, log, start, watch)
    if ended.cut is not None:
        message = f"interrupted in the middle of {command.argv[-1]}"
        raise AbortedError(message, "Go on: ralph resume")
    if ended.code != 0:
        last = f": {said.splitlines()[-1]}" if said else ""
        message = f"loop.setup failed in a new worktree (exit code {ended.code}){last}"
        raise ConfigError(message, f"Fix it, then: ralph resume. Its output: {log}")
    write_atomically(done, "", 0o600)
