"""Finding runs, and how they fare, without ever touching their lock."""

import json
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.errors import ConfigError, StateError
from ralph.files.state_dir import make_run_dir, project_dir
from ralph.journal.journal import FileJournal
from ralph.journal.life import Account, Life, life_of
from ralph.journal.lock import Lock, Owner, read_owner
from ralph.journal.runs import (
    Facts,
    Growing,
    Run,
    account_of,
    all_runs,
    find_run,
    look_again,
    prompt_of,
    read_tail,
    runs_of,
)
from ralph.kernel.facts import Began, Checking, Decided, Ended, Fact, Launching, Started
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.verdict import Boundary, Continue, Wait
from ralph.processes.procfs import start_time
from ralph.processes.signals import SignalFiles

ONE, TWO, THREE = "20260101-100000-aaaa", "20260102-100000-bbbb", "20260102-110000-cccc"
STARTED = Started(10.0, ONE, "harness", "/w", 1, "0.1", agent="claude")
BEGAN = Began(11.0, 1, Assignment("prompt", "Do it"))
LAUNCHING = Launching(12.0, Role.WORK, "claude", "/s/001.stream")
ENDED = Ended(20.0, Turn(cost_usd=0.5))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work" / "here"
    directory.mkdir(parents=True)
    return directory


def record(root: Path, workspace: Path, run: str, *facts: Fact) -> Run:
    """A run on disk with these facts."""
    project = project_dir(str(root), str(workspace))
    journal = FileJournal(os.path.join(make_run_dir(project, run), "journal.jsonl"))
    for fact in facts:
        journal.record(fact)
    journal.close()
    return Run(run, project)


def fares(run: Run) -> Life:
    """How it fares, as every command finds out."""
    return life_of(account_of(run), run.asked(), 30.0, live=run.live)


@pytest.fixture
def alive(root: Path, here: Path) -> Iterator[Run]:
    """A run whose process is this one, and that has written nothing yet."""
    project = project_dir(str(root), str(here))
    lock = Lock(os.path.join(project, "run.lock"))
    lock.acquire(TWO, 1.0)
    yield runs_of(project)[0]
    lock.release()


# ------------------------------------------------------------------ finding


def test_runs_are_found_newest_first(root: Path, here: Path) -> None:
    project = record(root, here, ONE).project
    record(root, here, THREE)
    (Path(project) / "runs" / "a-file").touch()
    assert [run.id for run in runs_of(project)] == [THREE, ONE]
    assert [run.id for run in all_runs(str(root))] == [THREE, ONE]


@pytest.mark.parametrize(
    ("part", "found"),
    [
        (ONE, ONE),
        ("aaaa", ONE),
        ("20260101", ONE),
        ("-110000-", THREE),
        (None, THREE),
    ],
)
def test_a_run_is_named_by_any_part_that_only_it_has(
    root: Path, here: Path, part: str | None, found: str
) -> None:
    for run in (ONE, TWO, THREE):
        record(root, here, run)
    assert find_run(str(root), str(here), part, "status").id == found


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("20260102", f"may be any of these runs: {THREE}, {TWO}"),
        ("zzzz", "there is no run 'zzzz'"),
        ("", "name is empty"),
        ("../..", "there is no run"),
        (" \t", "name is empty"),
    ],
)
def test_a_name_that_names_none_or_many(root: Path, here: Path, part: str, words: str) -> None:
    for run in (ONE, TWO, THREE):
        record(root, here, run)
    with pytest.raises(ConfigError, match="run") as caught:
        find_run(str(root), str(here), part, "logs")
    assert words in caught.value.message
    assert caught.value.remedy
    assert "ralph logs --all" not in caught.value.remedy, "there is no such flag"


def test_a_name_is_looked_for_here_first(root: Path, here: Path, tmp_path: Path) -> None:
    record(root, tmp_path / "there", "20260103-100000-aaaa")
    mine = record(root, here, ONE)
    assert find_run(str(root), str(here), "aaaa", "status") == mine
    assert find_run(str(root), str(here), "20260103", "status").id == "20260103-100000-aaaa"


def test_the_live_run_comes_before_a_newer_one(root: Path, here: Path, alive: Run) -> None:
    record(root, here, THREE)
    assert find_run(str(root), str(here), None, "status") == alive


@pytest.mark.parametrize(
    ("other", "remedy"),
    [
        (None, "Start one: ralph run"),
        ("work", "ralph logs -C "),
        ("elsewhere", "ralph status --all"),
    ],
)
def test_where_there_is_no_run_the_remedy_knows_where_there_is(
    root: Path, here: Path, tmp_path: Path, other: str | None, remedy: str
) -> None:
    if other:
        record(root, tmp_path / other, ONE)
    with pytest.raises(ConfigError, match="no run was started in") as caught:
        find_run(str(root), str(here), None, "logs")
    assert remedy in caught.value.remedy


def test_a_remedy_can_be_typed_whatever_the_directory_is_called(root: Path, tmp_path: Path) -> None:
    above = tmp_path / "it's my work; really"
    (above / "sub").mkdir(parents=True)
    record(root, above, ONE)
    with pytest.raises(ConfigError) as caught:
        find_run(str(root), str(above / "sub"), None, "logs")
    command = caught.value.remedy.partition(": ")[2]
    assert shlex.split(command) == ["ralph", "logs", "-C", str(above)]


# ------------------------------------------------------------------ whether it lives


def test_a_run_between_its_lock_and_its_directory_is_found(alive: Run) -> None:
    """ "A run between lock and Started fact has an empty journal"."""
    assert alive.live
    assert not os.path.exists(alive.directory)
    assert account_of(alive) == Account()
    assert fares(alive) is Life.RUNNING
    assert look_again(alive).live


@pytest.mark.parametrize(
    "owner",
    [
        {"pid": os.getpid(), "start": "1", "run": TWO, "since": 1.0},  # the pid was used again
        {"pid": 2**22 + 7, "start": "1", "run": TWO, "since": 1.0},
        {"pid": -1, "start": "", "run": TWO, "since": 1.0},
        {"pid": 2**70, "start": "", "run": TWO, "since": 1.0},
        {"pid": "x"},
        [],
        {"pid": math.inf, "start": "1", "run": TWO, "since": 1.0},
        {"pid": math.nan, "start": "1", "run": TWO, "since": 1.0},
        {"pid": [1], "start": "1", "run": TWO, "since": 1.0},
        {"pid": 1e300, "start": "1", "run": TWO, "since": 1.0},
        {"pid": os.getpid(), "start": start_time(os.getpid()), "run": TWO, "since": 10**400},
        *(
            {"pid": os.getpid(), "start": start_time(os.getpid()), "run": name, "since": 1.0}
            for name in ("../x", "..", "", "a\0b", "\ud800", "a\nb")
        ),
    ],
)
def test_an_owner_that_is_gone_or_nonsense_is_no_owner(
    root: Path, here: Path, owner: object
) -> None:
    run = record(root, here, TWO, STARTED)
    (Path(run.project) / "run.lock").write_text(json.dumps(owner))
    (found,) = runs_of(run.project)
    assert not found.live
    assert fares(found) is Life.CRASHED


def test_a_process_that_is_not_reaped_yet_is_gone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = Owner(process.pid, start_time(process.pid), ONE, 1.0)
        assert owner.is_alive()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not owner.is_alive()


def test_looking_does_not_take_the_lock(root: Path, here: Path, alive: Run) -> None:
    path = os.path.join(alive.project, "run.lock")
    owner = read_owner(path)
    assert owner is not None
    assert (owner.pid, owner.run) == (os.getpid(), TWO)
    assert read_owner(path) == owner


def test_a_request_to_pause_is_seen_from_outside(root: Path, here: Path, alive: Run) -> None:
    record(root, here, TWO, STARTED, Decided(11.0, Boundary.OPENING, Wait(None, "paused")))
    assert fares(alive) is Life.RUNNING
    SignalFiles(alive.directory).ask(SignalFiles.PAUSE)
    assert fares(alive) is Life.PAUSED


# ------------------------------------------------------------------ what a journal tells


def test_an_account_of_a_run_that_was_cut_off(root: Path, here: Path) -> None:
    run = record(root, here, ONE, STARTED, BEGAN, LAUNCHING)
    account = account_of(run)
    assert account.started == STARTED
    assert account.doing == account.launch == LAUNCHING
    assert account.state.iteration == 1
    assert fares(run) is Life.CRASHED


def test_a_commit_message_is_not_the_last_turn(root: Path, here: Path) -> None:
    message = Launching(23.0, Role.MESSAGE, "text", "/s/001.message.stream")
    account = account_of(record(root, here, ONE, STARTED, BEGAN, LAUNCHING, ENDED, message))
    assert (account.doing, account.launch) == (message, LAUNCHING)


def test_a_check_is_under_way_until_the_next_fact(root: Path, here: Path) -> None:
    checking = Checking(21.0, "make test")
    run = record(root, here, ONE, STARTED, BEGAN, LAUNCHING, ENDED, checking)
    assert account_of(run).doing == checking


def test_a_torn_last_line_is_left_out(root: Path, here: Path) -> None:
    run = record(root, here, ONE, STARTED, BEGAN, ENDED)
    path = Path(run.journal)
    path.write_bytes(path.read_bytes()[:-7])
    account = account_of(run)
    assert account.state.turn is None
    assert account.problem == ""


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text.replace(b"harness", b"Harness"), ":1: this line was changed"),
        (lambda text: text.replace(b"Do it", b"Do that"), ":2: this line was changed"),
        (lambda text: b"\0\xff" * 500 + b"\n" + text, ":1: this line was changed"),
    ],
)
def test_a_changed_line_is_named_and_what_stands_before_it_is_kept(
    root: Path, here: Path, damage: object, words: str
) -> None:
    run = record(root, here, ONE, STARTED, BEGAN, ENDED)
    path = Path(run.journal)
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    account = account_of(run)
    assert words in account.problem
    assert (account.started is None) == (":1:" in words)
    assert fares(run) is Life.UNKNOWN


def test_facts_that_make_no_sense_are_a_problem_and_no_traceback(root: Path, here: Path) -> None:
    run = record(root, here, ONE, STARTED, Decided(11.0, Boundary.CLOSING, Continue()))
    assert "make no sense" in account_of(run).problem


@pytest.mark.parametrize("kind", ["directory", "pipe", "forbidden"])
def test_a_journal_that_cannot_be_read_is_a_problem(root: Path, here: Path, kind: str) -> None:
    run = record(root, here, ONE)
    os.unlink(run.journal)
    if kind == "directory":
        os.mkdir(run.journal)
    elif kind == "pipe":
        os.mkfifo(run.journal)
    else:
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        Path(run.journal).touch(mode=0o000)
    assert "cannot read" in account_of(run).problem


def test_a_fact_of_another_version_is_named(root: Path, here: Path) -> None:
    from ralph.journal.journal import SEED, chained

    run = record(root, here, ONE)
    body = '{"type":"from_the_future"'
    digest = chained(f"{body}}}", SEED)
    Path(run.journal).write_text(f'{body},"hash":"{digest}"}}\n')
    assert ":1: not a fact" in account_of(run).problem


# ------------------------------------------------------------------ files that grow


def test_facts_come_as_they_are_written(root: Path, here: Path) -> None:
    run = record(root, here, ONE)
    facts = Facts(run.journal)
    journal = FileJournal(run.journal)
    assert list(facts.new()) == []
    journal.record(STARTED)
    journal.record(BEGAN)
    assert list(facts.new()) == [STARTED, BEGAN]
    journal.record(ENDED)
    journal.close()
    assert list(facts.new()) == [ENDED]


def test_a_torn_line_that_is_taken_away_was_never_there(tmp_path: Path) -> None:
    """A run that goes on cuts it off, and may have written more by the time that anybody looks."""
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"one\ntorn off in the mid")
    lines = Growing(str(path))
    assert list(lines.lines()) == [b"one\n"]
    path.write_bytes(b"one\ntwo\nthree is longer than what was torn\n")
    assert list(lines.lines()) == [b"two\n", b"three is longer than what was torn\n"]
    assert list(lines.lines()) == []


def test_a_line_is_told_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    lines = Growing(str(path))
    assert list(lines.lines()) == []
    with path.open("ab", 0) as file:
        file.write(b"one\ntw")
        assert list(lines.lines()) == [b"one\n"]
        assert lines.rest == b"tw"
        file.write(b"o\n")
        assert list(lines.lines()) == [b"two\n"]


def test_a_pipe_in_place_of_a_file_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StateError, match="not a regular file"):
        list(Growing(str(tmp_path / "pipe")).blocks())


@pytest.mark.parametrize(
    ("content", "tail"),
    [
        (b"", b""),
        (b"one\ntwo\n", b"one\ntwo\n"),
        (b"0123456789\none\ntwo", b"one\ntwo"),
        (b"one\n" + b"x" * 20, b"x" * 10),  # no whole line: better than nothing
    ],
)
def test_the_end_of_a_file_begins_with_a_whole_line(
    tmp_path: Path, content: bytes, tail: bytes
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert read_tail(str(tmp_path / "file"), 10) == tail


def test_what_cannot_be_read_has_no_end(tmp_path: Path) -> None:
    assert read_tail(str(tmp_path / "none"), 10) == b""
    assert read_tail(str(tmp_path), 10) == b""


def test_the_prompt_lies_beside_the_stream(tmp_path: Path) -> None:
    (tmp_path / "001.review.prompt").write_bytes(b"Review \xff it")
    launch = Launching(1.0, Role.REVIEW, "text", str(tmp_path / "001.review.stream"))
    assert prompt_of(launch) == "Review \udcff it"
    assert prompt_of(LAUNCHING) == ""
