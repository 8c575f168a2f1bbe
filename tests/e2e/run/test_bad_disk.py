"""Bad input: full disks and read-only directories. A clear message, the remedy, nothing lost."""

import os
from pathlib import Path

import pytest
from rights_support import (
    AS_ORDINARY_USER,
    NAMESPACE,
    needs_mount,
    needs_ordinary_user,
)
from run_support import RALPH, Done, assert_clear, journals, prepare, prompts, ralph, turns

from ralph.journal.journal import read_journal
from ralph.kernel.facts import Ended
from ralph.testing.scripted_agent.install import calls

DONE = {"response": "DONE"}
FILL = "head -c 100000000 /dev/zero > {}/fill"


def ralph_on_tiny_disk(disk: Path, *arguments: str, before: str = "true") -> Done:
    """Run ralph while `disk` is a file system of 256 KB; what it held is in `disk`.copy after."""
    script = (
        f'mount -t tmpfs -o size=256k none "{disk}" && {{ {before}; "$@"; code=$?; '
        f'rm -f "{disk}/fill"; cp -r "{disk}" "{disk}.copy"; exit $code; }}'
    )
    command = (*NAMESPACE, "sh", "-c", script, "sh", *RALPH)
    return ralph(*arguments, command=command, env={"RALPH_STATE_DIR": str(disk)})


@pytest.fixture
def disk(workspace: Path) -> Path:
    directory = workspace.parent / "disk"
    directory.mkdir()
    return directory


def ordinary(*arguments: str) -> Done:
    return ralph(*arguments, command=(*AS_ORDINARY_USER, *RALPH))


# ------------------------------------------------------------------ a full disk


@needs_mount
def test_a_disk_that_is_full_from_the_start(workspace: Path, disk: Path) -> None:
    """Bad input: "a full disk": nothing is begun."""
    agent = prepare(workspace, DONE)
    done = ralph_on_tiny_disk(disk, "-p", "x", before=FILL.format(disk))
    words = ("cannot write the state directory", "No space left on device", "RALPH_STATE_DIR=")
    assert_clear(done, 2, *words)
    assert calls(agent) == []


@needs_mount
def test_a_disk_that_fills_up_during_the_run(workspace: Path, disk: Path) -> None:
    """Bad input: "nothing already done is lost": iteration 1 is journaled, all work is there."""
    fill = [{"name": "Bash", "run": FILL.format(disk)}]
    second = {"files": {"two": "2"}, "tools": fill, "text": "x" * 60_000, **DONE}
    agent = prepare(workspace, {"files": {"one": "1"}}, second)
    done = ralph_on_tiny_disk(disk, "-p", "x")
    words = ("cannot write the journal", "No space left on device", "Free some space")
    assert_clear(done, 2, *words)
    assert len(calls(agent)) == 2
    assert [Path(name).read_text() for name in ("one", "two")] == ["1", "2"]
    (journal,) = Path(f"{disk}.copy").glob("*/runs/*/journal.jsonl")
    facts, _ = read_journal(str(journal))
    assert len([fact for fact in facts if isinstance(fact, Ended)]) == 1
    assert "the stream is not saved from here on: No space left on device" in done.out


@needs_mount
def test_a_disk_that_fills_up_is_told_in_json_too(workspace: Path, disk: Path) -> None:
    fill = [{"name": "Bash", "run": FILL.format(disk)}]
    prepare(workspace, {"tools": fill, "text": "x" * 60_000, **DONE})
    last = ralph_on_tiny_disk(disk, "-p", "x", "--json").objects[-1]
    assert (last["type"], last["reason"], last["exit"]) == ("stop", "config", 2)
    assert last["run"] is not None


@needs_mount
def test_a_full_disk_under_the_workspace_does_not_end_the_run(workspace: Path, disk: Path) -> None:
    """The guardrail's log cannot be written there; the journal is elsewhere."""
    script = (
        f'mount -t tmpfs -o size=64k none "{disk}" && cd "{disk}" && mkdir .ralph && '
        f'cp "{workspace}/.ralph/settings.json" .ralph/ && exec "$@"'
    )
    fill = [{"name": "Bash", "run": FILL.format(".")}]
    agent = prepare(workspace, {"tools": fill, **DONE}, guardrails=[{"command": "echo hello"}])
    command = (*NAMESPACE, "sh", "-c", script, "sh", *RALPH)
    assert_clear(ralph("-p", "x", "-m", "2", command=command), 1, "Guardrail exited with code")
    assert "(the disk is full)." in prompts(agent)[1]
    assert len(turns()) == 2


# ------------------------------------------------------------------ read-only directories


@needs_ordinary_user
def test_a_read_only_ralph_directory(workspace: Path) -> None:
    """Bad input: "a read-only `.ralph`": logs go beside the journal, and that is said."""
    agent = prepare(workspace, DONE, guardrails=[{"command": "echo broken; exit 1"}])
    (workspace / ".ralph").chmod(0o500)
    done = ordinary("-p", "x", "-m", "2")
    words = (f"cannot write {workspace}/.ralph: Permission denied", "chmod u+w .ralph")
    assert_clear(done, 1, *words, "logs go beside the journal instead")
    log = journals()[0].parent / "guardrail_001_echo_broken_exit_1.log"
    assert log.read_text() == "broken\n"
    assert f"Output file: {log}" in prompts(agent)[1]
    assert len(turns()) == 2


@needs_ordinary_user
def test_what_is_reverted_is_kept_beside_the_journal_when_ralphs_directory_is_read_only(
    workspace: Path,
) -> None:
    (workspace / "tests.txt").write_text("strict")
    prepare(workspace, {"files": {"tests.txt": "weak"}, **DONE}, DONE, protect=["tests.txt"])
    (workspace / ".ralph").chmod(0o500)
    assert_clear(ordinary("-p", "x"), 0, "Protected path tests.txt was changed")
    assert (workspace / "tests.txt").read_text() == "strict"
    kept = journals()[0].parent / "reverted" / "1" / "tests.txt"
    assert kept.read_text() == "weak"


@needs_ordinary_user
def test_a_read_only_ralph_directory_that_must_hold_the_prompt(workspace: Path) -> None:
    agent = prepare(workspace, DONE, kind="text", agent={"promptVia": "file"})
    (workspace / ".ralph").chmod(0o500)
    assert_clear(ordinary("-p", "x"), 2, "Permission denied", "chmod u+w .ralph")
    assert calls(agent) == []


@needs_ordinary_user
def test_a_read_only_state_directory(workspace: Path) -> None:
    """Bad input: a read-only state directory: nothing is begun that could not be journaled."""
    agent = prepare(workspace, DONE)
    Path(os.environ["RALPH_STATE_DIR"]).chmod(0o500)
    words = ("cannot write the state directory", "Permission denied", "RALPH_STATE_DIR=")
    assert_clear(ordinary("-p", "x"), 2, *words)
    assert calls(agent) == []


def test_a_state_directory_that_is_a_file(workspace: Path) -> None:
    agent = prepare(workspace, DONE)
    place = workspace.parent / "file"
    place.write_text("x")
    done = ralph("-p", "x", env={"RALPH_STATE_DIR": str(place)})
    assert_clear(done, 2, "cannot write the state directory", "RALPH_STATE_DIR=")
    assert calls(agent) == []


@needs_ordinary_user
def test_a_protected_file_that_nobody_may_read_is_no_obstacle(workspace: Path) -> None:
    hooks = workspace / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("x")
    (hooks / "pre-commit").chmod(0)
    prepare(workspace, DONE)
    assert_clear(ordinary("-p", "x"), 0)


@needs_ordinary_user
def test_files_that_may_not_be_read_are_named(workspace: Path) -> None:
    prepare(workspace, DONE)
    (workspace / "p.md").write_text("x")
    (workspace / "p.md").chmod(0)
    assert_clear(ordinary("-f", "p.md"), 2, "cannot read the prompt file p.md: Permission denied")
    (workspace / ".ralph" / "settings.json").chmod(0)
    assert_clear(ordinary("-p", "x"), 2, ".ralph/settings.json: cannot be read: Permission denied")
