"""What an ACP agent is answered when it asks for permission (ADR 25, ADR 53)."""

import os
from pathlib import Path

import pytest

from ralph.acp.permission import answer, refused
from ralph.own_agent.actions import guard_of

Json = dict[str, object]
OPTIONS = [
    {"optionId": "always", "kind": "allow_always"},
    {"optionId": "once", "kind": "allow_once"},
    {"optionId": "no", "kind": "reject_once"},
]


def v1(**call: object) -> Json:
    return {"toolCall": {"toolCallId": "c", **call}, "options": OPTIONS}


def v2(**subject: object) -> Json:
    return {"title": "It asks", "subject": subject, "options": OPTIONS}


def runs(command: object, **more: object) -> Json:
    return v1(kind="execute", title="t", rawInput={"command": command, **more})


def writes(path: str, kind: str = "edit", **more: object) -> Json:
    return v1(kind=kind, title=f"Write {path}", locations=[{"path": path}], **more)


FORCE = "git push --force origin main"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project with a link that leads out of it."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "out").symlink_to("/etc")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return str(project)


ALLOWED: dict[str, Json] = {
    "a command": runs("make test"),
    "a command as words": runs(["git", "status"]),
    "a command that is the title": v1(kind="execute", title="ls -l"),
    "a command of version 2": v2(type="command", command="ls", cwd="."),
    "a call of version 2": v2(
        type="tool_call", toolCall=v1(kind="execute", title="ls")["toolCall"]
    ),
    "a file of the project": writes("src/a.py"),
    "a file by its arguments": v1(kind="edit", title="t", rawInput={"filePath": "a.py"}),
    "an editor's own command": v1(kind="edit", rawInput={"command": "create", "path": "a.py"}),
    "a diff of version 2": v1(
        kind="edit", content=[{"type": "diff", "changes": [{"operation": "add", "path": "a.py"}]}]
    ),
    "a temporary file": writes("/tmp/x"),
    "a deletion in the project": writes("a.py", "delete"),
    "reading elsewhere": writes("/etc/hosts", "read"),
    "the web": v1(kind="fetch", title="https://example.org"),
    "thinking": v1(kind="think", title="hm"),
    "another mode": v1(kind="switch_mode", title="Ready to code?"),
    "something unknown": v1(title="Frobnicate", rawInput={"a": 1}),
}
REFUSED: dict[str, Json] = {
    "a command": runs(FORCE),
    "a command as words": runs(["git", "push", "--force"]),
    "a command that is the title": v1(kind="execute", title=FORCE),
    "a title that is cut": v1(kind="execute", title="make test && …"),
    "a command of version 2": v2(type="command", command=FORCE, cwd="/"),
    "a command elsewhere": runs("rm -rf ssl", cwd="/etc"),
    "a command of an unknown kind": v1(title="t", rawInput={"command": FORCE}),
    "a command beside a file": v1(title="t", rawInput={"command": FORCE, "path": "a.py"}),
    "no command": v1(kind="execute"),
    "a file elsewhere": writes("/etc/passwd"),
    "a file behind a link": writes("out/passwd"),
    "a file at home": writes("~/.bashrc"),
    "one file of two": v1(kind="edit", locations=[{"path": "a"}, {"path": "/etc/b"}]),
    "a file in a diff": v1(
        kind="edit", content=[{"type": "diff", "changes": [{"path": "a", "oldPath": "/etc/b"}]}]
    ),
    "Ralph's settings": writes(".ralph/settings.json"),
    "git's hooks": writes(".git/hooks/pre-commit"),
    "a deletion elsewhere": writes("/etc/passwd", "delete"),
    "a move elsewhere": writes("/etc/passwd", "move"),
    "a secret": writes(".env", "read"),
    "an unknown kind that writes": writes("/etc/passwd", "other"),
    "no file": v1(kind="edit", title="Edit"),
    "a path that is none": v1(kind="edit", locations=[{"path": "a\0b"}, "x"]),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_is_allowed_once(name: str, workspace: str) -> None:
    found = answer(ALLOWED[name], None, workspace, guard_of(workspace, {"PATH": os.defpath}))
    assert (found.allowed, found.option, found.why) == (True, "once", "")
    assert found.outcome() == {"outcome": {"outcome": "selected", "optionId": "once"}}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_rejected_once(name: str, workspace: str) -> None:
    found = answer(REFUSED[name], None, workspace, guard_of(workspace, {"PATH": os.defpath}))
    assert (found.allowed, found.option) == (False, "no")
    assert found.why.startswith("guard: refused")


@pytest.mark.parametrize("name", REFUSED)
def test_without_a_guard_everything_is_allowed(name: str, workspace: str) -> None:
    assert answer(REFUSED[name], None, workspace, None).allowed


def test_what_was_told_before_counts(workspace: str) -> None:
    """A request may name the call alone."""
    before = {"kind": "execute", "title": "t", "rawInput": {"command": FORCE}}
    guard = guard_of(workspace, {})
    assert answer(v1(), {"kind": "execute", "title": "ls"}, workspace, guard).allowed
    found = answer(v1(), before, workspace, guard)
    assert (found.allowed, found.what) == (False, "t")


@pytest.mark.parametrize(
    "params", [None, 3, [], {}, {"toolCall": 3, "options": 4}, {"subject": "x"}]
)
def test_nonsense_is_never_allowed(params: object, workspace: str) -> None:
    found = answer(params, None, workspace, guard_of(workspace, {}))
    assert not found.allowed
    assert found.outcome() == {"outcome": {"outcome": "cancelled"}}


def test_nothing_is_allowed_for_longer_than_once(workspace: str) -> None:
    request = {**runs("ls"), "options": OPTIONS[:1]}
    found = answer(request, None, workspace, None)
    assert (found.allowed, found.option) == (False, "")
    assert "allow_once" in found.why


def test_a_turn_for_words_is_refused_everything() -> None:
    found = refused(v1(kind="think", title="hm"), None, "words only")
    assert (found.allowed, found.option, found.what) == (False, "no", "hm")
