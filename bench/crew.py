"""Several tasks at once: how much sooner four workers are done than one, with agents that sleep."""

import os
import subprocess
import time

from bench.place import BenchError

_AGENT = """#!/bin/sh
for prompt; do :; done
id=$(printf '%s\\n' "$prompt" | sed -n 's/^Task \\([^: ]*\\).*/\\1/p' | head -1)
sleep {seconds}
echo done > "$id"
echo "<promise>COMPLETE</promise>"
"""
GIT = (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "Begin"))
WHO = {
    f"GIT_{r}_{f}": "bench@localhost" for r in ("AUTHOR", "COMMITTER") for f in ("NAME", "EMAIL")
}


class Sleepers:
    """A repository with tasks for an agent that takes its time."""

    def __init__(self, above: str, environ: dict[str, str], tasks: int, seconds: float) -> None:
        self._above = above
        self._environ = {**environ, **WHO}
        self._tasks = tasks
        self._agent = os.path.join(above, "sleeper")
        with open(self._agent, "w", encoding="utf-8") as file:
            file.write(_AGENT.format(seconds=seconds))
        os.chmod(self._agent, 0o755)  # noqa: S103  a script to be run
        self._rounds = 0

    def run(self, ralph: tuple[str, ...], workers: int) -> float:
        """Seconds in which all tasks are done, from a fresh beginning."""
        self._rounds += 1
        place = os.path.join(self._above, f"crew-{self._rounds}")
        os.makedirs(os.path.join(place, ".ralph"))
        with open(os.path.join(place, ".ralph", "tasks.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(f'{{"id": "T-{n}", "title": "Sleep"}}\n' for n in range(self._tasks))
        for each in GIT:
            self._call(("git", *each), place)
        words = ("tasks", "run", "--no-sandbox", "--agent", self._agent)
        began = time.perf_counter()
        self._call((*ralph, *words, "--parallel", str(workers)), place)
        return time.perf_counter() - began

    def _call(self, argv: tuple[str, ...], cwd: str) -> None:
        done = subprocess.run(argv, cwd=cwd, env=self._environ, capture_output=True, check=False)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace")[-500:]
            raise BenchError(f"{' '.join(argv)} exited with code {done.returncode}: {said}")
