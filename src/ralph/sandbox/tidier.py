"""The process that tidies up after a program which uses sandboxes and is killed.

It runs as `python -I -S tidier.py` and imports nothing but the standard library and Ralph. Messages
are marshalled tuples over the socket at descriptor 3: `("mine", layer, project, more directories)`
when a sandbox is opened, `("gone", layer)` when it is closed. When the socket closes, whatever is
left belongs to nobody.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from _socket import socket
from contextlib import suppress

LINK = 3
_PATIENCE = 5.0  # seconds until what ran in a sandbox has ended
_PAUSE = 0.02


def main() -> None:
    """Listen until the program is gone, then tidy up."""
    os.set_inheritable(LINK, False)
    sys.path.append(os.path.abspath(__file__).rsplit("/", 3)[0])  # for Ralph's own modules
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    from ralph.processes import keeper_main

    link = socket(fileno=LINK)
    layers: dict[str, tuple[str, list[str]]] = {}
    while received := keeper_main.receive(link, 0):
        word, layer, *rest = received[0]
        if word == "mine":
            layers[layer] = (rest[0], rest[1])
        else:
            layers.pop(layer, None)
    for layer, (project, more) in layers.items():
        tidy(layer, project, more)


def tidy(layer: str, project: str, more: list[str]) -> None:
    """Remove a layer once its owner is gone, unless somebody comes back to it or it is being kept:
    that is finished by whoever opens the next sandbox."""
    from ralph.sandbox import layer_store

    found = layer_store.reclaimed(layer)
    if found is None:
        return
    tree = os.path.isdir(os.path.join(layer, "tree"))
    end = time.monotonic() + _PATIENCE
    try:
        if found.is_begun() or layer_store.record_of(layer):
            return
        for path in (*more, layer):
            # Something in it may still be writing while it is ended.
            while os.path.lexists(path) and time.monotonic() < end:
                layer_store.remove(path)
                time.sleep(_PAUSE if os.path.lexists(path) else 0)
    finally:
        found.leave()
    if tree and shutil.which("git"):
        with suppress(OSError):
            subprocess.run(
                ("git", "worktree", "prune"), cwd=project, capture_output=True, check=False
            )


if __name__ == "__main__":
    main()
