"""An attempt that plays a script: `python -m ralph.testing.scripted_attempt`, in place of the
program that a machine of a fleet starts. The script is in the settings of its job; `fake_fleet`
plays the same one without a process.

A script is a list of steps, each an object with one key:

    launch DIALECT   an agent is about to start      say TEXT      the agent prints it
    pulse SECONDS    how the turn looks              spawn SECONDS it leaves a process behind
    work SECONDS     it works, until it is cut       sleep SECONDS the same, whatever happens
    raw TEXT         a line that is no message       deaf true     hears nothing any more
    kill NUMBER      it gets that signal             done COMMIT   its last message
    fail OBJECT      the same: why, remedy, passes
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

_PIPE = threading.Lock()


class _Leash:
    """What it is told."""

    def __init__(self) -> None:
        self.job: dict[str, Any] = json.loads(sys.stdin.readline())["job"]
        self.granted = threading.Event()
        self.cut = threading.Event()
        self.why = "nobody wants it"
        self.deaf = False
        self.until = float("inf")
        threading.Thread(target=self._hear, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    def _hear(self) -> None:
        for line in sys.stdin:
            told = json.loads(line)
            if "until" in told:
                self.until = told["until"]
                self.granted.set()
            if "cut" in told:
                self.why = told["cut"]["why"]
                self.cut.set()
        if not self.deaf:
            os._exit(3)  # nobody holds us

    def _watch(self) -> None:
        early = min(self.job["lease"] / 2, 10.0)
        while self.deaf or time.clock_gettime(time.CLOCK_BOOTTIME) < self.until - early:
            time.sleep(0.05)
        _say(failed={"why": "the lease was over", "remedy": "", "passes": True})
        os._exit(4)


def main() -> None:
    leash = _Leash()
    script = json.loads(leash.job["settings"])
    leash.granted.wait()
    _log(script, f"begin {os.getpid()}")
    descriptor, stream = tempfile.mkstemp(dir=os.path.dirname(script["life"]) or None)
    for step in script["steps"]:
        [(word, value)] = step.items()
        if word == "launch":
            _say(launched={"dialect": value, "agent": value, "model": "m1", "stream": stream})
        elif word == "say":
            os.write(descriptor, value.encode())
        elif word == "deaf":
            leash.deaf = True
        elif word == "work":
            if leash.cut.wait(value) and not leash.deaf:
                _last(script, failed={"why": leash.why, "remedy": "", "passes": False})
            time.sleep(value if leash.deaf else 0)
        elif word in ("done", "fail"):
            _last(script, **({"done": {"commit": value}} if word == "done" else {"failed": value}))
        else:
            _act(script, word, value)
    _log(script, f"end {os.getpid()}")


def _act(script: dict[str, Any], word: str, value: Any) -> None:  # noqa: ANN401  JSON is what it is
    if word == "pulse":
        _say(pulse={"seconds": value, "idle": 0.0})
    elif word == "sleep":
        time.sleep(value)
    elif word == "raw":
        os.write(1, value.encode() + b"\n")
    elif word == "kill":
        os.kill(os.getpid(), value)
    elif word == "spawn":
        child = subprocess.Popen(
            ["sleep", str(value)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _log(script, f"child {child.pid}")
    else:
        raise SystemExit(f"no such step: {word}")


def _last(script: dict[str, Any], **message: object) -> None:
    _log(script, f"end {os.getpid()}")
    _say(**message)
    sys.stdout.flush()
    os._exit(0)


def _say(**message: object) -> None:
    with _PIPE:
        os.write(1, json.dumps(message).encode() + b"\n")


def _log(script: dict[str, Any], line: str) -> None:
    with open(script["life"], "a", encoding="utf-8") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main()
