"""`action.yml`: its steps run here, with a scripted agent, and nobody's input is a command."""

import json
import os
import re
import signal
import site
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from backlog_support import Project, project
from publish_support import QUICK, Shop, shop

from action.action_support import EXPRESSION, Ended, Runner, action, installed
from kits.examples import ROOT
from kits.forge.fake import Issue
from kits.forge.pictures import failed, passed
from ralph.testing.scripted_agent.install import calls, install_agent

__all__ = ["project", "shop"]

Json = dict[str, Any]
NIGHTLY = ROOT / "docs" / "examples" / "nightly.yml"
DONE = {"files": {"hello.txt": "hello\n"}, "response": "DONE", "cost": 0.25}
COMPLETE = {"files": {"hello.txt": "hello\n"}, "text": "<promise>COMPLETE</promise>"}
# Writes down how it was called and with which secrets, and ends like a run.
RECORDER = f"""#!{sys.executable}
import json, os, sys
names = ("GH_TOKEN", "GITHUB_TOKEN", "TOKEN", "PROMPT", "GIT_AUTHOR_NAME")
with open(os.environ["CALLS"], "a") as file:
    env = {{name: os.environ.get(name) for name in names}}
    print(json.dumps({{"argv": sys.argv[1:], "env": env}}), file=file)
if sys.argv[1:3] == ["tasks", "import"]:
    sys.exit(int(os.environ.get("IMPORTS", "0")))
if sys.argv[1] != "report":
    open("journal", "w").close()
    print(json.dumps({{"type": "stop", "reason": "limit", "run": "r-1", "log": "journal"}}))
    sys.exit(1)
"""


@pytest.fixture
def runner(project: Project, tmp_path: Path) -> Runner:
    temp = tmp_path / "runner"
    installed(temp)
    return Runner(project.path, temp, {}, skipped=("Install Ralph",))


@pytest.fixture
def recorder(project: Project, tmp_path: Path) -> Runner:
    """A runner whose Ralph only writes down how it was called."""
    temp = tmp_path / "runner"
    installed(temp, RECORDER)
    return Runner(project.path, temp, {"CALLS": str(tmp_path / "calls")}, ("Install Ralph",))


def called(runner: Runner) -> list[Json]:
    """How Ralph was called, reports aside."""
    path = Path(runner.environ["CALLS"])
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else ())
    return [each for each in lines if each["argv"][0] != "report"]


def agent(project: Project, *turns: Json) -> str:
    return install_agent(str(project.path.parent / "bin"), list(turns))


def on_forge(shop: Shop, temp: Path) -> Callable[..., Ended]:
    """The action beside this forge, with its token and an agent that works."""
    installed(temp)
    work = 'echo "$id" >> work.txt; echo "<promise>COMPLETE</promise>"'
    environ = {**shop.forge.environ, "GITHUB_TOKEN": "", "GH_TOKEN": ""}
    runner = Runner(shop.path, temp, environ, ("Install Ralph",))
    told = {"agent": shop.agent(work), "token": shop.forge.token, "args": "--no-sandbox"}
    return lambda **inputs: runner(**{**inputs, **told})


# ------------------------------------------------------------------ runs


def test_a_prompt_is_run_proven_and_reported(project: Project, runner: Runner) -> None:
    command = agent(project, DONE)
    ended = runner(prompt="Say hello\nto all", agent=command, max_iterations="3", model="opus")
    assert ended.code == 0, ended.log
    told = ended.outputs
    assert (told["exit-code"], told["verdict"]) == ("0", "completed")
    call, *_ = calls(command)
    assert call["prompt"].startswith("Say hello\nto all\n")
    assert "opus" in call["argv"]
    page = Path(told["report"])
    assert page.name == "report.html"
    assert told["run"] in page.read_text()
    assert "Completed" in ended.summary
    (upload,) = (ended.used[name] for name in ended.used if name.startswith("actions/upload-a"))
    kept = Path(upload["path"])
    assert sorted(path.name for path in kept.iterdir()) == ["journal.jsonl", "report.html"]
    assert upload["name"] == "ralph"
    (python,) = (ended.used[name] for name in ended.used if name.startswith("actions/setup-p"))
    assert python == {"python-version": "3.12"}


def test_a_prompt_in_a_file_of_a_project_below(project: Project, runner: Runner) -> None:
    (project.path / "app").mkdir()
    (project.path / "app" / "PROMPT.md").write_text("Do it all.")
    command = agent(project, {"response": "DONE"})
    ended = runner(prompt_file="PROMPT.md", agent=command, working_directory="app", artifact="")
    assert ended.code == 0, ended.log
    (call,) = calls(command)
    assert (call["cwd"], "Do it all." in call["prompt"]) == (str(project.path / "app"), True)
    assert not [name for name in ended.used if name.startswith("actions/upload-artifact")]


@pytest.mark.slow
def test_a_list_is_imported_and_worked_through(project: Project, runner: Runner) -> None:
    (project.path / "plan.md").write_text("# Plan\n\n- [ ] Say hello\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "plan")
    for setting in ("user.name", "user.email"):
        project.git("config", "--unset", setting)
    ended = runner(tasks="plan.md", agent=agent(project, COMPLETE), args="--no-sandbox\n\n")
    assert ended.code == 0, ended.log
    assert ended.outputs["verdict"] == "completed"
    assert project.subjects()[0] == "T-001: Say hello"
    assert "github-actions[bot]" in project.git("log", "-1", "--format=%an %ae %cn")


def test_the_backlog_is_worked_through_as_it_is(project: Project, runner: Runner) -> None:
    project.tasks({"id": "A", "title": "Say hello"}, {"id": "B", "title": "Ask"})
    turns = (COMPLETE, {"text": "<promise>DECIDE: red or blue?</promise>"})
    ended = runner(tasks="backlog", agent=agent(project, *turns), args="--no-sandbox")
    assert (ended.code, ended.outputs["exit-code"]) == (3, "3")
    assert ended.outputs["verdict"] == "blocked"
    assert Path(ended.outputs["report"]).exists(), "also of a run that is not complete"
    assert "red or blue?" in ended.summary


@pytest.mark.slow
def test_a_stack_of_pull_requests_arrives(shop: Shop, tmp_path: Path) -> None:
    shop.settings(ci=QUICK)
    shop.tasks({"id": "A", "title": "One"}, {"id": "B", "title": "Two"})
    shop.forge.ci("ralph/A", [[failed("build", log="boom")]], [[passed("build")]])
    shop.forge.ci("*", [[passed("build")]])
    ended = on_forge(shop, tmp_path / "runner")(tasks="backlog", pr="stacked", draft="true")
    assert ended.code == 0, ended.log
    assert ended.outputs["verdict"] == "completed"
    told = [(pull.branch, pull.base, pull.title, pull.draft) for pull in shop.forge.pulls]
    assert told == [("ralph/A", "main", "A: One", True), ("ralph/B", "ralph/A", "B: Two", True)]
    assert "ralph/A" in ended.summary
    assert shop.forge.token not in ended.summary + "".join(ended.log.values())


@pytest.mark.slow
def test_the_nightly_example_works_through_labelled_issues(shop: Shop, tmp_path: Path) -> None:
    wicked = "Say $(touch owned) `touch owned`\n::set-output name=verdict::x"
    shop.settings(ci=QUICK)
    shop.forge.issues += [
        Issue(7, wicked, "All of it.", labels=["ralph"]),
        Issue(8, "Not this one", "", labels=["later"]),
    ]
    shop.forge.ci("*", [[passed("build")]])
    (job,) = yaml.safe_load(NIGHTLY.read_text())["jobs"].values()
    (step,) = (step for step in job["steps"] if "/ralph@" in step.get("uses", ""))
    given = {name.replace("-", "_"): str(held) for name, held in step["with"].items()}
    given |= {"tasks": f"github:{shop.forge.repository}", "max_cost": "", "draft": "true"}
    ended = on_forge(shop, tmp_path / "first")(**given)
    assert ended.code == 0, ended.log
    (pull,) = shop.forge.pulls
    assert "Closes #7" in pull.body
    assert (pull.base, pull.draft) == ("main", True)
    assert not list(shop.path.rglob("owned"))
    again = on_forge(shop, tmp_path / "second")(**given)
    assert (again.code, len(shop.forge.pulls)) == (0, 1), again.log


@pytest.mark.parametrize(
    ("inputs", "code", "verdict", "words"),
    [
        ({}, 2, "config", "give one of the inputs prompt, prompt-file and tasks"),
        ({"prompt": "a", "tasks": "backlog"}, 2, "config", "give one of the inputs"),
        ({"prompt": "a", "label": "x"}, 2, "config", "the input label is for tasks: github:"),
        ({"tasks": "plan.md", "label": "x"}, 2, "config", "the input label is for tasks: github:"),
        ({"prompt": "a", "draft": "yes"}, 2, "config", "the input draft is true or false, not yes"),
        ({"prompt": "a", "agent": "no-such-agent"}, 2, "config", "no-such-agent"),
        ({"prompt": "a", "max_time": "soon"}, 2, "config", "'soon' is not a duration"),
        ({"prompt_file": "nowhere.md"}, 2, "config", "nowhere.md"),
        ({"tasks": "nowhere.md"}, 2, "config", "cannot read nowhere.md"),
        ({"tasks": "backlog"}, 2, "config", "there are no tasks here"),
    ],
)
def test_what_cannot_be_run_is_said(
    project: Project, runner: Runner, inputs: dict[str, str], code: int, verdict: str, words: str
) -> None:
    ended = runner(**{"agent": agent(project, DONE), **inputs})
    assert (ended.code, ended.outputs["exit-code"]) == (code, str(code))
    assert ended.outputs == {**ended.outputs, "verdict": verdict, "run": "", "report": ""}
    assert words in ended.log["Run"]


def test_a_list_without_work_is_no_failure(project: Project, runner: Runner) -> None:
    (project.path / "plan.md").write_text("# Plan\n\nNothing yet.\n")
    ended = runner(tasks="plan.md")
    assert ended.code == 0, ended.log
    assert ended.outputs["verdict"] == "nothing"


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGINT, signal.SIGTERM)])
def test_a_job_that_is_cancelled_ends_its_turn(
    project: Project, runner: Runner, signals: tuple[signal.Signals, ...]
) -> None:
    """GitHub sends an INT to the step's process alone, and a TERM when that takes too long."""
    seconds = "0.5" if len(signals) == 1 else "60"
    work = {"name": "Bash", "run": f"touch ../at-work; sleep {seconds}"}
    command = agent(project, {"tools": [work], "response": "DONE"})
    output = runner.temp / "output"
    (run,) = (each for each in action()["runs"]["steps"] if each.get("id") == "run")
    inputs = {**dict.fromkeys(run["env"], ""), "PROMPT": "Work", "AGENT": command}
    places = {"RUNNER_TEMP": str(runner.temp), "GITHUB_OUTPUT": str(output)}
    step = subprocess.Popen(
        ("bash", "-c", f"exec bash {ROOT}/tools/action.sh"),
        cwd=project.path,
        env={**os.environ, **inputs, **places, "ACTION": str(ROOT)},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert step.stderr is not None
    at_work = project.path.parent / "at-work"
    while not at_work.exists() and step.poll() is None:
        time.sleep(0.02)
    for number in signals:
        step.send_signal(number)
        for line in step.stderr:
            if "Received signal" in line:
                break
    _, said = step.communicate(timeout=60)
    assert step.returncode == 0, said
    told = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert (told["exit-code"], told["verdict"]) == ("130", "interrupted")


# ------------------------------------------------------------------ what Ralph is told


def test_every_input_becomes_its_flag(recorder: Runner) -> None:
    ended = recorder(
        prompt="p",
        agent="codex",
        model="m",
        max_iterations="4",
        max_time="2h",
        max_cost="5",
        pr="per-run",
        base="main",
        draft="true",
        args="--no-ci\n--branch=x y\n",
        token="secret",
    )
    assert (ended.code, ended.outputs["verdict"], ended.outputs["run"]) == (1, "limit", "r-1")
    (call,) = called(recorder)
    assert call["argv"] == [
        *("run", "--prompt=p", "--agent=codex", "--model=m", "--max-iterations=4"),
        *("--max-time=2h", "--max-cost=5", "--pr=per-run", "--base=main", "--draft"),
        *("--no-ci", "--branch=x y", "--json"),
    ]
    assert (call["env"]["GITHUB_TOKEN"], call["env"]["GH_TOKEN"]) == ("secret", "secret")
    assert (call["env"]["TOKEN"], call["env"]["PROMPT"]) == (None, None)


def test_issues_are_imported_by_their_labels_and_the_agent_gets_no_token(
    recorder: Runner,
) -> None:
    recorder(tasks="github:some/where", label="ralph\n good first issue \n")
    first, second = called(recorder)
    labels = ["--label=ralph", "--label= good first issue "]
    assert first["argv"] == ["tasks", "import", *labels, "--", "github:some/where"]
    assert first["env"]["GITHUB_TOKEN"] == "the-job's-own-token"
    assert second["argv"] == ["tasks", "run", "--json"]
    assert (second["env"]["GITHUB_TOKEN"], second["env"]["GH_TOKEN"]) == (None, None)


@pytest.mark.parametrize(
    ("code", "there", "verdict", "runs"),
    [(1, False, "nothing", 0), (1, True, "limit", 1), (2, True, "config", 0)],
)
def test_an_import_without_news_leaves_what_is_there(
    recorder: Runner, code: int, there: bool, verdict: str, runs: int
) -> None:
    recorder.environ["IMPORTS"] = str(code)
    if there:
        (recorder.workspace / ".ralph").mkdir()
        (recorder.workspace / ".ralph" / "tasks.jsonl").write_text("")
    ended = recorder(tasks="github:some/where")
    assert ended.outputs["verdict"] == verdict
    assert len(called(recorder)) == 1 + runs


WICKED = "$(touch owned)`touch owned`\"; touch owned; '\n${{ github.token }} -x --dry-run %0A::x"


@pytest.mark.parametrize("name", ["prompt", "agent", "model", "max-time", "base", "args", "token"])
def test_no_input_is_a_command(recorder: Runner, name: str) -> None:
    inputs = {"prompt": "p", "pr": "per-run", name.replace("-", "_"): WICKED}
    recorder(**inputs)
    (call,) = called(recorder)
    flag = f"--{name}={WICKED}"
    if name == "args":
        assert call["argv"][-3:-1] == WICKED.splitlines()
    elif name == "token":
        assert call["env"]["GITHUB_TOKEN"] == WICKED
    else:
        assert flag in call["argv"]
    assert not list(recorder.workspace.rglob("owned"))


def test_an_agent_cannot_reach_for_the_steps_that_follow(project: Project, runner: Runner) -> None:
    """A workflow command in its words, GITHUB_ENV and its kin, and a module beside it."""
    runner.environ |= dict.fromkeys(("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"), "/x")
    (project.path / "json.py").write_text("raise SystemExit('owned')\n")
    look = "env | grep -E '^GITHUB_(ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)=' > ../found; true"
    turn = {"tools": [{"name": "Bash", "run": look}], "text": "::add-mask::a", "response": "DONE"}
    ended = runner(prompt="Work", agent=agent(project, turn))
    assert (ended.code, ended.outputs["verdict"]) == (0, "completed"), ended.log
    assert (project.path.parent / "found").read_text() == ""
    lines = ended.log["Run"].splitlines()
    (begin,) = (line for line in lines if line.startswith("::stop-commands::"))
    assert f"::{begin.rpartition(':')[2]}::" in lines
    assert len(begin) > 40


def test_what_ralph_says_cannot_become_another_output(project: Project, tmp_path: Path) -> None:
    temp = tmp_path / "runner"
    line = json.dumps({"type": "stop", "reason": "x\nrun=evil", "run": "a\nb", "log": ""})
    installed(temp, f"#!/bin/sh\n[ $1 = report ] || printf '%s\\n' '{line}'\nexit 4\n")
    ended = Runner(project.path, temp, {}, ("Install Ralph", "Report"))(prompt="p")
    assert (ended.code, ended.outputs["run"]) == (4, "a b")
    assert ended.outputs["verdict"] == "x run=evil"


def test_a_ralph_that_says_nothing_is_a_bug(project: Project, tmp_path: Path) -> None:
    temp = tmp_path / "runner"
    installed(temp, "#!/bin/sh\nexit 9\n")
    ended = Runner(project.path, temp, {}, ("Install Ralph",))(prompt="p")
    assert (ended.code, ended.outputs["verdict"], ended.outputs["report"]) == (9, "bug", "")


@pytest.mark.slow
def test_it_installs_the_ralph_of_its_own_checkout(project: Project, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tools / "python").chmod(0o755)
    (packages,) = site.getsitepackages()
    environ = {
        "PATH": f"{tools}:/usr/bin:/bin",
        "PYTHONPATH": packages,  # what Ralph stands on, which no test fetches
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this one the other way round
    }
    runner = Runner(project.path, tmp_path / "runner", environ)
    ended = runner(prompt="Say hello", agent=agent(project, DONE))
    assert ended.code == 0, ended.log
    assert ended.outputs["verdict"] == "completed"
    assert (tmp_path / "runner" / "ralph" / "bin" / "ralph").exists()
    assert runner(version="0.0.999", prompt="x").log.keys() == {"Install Ralph"}


# ------------------------------------------------------------------ how they are written


def texts(data: object) -> list[str]:
    """All texts of a YAML document."""
    if isinstance(data, dict):
        return [text for held in data.values() for text in texts(held)]
    if isinstance(data, list):
        return [text for held in data for text in texts(held)]
    return [data] if isinstance(data, str) else []


def test_no_script_holds_an_expression() -> None:
    jobs = yaml.safe_load(NIGHTLY.read_text())["jobs"]
    steps = [*action()["runs"]["steps"], *(s for job in jobs.values() for s in job["steps"])]
    scripts = [step["run"] for step in steps if "run" in step]
    assert len(scripts) > 4
    assert not [script for script in scripts if EXPRESSION.search(script)]
    shell = (ROOT / "tools" / "action.sh").read_text()
    assert "${{" not in shell
    pythons = re.findall(r'python"? +(-\S*)', "\n".join((*scripts, shell)))
    assert pythons == ["-P"] * 3, "no module of the project is meant"


def test_every_input_is_used_and_described() -> None:
    read = action()
    used = re.findall(r"inputs\.([\w-]+)", " ".join(texts(read["runs"])))
    assert set(used) == set(read["inputs"])
    page = (ROOT / "docs" / "github-action.md").read_text()
    for name in (*read["inputs"], *read["outputs"]):
        assert f"| `{name}` |" in page


def test_the_nightly_example_gives_what_the_action_takes() -> None:
    read = yaml.safe_load(NIGHTLY.read_text())
    (job,) = read["jobs"].values()
    (step,) = (step for step in job["steps"] if "/ralph@" in step.get("uses", ""))
    assert step["with"].keys() <= action()["inputs"].keys()
    assert read["permissions"] == {}, "each job says what it needs"
    assert job["permissions"]["contents"] == "write"
    assert read["concurrency"]["cancel-in-progress"] is False
    said = " ".join(texts(job["steps"]))
    named = re.findall(r"steps\.ralph\.outputs\.([\w-]+)", said)
    assert set(named) <= action()["outputs"].keys()
