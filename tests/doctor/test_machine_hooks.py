"""What `ralph doctor` finds of Ralph's own hooks, and of claude's cap of held stops."""

import json
import os
from pathlib import Path

import pytest

from ralph.doctor.checks import CheckState
from ralph.doctor.claude import ralph_hooks, stop_cap
from ralph.doctor.machine import Machine
from ralph.hosts.stop_cap import CAP


def here(workspace: Path, **environ: str) -> Machine:
    return Machine(str(workspace), {**os.environ, **environ})


def ours(program: str) -> str:
    """Settings with a hook of Ralph's, and odd things beside it."""
    command = {"type": "command", "command": f"{program} -c 'ralph.hooks.installed'"}
    groups = [5, {"hooks": 5}, {"hooks": [{"command": "make"}, command]}]
    return json.dumps({"hooks": {"Stop": groups, "X": 5}})


@pytest.mark.parametrize(
    ("files", "state", "words"),
    [
        ({}, CheckState.OK, "none here; to put them in: ralph plugin install"),
        ({".claude/settings.json": "{}", ".gemini/settings.json": "{"}, CheckState.OK, "none here"),
        ({".claude/settings.json": ours("/bin/sh")}, CheckState.OK, "here for claude"),
        (
            {".codex/hooks.json": ours("/bin/sh"), ".gemini/settings.json": ours("/bin/sh")},
            CheckState.OK,
            "here for codex, gemini",
        ),
        (
            {".codex/hooks.json": ours("/no/python")},
            CheckState.WARNING,
            "need /no/python, which is gone",
        ),
        ({".codex/hooks.json": ours("'")}, CheckState.WARNING, "which is gone"),
    ],
)
def test_the_hooks_of_ralph(
    workspace: Path, files: dict[str, str], state: CheckState, words: str
) -> None:
    for path, text in files.items():
        (workspace / path).parent.mkdir()
        (workspace / path).write_text(text)
    check = ralph_hooks(here(workspace))
    assert check.state is state
    assert words in check.found


@pytest.mark.parametrize(
    ("environ", "users", "projects", "state", "words"),
    [
        (None, None, None, CheckState.OK, "after 8 in a row"),
        ("0", None, None, CheckState.OK, "as often as it takes"),
        ("20", None, None, CheckState.OK, "after 20 in a row"),
        ("many", None, None, CheckState.WARNING, "'many', which is no number"),
        (None, "0", None, CheckState.OK, "as often as it takes"),
        ("0", "0", "3", CheckState.OK, "after 3 in a row"),
        ("3", None, 0, CheckState.OK, "after 3 in a row"),
    ],
)
def test_how_long_a_stop_may_be_held(
    workspace: Path,
    environ: str | None,
    users: str | None,
    projects: object,
    state: CheckState,
    words: str,
) -> None:
    """The host's cap of 8 blocked stops, and how to lift it."""
    for folder, cap in ((Path(os.environ["HOME"]), users), (workspace, projects)):
        if cap is not None:
            (folder / ".claude").mkdir(parents=True)
            (folder / ".claude" / "settings.json").write_text(json.dumps({"env": {CAP: cap}}))
    check = stop_cap(here(workspace, **({CAP: environ} if environ else {})))
    assert check.state is state
    assert words in check.found
