"""A project with a backlog, an agent that is a shell script, and what became of its tasks."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from run_support import Done, program, ralph

Json = dict[str, Any]
COMPLETE = 'echo "<promise>COMPLETE</promise>"'
# `id` is the task of the turn, `n` counts its turns; what a test adds is run for each turn.
AGENT = r"""
for prompt; do :; done
id=$(printf '%s\n' "$prompt" | sed -n 's/^Task \([^: ]*\).*/\1/p' | head -1)
n=$(($(cat "$NOTES/$id" 2>/dev/null || echo 0) + 1))
echo $n > "$NOTES/$id"
printf '%s' "$prompt" > "$NOTES/$id.$n.prompt"
"""


class Project:
    """A git repository in which tasks are worked on."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.notes = path.parent / "notes"
        self.notes.mkdir()
        monkeypatch.setenv("NOTES", str(self.notes))
        monkeypatch.chdir(path)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A Person")
        self.git("config", "user.email", "person@example.com")
        (path / "README").write_text("hello\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "begin")

    def git(self, *arguments: str) -> str:
        """What git says; an error if it fails."""
        done = subprocess.run(
            ("git", *arguments), cwd=self.path, capture_output=True, check=False, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def agent(self, script: str) -> str:
        """Install the agent."""
        return program(self.path.parent / "agent.sh", f"{AGENT}{script}\ntrue")

    def tasks(self, *tasks: Json) -> None:
        """Write the backlog, oldest first."""
        lines = [json.dumps({"createdAt": f"2026-01-{n:02}", **t}) for n, t in enumerate(tasks, 1)]
        (self.path / ".ralph").mkdir(exist_ok=True)
        (self.path / ".ralph" / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def settings(self, **settings: Any) -> None:  # noqa: ANN401
        """Write settings; they are committed, since no run may begin on a dirty tree."""
        (self.path / ".ralph").mkdir(exist_ok=True)
        (self.path / ".ralph" / "settings.json").write_text(
            json.dumps({"failDelay": 0, **settings})
        )

    def quick(self) -> None:
        """Let failed turns follow at once; a setting that is this checkout's alone."""
        (self.path / ".ralph").mkdir(exist_ok=True)
        (self.path / ".ralph" / "settings.local.json").write_text('{"failDelay": 0}')

    def run(self, script: str, *arguments: str, sandbox: bool = False) -> Done:
        """`ralph tasks run` with an agent that does this."""
        where = () if sandbox else ("--no-sandbox",)
        return ralph("tasks", "run", "--agent", self.agent(script), *where, *arguments)

    def task(self, task_id: str) -> Json:
        """A task as the file has it now: the last line with its id."""
        found = [task for task in self.lines("tasks") if task["id"] == task_id]
        return found[-1]

    def statuses(self) -> Json:
        """Where every task stands."""
        return {task["id"]: task.get("status", "pending") for task in self.lines("tasks")}

    def lines(self, name: str) -> list[Json]:
        """The objects of a file of records."""
        path = self.path / ".ralph" / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def subjects(self) -> list[str]:
        """What was committed, newest first."""
        return self.git("log", "--format=%s").splitlines()

    def prompt(self, task_id: str, turn: int) -> str:
        """What the agent was told."""
        return (self.notes / f"{task_id}.{turn}.prompt").read_text()

    def turns(self, task_id: str) -> int:
        """How many turns a task had."""
        path = self.notes / task_id
        return int(path.read_text() or 0) if path.exists() else 0  # it may be half written

    def dirt(self) -> list[str]:
        """What is not committed, Ralph's own files aside."""
        said = self.git("status", "--porcelain", "--untracked-files=all").splitlines()
        return [line for line in said if ".ralph/" not in line]

    def kept(self) -> dict[str, str]:
        """What git keeps of undone work, by the last part of its name."""
        said = self.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/ralph")
        pairs = (line.split() for line in said.splitlines())
        return {os.path.basename(name): commit for name, commit in pairs}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of its own."""
    path = tmp_path / "project"
    path.mkdir()
    return Project(path, monkeypatch)
