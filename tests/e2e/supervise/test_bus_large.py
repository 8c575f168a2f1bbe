"""`ralph bus read` of a bus that an agent made very large (S)."""

import os
from pathlib import Path

import pytest
from run_support import ralph

from ralph.loops.supervise.bus import Bus, new_message

pytestmark = pytest.mark.slow


@pytest.fixture
def path(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bus of the task that TASK_FOLDER names."""
    monkeypatch.setenv("TASK_FOLDER", str(workspace))
    return workspace / "TASK-MESSAGE-BUS.md"


def post(path: Path, body: str) -> None:
    Bus(str(path)).post(new_message("FACT", body, project="p", task="t", now=1.0))


def bodies(*arguments: str) -> list[str]:
    return [one["body"] for one in ralph("bus", "read", "--json", *arguments).objects]


def test_a_hole_in_the_bus_is_passed_over(path: Path) -> None:
    """An agent can make its bus as long as it likes, and claim any length."""
    post(path, "before")
    with path.open("ab") as file:
        file.write(b"---\nmsg_id: a\nlength: 99999999999\n---\n")
    os.truncate(path, 8 << 40)
    post(path, "after")
    assert bodies() == ["before", "after"]
    assert bodies("-n", "1") == ["after"]


def test_a_body_that_is_larger_than_a_run_listens_to(path: Path) -> None:
    """ "the body comes back byte for byte", whatever its size."""
    body = "0123456789abcde\n" * (1024 * 1024)
    post(path, body)
    assert bodies() == [body]
