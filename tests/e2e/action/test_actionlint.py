"""The example workflow and `action.yml` as actionlint sees them. `make test-action` installs it."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from action.action_support import action
from kits.examples import ROOT

pytestmark = [pytest.mark.action, pytest.mark.usefixtures("installed")]

PATH = os.environ["PATH"]  # asked before the guard makes it quiet
HOME = os.path.expanduser("~")
BAD = """\
on: push
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - run: echo ${{ github.event.issue.title }}
      - run: echo ${{ steps.nobody.outputs.x }}
        if: ${{ inputs.nothing }}
"""


@pytest.fixture(scope="module")
def installed() -> None:
    """It was installed for this; otherwise the tests are skipped, but not in CI."""
    if not os.environ.get("RALPH_ACTIONLINT"):
        missing = "RALPH_ACTIONLINT is not set: actionlint judges with `make test-action`"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)


def actionlint(*files: Path) -> tuple[int, str]:
    done = subprocess.run(
        (str(ROOT / "tools" / "actionlint"), *map(str, files)),
        env={"PATH": PATH, "HOME": HOME, **_place()},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _place() -> dict[str, str]:
    named = os.environ.get("RALPH_AGENTS_DIR")
    return {"RALPH_AGENTS_DIR": named} if named else {}


def test_the_example_is_a_sound_workflow() -> None:
    assert actionlint(ROOT / "docs" / "examples" / "nightly.yml") == (0, "")


def test_the_actions_steps_are_sound(tmp_path: Path) -> None:
    """actionlint knows workflows only, so the action is one here: its inputs are the dispatch's."""
    read = action()
    inputs = {name: {"description": told["description"]} for name, told in read["inputs"].items()}
    outputs = {name: told["value"] for name, told in read["outputs"].items()}
    job = {"runs-on": "ubuntu-latest", "outputs": outputs, "steps": read["runs"]["steps"]}
    file = tmp_path / "action.yml"
    workflow = {"on": {"workflow_dispatch": {"inputs": inputs}}, "jobs": {"ralph": job}}
    file.write_text(yaml.safe_dump(workflow, sort_keys=False))
    assert actionlint(file) == (0, "")


def test_it_bites(tmp_path: Path) -> None:
    file = tmp_path / "bad.yml"
    file.write_text(BAD)
    code, said = actionlint(file)
    assert code == 1
    for words in ('"github.event.issue.title" is potentially untrusted', '"nobody" is not defined'):
        assert words in said
