"""`ralph tasks plan`: an agent proposes tasks, changes nothing, and a person decides."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest
from backlog_support import Project, project
from run_support import RALPH, Done, Running, facts, journals, program, ralph

from kits.sandbox.stage import overlay_is_usable
from kits.thorough import dealt
from ralph.kernel.facts import Step
from ralph.testing.scripted_agent.install import calls, install_agent

__all__ = ["project"]

Json = dict[str, Any]
GOAL = "Import bank statements"
PARSER = {
    "id": "P",
    "title": "Parse the file",
    "description": "Read it.\nAll of it.",
    "type": "feature",
    "priority": 2,
    "completion": {"type": "test_passing", "command": "sh check.sh"},
}
WORD = {"id": "W", "title": "Write it up", "blockedBy": ["P"]}
PLAN = (PARSER, WORD)
SHOWN = """\
--- .ralph/tasks.jsonl  0 tasks
+++ .ralph/tasks.jsonl  2 tasks
+ P: Parse the file (feature; priority 2)
+     Read it.
+     All of it.
+   the host checks: `sh check.sh` exits with 0
+ W: Write it up (waits for P)
!   done when the agent says so: the host checks nothing
2 tasks: the host checks 1; by the agent's word alone: W.
"""
IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")


def said(*tasks: object) -> str:
    """An answer with these tasks."""
    lines = "\n".join(json.dumps(task) for task in tasks)
    return f"I have looked.\n<tasks>\n{lines}\n</tasks>"


def planner(project: Project, *turns: Json, kind: str = "claude") -> str:
    """Install a scripted agent."""
    return install_agent(str(project.path.parent / "bin"), list(turns), kind=kind)


def plan(project: Project, agent: str, *arguments: str, sandbox: bool = False) -> Done:
    where = () if sandbox else ("--no-sandbox",)
    done = ralph("tasks", "plan", "--agent", agent, *where, *arguments)
    said, begin, proposed = done.out.partition("--- .ralph")  # what the agent says comes first
    return Done(done.code, f"{begin}{proposed}" or said, done.err)


def left(project: Project) -> list[str]:
    """Everything that is in the project now, and where its branches are."""
    found = sorted(str(p.relative_to(project.path)) for p in project.path.rglob("*"))
    files = [name for name in found if not name.startswith(".git/")]
    state = [project.git("status", "--porcelain"), project.git("stash", "list")]
    refs = project.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    return [*files, *state, refs, project.git("symbolic-ref", "HEAD"), project.git("config", "-l")]


# ------------------------------------------------------------------ what is added, and when


def test_tasks_are_shown_and_nothing_is_added_without_yes(project: Project) -> None:
    agent = planner(project, {"text": said(*PLAN), "cost": 0.25})
    before = left(project)
    done = plan(project, agent, GOAL)
    assert done.code == 0, done.err
    run = journals()[0].parent.name
    hint = f"Nothing was added. To add them as they are: ralph tasks plan --add={run}\n"
    assert done.out == SHOWN + hint
    assert "$0.25" in done.err
    assert left(project) == before


def test_yes_adds_without_asking(project: Project) -> None:
    done = plan(project, planner(project, {"text": said(*PLAN)}), GOAL, "--yes")
    assert done.code == 0, done.err
    assert done.out == f"{SHOWN}Added P, W. Work through them: ralph tasks run\n"
    first, second = project.lines("tasks")
    times = {first.pop("createdAt"), first.pop("updatedAt")}
    times |= {second.pop("createdAt"), second.pop("updatedAt")}
    assert len(times) == 1
    assert first == {**PARSER, "status": "pending"}
    assert second == {**WORD, "status": "pending"}
    assert list(first)[:3] == ["id", "title", "status"]


def test_what_was_shown_can_be_added_later_and_once(project: Project) -> None:
    planner(project, {"text": said(*PLAN)})
    agent = str(project.path.parent / "bin" / "claude")
    assert plan(project, agent, GOAL).code == 0
    run = journals()[0].parent.name
    added = ralph("tasks", "plan", f"--add={run[-4:]}")
    assert added.out == f"{SHOWN}Added P, W. Work through them: ralph tasks run\n", added.err
    assert len(calls(agent)) == 1
    again = ralph("tasks", "plan", "--add")
    assert (again.code, again.out) == (2, "")
    assert "these tasks are there already" in again.err
    assert len(project.lines("tasks")) == 2


def test_what_is_there_by_then_is_not_added_again(project: Project) -> None:
    agent = planner(project, {"text": said({"title": "One"}, {**WORD, "blockedBy": ["T-001"]})})
    assert plan(project, agent, GOAL).code == 0
    ralph("tasks", "add", "Something else")
    ralph("tasks", "add", "Write it up", "--id", "W")
    done = ralph("tasks", "plan", "--add")
    assert "+ T-002: One" in done.out
    assert done.out.endswith("Added T-002. Work through them: ralph tasks run\n")
    assert project.statuses() == {"T-001": "pending", "W": "pending", "T-002": "pending"}


def test_programs_get_one_object(project: Project) -> None:
    agent = planner(project, {"text": said(*PLAN, {"title": "x", "status": "done"}), "cost": 0.5})
    done = plan(project, agent, GOAL, "--json")
    assert done.code == 0
    (told,) = done.objects
    assert told == {
        "type": "plan",
        "run": journals()[0].parent.name,
        "cost_usd": 0.5,
        "tasks": [
            {
                "task": PARSER,
                "check": "`sh check.sh` exits with 0",
                "host_checks": True,
                "notes": [],
            },
            {"task": WORD, "check": None, "host_checks": False, "notes": []},
        ],
        "refused": ['line 3 (x): its status is "done": only the host says that'],
        "added": [],
    }
    assert not (project.path / ".ralph").exists()
    added = plan(project, agent, GOAL, "--json", "-y")
    assert added.objects[0]["added"] == ["P", "W"]
    assert set(project.statuses()) == {"P", "W"}


def test_a_person_at_a_terminal_is_asked(project: Project) -> None:
    agent = planner(project, {"text": said(*PLAN)})
    words = (*RALPH[1:], "tasks", "plan", GOAL, "--agent", agent, "--no-sandbox")

    def answered(*answers: str) -> str:
        child = pexpect.spawn(RALPH[0], list(words), timeout=60, encoding="utf-8")
        for answer in answers:
            child.expect_exact("Add these 2 tasks? [y/N] ")
            child.send(answer)
        child.expect(pexpect.EOF)
        child.close()
        return f"{child.before}{child.exitstatus}"

    assert "Nothing was added. To add them" in answered("perhaps\r", "\r")
    gone = answered("\x03")
    assert "Aborted: nothing was added. To add them after all: ralph tasks plan --add" in gone
    assert gone.endswith("130")
    assert not (project.path / ".ralph").exists()
    assert "Added P, W." in answered("y\r")
    assert set(project.statuses()) == {"P", "W"}


# ------------------------------------------------------------------ the agent


def test_the_agent_is_told_the_goal_the_text_and_what_is_there(project: Project) -> None:
    project.tasks({"id": "T-007", "title": "Old thing", "status": "done"})
    (project.path.parent / "SPEC.md").write_text("Two {columns} & <b>.\n")
    agent = planner(project, {"text": said({"id": "T-007", "title": "old  THING"}, WORD)})
    done = plan(project, agent, GOAL, "--from", "../SPEC.md", "--yes")
    assert done.code == 0, done.err
    (call,) = calls(agent)
    for words in (GOAL, 'path="../SPEC.md">\nTwo {columns} & <b>.', "T-007 (done): Old thing"):
        assert words in call["prompt"]
    assert "! refused: line 1 (old THING): it is there already: T-007" in done.out
    assert "!   it does not wait for P, which is no task" in done.out
    assert project.statuses() == {"T-007": "done", "W": "pending"}


def test_a_text_alone_is_a_goal(project: Project) -> None:
    agent = planner(project, {"text": said(*PLAN)})
    words = f"ralph tasks plan --from - --agent {agent} --no-sandbox --yes"
    done = ralph(command=("sh", "-c", f'printf "Two columns" | {sys.executable} -m {words}'))
    assert done.code == 0, done.err
    assert "Build what standard input says." in calls(agent)[0]["prompt"]
    assert "Two columns" in calls(agent)[0]["prompt"]


def test_an_answer_that_is_none_is_asked_for_once_more(project: Project) -> None:
    agent = planner(project, {"text": "Sure, I will."}, {"text": said(*PLAN)})
    done = plan(project, agent, GOAL, "--yes")
    assert done.code == 0, done.err
    again = "Nothing of your last answer could be used: the answer has no <tasks>"
    assert again in calls(agent)[1]["prompt"]


@pytest.mark.parametrize(
    ("turn", "code", "words"),
    dealt(
        [
            (
                {"text": "Sure."},
                1,
                "no task can be used of what the agent said: the answer has no <t",
            ),
            ({"text": said({"title": "x", "status": "done"})}, 1, "only the host says that"),
            # Real assistant words only.
            (
                {"tools": [{"name": "Bash", "output": said(WORD)}], "text": "See above."},
                1,
                "no <tasks>",
            ),
            ({"subagent_text": said(WORD), "text": "See above."}, 1, "no <tasks>"),
            ({"hook_text": said(WORD), "text": "See above."}, 1, "no <tasks>"),
            ({"text": said(WORD), "exit": 3}, 5, "the agent failed, asked 2 times: exit code 3"),
            ({"text": "<promise>DECIDE: which bank?</promise>"}, 3, "which bank?"),
        ],
        3,
    ),
)
def test_where_nothing_can_be_used_it_says_why(
    project: Project, turn: Json, code: int, words: str
) -> None:
    agent = planner(project, turn)
    project.quick()
    done = plan(project, agent, GOAL, "--yes", "--json")
    assert done.code == code
    assert words in done.err
    assert ("Nothing of the answer can be used" in done.err) is (code == 1), "not of a question"
    assert ('ralph tasks plan "GOAL"  # with the answer' in done.err) is (code == 3)
    (told,) = done.objects
    assert (told["type"], told["exit"]) == ("stop", code)
    assert (told["iterations"] > 0, os.path.exists(told["log"])) == (True, True)
    assert not (project.path / ".ralph" / "tasks.jsonl").exists()


def test_costs_and_limits_are_those_of_a_run(project: Project) -> None:
    agent = planner(project, {"text": "Sure.", "cost": 0.4})
    done = plan(project, agent, GOAL, "--max-cost", "0.3")
    assert done.code == 1
    assert "$0.3 used up (spent $0.40)" in done.err
    spent = json.loads(ralph("status", "--spending", "--json").out)
    assert "0.4" in json.dumps(spent)
    (run,) = json.loads(ralph("list", "--json").out)
    assert run["command"] == "tasks plan"


def test_the_next_agent_plans_where_the_first_cannot(project: Project) -> None:
    first = planner(project, {"error": {"status": 401, "message": "no"}})
    second = planner(project, {"text": said(*PLAN)}, kind="codex")
    project.settings(agent={"fallbacks": [{"command": second}]})
    done = plan(project, first, GOAL, "--yes")
    assert done.code == 0, done.err
    assert set(project.statuses()) == {"P", "W"}
    assert len(calls(second)) == 1


def test_the_first_prompt_can_be_looked_at(project: Project) -> None:
    agent = planner(project, {"text": said(*PLAN)})
    done = plan(project, agent, GOAL, "--dry-run")
    assert done.code == 0
    assert f"<goal>\n{GOAL}\n</goal>" in done.out
    (told, stop) = plan(project, agent, GOAL, "--dry-run", "--json").objects
    assert (told["type"], stop["type"]) == ("dry_run", "stop")
    assert calls(agent) == []


# ------------------------------------------------------------------ what it may not do

MESS = """
echo mine > README; echo new > new.txt; mkdir -p deep/er && echo x > deep/er/x; rm -f gone
git config user.name "Somebody else"; git checkout -q -b other; git add -A; git commit -qm sneaky
git branch -f main other; git tag v9
ralph tasks add Sneaky; echo '{"id":"X"}' >> .ralph/tasks.jsonl
mkdir -p .ralph; echo '{"guardrails":[]}' > .ralph/settings.json
"""


@pytest.mark.parametrize(
    "sandbox", [False, pytest.param(True, marks=[IN_OVERLAY, pytest.mark.slow])]
)
@pytest.mark.parametrize("tasks", [False, True])
def test_whatever_the_agent_changes_is_undone(project: Project, sandbox: bool, tasks: bool) -> None:
    (project.path / "gone").write_text("still here\n")
    (project.path / "half").write_text("uncommitted\n")
    project.git("add", "half")
    if tasks:
        assert ralph("tasks", "add", "There").code == 0
        with (project.path / ".ralph" / "tasks.jsonl").open("a") as file:
            file.write("a line that nobody can read\n")
    before = left(project)
    listing = project.path / ".ralph" / "tasks.jsonl"
    held = listing.read_bytes() if tasks else b""
    bin_dir = project.path.parent / "tools"
    bin_dir.mkdir()
    (bin_dir / "ralph").write_text(f'#!/bin/sh\nexec {sys.executable} -m ralph "$@"\n')
    (bin_dir / "ralph").chmod(0o755)
    mess = f"exec 2>/dev/null\nPATH={bin_dir}:$PATH\n{MESS}"
    agent = program(project.path.parent / "agent.sh", f"{mess}\ncat <<'X'\n{said(*PLAN)}\nX")
    done = plan(project, agent, GOAL, sandbox=sandbox)
    assert done.code == 0, done.err
    assert left(project) == before
    assert (project.path / "README").read_text() == "hello\n"
    assert (project.path / "gone").read_text() == "still here\n"
    assert (listing.read_bytes() if tasks else b"") == held
    if not sandbox:
        (words,) = [f.detail for f in facts() if isinstance(f, Step) and "kept in" in f.detail]
        assert project.git("show", f"{words.split()[-1]}:new.txt") == "new\n"


def test_what_a_person_adds_meanwhile_stays(project: Project) -> None:
    project.tasks({"id": "T-001", "title": "There"})
    ready, go = project.path.parent / "ready", project.path.parent / "go"
    wait = (
        f"touch {ready}; until [ -e {go} ]; do sleep 0.02; done; echo '{{}}' >> .ralph/tasks.jsonl"
    )
    agent = planner(project, {"tools": [{"name": "Bash", "run": wait}], "text": said(*PLAN)})
    running = Running(
        project.path, "tasks", "plan", GOAL, "--agent", agent, "--no-sandbox", "--yes"
    )
    running.await_that(ready.exists)
    assert ralph("tasks", "add", "Mine").code == 0
    go.touch()
    done = running.end()
    assert done.code == 0, done.err
    assert set(project.statuses()) == {"T-001", "T-002", "P", "W"}
    assert "The task list is put back" in done.err


def test_work_in_another_work_tree_is_left_alone(project: Project) -> None:
    other = project.path.parent / "other"
    project.git("worktree", "add", "-q", "-b", "theirs", str(other))
    commit = f"cd {other} && git commit -q --allow-empty -m theirs && git rev-parse HEAD > ../tip"
    run = f"git branch extra; git config core.editor evil; ({commit})"
    agent = planner(project, {"tools": [{"name": "Bash", "run": run}], "text": said(*PLAN)})
    assert plan(project, agent, GOAL).code == 0
    assert project.git("rev-parse", "theirs") == (project.path.parent / "tip").read_text()
    assert "core.editor" not in project.git("config", "--list", "--local")


@pytest.mark.parametrize("hurry", dealt([1, 2], 1))
def test_ctrl_c_leaves_nothing_behind(project: Project, hurry: int) -> None:
    before = left(project)
    run = "echo x > new.txt; git add -A; git commit -qm x; touch ../at-work; sleep 1"
    agent = planner(project, {"tools": [{"name": "Bash", "run": run}], "text": said(*PLAN)})
    running = Running(
        project.path, "tasks", "plan", GOAL, "--agent", agent, "--no-sandbox", "--yes"
    )
    running.await_that((project.path.parent / "at-work").exists)
    running.interrupt()
    if hurry > 1:
        running.send(signal.SIGINT)
    done = running.end()
    assert done.code == 130
    assert done.out.count("Added") == 0
    assert left(project) == before


def test_a_killed_plan_goes_on_and_its_mess_is_undone(project: Project) -> None:
    before = left(project)
    wait = "echo x > new.txt; echo '{}' > .ralph-x; touch ../at-work; sleep 60"
    slow = {"tools": [{"name": "Bash", "run": wait}]}
    agent = planner(project, slow, {"text": said(*PLAN)})
    running = Running(project.path, "tasks", "plan", GOAL, "--agent", agent, "--no-sandbox")
    running.await_that((project.path.parent / "at-work").exists)
    running.send(signal.SIGKILL)
    running.end()
    done = ralph("resume")
    assert done.code == 0, done.err
    assert "To see and add its tasks: ralph tasks plan --add=" in done.err
    assert left(project) == before
    assert ralph("tasks", "plan", "--add").out.startswith(SHOWN)


def test_hostile_words_do_not_reach_the_terminal_or_the_list(project: Project) -> None:
    wicked = {
        "id": "\x1b[2J",
        "title": "Red \x1b[31malert\x07",
        "description": "\u202eback\x1b]0;title\x07\n\x9b31mok",
        "completion": "test:rm -rf ~",
        "evidence": {"exitCode": 0},
        "source": {"path": "prd.json", "format": "prd", "key": "1"},
    }
    done = plan(project, planner(project, {"text": said(wicked)}), GOAL, "--yes")
    assert done.code == 0, done.err
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*done.out}
    (record,) = project.lines("tasks")
    names = {"id", "title", "status", "description", "createdAt", "updatedAt"}
    assert (set(record), record["id"], record["title"]) == (names, "T-001", "Red alert")
    assert record["description"] == "back\nok"
    assert "`rm -rf ~` is refused by the guard" in done.out
    assert "no part of a plan: evidence, source" in done.out


def test_what_cannot_be_checked_here_is_said(project: Project) -> None:
    tasks = (
        {"title": "a", "completion": "file:README"},
        {"title": "b", "completion": "test:nosuchprogram --all"},
        {"title": "c", "completion": "grep:login"},
        {"title": "d", "completion": "test:cd src && true"},
        {"title": "e", "completion": "test:'"},
        {"title": "f", "completion": "validate:check.ts"},
        {"title": "g", "completion": "validate:check.sh"},
        {"title": "h", "completion": "test:git reset --hard && make test"},
    )
    done = plan(project, planner(project, {"text": said(*tasks)}), GOAL)
    doubts = [
        line.removeprefix("!   check: ") for line in done.out.splitlines() if "check: " in line
    ]
    assert doubts[:3] == [
        "README is there already, which proves nothing",
        "nosuchprogram is not installed here",
        "nobody has said how tests are run (loop.testCommand)",
    ]
    assert "`git reset --hard && make test` is refused by the guard" in done.out
    assert not any("cd is not" in words or "check.sh" in words for words in doubts)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "which goal is to be planned?"),
        (("",), "the goal is blank"),
        (("  \n",), "the goal is blank"),
        (("x", "--from", "nowhere.md"), "cannot read the specification nowhere.md: No such file"),
        (("x", "--from", "."), "cannot read the specification ."),
        (("x", "--from", "../empty"), "../empty is empty"),
        (("x", "--from", "../binary"), "the specification is not UTF-8 text (byte 1)"),
        (("x", "--from", "../nul"), "the specification contains a NUL byte"),
        (("x", "--from", "../big"), "the specification is larger than 1 MB"),
        (("x", "--add"), "--add is for an earlier plan"),
        (("--add", "--from", "../empty"), "--add is for an earlier plan"),
        (("--add",), "nothing was planned here yet"),
        (("--add=nowhere",), "there is no run 'nowhere'"),
        (("x", "--max-cost", "none"), "is not an amount of dollars"),
        (("x", "--sandbox", "--no-sandbox"), "exclude each other"),
        (("x", "--agent", "no-such-agent"), "no-such-agent"),
    ],
)
def test_bad_input_is_refused_with_words(
    project: Project, arguments: tuple[str, ...], words: str
) -> None:
    above = project.path.parent
    (above / "empty").write_text(" \n")
    (above / "binary").write_bytes(b"a\xff\xfe")
    (above / "nul").write_bytes(b"a\0b")
    (above / "big").write_text("x" * (1 << 20) + "y")
    done = ralph("tasks", "plan", *arguments)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") >= 2, "and what to type"
    assert done.out == ""


def test_in_place_it_needs_a_way_back(workspace: Path) -> None:
    agent = install_agent(str(workspace.parent / "bin"), [{"text": said(*PLAN)}])
    done = ralph("tasks", "plan", GOAL, "--agent", agent, "--no-sandbox", "--yes")
    assert done.code == 2
    assert "nobody can undo what the agent changes" in done.err
    assert "git init" in done.err
    assert calls(agent) == []


@IN_OVERLAY
def test_a_sandbox_needs_no_git(workspace: Path) -> None:
    agent = program(workspace.parent / "agent.sh", f"echo y > x; cat <<'X'\n{said(*PLAN)}\nX")
    done = ralph("tasks", "plan", GOAL, "--agent", agent, "--yes")
    assert done.code == 0, done.err
    assert os.listdir(workspace) == [".ralph"]


def test_a_merge_under_way_is_not_touched(project: Project) -> None:
    project.git("checkout", "-q", "-b", "other")
    (project.path / "README").write_text("theirs\n")
    project.git("commit", "-qam", "theirs")
    project.git("checkout", "-q", "main")
    (project.path / "README").write_text("ours\n")
    project.git("commit", "-qam", "ours")
    ralph(command=("git", "-C", str(project.path), "merge", "-q", "other"))
    done = plan(project, planner(project, {"text": said(*PLAN)}), GOAL)
    assert done.code == 2
    assert "in the middle of a merge" in done.err


def test_a_list_that_cannot_be_read_is_said_before_anybody_is_paid(project: Project) -> None:
    agent = planner(project, {"text": said(*PLAN)})
    (project.path / ".ralph").mkdir()
    (project.path / ".ralph" / "tasks.jsonl").symlink_to("/nowhere")
    done = plan(project, agent, GOAL)
    assert done.code == 2
    assert "cannot read .ralph/tasks.jsonl" in done.err
    assert calls(agent) == []


def test_a_proposal_that_cannot_be_read_is_no_bug(project: Project) -> None:
    agent = planner(project, {"text": said(*PLAN)})
    assert plan(project, agent, GOAL).code == 0
    (journals()[0].parent / "proposed.json").write_text('{"tasks": 3}')
    done = ralph("tasks", "plan", "--add")
    assert done.code == 2
    assert "cannot read what was proposed" in done.err
