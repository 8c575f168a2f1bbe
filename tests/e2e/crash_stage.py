"""A repository with a backlog, a run over it that is killed, and what is left of it in the end."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_support import program

from kits.fork_server import started
from ralph.journal.journal import read_journal
from ralph.kernel.facts import Fact, Launching
from ralph.kernel.state import replay

Json = dict[str, Any]
TIMES = ("createdAt", "updatedAt", "completedAt")


@dataclass(frozen=True)
class Outcome:
    """What is left of a run, times aside."""

    code: int
    tasks: list[Json]
    subjects: list[str]
    files: list[str]  # of HEAD
    status: list[str]
    progress: list[tuple[object, ...]]
    learned: list[tuple[object, ...]]
    ours: list[str]  # the names in .ralph
    done: frozenset[str]


@dataclass(frozen=True)
class Stage:
    """A repository with a backlog, and a run over it."""

    root: Path
    sandbox: str
    agent: str  # its script
    backlog: dict[str, Json]
    flags: tuple[str, ...] = ()

    def prepare(self) -> "Stage":
        (self.repo / ".ralph").mkdir(parents=True, exist_ok=True)
        program(self.root / "agent", self.agent)
        lines = [
            json.dumps({"id": name, "title": f"It is {name}", "priority": -number, **fields})
            for number, (name, fields) in enumerate(self.backlog.items())
        ]
        (self.repo / ".ralph" / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines))
        (self.repo / "README").write_text("hello\n")
        (self.repo / "old").write_text("old\n")
        for words in ("init -q -b main", "add -A", "commit -q -m Begin"):
            subprocess.run(["git", *words.split()], cwd=self.repo, check=True, env=self.env)
        return self

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def env(self) -> dict[str, str]:
        who = {f"GIT_{r}_{f}": "x@y" for r in ("AUTHOR", "COMMITTER") for f in ("NAME", "EMAIL")}
        return {**os.environ, **who, "RALPH_STATE_DIR": str(self.root / "state")}

    @property
    def begin(self) -> tuple[str, ...]:
        where = ("--sandbox", self.sandbox) if self.sandbox else ("--no-sandbox",)
        return ("tasks", "run", "--agent", str(self.root / "agent"), *where, *self.flags)

    def call(self, *words: str) -> int:
        with (self.root / "said").open("ab") as said:
            out = said.fileno()
            return started(words, out, out, env=self.env, cwd=self.repo).wait()

    def said(self) -> str:
        return (self.root / "said").read_text()

    def git(self, *words: str) -> list[str]:
        command = ["git", "-C", str(self.repo), *words]
        return subprocess.check_output(command, text=True, env=self.env).splitlines()

    def files(self, commit: str) -> list[str]:
        return [line for line in self.git("ls-tree", "-r", commit) if ".ralph/" not in line]

    def facts(self) -> list[Fact]:
        (journal,) = (self.root / "state").glob("*/runs/*/journal.jsonl")
        return read_journal(str(journal))[0]

    def turns(self) -> int:
        return sum(isinstance(fact, Launching) for fact in self.facts())

    def lines(self, name: str) -> list[Json]:
        text = (self.repo / ".ralph" / f"{name}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def tasks(self) -> list[Json]:
        """With what was saved, wherever that is: a turn that was cut off is saved beside."""
        found = [{k: v for k, v in t.items() if k not in TIMES} for t in self.lines("tasks")]
        for task in found:  # records of earlier tasks are in a tree, and have their times
            if evidence := task.get("evidence"):
                task["evidence"] = evidence | {"tree": self.files(evidence["tree"])}
        return [t | {"saved": self.files(t["saved"])} if "saved" in t else t for t in found]

    def told(self, name: str, *fields: str) -> list[tuple[object, ...]]:
        return [tuple(line.get(field) for field in fields) for line in self.lines(name)]

    def outcome(self, code: int) -> Outcome:
        return Outcome(
            code,
            self.tasks(),
            self.git("log", "--format=%s"),
            self.files("HEAD"),
            self.git("status", "--porcelain", "--untracked-files=all"),
            self.told("progress", "type", "taskId", "iteration", "status", "reason", "kind"),
            self.told("learning", "taskId", "status", "iterations", "reason", "gates"),
            sorted(os.listdir(self.repo / ".ralph")),
            replay(self.facts()).done,
        )

    def assert_tidy(self) -> None:
        """Nothing is left but the work, and what was undone."""
        refs = self.git("for-each-ref", "--format=%(refname)")
        odd = [r for r in refs if not re.fullmatch(r"refs/(heads/main|ralph/.*/cut-[0-9.]+)", r)]
        assert not odd
        assert not [line for line in self.git("status", "--porcelain") if ".ralph/" not in line]
        assert not [p for p in (self.root / "state").glob("*/sandboxes/*") if p.is_dir()]
