"""`ralph report`: real runs as a page, as Markdown and as data, and where these are written."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project
from parallel_support import run as run_crew
from parallel_support import tasks
from run_support import Here, Running, assert_clear, journals, prepare, program, ralph

from ralph.testing.scripted_agent.install import calls
from ralph.text.redact import forget

__all__ = ["project"]

EVIL = "<script>alert('owned')</script>"
LIES = {"text": f"All done, I think. {EVIL}", "response": "DONE", "cost": 0.25}
DOES = {
    "text": "Now it is.",
    "files": {"greet.py": "print('hello')\n"},
    "tools": [{"name": "Write", "input": {"file_path": "greet.py"}, "output": "Written."}],
    "response": "DONE",
    "cost": 0.5,
    "usage": {"input": 900, "output": 50},
}
CHECK = {"command": "test -e greet.py", "hint": "Write greet.py."}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def ended(repo: Path, here: Here) -> str:
    """A run whose first claim was not believed; its id."""
    prepare(repo, LIES, DOES, {"text": "Add greet"}, guardrails=[CHECK], scm={"tasks": ["commit"]})
    assert here("-p", "Write greet.py", "--max-cost", "5").code == 0
    return journals()[-1].parent.name


def test_the_page_of_a_run_tells_all_of_it(repo: Path, here: Here, ended: str) -> None:
    """Also what nobody else shows: which claim was not believed, by which rule, and why."""
    done = here("report")
    path = repo / ".ralph" / f"report-{ended}.html"
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{path}  (")
    page = path.read_text("utf-8")
    assert ">Completed<" in page
    assert "Write greet.py" in page
    assert "1 claim was not believed" in page
    assert "test -e greet.py: exit code 1" in page
    assert "by the rule <code>Objections</code>: " in page
    assert "print(&#x27;hello&#x27;)" in page  # of the patch
    assert "&lt;script&gt;alert(&#x27;owned&#x27;)" in page
    assert "<script" not in page
    assert "$0.75" in page
    assert path.stat().st_mode & 0o077 == 0
    status = subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True)
    assert b"report-" not in status.stdout  # no turn and no commit will see it


def test_markdown_and_data_go_to_stdout(here: Here, ended: str) -> None:
    text = here("report", "--format", "md").out
    assert text.startswith(f"## ✅ Completed: `{ended}`\n")
    assert "Iteration 1 said **DONE**; not believed: test -e greet.py: exit code 1" in text
    assert EVIL not in text
    data = json.loads(here("report", "--json").out)
    assert (data["run"], data["state"], data["exit"]) == (ended, "completed", 0)
    assert [i["judgement"]["verdict"] for i in data["iterations"]] == ["continue", "accept"]
    assert data["iterations"][0]["items"][0]["text"].startswith("All done, I think.")
    assert json.loads(here("report", ended, ended, "--format", "json").out)["run"] == ended
    assert here("report", "-o", "-").out.startswith("<!doctype html>")


def test_a_file_is_written_where_it_is_wanted(
    repo: Path, here: Here, ended: str, tmp_path: Path
) -> None:
    ours = repo / ".ralph" / f"report-{ended}.html"
    assert here("report", "-o", "night.md").out == "night.md\n"  # its name says what it is to be
    assert Path("night.md").read_text().startswith("## ✅")
    Path("night.md").write_text("mine")
    assert here("report", "--format", "html", "-o", "night.md").code == 0  # it was named
    assert Path("night.md").read_text().startswith("<!doctype html>")
    assert here("report", "-o", "night.JSON").code == 0
    assert json.loads(Path("night.JSON").read_text())["run"] == ended
    assert here("report").code == here("report").code == 0  # its own is written again
    ours.write_text("mine")
    assert_clear(here("report"), 2, f"{ours} is no report of Ralph's", "-o FILE")
    assert ours.read_text() == "mine"
    ours.unlink()
    ours.symlink_to(tmp_path / "elsewhere")
    assert_clear(here("report"), 2, f"{ours} is no report of Ralph's")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("path", ["no/such/place.html", "/dev/full", ".ralph"])
def test_a_place_that_cannot_be_written_is_told(here: Here, ended: str, path: str) -> None:
    assert_clear(here("report", "-o", path), 2, f"cannot write {path}: ", "-o FILE")


def test_what_cannot_be_meant_is_refused(here: Here, ended: str, workspace: Path) -> None:
    assert_clear(here("report", "nonsense"), 2, "there is no run 'nonsense'", "ralph status --all")
    assert_clear(here("report", "--json", "--format", "md"), 2, "exclude each other")
    assert_clear(here("report", "--json", "--open"), 2, "--open shows a page")
    assert_clear(here("report", "--format", "pdf"), 2, "'pdf' is not one of")


def test_without_any_run_the_next_command_is_named(here: Here, workspace: Path) -> None:
    assert_clear(here("report"), 2, f"no run was started in {workspace}", "ralph run")
    assert not (workspace / ".ralph").exists()


def test_what_git_kept_is_shown_without_the_secrets_of_the_settings(repo: Path, here: Here) -> None:
    secret = "a-word-of-no-known-shape-4711"
    leak = {"tools": [{"name": "Bash", "run": 'echo "$SHOP_TOKEN" > leak.txt'}], "text": "x"}
    done = {"tools": [{"name": "Bash", "run": "rm leak.txt"}], "response": "DONE"}
    env = {"env": {"set": {"SHOP_TOKEN": secret}}}
    prepare(repo, leak, done, agent=env, guardrails=[{"command": "true"}])
    assert here("run", "-p", "x").code == 0
    forget()  # as another terminal does
    said = here("report", "--json").out
    assert "+[redacted]" in json.loads(said)["iterations"][0]["diff"]["patch"]
    assert secret not in said


@pytest.mark.slow
def test_a_pipe_in_place_of_a_file_holds_nobody_up(ended: str) -> None:
    """An agent may put it there, with or without a sandbox."""
    (journal,) = journals()
    run = journal.parent
    paths = [*run.iterdir(), *run.parents[1].iterdir(), Path(".git", "info", "exclude")]
    files = [path for path in paths if path.is_file()]
    assert {"git.json", "plan.json", "ledger.jsonl", "001.prompt"} <= {path.name for path in files}
    for path in files:
        kept = path.rename(path.with_name("kept"))
        os.mkfifo(path)
        for words in (("report", "--json", ended), ("list",), ("resume", ended)):
            assert ralph(*words).code in (0, 2), (path, words)
        path.unlink()
        kept.rename(path)


def test_open_asks_a_browser_and_never_fails_without_one(
    repo: Path, ended: str, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    browser = program(tmp_path / "browser", f'echo "$1" > {seen}')
    done = ralph("report", "--open", env={"BROWSER": browser})
    assert done.code == 0
    assert seen.read_text().strip() == f"file://{repo}/.ralph/report-{ended}.html"
    none = {"BROWSER": "false", "PATH": "/nowhere", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    done = ralph("report", "--open", env=none)
    assert (done.code, "There is no browser here" in done.err) == (0, True)


def test_a_run_that_goes_on_is_reported_as_it_is(workspace: Path, here: Here) -> None:
    until = {"tools": [{"name": "Bash", "run": "until [ -e go ]; do sleep 0.02; done"}]}
    agent = prepare(workspace, {**until, "text": "Wait", "response": "DONE"})
    going_on = Running(workspace, "-p", "x")
    going_on.await_that(lambda: calls(agent))
    assert "⏳ Running" in here("report", "--format", "md").out
    assert ">Running<" in here("report", "-o", "-").out
    (workspace / "go").touch()
    assert going_on.end().code == 0


def test_attempts_of_a_supervised_task_are_reported(here: Here, workspace: Path) -> None:
    fails = '[ -e x ] && touch "$TASK_FOLDER/DONE"; touch x; [ -e "$TASK_FOLDER/DONE" ]'
    agent = program(workspace.parent / "agent", f"echo '{EVIL}'; {fails}")
    words = ("--task-dir", "shop/login", "--restart-delay", "0", "-p", "Build it", "--", agent)
    assert here("supervise", *words).code == 0
    page = here("report", "-o", "-").out
    assert ">Completed<" in page
    assert page.count('<details class="turn ') == 2
    assert "Build it" in page
    assert "&lt;script&gt;" in page


def test_a_journal_that_was_edited_is_part_of_the_report(here: Here, ended: str) -> None:
    (journal,) = journals()
    text = journal.read_text()
    journal.write_text(text.replace("Write greet.py", "Write nothing", 1).replace("0.25", "0.01"))
    done = here("report", "--format", "md")
    assert (done.code, "was changed" in done.out or "chain" in done.out) == (0, True), done.out


def test_runs_of_several_workers_are_compared_and_shown_alone(project: Project) -> None:
    tasks(project, "a", "b", "c")
    script = f'meet 2; [ "$n" -gt 1 ] || [ $id = a ] && echo "$id" > "$id.txt"; {COMPLETE}'
    assert run_crew(project, script, workers=2).code == 0
    first = journals()[-1].parent.name
    page = ralph("report", "-o", "-").out
    assert 'aria-label="3 tasks in ' in page
    alone = json.loads(ralph("report", f"{first}-001", "--json").out)
    assert (alone["lead"], len(alone["tasks"])) == (first, 1)
    both = ralph("report", first, f"{first}-002")
    path = os.path.join(project.path, ".ralph", "report-2-runs.html")
    assert both.out.startswith(path)
    assert 'href="#r1"' in Path(path).read_text("utf-8")
    assert not project.dirt()
