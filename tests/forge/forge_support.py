"""A forge with a repository: `main`, and a branch `ralph/a` with one commit of its own."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kits.forge import FakeForge

Push = Callable[..., str]


@pytest.fixture
def bare(repo: Path, tmp_path: Path) -> Path:
    """The repository of the forge, to which the one here pushes."""
    place = tmp_path / "shop.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(place)], check=True)
    git("remote", "add", "origin", str(place))
    git("push", "-q", "origin", "main")
    return place


@pytest.fixture
def push(bare: Path) -> Push:
    """Pushes a new commit to a branch; the commit."""

    def pushed(branch: str, text: str = "", base: str = "") -> str:
        if base or not git("branch", "--list", branch):
            git("switch", "-q", "-C", branch, base or "main")
        else:
            git("switch", "-q", branch)
        Path(f"{branch.replace('/', '-')}.txt").write_text(text or f"work on {branch}\n")
        git("add", "-A")
        git("commit", "-q", "-m", f"Work on {branch}")
        git("push", "-q", "origin", branch)
        return git("rev-parse", "HEAD")

    return pushed


@pytest.fixture(params=["github", "gitlab"])
def forge(bare: Path, request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    """Each of them."""
    with FakeForge(bare, kind=request.param) as fake:
        yield fake


@pytest.fixture
def github(bare: Path) -> Iterator[FakeForge]:
    with FakeForge(bare) as fake:
        yield fake


@pytest.fixture
def gitlab(bare: Path) -> Iterator[FakeForge]:
    with FakeForge(bare, repository="acme/tools/shop", kind="gitlab") as fake:
        yield fake


@pytest.fixture
def head(push: Push) -> str:
    """The commit of the branch ralph/a."""
    return push("ralph/a")


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], capture_output=True, text=True, check=True
    ).stdout.strip()
