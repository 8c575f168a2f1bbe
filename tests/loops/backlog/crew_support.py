"""A project, and the work tree of a worker in it: real git in two work trees of one repository."""

import os
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.repository import Repository
from ralph.loops.backlog.parallel.settlement import Joining, Merged

LIST, LINES = "TODO.md", "".join(f"{number}\n" for number in range(1, 8))
MARKER = "<<<<<<<"


class Crew:
    """Both, and what is done in them."""

    def __init__(self, tmp_path: Path) -> None:
        self.top = new_repository(tmp_path / "project")
        self.write(self.top, LIST, "- [ ] one\n- [ ] two\n")
        self.write(self.top, "code", LINES)
        self.commit(self.top, "Lists")
        self.own = tmp_path / "worker"
        git(self.top, "worktree", "add", "--quiet", "-b", "ralph/T-1", str(self.own))
        runs = [tmp_path / "runs" / name for name in ("run-1", "run-1-001")]
        for run in runs:
            run.mkdir(parents=True)
        self.work = WorkTree(str(self.own), os.environ, str(runs[1]), shared=True)
        self.work.begin()
        whole = WorkTree(str(self.top), os.environ, str(runs[0]))
        self.joining = self.with_project(whole.repository)
        self.base = self.work.checkpoint()

    def with_project(self, repository: Repository) -> Joining:
        return Joining(self.work, repository, "refs/heads/ralph/T-1", "refs/heads/main")

    def write(self, where: Path, name: str, text: str) -> None:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text)

    def commit(self, where: Path, subject: str) -> str:
        git(where, "add", "--all")
        git(where, "commit", "--quiet", "--message", subject)
        return git(where, "rev-parse", "HEAD")

    def merged(self, *lists: str) -> Merged:
        """The work as it is now, on top of what the project has now."""
        return self.joining.merge(self.joining.keep(self.base, 1), lists)

    def landed(self, joining: Joining | None = None) -> str:
        """What is said where a commit of all that the worker has is to land."""
        head = git(self.own, "rev-parse", "HEAD")
        made = self.commit(self.own, "T-1: It")
        return (joining or self.joining).land(made, head)

    def seen(self, where: Path) -> tuple[str, str, str, str]:
        """HEAD, the index, the status and a file of a work tree."""
        status = git(where, "status", "--porcelain")
        return git(where, "rev-parse", "HEAD"), git(where, "ls-files", "-s"), status, code_of(where)


def code_of(where: Path) -> str:
    return (where / "code").read_text()


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    return Crew(tmp_path)
