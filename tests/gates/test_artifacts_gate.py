"""The artifacts of a claim (B §Explicit Completion): what a result names must be there."""

import json
import os
from pathlib import Path

import pytest

from kits.adapters import closing
from ralph.gates.artifacts import Artifacts
from ralph.kernel.claims import find_claims
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace

PROMISE = "<promise>COMPLETE</promise>"


def result(*artifacts: object, status: str = "complete") -> str:
    return f"<result>{json.dumps({'status': status, 'artifacts': artifacts})}</result>"


def found(workspace: Path, text: str, *, check: str = "") -> list[str]:
    """What the gate says to a turn in which this was said."""
    turn = Turn(claims=find_claims(text))
    state = replace(closing().state, turn=turn, assignment=Assignment("A"))
    case = replace(closing(), state=state, backlog=Backlog((Task("A", check=check),)))
    gate = Artifacts(str(workspace))
    assert not gate.always
    return [finding.text for finding in gate.check(case)]


@pytest.fixture
def made(workspace: Path) -> Path:
    """A workspace with a file, a directory and links."""
    (workspace / "a.txt").write_text("")
    (workspace / "docs").mkdir()
    (workspace / "link").symlink_to("a.txt")
    (workspace / "dangling").symlink_to("gone")
    (workspace.parent / "beside").touch()
    return workspace


@pytest.mark.parametrize(
    "said",
    [
        result("a.txt"),
        result("./a.txt", "docs", "docs/", "link", "../beside", "a.txt"),
        result("", "  "),
        result(),
        result(5, None, ["a.txt"]),
        '<result>{"status": "complete", "artifacts": "gone"}</result>',
        '<result>{"status": "complete"}</result>',
        PROMISE,
        "no claim at all",
        result("gone", status="continue"),
        result("gone", status="failed"),
        f"{PROMISE} {result('gone', status='blocked')}",
        f"{result('gone')} {result('a.txt')}",
    ],
)
def test_what_is_there_or_not_claimed_is_no_objection(made: Path, said: str) -> None:
    assert found(made, said) == []


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (result("gone"), "gone"),
        (result("a.txt", "gone", "docs/x", "gone"), "gone, docs/x"),
        (result("../gone", "/no/such/file"), "../gone, /no/such/file"),
        (result("dangling", "a.txt/x"), "dangling, a.txt/x"),
        (f"{result('gone')} {PROMISE}", "gone"),
        (result("a\0b", "\ud800", "\0"), "a b, ?, ?"),
        (result("x" * 9000), "x" * 199 + "…"),
        (result(*(f"f{n}" for n in range(500))), ", ".join(f"f{n}" for n in range(10))),
        (result("new\nline"), "new line"),
    ],
)
def test_what_is_not_there_is_named(made: Path, said: str, named: str) -> None:
    (text,) = found(made, said)
    assert text.startswith("Not complete yet: your result names artifacts that do not exist: ")
    assert named in text
    assert "Make them" in text


def test_a_task_with_a_check_is_complete_whatever_the_agent_says(made: Path) -> None:
    assert found(made, result("gone"), check="make test") == []


def test_an_absolute_path_counts_wherever_it_leads(made: Path) -> None:
    assert found(made, result(os.fspath(made / "a.txt"), "/")) == []
    assert found(made, result(os.fspath(made / "gone")))
