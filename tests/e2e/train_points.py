"""The effects of a merge train at which a run can be killed. As a program: a `ralph` that is."""

import os
import signal
import sys
import threading
from typing import Any

from ralph.cli.main import run_command_line
from ralph.loops.backlog.parallel.settlement import Joining, WorkerSettlement

EFFECTS = (
    "couple 2",
    *(f"mix {number}" for number in range(1, 5)),  # to be tried, then each for its commit
    *(f"commit {number}" for number in range(2, 5)),  # the first is alone
    "arrive 1",
)


def kill_at(when: str, effect: str, number: int) -> None:
    """Have this process kill itself before or after the n-th effect of that name."""
    owner = Joining if effect in ("couple", "mix") else WorkerSettlement
    does, lock, count = getattr(owner, effect), threading.Lock(), [0]

    def counted(*words: Any, **more: Any) -> Any:  # noqa: ANN401
        with lock:
            count[0] += 1
            here = count[0] == number
        if here and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        said = does(*words, **more)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)
        return said

    setattr(owner, effect, counted)


if __name__ == "__main__":
    when, effect, number, *arguments = sys.argv[1:]
    kill_at(when, effect, int(number))
    sys.exit(run_command_line(arguments))
