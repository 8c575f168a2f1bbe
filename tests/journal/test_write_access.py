"""ADR 10: who is kept from a run's records, by descent and by the environment. The whole programs
are in e2e/run/test_records.py."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ralph.errors import ConfigError
from ralph.files.state_dir import make_run_dir, project_dir
from ralph.journal import write_access
from ralph.journal.lock import Owner
from ralph.journal.runs import Run
from ralph.journal.write_access import refuse_own_backlog, refuse_own_run, refuse_unseen
from ralph.processes.ancestry import UNKNOWN

RUN = "20260101-000000-abcdef"
Above = Callable[..., None]


@pytest.fixture
def above(monkeypatch: pytest.MonkeyPatch) -> Above:
    """Says which runs have started this process."""

    def said(*places: str) -> None:
        monkeypatch.setattr(write_access, "runs_above", lambda: places)

    said()
    return said


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    (tmp_path / "workspace").mkdir()
    return str(tmp_path / "workspace")


@pytest.fixture
def run(workspace: str) -> Run:
    """A run of this workspace."""
    project = project_dir(os.environ["RALPH_STATE_DIR"], workspace)
    make_run_dir(project, RUN)
    return Run(RUN, project)


def environ(**more: str) -> Mapping[str, str]:
    return {"RALPH_STATE_DIR": os.environ["RALPH_STATE_DIR"], **more}


@pytest.mark.parametrize("name", ["RALPH_RUN", "RALPH_PARENT_RUN", "RALPH_ROOT_RUN"])
@pytest.mark.parametrize("number", ["", "-001", "-1234"])
def test_a_run_is_closed_to_whoever_carries_its_name(
    above: Above, run: Run, workspace: str, name: str, number: str
) -> None:
    """ "**or** carries its `RALPH_RUN`", or that of one of its workers or attempts."""
    own = environ(**{name: f"{RUN}{number}"})
    with pytest.raises(ConfigError, match="may not stop its own run: RALPH_RUN names it"):
        refuse_own_run(own, run, "stop")
    with pytest.raises(ConfigError, match="tasks of its own run: RALPH_RUN names it"):
        refuse_own_backlog(own, workspace)


def test_nobody_else_is_refused(above: Above, run: Run, workspace: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_run_dir(project_dir(os.environ["RALPH_STATE_DIR"], str(other)), f"{RUN[:-1]}0")
    above(project_dir(os.environ["RALPH_STATE_DIR"], str(other)))
    for env in (environ(), environ(RALPH_RUN=f"{RUN[:-1]}0"), environ(RALPH_RUN="")):
        refuse_own_run(env, run, "stop")
        refuse_own_backlog(env, workspace)
        refuse_unseen(env, "stop")


def test_a_run_is_closed_to_what_descends_from_it(
    above: Above, run: Run, workspace: str, tmp_path: Path
) -> None:
    """Whatever it has cleared from its environment."""
    above(str(tmp_path), run.project)
    with pytest.raises(ConfigError, match="stop its own run: that run has started this process"):
        refuse_own_run(environ(), run, "stop")
    with pytest.raises(ConfigError, match="its own run: that run has started this process"):
        refuse_own_backlog(environ(), workspace)
    (tmp_path / "elsewhere").mkdir()  # who names another state directory means the same tasks
    with pytest.raises(ConfigError, match="its own run: that run has started this process"):
        refuse_own_backlog({"RALPH_STATE_DIR": str(tmp_path / "elsewhere")}, workspace)


def test_a_tree_that_lies_with_a_run_is_its_own(above: Above, run: Run) -> None:
    tree = os.path.join(run.directory, "tree")
    above(run.project)
    with pytest.raises(ConfigError, match="its own run: that run has started this process"):
        refuse_own_backlog(environ(), tree)


def test_of_a_run_that_is_not_to_be_seen_nothing_is_changed(
    above: Above, run: Run, workspace: str
) -> None:
    """In a sandbox the agent's own is hidden; what goes on in sight is another's."""
    above(UNKNOWN)
    with pytest.raises(ConfigError, match="may not resume a run: a run that is not to be seen"):
        refuse_own_run(environ(), run, "resume")
    refuse_own_run(environ(), Run(RUN, run.project, Owner(1, "", RUN, 0.0)), "stop")
    with pytest.raises(ConfigError, match="may not change tasks"):
        refuse_own_backlog(environ(), workspace)
    with pytest.raises(ConfigError, match="may not stop its own run"):
        refuse_unseen(environ(), "stop")
    above()
    nowhere = environ(RALPH_RUN="20260101-000000-fedcba")
    for refuse in (refuse_own_backlog, refuse_unseen):
        with pytest.raises(ConfigError, match="not to be seen from here"):
            refuse(nowhere, workspace)
