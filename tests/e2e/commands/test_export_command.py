"""`ralph export`: real runs of every loop for other tools; where that is written, and what goes
wrong."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from backlog_support import Project, project
from parallel_support import run as run_crew
from parallel_support import tasks
from prd_support import story
from run_support import Here, assert_clear, journals, prepare, program, ralph
from story_support import StoryProject
from story_support import project as stories

from kits.export import traces, trajectories
from kits.export.collector import Answer, FakeCollector
from ralph.files.state_dir import state_root
from ralph.journal.ledger import read_ledger
from ralph.journal.runs import find_run
from ralph.journal.spending import total
from ralph.testing.scripted_agent.install import install_agent

__all__ = ["project", "stories"]

KEY = "sk-ant-" + "a1b2c3d4e5f6g7h8"
TURNS = (
    {"text": f"All done, I think. {KEY}", "response": "DONE", "cost": 0.25},
    {
        "tools": [{"name": "Write", "input": {"file_path": "greet.py"}, "output": "Written."}],
        "files": {"greet.py": "print('hello')\n"},
        "response": "DONE",
        "usage": {"input": 900, "output": 50},
        "cost": 0.5,
    },
    {"text": "Add greet"},  # the commit message
)


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def ended(repo: Path, here: Here) -> str:
    """A run whose first claim was not believed, and whose work is committed; its id."""
    checks = [{"command": "test -e greet.py"}]
    prepare(repo, *TURNS, guardrails=checks, scm={"tasks": ["commit"]})
    assert here("-p", "Write greet.py").code == 0
    return journals()[-1].parent.name


def assert_exported(here: Here) -> trajectories.Trajectory:
    """Every format is valid, and says what the ledger says."""
    run = find_run(state_root(os.environ), os.getcwd(), None, "export")
    spent = total(entry for entry in read_ledger(run.project) if entry.run == run.id)
    usage = spent.usage
    expected = pytest.approx((usage.all_input, usage.output, usage.cache_read, spent.cost_usd))
    told = {}
    for kind in ("atif", "otlp", "json"):
        done = here("export", "--format", kind)
        assert (done.code, done.err) == (0, "")
        told[kind] = done.out
    found = trajectories.trajectory(told["atif"])
    assert trajectories.final(found) == trajectories.sums(found) == expected
    spans = traces.request(told["otlp"]).spans
    traces.tree(spans)
    assert traces.sums(spans) == expected
    totals = json.loads(told["json"])["totals"]
    assert (totals["cost_usd"] or 0.0) == pytest.approx(spent.cost_usd)
    assert totals["usage"]["output"] == usage.output
    return found


# ------------------------------------------------------------------ loops


def test_a_run_of_a_prompt(here: Here, ended: str) -> None:
    found = assert_exported(here)
    assert found.trajectory_id == ended
    assert trajectories.final(found)[3] > 0.75  # with that of the commit message
    roles = [step.extra["role"] for step in found.of("user") if step.extra]
    assert roles == ["work", "work", "message"]
    assert "test -e greet.py" in found.of("user")[1].message  # what the first turn was told
    said = "\n".join(step.message for step in found.of("system"))
    assert "Not done yet" in said
    assert "believed" in said
    assert KEY not in str(found)


@pytest.mark.slow
def test_a_backlog_by_several_workers(project: Project, here: Here) -> None:
    tasks(project, "T-1", "T-2")
    project.settings(agent={"kind": "claude"})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "settings")
    said = {
        "type": "result",
        "result": "<promise>COMPLETE</promise>",
        "total_cost_usd": 0.25,
        "usage": {"input_tokens": 70, "output_tokens": 30},
    }
    done = run_crew(project, f"echo $id > $id; echo '{json.dumps(said)}'", workers=2)
    assert done.code == 0, done.err
    found = assert_exported(here)
    assert trajectories.final(found) == (140, 60, 0, 0.5)
    assert len(found.subagent_trajectories) == 2
    alone = here("export", found.subagent_trajectories[0].trajectory_id)
    one = trajectories.trajectory(alone.out)
    assert trajectories.final(one) == trajectories.sums(one) == (70, 30, 0, 0.25)


@pytest.mark.slow
def test_stories_and_their_reviews(stories: StoryProject, here: Here) -> None:
    stories.stories(story(1))
    assert stories.run().code == 0
    found = assert_exported(here)
    told = [step.extra or {} for step in found.of("user")]
    assert [(extra["role"], extra["mode"]) for extra in told] == [
        ("work", "implement"),
        ("review", "review"),
    ]


def test_attempts_at_a_task(workspace: Path, here: Here) -> None:
    words = 'echo "I tried."; echo x >> n; [ "$(wc -l < n)" -gt 1 ] && touch "$TASK_FOLDER/DONE"'
    agent = program(workspace.parent / "worker", words)
    task = ("--task-dir", str(workspace / "shop" / "login"), "--restart-delay", "0")
    assert here("supervise", *task, "-p", "Build it", "--", agent).code == 0
    found = assert_exported(here)
    assert [step.message for step in found.of("agent")] == ["I tried.\n"] * 2
    assert "Continue working" in found.of("user")[1].message


def test_a_plan(project: Project, here: Here) -> None:
    one = {"title": "Say hello", "description": "In greet.py", "type": "feature"}
    answer = {"text": f"<tasks>{json.dumps([one])}</tasks>", "cost": 0.25}
    agent = install_agent(str(project.path.parent / "bin"), [answer], kind="claude")
    done = ralph("tasks", "plan", "--agent", agent, "--no-sandbox", "Greet people")
    assert done.code == 0, done.err
    assert trajectories.final(assert_exported(here))[3] == 0.25


# ------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("name", "words", "kind"),
    [
        ("run.json", (), "atif"),
        ("run.otlp.json", (), "otlp"),
        ("run.otlp", ("--format", "json"), "json"),
        ("run", (), "atif"),
    ],
)
def test_a_file_is_replaced_by_the_whole(
    here: Here, ended: str, tmp_path: Path, name: str, words: tuple[str, ...], kind: str
) -> None:
    path = tmp_path / name
    path.write_text("before")
    done = here("export", ended[-4:], "-o", str(path), *words)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{path}  (")
    read: dict[str, Callable[[str], object]] = {
        "atif": trajectories.trajectory,
        "otlp": traces.request,
        "json": lambda text: json.loads(text)["entries"],
    }
    assert read[kind](path.read_text())
    assert [each.name for each in tmp_path.glob("run*")] == [name]


def test_a_new_file_is_for_its_owner_alone(here: Here, ended: str, tmp_path: Path) -> None:
    assert here("export", "-o", str(tmp_path / "x")).code == 0
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600
    assert here("export", "-o", "-", "--format", "otlp").out.startswith('{"resourceSpans":')
    assert here("export", "-o", os.devnull).code == 0


def test_what_cannot_be_written_leaves_what_was_there(
    here: Here, ended: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept"
    path.write_text("before")
    with monkeypatch.context() as patch:
        patch.setattr("ralph.export.atif._Telling.tell", lambda _: 1 / 0)
        assert here("export", "-o", str(path)).code == 70
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("kept")] == ["kept"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody",), "there is no run 'nobody'"),
        (("-o", "no/such/x.json"), "cannot write no/such/x.json: No such file"),
        (("-o", "."), "cannot write .: Is a directory"),
        (("-o", "new/"), "cannot write new/: Is a directory"),
        (("-o", "README.md/x"), "cannot write README.md/x: Not a directory"),
        (("--format", "xml"), "'xml'"),
        (("--content",), "--content is for --format otlp"),
    ],
)
def test_what_makes_no_sense(here: Here, ended: str, words: tuple[str, ...], said: str) -> None:
    done = here("export", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_directory_without_runs_and_a_run_without_a_journal(
    here: Here, workspace: Path, ended: str
) -> None:
    journal = journals()[-1]
    text = journal.read_text()
    journal.write_text(text.replace("Write greet.py", "Write great.py", 1))
    done = here("export")
    assert done.code == 1
    assert trajectories.trajectory(done.out).extra
    assert_clear(done, 1, "was changed after it was written")
    journal.unlink()
    assert_clear(here("export"), 2, "has no journal")
    journal.mkdir()
    (workspace / "kept.json").write_text("kept")
    assert_clear(here("export", "-o", "kept.json"), 2, "Is a directory")
    assert (workspace / "kept.json").read_text() == "kept"


# ------------------------------------------------------------------ collectors


def test_a_trace_goes_to_the_collector_that_is_named(
    here: Here, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeCollector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        done = here("export", "--format", "otlp")
        assert (done.code, done.err) == (0, "")
        spans = len(collector.spans)
        assert done.out == f"{spans} spans in 1 request to {collector.url}/v1/traces\n"
        assert "Write greet.py" not in str(collector.posts)
        name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
        monkeypatch.setenv(name, "True")
        assert here("export", "--format", "otlp").code == 0
        assert "Write greet.py" in str(collector.posts)
        assert KEY not in str(collector.posts)
        assert here("export").out.startswith('{"schema_version"')  # which no collector takes
        assert len(collector.posts) == 2
    traces.tree(collector.spans[:spans])


def test_a_collector_that_refuses(here: Here, ended: str, monkeypatch: pytest.MonkeyPatch) -> None:
    some = json.dumps({"partialSuccess": {"rejectedSpans": 2, "errorMessage": "too old"}})
    with FakeCollector([Answer(body=some), Answer(403)]) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        done = here("export", "--format", "otlp")
        assert_clear(done, 1, "The collector rejected 2 spans: too old")
        assert_clear(
            here("export", "--format", "otlp"), 2, "answers 403", "OTEL_EXPORTER_OTLP_HEADERS"
        )
