"""The agents and gates of a run: whatever descends from what it has started (ADR 10).

Only the kernel is asked: who is above a process, and what those above have open. No environment, no
file and no other state directory that an agent chooses changes the answer. A run is the process
that holds a lock; of what is below it, that counts which a keeper has started. A process that
adopts orphans has nothing below it but its run. What it spares is a person's: their commands have a
keeper of their own.

What a process has to say about itself stands in the names of files in memory that it holds open:
anybody may read them in /proc, and nobody else can write there.
"""

import os
import sys

from ralph.processes.procfs import command_line, line_above, locks_of, open_files

_LOCK = "run.lock"  # as `lock.NAME`, which takes a while to import
_ADOPTS = "ralph:adopts"
_SPARES = "ralph:spares:"
_KEEPERS = ("/ralph/processes/keeper_main.py", "/ralph/sandbox/namespace/maker.py")
UNKNOWN = ""  # a run of which nobody can tell where it keeps its things


def adopts() -> list[int]:
    """Show that whatever is below this process is its run's; files to close at the end."""
    return _shown(_ADOPTS)


def spares(pid: int) -> list[int]:
    """Let others see that a child of this process, and what is below it, is not of the run."""
    return _shown(f"{_SPARES}{pid}")


def _shown(words: str) -> list[int]:
    try:
        return [os.memfd_create(words)]
    except (OSError, AttributeError):
        return []  # there is no /proc to see it in either


def runs_above() -> tuple[str, ...]:
    """The runs among whose agents and gates this process is, nearest first: where each keeps its
    things, or UNKNOWN. Without a /proc, as on macOS, nobody can tell, and there are none."""
    if sys.platform != "linux":
        return ()
    line = line_above()
    if not line:
        return (UNKNOWN,)  # someone has hidden it
    found: list[str] = []
    # Ourselves come first. At the top of a sandbox is its keeper: nobody in there sees above that.
    for child, above in zip(line, (*line[1:], 0), strict=True):
        files = open_files(above)  # none of 0, which nobody is
        signs = {file.removeprefix("/memfd:").removesuffix(" (deleted)") for file in files}
        if f"{_SPARES}{child}" in signs:
            continue
        places = [os.path.dirname(path) for path in locks_of(above, _LOCK)]
        words = command_line(child)
        if words[1:3] == ["-I", "-S"] and words[3].endswith(_KEEPERS):
            found += places or [UNKNOWN]
        elif _ADOPTS in signs:
            found += places
    return tuple(found)
