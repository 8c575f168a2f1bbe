"""ADR 10: the records of a run are closed to its agents and gates, however they call `ralph`."""

import json
import os
from pathlib import Path

import parallel_support
import pytest
from backlog_support import COMPLETE, Project, project
from prd_support import story
from records_support import CLEARED, OWN, attempts, codes, visible_ralph
from run_support import Here, assert_clear, prepare, program, ralph
from story_support import IN_OVERLAY, StoryProject

from kits.sandbox.stage import overlay_is_usable
from ralph.files.state_dir import project_dir

pytestmark = pytest.mark.slow

__all__ = ["project"]

A = {"id": "A", "title": "The first"}
B = {"id": "B", "title": "The other", "status": "blocked", "question": "?"}
DONE = "tasks edit B --status done"
EDITS = (DONE, "tasks edit B --priority 7", "tasks edit B --note x", "tasks answer B yes")
STEERING = ("stop", "stop --now", "pause", "resume")


def untouched(project: Project) -> bool:
    return {n: v for n, v in project.task("B").items() if n != "createdAt"} == B


# ------------------------------------------------------------------ tasks


@pytest.mark.parametrize("workers", [1, 2])
def test_an_agent_that_clears_its_environment_changes_no_task(
    project: Project, workers: int
) -> None:
    """The reproduction: `env -i HOME=… PATH=… ralph tasks edit T-002 --status done`."""
    project.tasks(A, {"id": "C", "title": "The third"}, B)
    said = project.path.parent / "said"
    calls = [f"-C {project.path} {edit}" for edit in EDITS]
    script = f"if [ $id = A ]; then {attempts(said, *calls, *EDITS, *STEERING)} fi"
    done = parallel_support.run(project, f"{script}\ntouch $id; {COMPLETE}", workers=workers)
    assert_clear(done, 3)
    assert project.statuses() == {"A": "done", "C": "done", "B": "blocked"}
    assert untouched(project)
    assert codes(said) == [2] * 12, said.read_text()
    assert "an agent may not say --status done" in said.read_text()
    assert "an agent may not change the tasks of its own run" in said.read_text()
    assert "Run it from a terminal of your own" in said.read_text()


WAYS = {
    "another state directory": "env RALPH_STATE_DIR=/nowhere {edit}",
    "no state directory": "env -u RALPH_STATE_DIR {edit}",
    "a session of its own": "setsid -w {edit}",
    "an orphan": "sh -c '(setsid {edit} >> $0 2>&1; : > $0.done) & :' $SAID; "
    "until [ -e $SAID.done ]; do sleep 0.05; done; false",
    "another namespace": "unshare -Urpf {edit}",
    "another namespace with its own /proc": "unshare -Urpf --mount-proc {edit}",
    "no /proc": "unshare -Urm sh -c 'mount -t tmpfs none /proc && {edit}'",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_of_calling_leads_out_of_the_run(project: Project, way: str) -> None:
    if "unshare" in WAYS[way] and not overlay_is_usable():
        pytest.skip("this machine allows no namespaces")
    project.tasks(A, B)
    said = project.path.parent / "said"
    # By a script: some ways quote the command, and a path may have a blank in it.
    edit = WAYS[way].format(edit=program(project.path.parent / "edit.sh", f"exec {OWN} {DONE}"))
    script = f'SAID={said}; {CLEARED} SAID=$SAID {edit} >> $SAID 2>&1; echo "=> $?" >> $SAID'
    done = project.run(f"{script}; touch $id; {COMPLETE}", "--task", "A")
    assert_clear(done, 0)
    assert untouched(project)
    assert "an agent may not" in said.read_text()
    assert 0 not in codes(said)


def test_in_a_namespace_of_its_own_an_agent_leaves_no_note_and_steers_by_no_server(
    project: Project,
) -> None:
    if not overlay_is_usable():
        pytest.skip("this machine allows no namespaces")
    project.tasks(A, B)
    said, asked = project.path.parent / "said", project.path.parent / "asked"
    call = {"name": "answer", "arguments": {"text": "Yes."}}
    asked.write_text(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    )
    note = program(project.path.parent / "note.sh", f"exec {OWN} note Hello >> {said} 2>&1")
    serve = program(project.path.parent / "mcp.sh", f"exec {OWN} mcp < {asked} >> {said} 2>&1")
    ways = "; ".join(f"{CLEARED} unshare -Urpf --mount-proc {each}" for each in (note, serve))
    assert_clear(project.run(f"{ways}; touch $id; {COMPLETE}", "--task", "A"), 0)
    assert "an agent may not leave a note for a run" in said.read_text()
    assert "an agent may not answer a question" in said.read_text()


def test_whoever_ends_his_keeper_is_still_of_the_run(project: Project) -> None:
    """Its orphans come to Ralph, which ends them; until then they are its run's."""
    project.quick()
    project.tasks(A, B)
    said = project.path.parent / "said"
    agent = project.agent(f"trap '' TERM; kill -9 $PPID; {attempts(said, *[DONE] * 3)}")
    done = ralph("tasks", "run", "--agent", agent, "--no-sandbox", "--task", "A")
    assert_clear(done, 5)
    assert untouched(project)
    assert 0 not in (codes(said) if said.exists() else [])


def test_a_check_is_of_the_run_too(project: Project) -> None:
    """Checks run what the agent wrote."""
    said = project.path.parent / "said"
    gate = program(project.path.parent / "gate.sh", attempts(said, *EDITS, *STEERING))
    project.settings(guardrails=[{"command": gate}])
    project.tasks({**A, "completion": {"type": "test_passing", "command": gate}}, B)
    assert_clear(project.run(f"touch $id; {COMPLETE}", "--task", "A"), 0)
    assert untouched(project)
    assert codes(said) == [2] * 16


def test_an_agent_may_add_tasks_and_what_it_imports_is_its_own(project: Project) -> None:
    """B lets an agent add tasks. What it calls done by a list is a claim."""
    project.tasks(A, B)
    said = project.path.parent / "said"
    line = json.dumps({**B, "status": "done"})
    script = f"[ $id = A ] && {{ echo '{line}' > list.jsonl; "
    script += attempts(said, "tasks add New --id N", "tasks import list.jsonl") + "rm list.jsonl; }"
    assert_clear(project.run(f"{script}\ntouch $id; {COMPLETE}"), 3)
    assert codes(said)[0] == 0
    assert project.statuses() == {"A": "done", "B": "blocked", "N": "done"}


def test_tasks_of_another_project_are_another_matter(project: Project) -> None:
    """ "refused for *that run and its backlog*"; what only people say stays theirs."""
    project.tasks(A)
    other = project.path.parent / "other"
    (other / ".ralph").mkdir(parents=True)
    (other / ".ralph" / "tasks.jsonl").write_text('{"id": "B", "title": "b"}\n')
    said = project.path.parent / "said"
    calls = (f"-C {other} tasks edit B --note x", f"-C {other} tasks edit B --status done")
    assert_clear(project.run(f"{attempts(said, *calls)}touch $id; {COMPLETE}"), 0)
    assert codes(said) == [0, 2]


# ------------------------------------------------------------------ a person's own commands


def test_a_persons_hooks_and_notifications_may_do_what_people_do(project: Project) -> None:
    """ "The user's own hooks and `notify` are exempt"."""
    said = project.path.parent / "said"
    hooks = {"onTaskStart": f"{OWN} tasks edit B --note started --json > {said}"}
    ends = (
        f'[ "$RALPH_EVENT" = ended ] || {{ {OWN} tasks edit B --status cancelled && {OWN} stop; }}'
    )
    project.settings(hooks=hooks, notify={"command": ends})
    project.tasks(A, B, {"id": "C", "title": "never begun", "priority": 9})
    done = project.run("echo '<promise>BLOCKED: no key</promise>'")
    assert_clear(done, 130)
    assert "failed" not in done.err
    assert json.loads(said.read_text())["notes"] == "started"
    assert project.statuses()["B"] == "cancelled"


def test_a_hook_that_runs_while_the_agent_works_disturbs_it_not(project: Project) -> None:
    """ADR 23: a person's commands have a keeper of their own, and what they do is theirs."""
    tools = [{"name": "Bash", "run": "touch a; sleep 0.2"}, {"name": "Bash", "run": "touch b"}]
    hooks = {"onAction": f"{OWN} tasks edit B --note seen"}
    prepare(project.path, {"tools": tools, "text": "<promise>COMPLETE</promise>"}, hooks=hooks)
    project.tasks(A, B)
    done = ralph("tasks", "run", "--no-sandbox", "--task", "A")
    assert_clear(done, 0, "Completed after 1 iteration")
    assert project.task("B")["notes"] == "seen\nseen"


def test_a_supervised_agent_may_stop_its_own_jobs(workspace: Path) -> None:
    """The job's run is not the one that judges the agent; its own is."""
    other, said = workspace.parent / "other", workspace.parent / "said"
    other.mkdir()
    slow = program(workspace.parent / "slow.sh", "touch begun; while :; do sleep 0.05; done")
    agent = program(
        workspace.parent / "agent.sh",
        f"""{OWN} job -- {OWN} run -C {other} -p x --agent {slow} > /dev/null 2>&1 &
until [ -e {other}/begun ]; do sleep 0.05; done
{OWN} stop --now --wait -C {other} > {said} 2>&1; echo "=> $?" >> {said}
{OWN} stop >> {said} 2>&1; echo "=> $?" >> {said}
{attempts(said, "stop", "pause")}
wait; touch "$TASK_FOLDER/DONE" """,
    )
    done = ralph("supervise", "--task-dir", "tasks/x", "--max-restarts", "1", "--", agent)
    assert_clear(done, 0)
    assert codes(said) == [0, 2, 2, 2], said.read_text()
    assert "has ended: interrupted" in said.read_text()


# ------------------------------------------------------------------ run and prd run


def test_an_agent_neither_ends_nor_pauses_its_run(workspace: Path) -> None:
    said = workspace.parent / "said"
    run_id = "$(basename $(ls -d $RALPH_STATE_DIR/*/runs/* | tail -1))"
    calls = (*STEERING, f"stop {run_id}", f"-C {workspace} stop")
    script = f'{attempts(said, *calls)}{OWN} stop >> $SAID 2>&1; echo "=> $?" >> $SAID\n'
    agent = program(workspace.parent / "agent.sh", f"{script}echo '<response>DONE</response>'")
    assert_clear(ralph("run", "-p", "x", "--agent", agent), 0, "Completed after 1 iteration")
    assert codes(said) == [2] * 7, said.read_text()
    assert "an agent may not stop its own run: RALPH_RUN names it" in said.read_text()


def stories(path: Path, monkeypatch: pytest.MonkeyPatch) -> StoryProject:
    path.mkdir()
    stories = StoryProject(path, monkeypatch)
    stories.stories(story(1))
    return stories


def test_nor_does_one_of_a_run_over_stories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, found = tmp_path / "said", stories(tmp_path / "project", monkeypatch)
    done = found.run(f"subprocess.run(['sh', '-c', {attempts(said, *STEERING)!r}])")
    assert_clear(done, 0)
    assert codes(said) == [2] * 8, said.read_text()


@IN_OVERLAY
def test_in_a_sandbox_an_agent_is_told_that_its_run_is_not_to_be_seen(project: Project) -> None:
    project.tasks(A, B)
    there = visible_ralph(project.path.parent)
    script = attempts(project.path / "said", *EDITS, *STEERING, ralph=there)
    script += f'{there} tasks edit B --note x >> $SAID 2>&1; echo "=> $?" >> $SAID\n'
    script += f'{there} stop >> $SAID 2>&1; echo "=> $?" >> $SAID\n'
    done = project.run(f"{script}{COMPLETE}", "--task", "A", sandbox=True)
    assert_clear(done, 0)
    said = project.path / "said"
    assert codes(said) == [2] * 10, said.read_text()
    assert said.read_text().count("not to be seen from here") == 8, said.read_text()
    assert untouched(project)


@IN_OVERLAY
@pytest.mark.parametrize("command", [("run", "-p", "x", "-m", "1"), ("prd", "run", "-n", "1")])
def test_in_a_sandbox_no_run_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    there = visible_ralph(tmp_path)
    found = stories(tmp_path / "project", monkeypatch)
    said = found.path / "said.txt"
    text = f"{attempts(said, *STEERING, ralph=there)}echo '<response>DONE</response>'"
    words = (*command, "--agent", program(tmp_path / "agent.sh", text))
    done = ralph(*words, "--sandbox=overlay")
    assert "interrupted" not in done.err
    assert set(codes(said)) == {2}, done.err
    assert "not to be seen from here" in said.read_text()


# ------------------------------------------------------------------ by its environment alone


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    """As on macOS, where nobody can tell who descends from whom."""
    monkeypatch.setattr("ralph.processes.ancestry.sys.platform", "darwin")
    return Here(capsys)


@pytest.mark.parametrize("name", ["RALPH_RUN", "RALPH_PARENT_RUN", "RALPH_ROOT_RUN"])
@pytest.mark.parametrize("number", ["", "-001"])
def test_a_run_is_closed_to_whoever_carries_its_name(
    here: Here, project: Project, monkeypatch: pytest.MonkeyPatch, name: str, number: str
) -> None:
    """ "**or** carries its `RALPH_RUN`", or that of one of its workers or attempts."""
    project.tasks(A, B)
    assert project.run(f"touch $id; {COMPLETE}", "--task", "A").code == 0
    root = os.environ["RALPH_STATE_DIR"]
    (run_id,) = os.listdir(os.path.join(project_dir(root, str(project.path)), "runs"))
    monkeypatch.setenv(name, f"{run_id}{number}")
    assert_clear(here("tasks", "edit", "B", "--note", "x"), 2, "the tasks of its own run")
    assert_clear(here("resume"), 2, "an agent may not resume its own run: RALPH_RUN names it")
    monkeypatch.delenv(name)
    assert here("tasks", "edit", "B", "--note", "x").code == 0


@pytest.mark.parametrize("flags", [("--no-sandbox", "--parallel", "2"), ("--sandbox=worktree",)])
def test_an_agent_changes_no_task_in_a_tree_of_its_own_either(
    project: Project, flags: tuple[str, ...]
) -> None:
    """What lies with the run is the run's: a worker's tree, and that of a sandbox."""
    project.tasks(A, B)
    said = project.path.parent / "said"
    calls = attempts(said, EDITS[1]) + f'{OWN} {EDITS[1]} >> $SAID 2>&1; echo "=> $?" >> $SAID\n'
    agent = project.agent(f"{calls}touch $id; {COMPLETE}")
    assert_clear(ralph("tasks", "run", "--agent", agent, *flags), 3)
    assert codes(said) == [2, 2], said.read_text()
    assert said.read_text().count("an agent may not change the tasks of its own run") == 2
    assert untouched(project)
