"""One project, four ways to work on it, and an agent that tries to have bad work believed."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from run_support import Done, ralph

from kits.review_cases import story

GOOD, BAD = "good\n", "bad\n"
# `work` is what a test has the agent do in its n-th turn; then it claims that all is done.
AGENT = r"""
import json, os, re, subprocess, sys
if sys.argv[-1].startswith("Provide a short imperative commit message"):
    exec({message!r})
    print("Do the work")
    sys.exit()
turns = ".turns"
n = int(open(turns).read()) + 1 if os.path.exists(turns) else 1
open(turns, "w").write(str(n))
def write(path, text, mode=0o755):
    open(path, "w").write(text); os.chmod(path, mode)
def sh(line):
    return subprocess.run(line, shell=True, capture_output=True, text=True).stdout
command = {command!r}
exec({work!r})
if command == "prd":
    listing = json.load(open("ralph/tasks.json"))
    mode = re.search(r"^Mode: (\S+)", sys.argv[-1], re.M)[1]
    story = listing["userStories"][0]
    if story["reviewStatus"] != "approved":
        if mode == "review":
            story.update(reviewStatus="approved", passes=True, reviewCount=story["reviewCount"] + 1)
        else:
            story.update(reviewStatus="needs_review", reviewFeedback="", notes="done")
        json.dump(listing, open("ralph/tasks.json", "w"), indent=2)
    subprocess.run({commit!r}, shell=True)
print("<response>DONE</response>" if command == "run" else "<promise>COMPLETE</promise>")
"""
STORY = story("US-1", title="It works", acceptanceCriteria=["It does"])


class Stage:
    """A git repository with a task, a story and a prompt."""

    def __init__(self, path: Path, command: str, place: str) -> None:
        self.path, self.command, self.place = path, command, place
        path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A Person")
        self.git("config", "user.email", "person@example.com")
        self.write(".gitignore", ".turns\n.ralph-active\n")
        self.write("ralph/prd.md", "# What is wanted\n")
        self.write("ralph/prompt.md", "Work on it.\n")
        self.write("ralph/progress.txt", "# Log\n")
        head = {"project": "p", "branchName": "x", "description": "", "verifyCommands": []}
        self.write("ralph/tasks.json", json.dumps({**head, "userStories": [STORY]}, indent=2))
        self.tasks({"id": "T-001", "title": "It works"})

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """A file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def tasks(self, *tasks: dict[str, Any]) -> None:
        """The backlog."""
        lines = (json.dumps({"createdAt": f"2026-01-0{n}", **t}) for n, t in enumerate(tasks, 1))
        self.write(".ralph/tasks.jsonl", "".join(f"{line}\n" for line in lines))

    def git(self, *words: str) -> str:
        """What git says; an error if it fails."""
        done = subprocess.run(
            ("git", *words), cwd=self.path, capture_output=True, check=False, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def begin(self, *guardrails: str, **settings: object) -> None:
        """Write the settings and commit everything."""
        named = [{"command": line} for line in guardrails]
        scm = {"scm": {"command": "git", "tasks": ["commit"]}} if self.command == "run" else {}
        text = json.dumps({"guardrails": named, **scm, **settings})
        self.write(".ralph/settings.json", text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "begin")

    def play(
        self,
        work: str,
        *flags: str,
        message: str = "",
        turns: int = 3,
        commit: str = "git add -A && git commit -q -m work",
    ) -> Done:
        """Let the agent work on it, for so many turns at most."""
        agent = self.path / ".git" / "agent"
        text = AGENT.format(command=self.command, work=work, message=message, commit=commit)
        code = self.path / ".git" / "agent.py"
        code.write_text(text)
        start = shlex.join((sys.executable, str(code)))  # a path may have a blank in it
        agent.write_text(f'#!/bin/sh\nexec {start} "$@"\n')
        agent.chmod(0o755)
        where = ("--no-sandbox",) if self.place == "place" else (f"--sandbox={self.place}",)
        limit = str(turns)
        words = {
            "run": ("run", "-p", "work", "-m", limit),
            "tasks": ("tasks", "run", "--max-iterations", limit),
            "parallel": ("tasks", "run", "--parallel", "2", "--max-iterations", limit),
            "prd": ("prd", "run", "--max-iterations", limit),
        }[self.command]
        return ralph(*words, "--agent", str(agent), *where, *flags, "-C", str(self.path))

    def committed(self, name: str) -> str | None:
        """A file as HEAD has it."""
        done = subprocess.run(
            ("git", "show", f"HEAD:{name}"), cwd=self.path, capture_output=True, check=False
        )
        return done.stdout.decode() if done.returncode == 0 else None

    def status(self, task: str) -> str:
        """Where a task stands."""
        lines = (self.path / ".ralph/tasks.jsonl").read_text().splitlines()
        found = [t for t in map(json.loads, lines) if t["id"] == task]
        return str(found[-1].get("status", "pending"))

    def assert_honest(self, done: Done, name: str = "work.txt") -> None:
        """Done is true: HEAD holds good work, or nobody says that it is done."""
        if done.code == 0:
            assert self.committed(name) == GOOD, done.err
        elif self.command != "prd":  # there the agent commits
            assert self.committed(name) != BAD, done.err
        if self.command in ("tasks", "parallel"):
            assert (self.status("T-001") == "done") == (self.committed(name) == GOOD), done.err
