"""What a task and a commit cost as work grows: in a large repository, and after many tasks."""

import os
from itertools import pairwise

from bench.crew import GIT, WHO
from bench.place import BenchError
from bench.processes import weigh

_FOLDER = 500  # files in one
_AGENT = """#!/bin/sh
for prompt; do :; done
id=$(printf '%s\\n' "$prompt" | sed -n 's/^Task \\([^: ]*\\).*/\\1/p' | head -1)
[ -z "$id" ] || echo done > "done-$id"  # a commit message is no work
date +%s%N >> "$BENCH_TIMES"
echo '<promise>COMPLETE</promise><response>DONE</response>'
"""


class Repository:
    """A git repository with files, a backlog, and an agent that completes a task at once."""

    def __init__(self, place: str, environ: dict[str, str], files: int) -> None:
        self.place = place
        self._times = f"{place}-times"
        self._environ = {**environ, **WHO, "BENCH_TIMES": self._times}
        self._agent = f"{place}-agent"
        self._rounds = 0
        with open(self._agent, "w", encoding="utf-8") as file:
            file.write(_AGENT)
        os.chmod(self._agent, 0o755)  # noqa: S103  a script to be run
        for number in range(0, files, _FOLDER):
            folder = os.path.join(place, f"d{number // _FOLDER % 20}", f"d{number // _FOLDER}")
            os.makedirs(folder)
            for each in range(number, min(number + _FOLDER, files)):
                with open(os.path.join(folder, f"f{each}"), "w", encoding="ascii") as file:
                    file.write(f"{each}\n")
        os.makedirs(self.path(".ralph"))
        with open(self.path(".ralph", "settings.json"), "w", encoding="utf-8") as file:
            file.write('{"guardrails": [{"command": "true"}], "scm": {"tasks": ["commit"]}}\n')
        # As people have it: packed, and nothing left for git to collect meanwhile.
        for words in (*GIT, ("gc", "-q", "--force")):
            self._call("git", "-c", "gc.auto=0", *words)  # else two may tidy up at once

    def status(self) -> float:
        """Milliseconds of one `git status`."""
        return self._call("git", "status", "--porcelain")

    def tasks(self, ralph: tuple[str, ...], tasks: int) -> float:
        """Milliseconds of `tasks run` over so many new tasks, from the command to its end."""
        self._rounds += 1
        names = [f"R{self._rounds}-{number}" for number in range(tasks)]
        with open(self.path(".ralph", "tasks.jsonl"), "a", encoding="utf-8") as file:
            file.writelines(f'{{"id": "{name}", "title": "Do it"}}\n' for name in names)
        self._call("git", "add", "-A", ".ralph")
        self._call("git", "commit", "-q", "-m", "Plan")
        words = (*ralph, "tasks", "run", "--no-sandbox", "--agent", self._agent)
        return self._call(*words, "--max-tasks", str(tasks))

    def run(self, ralph: tuple[str, ...]) -> float:
        """Milliseconds of a `run` of one turn, a guardrail and a commit."""
        self._rounds += 1
        return self._call(*ralph, "run", "-p", f"Task R{self._rounds}", "--agent", self._agent)

    def gaps(self) -> list[float]:
        """Milliseconds from the end of each task's turn to that of the next, over all runs."""
        with open(self._times, encoding="ascii") as file:
            return [(after - before) / 1e6 for before, after in pairwise(map(int, file))]

    def megabytes(self) -> float:
        """How much git keeps."""
        folders = os.walk(self.path(".git"))
        paths = (os.path.join(top, name) for top, _, names in folders for name in names)
        return sum(os.lstat(path).st_size for path in paths) / 1e6

    def path(self, *names: str) -> str:
        return os.path.join(self.place, *names)

    def _call(self, *argv: str) -> float:
        here, said = os.getcwd(), f"{self.place}-said"
        os.chdir(self.place)
        try:
            weight = weigh(argv, self._environ, said=said)
        finally:
            os.chdir(here)
        if weight.code:
            with open(said, encoding="utf-8", errors="replace") as file:
                why = f"exited with code {weight.code}: {file.read()[-800:]}"
            raise BenchError(f"{' '.join(argv)} {why}")
        return weight.milliseconds
