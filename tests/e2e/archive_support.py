"""A project that can be archived."""

from pathlib import Path

import pytest
from prd_support import approved, commit_all, story, write_stories
from run_support import Here


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


@pytest.fixture
def project(repo: Path) -> Path:
    """A repository with two stories, one of them done, all committed."""
    write_stories(repo, approved(1, reviews=2), story(2))
    commit_all(repo)
    return repo
