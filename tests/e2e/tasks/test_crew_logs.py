"""`ralph logs` of a run by several workers: all of them, in the order of time."""

import re
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Json, Project, project  # noqa: F401  a fixture
from run_support import Done, Here, Running, assert_clear, journals

pytestmark = pytest.mark.slow

SCRIPT = f'echo "words of $id"; echo "$id" > "$id"; {COMPLETE}'
TIME = re.compile(r"^((?:T-\d \| )?)\d\d:\d\d:\d\d ")


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def tasks(project: Project, count: int) -> None:  # noqa: F811
    project.tasks(*({"id": f"T-{n}", "title": f"Task {n}"} for n in range(1, count + 1)))


@pytest.fixture
def done(project: Project) -> Done:  # noqa: F811
    """A run of four tasks that is over."""
    tasks(project, 4)
    done = project.run(SCRIPT, "--parallel", "2", "--no-timestamps")
    assert done.code == 0, done.err
    return done


def said(text: str) -> list[str]:
    """Its lines without times, as the console has them."""
    return [TIME.sub(r"\1[ralph] ", line) for line in text.splitlines()]


def of(tag: str, lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(tag)]


def test_the_log_is_what_the_run_said(here: Here, done: Done) -> None:
    """Each line "with `T-003 | ` in front as on the run's own console"."""
    day, *lines = said(here("logs").out)
    assert re.fullmatch(r"\w+ \d{4}-\d\d-\d\d", day)
    for tag in ("T-1 | ", "T-2 | ", "T-3 | ", "T-4 | "):
        assert of(tag, lines) == of(tag, done.err.splitlines())
        assert f"{tag}[ralph] Iteration 1/10 starting" in lines
    own = of("[ralph]", done.err.splitlines())
    assert of("[ralph]", lines) == own[-len(of("[ralph]", lines)) :]
    assert any("[ralph] Completed after 4 iterations" in line for line in lines[-7:])
    assert len(lines) == len(of("T-", lines)) + len(of("[ralph]", lines)), "one day, told once"


def test_the_order_is_that_of_time(here: Here, done: Done) -> None:
    lines = said(here("logs").out)
    for n in range(1, 5):
        order = [f"T-{n} | [ralph] Task T-{n}: Task {n}"]
        order.append(f"T-{n} | [ralph] Committed: T-{n}: Task {n}")
        places = [lines.index(line) for line in order]
        places += [i for i, line in enumerate(lines) if line.startswith(f"[ralph] T-{n} is done")]
        assert len(places) == 3
        assert places == sorted(places)
    times = [line["time"] for line in here("logs", "--json").objects if line["type"] != "event"]
    assert times == sorted(times)


def test_events_stand_with_their_worker(here: Here, done: Done) -> None:
    lines = here("logs", "--events").out.splitlines()
    for n in range(1, 5):
        assert f"T-{n} |          words of T-{n}" in lines


def test_objects_have_their_task(here: Here, done: Done) -> None:
    """`--json`: "each object has the worker's `run`, add `task`"; there is one last line."""
    told = here("logs", "--json").objects
    run = journals()[0].parent.name
    sent = {line["worker"]: line["assignment"]["task"] for line in told if "assignment" in line
            and line["type"] == "assigned"}  # fmt: skip
    assert sent == {f"{run}-00{n}": f"T-{n}" for n in range(1, 5)}
    workers = [line for line in told if line["run"] != run]
    assert workers
    assert all(line["task"] == sent[line["run"]] for line in workers)
    assert {line["type"] for line in workers} >= {"began", "event", "ended", "settled"}
    assert [line["type"] for line in told].count("stop") == 1
    assert told[-1]["type"] == "stop"
    assert {line["worker"] for line in told if line["type"] == "returned"} == set(sent)


def test_json_is_what_the_run_printed(project: Project, here: Here) -> None:  # noqa: F811
    tasks(project, 3)
    printed = project.run(SCRIPT, "--parallel", "2", "--json").objects
    told = here("logs", "--json").objects
    for run in {line["run"] for line in printed}:
        assert facts_of(run, told) == facts_of(run, printed)
        assert words_of(run, told) == words_of(run, printed)
    assert told[-1] == {**printed[-1], "time": told[-1]["time"]}


def facts_of(run: str, lines: list[Json]) -> list[Json]:
    own = ("event", "stop")  # an event has the time of the fact behind it
    return [line for line in lines if line["run"] == run and line["type"] not in own]


def words_of(run: str, lines: list[Json]) -> str:
    """What its agent said, in however many pieces it came."""
    events = (line for line in lines if line["run"] == run and line["type"] == "event")
    return "".join(str(event.get("text", "")) for event in events)


def test_raw_is_the_journal_of_the_run(here: Here, done: Done) -> None:
    assert here("logs", "--raw").out.encode() == journals()[0].read_bytes()
    (worker,) = journals()[0].parent.glob("runs/*-003/journal.jsonl")
    assert here("logs", "--raw", worker.parent.name).out.encode() == worker.read_bytes()


def test_raw_events_are_whole_turns(here: Here, done: Done) -> None:
    """Nobody's bytes stand within another's."""
    turn = r"words of (T-\d)\n<promise>COMPLETE</promise>\n"
    text = here("logs", "--raw", "--events").out
    assert sorted(re.findall(turn, text)) == ["T-1", "T-2", "T-3", "T-4"]
    assert re.fullmatch(f"(?:{turn})*", text)


def test_the_last_lines_are_those_of_all(here: Here, done: Done) -> None:
    whole = here("logs").out.splitlines()
    assert here("logs", "-n", "5").out.splitlines() == whole[-5:]


def test_one_worker_can_be_named(here: Here, done: Done) -> None:
    run = journals()[0].parent.name
    lines = said(here("logs", f"{run[-4:]}-003").out)
    assert lines[1] == "[ralph] Task T-3: Task 3"
    assert not [line for line in lines if "T-1" in line]
    assert any("Completed after 1 iteration" in line for line in lines[-4:])
    assert here("logs", f"{run}-003", "--json").objects[-1]["type"] == "stop"


def test_tags_are_faint_where_there_are_colours(here: Here, done: Done) -> None:
    assert "\x1b[2mT-1 | \x1b[0m" in here("logs", "--color").out
    assert "\x1b" not in here("logs").out


def test_a_worker_whose_journal_was_changed_is_named(here: Here, done: Done) -> None:
    (worker,) = journals()[0].parent.glob("runs/*-003/journal.jsonl")
    worker.write_text(worker.read_text().replace("Task 3", "Task 9"))
    assert_clear(here("logs"), 2, str(worker))


# ------------------------------------------------------------------ following


def other(project: Project, name: str, *arguments: str) -> tuple[Running, Path]:  # noqa: F811
    """A second `ralph` beside a run, and where its output is."""
    directory = project.path.parent / name
    directory.mkdir()
    return Running(directory / "unused", *arguments), directory / "stdout"


def test_following_shows_workers_that_are_sent_later(project: Project) -> None:  # noqa: F811
    """`-f` "follows all of them, workers that are sent later too", to the end of the run."""
    tasks(project, 4)
    script = f"""echo "words of $id"
    while [ ! -e "$NOTES/go-$id" ]; do sleep 0.02; done; echo "$id" > "$id"; {COMPLETE}"""
    words = ("tasks", "run", "--agent", project.agent(script), "--no-sandbox", "--parallel", "2")
    running = Running(project.path, *words)
    running.await_that(lambda: project.turns("T-1") and project.turns("T-2"))
    run = journals()[0].parent.name
    follower, out = other(project, "all", "logs", "-f", "--events")
    one, own = other(project, "one", "logs", "-f", f"{run}-002")
    follower.await_that(lambda: "T-1 |          words of T-1" in out.read_text())
    follower.await_that(lambda: "T-2 |          words of T-2" in out.read_text())
    assert "T-3" not in out.read_text()
    (project.notes / "go-T-2").touch()
    follower.await_that(lambda: "T-3 |          words of T-3" in out.read_text())
    assert one.end().code == 0, "its run has ended, though the other goes on"
    assert "Committed: T-2: Task 2" in own.read_text()
    assert running.process.poll() is None
    for n in (1, 3, 4):
        (project.notes / f"go-T-{n}").touch()
    assert running.end().code == 0
    assert follower.end().code == 0
    assert "Completed after 4 iterations" in out.read_text()
    assert sorted(re.findall(r"words of (T-\d)", out.read_text())) == ["T-1", "T-2", "T-3", "T-4"]


def test_a_killed_run_breaks_off(project: Project, here: Here) -> None:  # noqa: F811
    tasks(project, 2)
    script = 'echo "words of $id"; while :; do sleep 0.02; done'
    words = ("tasks", "run", "--agent", project.agent(script), "--no-sandbox", "--parallel", "2")
    running = Running(project.path, *words)
    running.await_that(lambda: here("logs", "--events").out.count("words of") == 2)
    running.process.kill()
    running.process.wait()
    told = here("logs", "--events")
    assert told.out.count("words of") == 2
    assert "Here it breaks off" in told.err
