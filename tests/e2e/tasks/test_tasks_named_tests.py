"""Tests named after a task's id complete it (B §Completion Detection, 2), by a real pytest."""

import shlex
import sys

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import journals, ralph
from story_support import IN_OVERLAY

__all__ = ["project"]

PYTEST = f"{shlex.quote(sys.executable)} -m pytest -q -k"
A, B = {"id": "T-001", "title": "Set the price"}, {"id": "T-002", "title": "Write it up"}
# In a file's name: a function's may hold no dash.
THERE = "import os\n\n\ndef test_price():\n    assert os.path.exists('price')\n"
WRITTEN = r'printf "def test_it():\n    assert open(\"price\").read()\n" > test_T-001.py; '


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def given(project: Project, *tests: str, **settings: object) -> None:
    """A project that says how its tests are run; some are there."""
    project.settings(loop={"testCommand": PYTEST}, **settings)
    project.tasks(A)
    for name in tests:
        (project.path / name).write_text(THERE)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tests")


def test_they_complete_it_without_a_word(project: Project) -> None:
    given(project, "test_T-001.py", "test_other.py")
    done = project.run('[ "$n" = 2 ] && touch price')
    assert (done.code, project.statuses(), project.turns("T-001")) == (0, {"T-001": "done"}, 2)
    command = f"{PYTEST} T-001"
    assert f"This task is complete when `{command}` passes" in project.prompt("T-001", 1)
    assert "assert os.path.exists('price')" in project.prompt("T-001", 2)
    evidence = project.task("T-001")["evidence"]
    assert (evidence["command"], evidence["exitCode"]) == (command, 0)
    assert (evidence["named"], evidence["written"]) == ("T-001", [])
    assert not project.dirt()
    committed = project.git("show", "--format=", "--name-only", "HEAD").split()
    assert [path for path in committed if not path.startswith(".ralph/")] == ["price"]


def test_a_claim_does_not_help_while_they_fail(project: Project) -> None:
    given(project, "test_T-001.py")
    done = project.run(COMPLETE, "-m", "2")
    assert (done.code, project.statuses()) == (3, {"T-001": "blocked"})
    assert "Not complete yet" in project.prompt("T-001", 2)


def test_the_evidence_says_who_wrote_them(project: Project) -> None:
    given(project)
    done = project.run(f"echo 42 > price; {WRITTEN}")
    assert (done.code, project.statuses()) == (0, {"T-001": "done"})
    assert project.task("T-001")["evidence"]["written"] == ["test_T-001.py"]
    told = "passed: the tests named T-001, written or changed in this task: test_T-001.py"
    assert told in journals()[0].read_text()
    shown = ralph("tasks", "show", "T-001").out
    assert "tests written or changed in this task: test_T-001.py" in shown


def test_without_any_the_agents_word_counts(project: Project) -> None:
    given(project, "test_other.py")
    done = project.run(f"echo x >> out; [ $n = 2 ] && {COMPLETE}")
    assert (done.code, project.turns("T-001")) == (0, 2)
    assert project.task("T-001")["evidence"]["kind"] == "explicit"


def test_a_task_that_says_what_completes_it_is_completed_by_that(project: Project) -> None:
    project.settings(loop={"testCommand": "touch ran; false"})
    said = {"type": "file_exists", "path": "out"}
    project.tasks({**A, "completion": said}, {**B, "completion": {"type": "explicit"}})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tasks")
    assert project.run(f"echo $id > out; {COMPLETE}").code == 0
    assert not (project.path / "ran").exists()


def test_a_command_that_nobody_gave_is_not_run(project: Project) -> None:
    """The default is npm's, which says nothing about this project."""
    project.settings(loop={"testCommand": None})
    project.tasks(A)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "tasks")
    assert project.run(f"echo x > out; {COMPLETE}").code == 0
    assert "npm test" not in project.prompt("T-001", 1)


@pytest.mark.parametrize(
    "flags", [("--parallel", "2"), pytest.param((), marks=[IN_OVERLAY, pytest.mark.slow])]
)
def test_workers_and_sandboxes_prove_by_them_too(project: Project, flags: tuple[str, ...]) -> None:
    given(project, "test_T-001.py")
    project.tasks(A, B)
    project.git("commit", "-q", "-a", "-m", "tasks")
    script = f"[ $id = T-001 ] && touch price; [ $id = T-002 ] && touch out && {COMPLETE}"
    done = project.run(script, *flags, sandbox=not flags)
    assert (done.code, set(project.statuses().values())) == (0, {"done"}), done.err
    evidence = project.task("T-001")["evidence"]
    assert (evidence["named"], evidence["written"]) == ("T-001", [])
    assert project.task("T-002")["evidence"]["kind"] == "explicit"


def test_they_run_in_the_clean_room(project: Project) -> None:
    """On what would be committed: a file that git ignores proves nothing."""
    given(project, "test_T-001.py", proof="clean")
    (project.path / ".gitignore").write_text("price\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "ignore it")
    done = project.run("touch price", "-m", "1")
    assert (done.code, project.statuses()) == (3, {"T-001": "blocked"})
