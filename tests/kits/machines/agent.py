#!/usr/bin/env python3
"""The agent that machines run: it finds its task in the prompt, lives for a while, tells a log that
it lives, writes a file and says that it is done. Standard library only, nothing of Ralph.

    agent.py [--shared DIRECTORY] PROMPT
"""

import os
import random
import re
import select
import socket
import sys
import time

_SHARED = "/mnt/shared"  # as in network.py
_BEAT = 0.05  # seconds
_TASK = re.compile(r"^Task ([^\s:]+)", re.MULTILINE)
_PACE = (0.2, 0.6)  # seconds that it lives, where nobody says how many


def main(words: list[str]) -> None:
    """Do one turn."""
    prompt = words[-1] if words and words[-1] != "-" else sys.stdin.read()
    found = _TASK.search(prompt)
    if found is None:  # a commit message, or a probe: that is no work
        print("<response>DONE</response>")
        return
    task = found[1]
    line = _connected(f"{_SHARED}/line")
    _tell(line, "begin", task, os.environ.get("RALPH_RUN", "-"), socket.gethostname())
    end = time.monotonic() + random.uniform(*_pace())
    while time.monotonic() < end:
        select.select([], [], [], _BEAT)
        _tell(line, "beat")
    with open(f"done-{task}", "w", encoding="utf-8") as file:
        file.write(f"{task}\n")
    _tell(line, "end")
    print("<promise>COMPLETE</promise>", flush=True)


def _connected(path: str) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    return line


def _tell(line: socket.socket, *words: str) -> None:
    line.sendall(f"{time.monotonic():.6f} {' '.join(words)}\n".encode())


def _pace() -> tuple[float, float]:
    """The least and the most seconds that a turn lasts."""
    try:
        with open(f"{_SHARED}/pace", encoding="ascii") as file:
            least, most = map(float, file.read().split())
    except FileNotFoundError:
        return _PACE
    return least, most


if __name__ == "__main__":
    main(sys.argv[1:])
