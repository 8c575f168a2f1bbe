"""What `ralph doctor` finds of Ralph's own hooks, and of claude's cap of held stops."""

import json
import os
from pathlib import Path

import pytest

from ralph.adapters.machine import Machine
from ralph.adapters.machine.claude import CAP, ralph_hooks, stop_cap
from ralph.core.health import State


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
        ({}, State.OK, "none here; to put them in: ralph plugin install"),
        ({".claude/settings.json": "{}", ".gemini/settings.json": "{"}, State.OK, "none here"),
        ({".claude/settings.json": ours("/bin/sh")}, State.OK, "here for claude"),
        (
            {".codex/hooks.json": ours("/bin/sh"), ".gemini/settings.json": ours("/bin/sh")},
            State.OK,
            "here for codex, gemini",
        ),
        (
            {".codex/hooks.json": ours("/no/python")},
            State.WARNING,
            "need /no/python, which is gone",
        ),
        ({".codex/hooks.json": ours("'")}, State.WARNING, "which is gone"),
    ],
)
def test_the_hooks_of_ralph(
    workspace: Path, files: dict[str, str], state: State, words: str
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
        (None, None, None, State.OK, "after 8 in a row"),
        ("0", None, None, State.OK, "as often as it takes"),
        ("20", None, None, State.OK, "after 20 in a row"),
        ("many", None, None, State.WARNING, "'many', which is no number"),
        (None, "0", None, State.OK, "as often as it takes"),
        ("0", "0", "3", State.OK, "after 3 in a row"),
        ("3", None, 0, State.OK, "after 3 in a row"),
    ],
)
def test_how_long_a_stop_may_be_held(
    workspace: Path,
    environ: str | None,
    users: str | None,
    projects: object,
    state: State,
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
