"""The recap of real runs: what it says is what their journals, ledger, git and files say."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backlog_support import Project, project
from prd_support import story
from run_support import Running, prepare, program, ralph
from story_support import StoryProject

from ralph.files.state_dir import state_root
from ralph.journal.ledger import read_ledger
from ralph.journal.runs import Run, all_runs, look_again
from ralph.journal.spending import total
from ralph.kernel.world import Origin
from ralph.runner.showing.recaps import beside_of
from ralph.runner.steering import note
from ralph.ui.recap.gather import Gatherer, recap_of
from ralph.ui.recap.values import ItemKind, Recap, TaskState

__all__ = ["project"]
NOW = 4_000_000_000.0
# An agent that speaks as claude does, for 40 cents a turn.
PAID = r"""
say() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}\n' "$1"
printf '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.4,'
printf '"usage":{"input_tokens":100,"output_tokens":20}}\n'; }
"""


def the_run() -> Run:
    return all_runs(state_root(os.environ))[0]


def recap(now: float = NOW) -> Recap:
    """The recap of the newest run, as programs get it: out of its JSON."""
    run = the_run()
    found = recap_of(run, now, beside_of(run, os.environ))
    assert msgspec.json.encode(found)
    return found


def followed() -> Gatherer:
    """The newest run, with all of its facts so far."""
    gatherer = Gatherer(the_run(), beside_of(the_run(), os.environ))
    assert gatherer.read()
    return gatherer


def catch_up(gatherer: Gatherer) -> None:
    gatherer.run = look_again(gatherer.run)
    gatherer.read()


def status() -> Any:  # noqa: ANN401
    return json.loads(ralph("status", "--json").out)


def assert_adds_up(found: Recap) -> None:
    """Money and tokens are those of the ledger and of `ralph status`; no iteration is missing."""
    said, entries = status(), total(read_ledger(the_run().project))
    cost = sum(each.cost_usd or 0.0 for each in found.iterations)
    assert cost == pytest.approx(entries.cost_usd)
    assert found.spent.dollars == pytest.approx(said["spent"]["cost_usd"])
    assert found.points[-1].dollars == pytest.approx(cost)
    tokens = sum((each.usage for each in found.iterations), start=type(entries.usage)())
    assert tokens == entries.usage == found.spent.usage
    assert found.points[-1].tokens_in == tokens.all_input
    numbers = [(each.worker, each.number) for each in found.iterations]
    assert len(numbers) == len(set(numbers)) == said["iteration"] == found.spent.iterations


def repository(workspace: Path) -> None:
    for words in (
        *("init -q -b main", "config user.name P", "config user.email p@example.com"),
        "commit -q --allow-empty -m begin",
    ):
        subprocess.run(["git", *words.split()], cwd=workspace, check=True)


def test_a_claim_that_is_not_believed_and_one_that_is(workspace: Path) -> None:
    repository(workspace)
    done = "<response>DONE</response>"
    prepare(
        workspace,
        {"tools": [{"name": "Bash", "input": {"command": "ls"}, "run": "ls nowhere"}]}
        | {"files": {"one.txt": "1\n"}, "text": f"It is done. {done}", "cost": 0.25},
        {"files": {"ok": "yes\n", "picture": "\0\1"}, "text": f"Now it is. {done}", "cost": 0.5},
        {"text": "Add what was asked for", "cost": 0.1},
        guardrails=[{"command": "echo looked; test -f ok"}],
        scm={"command": "git", "tasks": ["commit"]},
    )
    assert ralph("run", "-p", "Make it so\nand well").code == 0
    found = recap()
    assert_adds_up(found)
    assert (found.state, found.exit, found.asked) == ("completed", 0, "Make it so\nand well")
    first, second = found.iterations
    judged = first.judgement
    assert judged is not None
    assert judged.is_disbelieved
    assert (judged.rule, judged.claims) == ("Objections", (done,))
    assert judged.rule_words.startswith("A failure, findings and near misses go back")
    assert "test -f ok" in judged.objections[0]
    assert first.diff.patch.splitlines()[-2:] == ["@@ -0,0 +1 @@", "+1"]  # though not committed
    assert [item.kind for item in first.items] == [ItemKind.TOOL, ItemKind.TEXT]
    assert first.tools == (("Bash", 1, 1),)
    failed = first.checks[-1]
    assert (failed.code, failed.output) == (1, "looked\n")
    assert second.fed_back == judged.feedback
    assert second.fed_back[0] in second.prompt
    assert {(f.path, f.added) for f in second.diff.files} == {("ok", 1), ("picture", None)}
    assert second.commit == found.commit
    assert [step.key for step in second.settled] == ["scm:message", "scm:commit"]
    assert second.judgement is not None
    assert second.judgement.verdict == "accept"
    following = followed()
    assert following.iteration(2, "", NOW) == second
    light = following.recap(NOW)
    assert (light.iterations[0].prompt, light.iterations[0].items) == ("", ())
    assert light.iterations[0].diff.files == first.diff.files
    # Without the repository, and without what the agent printed, the rest is told.
    shutil.rmtree(workspace / ".git")
    Path(first.stream).unlink()
    poorer = recap()
    assert (poorer.iterations[0].diff.files, poorer.iterations[0].items) == ((), ())
    assert poorer.spent == found.spent


@pytest.mark.slow
def test_workers_of_whom_one_is_blocked(project: Project) -> None:
    project.settings(agent={"kind": "claude"})
    project.tasks(*({"id": f"T-{n}", "title": f"Task {n}"} for n in (1, 2, 3)))
    script = (
        f"{PAID} echo $id > $id.txt; "
        '[ $id = T-2 ] && say "<promise>DECIDE: tabs or spaces?</promise>" '
        '|| say "<promise>COMPLETE</promise>"'
    )
    assert project.run(script, "--parallel", "2").code == 3
    found = recap()
    assert_adds_up(found)
    rows = {row.id: row for row in found.tasks}
    assert [row.state for row in rows.values()] == [
        TaskState.DONE,
        TaskState.BLOCKED,
        TaskState.DONE,
    ]
    assert rows["T-2"].question == "tabs or spaces?"
    done = rows["T-1"]
    assert (done.cost_usd, done.iterations, done.files, done.added) == (0.4, 1, 1, 1)
    assert done.commit[:12] in project.git("log", "--format=%H")
    assert done.evidence
    assert [lane.outcome for lane in found.lanes] == ["done", "parked", "done"]
    assert {lane.worker for lane in found.lanes} == {each.worker for each in found.iterations}
    assert (found.points[-1].done, found.points[-1].open) == (2, 1)
    assert all(each.diff.patch for each in found.iterations)  # their work trees are gone
    assert found.next[0] == 'ralph tasks answer T-2 "..."'
    whose = found.iterations[0].worker
    own = recap_of(Run(whose, the_run().directory, lead=the_run()), NOW)
    assert (own.lead, len(own.iterations)) == (found.run, 1)


def test_stories_with_their_reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    stories = StoryProject(tmp_path / "project", monkeypatch)
    stories.stories(story(1), story(2))
    assert stories.run(rejections=1).code == 0
    found = recap()
    assert_adds_up(found)
    assert [each.mode for each in found.iterations[:4]] == [
        *("implement", "review", "review-fix", "review")
    ]
    outcomes = [(row.story, row.outcome) for row in found.reviews]
    assert outcomes[:2] == [("US-001", "changes_requested"), ("US-001", "approved")]
    assert found.reviews[0].feedback == "mend line 3"
    assert {(row.id, row.state) for row in found.tasks} == {
        ("US-001", TaskState.DONE),
        ("US-002", TaskState.DONE),
    }
    assert (found.points[-1].done, found.points[-1].open) == (2, 0)
    assert found.iterations[0].commit  # the agent's own


def test_a_run_that_goes_on_is_killed_and_resumed(workspace: Path) -> None:
    """The recap follows it, and is the same as that of one who reads all of it at once."""
    script = "touch here-$$; while [ ! -e go ]; do sleep 0.02; done; echo done > done"
    agent = program(workspace.parent / "agent.sh", script)
    (workspace / ".ralph").mkdir()
    (workspace / ".ralph" / "settings.json").write_text(
        json.dumps({"agent": {"command": agent}, "guardrails": [{"command": "test -e done"}]})
    )
    words = ("run", "-p", "Make it", "--until-green")
    running = Running(workspace, *words)
    running.await_that(lambda: list(workspace.glob("here-*")))
    following = followed()
    now = time.time() + 100
    live = following.recap(now)
    assert (live.state, live.pid) == ("running", running.process.pid)
    look, turn = live.iterations
    assert (look.mode, look.number, look.ended is None) == ("look", 0, False)
    assert look.checks[-1].code == 1
    assert (turn.ended, turn.ending) == (None, "")
    assert 100 <= turn.agent_seconds < 150
    note(the_run(), "mind the gap", Origin.CLI)
    running.process.kill()
    running.process.wait()
    catch_up(following)
    gone = following.recap(now)
    assert (gone.state, gone.pid) == ("crashed", None)
    assert gone.iterations[-1].trouble == "the run was gone before the turn ended"
    assert gone.iterations[-1].ended is not None
    assert gone.next[0].startswith("ralph resume")
    assert [(s.text, s.heard) for s in gone.steered] == [("mind the gap", False)]
    (workspace / "go").touch()
    assert ralph("resume").code == 0
    catch_up(following)
    ended = following.recap(now)
    assert (ended.state, [each.number for each in ended.iterations]) == ("completed", [0, 1])
    assert ended.iterations[-1].tries == 2
    assert following.recap(now, whole=True) == recap(now)
