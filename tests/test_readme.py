"""README tells the truth: every command, flag, setting and exit code, and nothing else."""

import json
import re
from pathlib import Path

import pytest

from ralph.cli.commands import COMMANDS
from ralph.cli.run import run
from ralph.kernel.verdict import Reason
from ralph.settings.load import load
from ralph.settings.problems import known_keys

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("flag", [o for p in run.params for o in (*p.opts, *p.secondary_opts)])
def test_every_flag_of_run_is_in_the_readme(flag: str) -> None:
    shown = README.replace("--[no-]", "--no-") if flag.startswith("--no-") else README
    assert flag in shown.replace("--[no-]", "--")


@pytest.mark.parametrize("key", list(known_keys()))
def test_every_setting_is_in_the_readme(key: str) -> None:
    assert re.search(rf"\b{key.rpartition('.')[2].removesuffix('[]')}\b", README)


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"| `ralph {command}" in README


@pytest.mark.parametrize("reason", list(Reason))
def test_every_exit_code_is_in_the_readme(reason: Reason) -> None:
    assert f"| {reason.exit_code} | {reason} |" in README


def test_the_settings_shown_in_the_readme_are_valid(workspace: Path) -> None:
    shown = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    assert shown
    (workspace / ".ralph").mkdir()
    for text in shown:
        (workspace / ".ralph" / "settings.json").write_text(json.dumps(json.loads(text)))
        assert load(str(workspace)).settings
