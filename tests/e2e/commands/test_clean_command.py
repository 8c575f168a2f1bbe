"""`ralph clean`: what old runs have left goes, what somebody could need stays."""

import fcntl
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import Here, Running, assert_clear, await_gone, journals, prepare, ralph

from ralph.testing.scripted_agent.install import calls

__all__ = ["project"]
DONE = {"response": "DONE", "cost": 0.25}
DAY = 24 * 3600.0


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def state() -> Path:
    return Path(os.environ["RALPH_STATE_DIR"])


def runs() -> list[str]:
    return [journal.parent.name for journal in journals()]


def leave_alone(path: Path, days: float) -> None:
    """Nothing was written there for so many days."""
    then = time.time() - days * DAY
    for each in (*path.rglob("*"), path):
        os.utime(each, (then, then), follow_symlinks=False)


def ended(here: Here, workspace: Path, *days: float) -> list[str]:
    """Runs that are complete, and were left alone for so many days."""
    prepare(workspace, *[DONE] * len(days))
    for each in days:
        before = runs()
        assert here("-p", "x").code == 0
        (new,) = set(runs()) - set(before)
        (path,) = state().glob(f"*/runs/{new}")
        leave_alone(path, each)
    return runs()


def cleaned(here: Here, *words: str) -> dict[str, Any]:
    done = here("clean", *words, "--json")
    assert done.code == 0, done.err
    told: dict[str, Any] = json.loads(done.out)
    return told


def names(told: dict[str, Any], key: str = "removed") -> list[str]:
    return sorted(each["name"] for each in told[key])


def test_old_runs_go_and_young_ones_and_the_newest_stay(workspace: Path, here: Here) -> None:
    first, second, third = ended(here, workspace, 40, 31, 29)
    told = cleaned(here, "--dry-run")
    assert names(told) == [first, second]
    assert told["bytes"] > 0
    assert runs() == [first, second, third], "a dry run removes nothing"
    assert names(cleaned(here, "--keep", "2")) == [first]
    done = here("clean")
    assert done.out.splitlines()[-1].startswith("Removed 1 run: ")
    assert second in done.out
    assert runs() == [third]
    assert "Nothing to remove" in here("clean", "--older", "0").out, "the newest stays"
    assert "$0.75" in here("status", "--spending").out, "what they cost is still known"
    assert names(cleaned(here, "--older", "0", "--keep", "0")) == [third]
    assert runs() == []


def test_refs_go_with_their_run_unless_a_task_needs_them(project: Project, here: Here) -> None:
    """A task goes on from the work that a run has saved."""
    project.tasks({"id": "A", "title": "a"})
    assert project.run('echo half > half; rm "$0"').code == 2
    assert project.task("A")["saved"]
    (run,) = runs()
    leave_alone(journals()[0].parent, 99)
    told = cleaned(here, "--keep", "0")
    assert names(told, "kept") == [run]
    assert told["kept"][0]["kept"] == "a task goes on from the work that it saved"
    assert f"refs/ralph/{run}/" in project.git("for-each-ref")
    assert project.run(f"{COMPLETE}").code == 0
    leave_alone(journals()[0].parent, 99)
    told = cleaned(here)
    assert names(told) == [run]
    assert told["removed"][0]["refs"]
    assert f"refs/ralph/{run}/" not in project.git("for-each-ref")


def test_runs_that_can_go_on_stay_for_a_month(workspace: Path, here: Here) -> None:
    agent = prepare(workspace, {"hang": "before"})
    running = Running(workspace, "-p", "x")
    running.await_that(lambda: calls(agent))
    words = ("--older", "0", "--keep", "0")
    leave_alone(journals()[0].parent, 31)
    assert cleaned(here, *words)["removed"] == [], "it goes on"
    running.send(signal.SIGKILL)
    running.end()
    await_gone(*(call["pid"] for call in calls(agent)))
    leave_alone(journals()[0].parent, 29)
    told = cleaned(here, *words)
    assert (names(told), names(told, "kept")) == ([], runs())
    assert told["kept"][0]["kept"] == "it can go on: ralph resume"
    leave_alone(journals()[0].parent, 31)
    assert len(cleaned(here, *words)["removed"]) == 1
    assert runs() == []


def test_sandboxes_go_with_their_run_or_when_they_are_nobodys(workspace: Path, here: Here) -> None:
    (run,) = ended(here, workspace, 40)
    place = journals()[0].parents[2]
    kinds = ("sandboxes", "held")
    own = [place / kind / f"{run}-001" for kind in kinds]
    nobodys = [place / kind / "20200101-000000-aaaaaa" for kind in kinds]
    landing, at_work = (place / "sandboxes" / f"2020010{n}-000000-bbbbbb" for n in (2, 3))
    for path in (*own, *nobodys, landing, at_work):
        (path / "upper").mkdir(parents=True)
        (path / "upper" / "file").write_text("x" * 10_000)
        (path / "lock").touch()
    (landing / "commit.json").write_text("{}")
    (own[0] / "upper").chmod(0)  # as overlayfs leaves it
    (place / "removed" / "half").mkdir(parents=True)  # of a clean that was killed
    for path in (place / "sandboxes", place / "held"):
        leave_alone(path, 40)
    with (at_work / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert names(cleaned(here)) == ["20200101-000000-aaaaaa"] * 2 + ["half"]
        assert all(path.exists() for path in own), "their run stays"
        assert names(cleaned(here, "--keep", "0")) == [run]
    assert sorted(place.glob("sandboxes/2*")) == [landing, at_work]
    assert not list(place.glob("held/*"))
    assert not (place / "removed").exists()


def test_only_this_directory_and_links_to_supervised_tasks(
    workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(here, workspace, 40)
    other = workspace.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    words = ("supervise", "--task-dir", "task", "--", "sh", "-c", 'touch "$TASK_FOLDER/DONE"')
    assert here(*words).code == 0
    (linked,) = state().glob("other-*/runs/*")
    assert linked.is_symlink()
    leave_alone(linked.resolve(), 40)
    assert names(cleaned(here, "--here", "--keep", "0")) == []
    assert len(cleaned(here, "--keep", "0")["removed"]) == 2
    assert not os.path.lexists(linked)


def test_an_agent_may_not(workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    ended(here, workspace, 40)
    monkeypatch.setenv("RALPH_RUN", "20260101-000000-0000")
    assert_clear(here("clean", "--keep", "0"), 2, "an agent may not remove the records of runs")
    assert runs()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--older", "soon"), "'soon' is not a duration"),
        (("--keep", "-1"), "-1 is less than nothing"),
        (("all",), "unexpected extra argument"),
    ],
)
def test_bad_input(workspace: Path, here: Here, words: tuple[str, ...], why: str) -> None:
    assert_clear(here("clean", *words), 2, why)


def test_there_is_nothing_yet(workspace: Path, here: Here) -> None:
    assert here("clean").out.startswith("Nothing to remove.")


def test_a_run_says_when_they_hold_much(workspace: Path) -> None:
    """It is measured when a run has ended, once a day."""
    prepare(workspace, DONE, DONE, DONE)
    assert "ralph clean" not in ralph("-p", "x").err
    kept = state() / "size.json"
    known = json.loads(kept.read_text())
    assert known["bytes"] > 0
    kept.write_text(json.dumps({**known, "bytes": 2_400_000_000}))
    words = f"Runs and sandboxes hold 2.4 GB in {state()}. See what could go: ralph clean --dry-run"
    assert words in ralph("-p", "x").err
    assert json.loads(kept.read_text())["bytes"] == 2_400_000_000, "it was measured today"
    kept.write_text("no JSON")
    assert "ralph clean" not in ralph("-p", "x").err
    assert json.loads(kept.read_text())["bytes"] == pytest.approx(known["bytes"], rel=3)
