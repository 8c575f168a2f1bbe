"""A project whose `origin` is a bare repository, behind a forge of its own on loopback."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from backlog_support import Project

from kits.forge.fake import FakeForge

QUICK = {"poll": 0.05, "start": 60}
SOON = {**QUICK, "start": 0.2}  # where nothing is to come
LOG = "".join(f"line {number}\n" for number in range(1, 301))


class Shop(Project):
    """A project with its forge."""

    forge: FakeForge

    def words(self, script: str, *arguments: str) -> tuple[str, ...]:
        """The words of `ralph tasks run` with an agent that does this."""
        return ("tasks", "run", "--no-sandbox", "--agent", self.agent(script), *arguments)

    def push(self, branch: str, text: str) -> str:
        """Somebody else pushes a commit to a branch; that commit."""
        other = self.path.parent / "other"
        if not other.exists():
            self.git("clone", "-q", str(self.forge.bare), str(other))

        def git(*words: str) -> str:
            who = ("-c", "user.name=Other", "-c", "user.email=other@example.com")
            done = subprocess.run(
                ("git", *who, *words), cwd=other, capture_output=True, check=True, text=True
            )
            return done.stdout.strip()

        git("fetch", "-q", "origin")
        git("checkout", "-q", "-B", branch, f"origin/{branch}")
        (other / "theirs.txt").write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", "theirs")
        git("push", "-q", "origin", branch)
        return git("rev-parse", "HEAD")


@contextmanager
def forge_at(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str = "github"
) -> Iterator[FakeForge]:
    """A forge for the repository there, whose branch becomes `main`."""
    bare = path.parent / "origin.git"
    for words in (
        ("git", "init", "-q", "--bare", "-b", "main", str(bare)),
        ("git", "-C", str(path), "remote", "add", "origin", str(bare)),
        ("git", "-C", str(path), "push", "-q", "origin", "HEAD:main"),
    ):
        subprocess.run(words, check=True)
    with FakeForge(bare, kind=kind) as forge:
        for name, text in forge.environ.items():
            monkeypatch.setenv(name, text)
        yield forge


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Shop]:
    """A project whose first commit is pushed, at GitHub unless a test says otherwise."""
    path = tmp_path / "project"
    path.mkdir()
    project = Shop(path, monkeypatch)
    kind = getattr(request, "param", "github")
    with forge_at(path, monkeypatch, kind) as project.forge:
        yield project
