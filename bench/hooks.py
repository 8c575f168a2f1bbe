"""What an agent's host waits for after each tool call, and when the agent stops."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from bench.place import HERE, BenchError
from bench.processes import weigh

SIZES = (1, 10, 100)  # MB of transcript
LOOP_SIZES = (0, *SIZES, 1000)
LOOP = "loop"  # a stop in a session that has one
_ROOT = os.path.dirname(HERE)
_SCRIPTS = {
    "post-tool": "context_monitor.py",
    "stop": "stop_loop_reminder.py",
    LOOP: "stop_loop_reminder.py",
}
_FIELDS = {"passes": False, "reviewStatus": None, "reviewCount": 0}
_STORY = {"title": "A page", "acceptanceCriteria": ["It is there."], "priority": 1, "notes": ""}


@dataclass(frozen=True)
class Hooked:
    """A project of ten stories, committed, with a run's marker; and a session's transcript."""

    run: str
    env: dict[str, str]

    @property
    def project(self) -> str:
        """The project's root."""
        return os.path.join(self.run, "workspace")

    def prepare(self) -> None:
        """Make the project."""
        names = [f"US-{number:03}" for number in range(1, 11)]
        stories = [{"id": n, **_STORY, **_FIELDS, "reviewFeedback": ""} for n in names]
        head = {"project": "bench", "branchName": "b", "description": "d"}
        os.mkdir(os.path.join(self.project, "ralph"))
        self._write("ralph/tasks.json", {**head, "userStories": stories})
        with open(os.path.join(self.project, ".gitignore"), "w", encoding="utf-8") as file:
            file.write(".ralph-active\n")
        who = ("-c", "user.name=bench", "-c", "user.email=bench@ralph.invalid")
        for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "Begin")):
            subprocess.run(["git", *words], cwd=self.project, env=self.env, check=True)
        marker = {"mode": "sandbox", "skipReview": False, "reviewCap": 5}
        snapshot = dict.fromkeys(names, _FIELDS)
        turn = {"iterationMode": "implement", "preIterationSnapshot": snapshot}
        self._write(".ralph-active", {**marker, **turn})

    def begin_loops(self, ralph: tuple[str, ...]) -> None:
        """A loop without an end in a session for each size."""
        for size in LOOP_SIZES:
            words = ("loop", "start", "--session", f"{LOOP}-{size}", "--max-iterations", "0", "Go")
            subprocess.run((*ralph, *words), env=self.env, check=True, stdout=subprocess.DEVNULL)

    def ask(self, argv: tuple[str, ...], hook: str, size: int) -> float:
        """Milliseconds until a hook has answered, with so many MB of transcript."""
        transcript = os.path.join(self.run, f"{size}.jsonl")
        if not os.path.exists(transcript):
            with open(transcript, "wb") as file:
                file.truncate(size * 1_000_000)
        whose = LOOP if hook == LOOP else "bench"
        event = {"session_id": f"{whose}-{size}", "transcript_path": transcript}
        event |= {"cwd": self.run if hook == LOOP else self.project, "hook_event_name": "Stop"}
        sent = self._write("../event.json", event)
        weight = weigh(argv, {**self.env, "TMPDIR": self.run}, sent=sent)
        if weight.code:
            raise BenchError(f"{' '.join(argv)} ended with {weight.code}")
        return weight.milliseconds

    def _write(self, name: str, content: object) -> str:
        path = os.path.join(self.project, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)
        return path


def ways(hook: str, ralph: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Who answers: nothing but Python, what people write, the plugin, and `ralph hook`."""
    python = (os.path.realpath(sys.executable), "-I", "-S")
    script = os.path.join(_ROOT, "plugin", "hooks", "scripts", _SCRIPTS[hook])
    found = {"floor": (*python, "-c", "pass"), "ralph": (*python, script)}
    if shutil.which("jq"):
        found["bash"] = ("bash", os.path.join(HERE, "hook.sh"), hook)
    return {**found, "command": (*ralph, "hook", "stop" if hook == LOOP else hook)}
