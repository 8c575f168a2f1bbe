"""`ralph init --from FILE`: another loop's settings into ours; nothing of ours is overwritten."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ralph.errors import ConfigError
from ralph.settings.from_others.draft import Draft
from ralph.settings.from_others.merge import lines, take_over, write_settings
from ralph.settings.load import load
from ralph.settings.schema import Settings

YML = """cli: {backend: claude, args: [--verbose]}
event_loop: {max_iterations: 30, completion_promise: FINISHED}
hats: {builder: {name: Builder}}
"""


def written(workspace: Path) -> Any:  # noqa: ANN401  JSON
    return json.loads((workspace / ".ralph/settings.json").read_text())


def lay(workspace: Path, settings: object) -> None:
    (workspace / ".ralph").mkdir()
    text = settings if isinstance(settings, str) else json.dumps(settings)
    (workspace / ".ralph/settings.json").write_text(text)


def run(*words: str, command: tuple[str, ...] = ("init",)) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "ralph", *command, *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout, done.stderr


def test_it_is_shown_and_written(workspace: Path) -> None:
    (workspace / "ralph.yml").write_text(YML)
    code, out, _ = run("--from", "ralph.yml")
    assert code == 0
    assert out.splitlines()[0] == "ralph.yml (ralph-orchestrator): 5 settings added."
    assert "  + maximumIterations = 30" in out.splitlines()
    assert "  - hats: Ralph has no hats" in out
    assert written(workspace) == {
        "agent": {"command": "claude", "flags": ["--verbose"]},
        "completionResponse": "FINISHED",
        "tellCompletion": True,
        "maximumIterations": 30,
    }
    assert load(str(workspace)).settings.maximum_iterations == 30
    code, out, _ = run("--from", "ralph.yml")
    assert (code, out.splitlines()[0]) == (0, "ralph.yml (ralph-orchestrator): nothing new.")


def test_a_dry_run_writes_nothing(workspace: Path) -> None:
    (workspace / "ralph.yml").write_text(YML)
    code, out, _ = run("--from", "ralph.yml", "--dry-run")
    assert (code, out.splitlines()[0].endswith("5 settings would be added.")) == (0, True)
    assert not (workspace / ".ralph").exists()
    assert run("--dry-run")[0] == 0  # of what is found here
    assert not (workspace / ".ralph").exists()


def test_what_is_there_stays(workspace: Path) -> None:
    """A key that is there with another value is a conflict, reported and left."""
    lay(workspace, {"$schema": "x", "maximumIterations": 7, "loop": {"parallelism": 2}})
    given = Draft("ralph-tui", {"maximumIterations": 9, "loop": {"onFailure": "stop"}})
    outcome = write_settings(str(workspace), given, dry_run=False)
    assert [(each.key, each.here, each.there) for each in outcome.conflicts] == [
        ("maximumIterations", 7, 9)
    ]
    assert outcome.added == (("loop.onFailure", "stop"),)
    assert written(workspace) == {
        "$schema": "x",
        "maximumIterations": 7,
        "loop": {"parallelism": 2, "onFailure": "stop"},
    }
    assert "  ! maximumIterations stays 7; there it is 9" in lines(outcome, "x")
    assert [asdict(c) for c in outcome.conflicts] == [
        {"key": "maximumIterations", "here": 7, "there": 9}
    ]


def test_no_agent_gets_the_flags_of_another(workspace: Path) -> None:
    lay(workspace, {"agent": {"command": "codex"}})
    given = Draft("x", {"agent": {"command": "claude", "flags": ["--yes"], "env": {"keep": ["A"]}}})
    outcome = write_settings(str(workspace), given, dry_run=False)
    assert written(workspace) == {"agent": {"command": "codex", "env": {"keep": ["A"]}}}
    assert [each.key for each in outcome.conflicts] == ["agent.command", "agent.flags"]
    told = '  ! agent.flags is not added, ["--yes"]: another agent is set here'
    assert told in lines(outcome, "x")


def test_null_is_no_value(workspace: Path) -> None:
    lay(workspace, {"maxTime": None, "agent": None})
    given = Draft("x", {"maxTime": 60, "agent": {"command": "claude"}})
    write_settings(str(workspace), given, dry_run=False)
    assert written(workspace) == {"maxTime": 60, "agent": {"command": "claude"}}


def test_what_is_protected_anyhow_stays_protected(workspace: Path) -> None:
    """`protect` in a file replaces the default."""
    write_settings(str(workspace), Draft("ralphy", {"protect": ["*.lock"]}), dry_run=False)
    assert written(workspace)["protect"] == [*Settings().protect, "*.lock"]


def test_what_our_schema_does_not_admit_is_lost(workspace: Path) -> None:
    """Valid against our own schema before anything is written."""
    guardrails = [{"command": "a"}, {"comand": "b"}, {"command": "c", "x": 1}, {"command": "d"}]
    given = Draft("x", {"guardrails": guardrails, "maxTime": "soon", "wings": 2, "timeout": 5})
    outcome = write_settings(str(workspace), given, dry_run=False)
    assert written(workspace) == {"guardrails": [{"command": "a"}, {"command": "d"}], "timeout": 5}
    lost = sorted(words.partition(":")[0] for words in outcome.lost)
    assert lost == ["guardrails[1]", "guardrails[2]", "maxTime", "wings"]


def test_the_settings_of_the_workspace_itself_are_read_as_they_are(workspace: Path) -> None:
    """Of ralph-cli, in the same place as ours."""
    lay(workspace, {"maximumIterations": 3})
    outcome = take_over(str(workspace), ".ralph/settings.json", dry_run=False)
    assert (outcome.same, outcome.written) == (("maximumIterations",), False)
    (workspace / ".ralph/settings.json").write_text('{"reviews": {"reviewAfter": 1}}')
    with pytest.raises(ConfigError, match="reviews: unknown key"):
        take_over(str(workspace), ".ralph/settings.json", dry_run=False)


def test_the_other_name_of_a_price_is_taken_over(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    lay(tmp_path / "other", {"agent": {"prices": {"input": 3, "output": 15, "cached": 0.3}}})
    lay(workspace, {"agent": {"prices": {"input": 3, "output": 15, "cached": 0.3}}})
    source = str(tmp_path / "other" / ".ralph" / "settings.json")
    outcome = take_over(str(workspace), source, dry_run=False)
    assert (outcome.lost, outcome.conflicts, outcome.written) == ((), (), False)
    assert "agent.prices.cacheRead" in outcome.same
    (workspace / ".ralph" / "settings.json").unlink()
    assert take_over(str(workspace), source, dry_run=False).lost == ()
    assert written(workspace)["agent"]["prices"] == {"input": 3, "output": 15, "cacheRead": 0.3}


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("ralph.yml", b"", "is empty"),
        ("ralph.yml", b"\xff\xfe\x00", "not UTF-8"),
        ("ralph.yml", b"event_loop: [", "line 1"),
        ("ralph.yml", b"# " + b"x" * (2 << 20), "larger than"),
        ("notes.txt", b"hello", "no settings of a loop"),
        ("prd.json", b'{"userStories": []}', "ralph tasks import prd.json"),
        (".ralphrc", b"X='", "followed"),
    ],
)
def test_a_bad_file_is_2_with_its_name(workspace: Path, name: str, data: bytes, words: str) -> None:
    """The issue: "an unreadable or unknown file is 2 with its name"."""
    (workspace / name).write_bytes(data)
    code, _, err = run("--from", name)
    assert (code, name in err, words in err) == (2, True, True), err
    assert not (workspace / ".ralph").exists()


@pytest.mark.parametrize("name", ["nowhere.yml", ".", "pipe"])
def test_what_is_no_file_is_2_with_its_name(workspace: Path, name: str) -> None:
    os.mkfifo(workspace / "pipe")
    code, _, err = run("--from", name)
    assert (code, name in err) == (2, True)


def test_broken_settings_are_left_as_they_are(workspace: Path) -> None:
    lay(workspace, "{ broken")
    (workspace / "ralph.yml").write_text(YML)
    code, _, err = run("--from", "ralph.yml")
    assert (code, "settings.json:1" in err) == (2, True)
    assert (workspace / ".ralph/settings.json").read_text() == "{ broken"


def test_tasks_import_knows_settings_too(workspace: Path) -> None:
    """The issue: settings of other loops are imported by `ralph tasks import` where they map."""
    (workspace / "ralph.yml").write_text(YML)
    by_tasks = ("tasks", "import")
    code, out, _ = run("ralph.yml", "--dry-run", "--json", command=by_tasks)
    said = json.loads(out)
    assert (code, said["loop"], said["written"]) == (0, "ralph-orchestrator", False)
    assert said["added"]["maximumIterations"] == 30
    assert not (workspace / ".ralph/settings.json").exists()
    code, out, _ = run("ralph.yml", command=by_tasks)
    assert (code, out.splitlines()[-1]) == (0, "Settings written to .ralph/settings.json")
    assert written(workspace)["maximumIterations"] == 30
    assert not (workspace / ".ralph/tasks.jsonl").exists()
