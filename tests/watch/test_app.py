"""`ralph watch` on the whole screen, played by Textual's pilot over real runs."""

import os
import re
import signal
from functools import partial
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project
from run_support import Running, facts, prepare, ralph

from kits.watched import PATIENT, Watched, left_on_disk, the_run, watch
from ralph.kernel.facts import Asked
from ralph.testing.scripted_agent.install import calls
from ralph.text.plain import columns

__all__ = ["project"]
HOSTILE = (
    "\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b[31m[bold red]markup[/] [link=http://x]y[/link]\n"
    "[@click=app.exit()]press[/] \u202egnp.exe \x1b[2J\x9b31m\x07 <script> "
)


def under_way(workspace: Path, agent: str, *arguments: str) -> Running:
    running = Running(workspace, "-p", "Make it work", "--max-cost", "5", *arguments)
    running.await_that(lambda: calls(agent))
    return running


def test_a_run_is_seen_and_steered(workspace: Path) -> None:
    agent = prepare(workspace, PATIENT, guardrails=[{"command": "false"}])
    running = under_way(workspace, agent)
    run = the_run()

    async def scene(screen: Watched) -> None:
        seen = await screen.sees(run.id, "running", "Iteration 1/10", "/$5.00", "Bash(make test)")
        assert "I look at it." in seen
        assert len(screen.rows) == 24
        assert all(columns(row) == 80 for row in screen.rows), seen
        await screen.press("m")
        await screen.sees("Note for the next prompt:")
        await screen.types("Mind the API")
        await screen.sees("1 note for the next prompt")
        await screen.press("p")
        await screen.sees("it pauses before the next turn")
        assert run.asked().paused
        await screen.press("p")
        await screen.misses("it pauses before the next turn")
        assert not run.asked().paused
        await screen.press("s")
        await screen.sees("Stop this run?")
        await screen.press("c")
        await screen.misses("Stop this run?")
        assert not run.asked().cancels
        await screen.press("s", "f")
        await screen.sees("it stops after the current operation")
        assert run.asked().cancels == 1
        (workspace / "go").touch()
        await screen.sees("interrupted", "Stopped: asked to stop", "Next")
        assert "p pause" not in screen.text, "nobody can steer it any more"
        await screen.press("q")

    app = watch(scene, run)
    assert running.end().code == 130
    assert app.return_value is not None
    assert app.return_value.state == "interrupted"
    heard = [fact.request for fact in facts() if isinstance(fact, Asked)]
    assert {(each.request, each.origin) for each in heard} >= {("stop", "watch")}


def test_to_look_and_to_leave_changes_nothing(workspace: Path) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent)
    run = the_run()

    async def scene(screen: Watched) -> None:
        await screen.sees("Bash(make test)")
        before = left_on_disk(run)
        await screen.press("question_mark")
        await screen.sees("Follow the end of the log")
        await screen.press("question_mark", "v", "v", "w", "f", "up", "G", "n", "a", "s", "c")
        await screen.press("slash")
        await screen.types("look")
        await screen.press("m", "escape", "l")
        await screen.sees("1 runs of this machine")
        await screen.press("enter")
        await screen.sees("Bash(make test)")
        await screen.press("q")
        assert left_on_disk(run) == before

    watch(scene, run)
    (workspace / "go").touch()
    assert running.end().code == 0
    assert not [fact for fact in facts() if isinstance(fact, Asked)]


def test_an_agent_inside_a_run_cannot_steer_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent)
    run = the_run()
    monkeypatch.setenv("RALPH_RUN", run.id)

    async def scene(screen: Watched) -> None:
        await screen.sees("Bash(make test)")
        await screen.press("s", "n")
        await screen.sees("an agent may not stop its own run")
        await screen.press("p")
        await screen.sees("an agent may not pause its own run")

    watch(scene, run)
    asked = run.asked()
    assert (asked.cancels, asked.paused) == (0, False)
    (workspace / "go").touch()
    assert running.end().code == 0


def test_a_killed_run_is_noticed(workspace: Path) -> None:
    agent = prepare(workspace, PATIENT)
    running = under_way(workspace, agent)

    async def scene(screen: Watched) -> None:
        await screen.sees("running")
        running.send(signal.SIGKILL)
        running.process.wait()
        await screen.sees("crashed", "Go on: ralph resume")

    watch(scene, the_run())


@pytest.mark.slow
def test_the_log_is_searched_and_filtered_and_resized(workspace: Path) -> None:
    long = "It is a long story about a parser that nobody understood. " * 3
    tools = [
        {"name": "Bash", "input": {"command": "make"}, "output": "step one\nall is well"},
        {"name": "Bash", "input": {"command": "make bad"}, "output": "boom", "is_error": True},
    ]
    turn = {"text": [long, HOSTILE], "tools": tools * 5, "response": "DONE"}
    prepare(workspace, turn, guardrails=[{"command": "false"}])
    assert ralph("-p", "x", "-m", "1").code == 1

    async def scene(screen: Watched) -> None:
        await screen.sees("limit", "✗ false", "Stopped: 1 iteration used up")
        await screen.press("slash")
        await screen.types("STEP one")
        await screen.sees("Not found: STEP one")
        await screen.press("slash")
        await screen.types("step one")
        seen = await screen.sees("step one", "/step one")
        assert "following" not in seen
        place = re.search(r"line \d+ of \d+", seen)
        await screen.press("n")
        assert place
        assert place[0] not in screen.text
        await screen.press("N")
        assert place[0] in screen.text
        await screen.press("escape", "v")
        await screen.sees("Log: agent only", "Bash(make bad)")
        assert "Iteration 1/1 starting" not in screen.text
        await screen.press("v")
        await screen.sees("Log: ralph only", "Guardrail exited with code 1")
        await screen.press("v", "f")
        seen = await screen.sees("Log: problems only", "Error ← Bash")
        assert "step one" not in seen
        await screen.press("v", "G", "up")
        await screen.press("home")
        await screen.sees("It is a long story")
        for width, height in ((140, 40), (40, 12), (10, 3), (200, 60), (80, 24)):
            await screen.resize(width, height)
            beside = width >= 120
            await screen.until(partial(screen.is_beside, beside), "resized")
            assert {columns(row) for row in screen.rows} == {width}
            assert len(screen.rows) == height

    watch(scene, the_run())


def test_hostile_words_are_words(workspace: Path) -> None:
    prepare(workspace, {"text": HOSTILE, "response": "DONE"})
    assert ralph("-p", HOSTILE.replace("\x07", ""), "--no-tell-completion").code == 0

    async def scene(screen: Watched) -> None:
        seen = await screen.sees("[bold red]markup[/]", "[@click=app.exit()]press[/]", "<script>")
        assert "link [bold red]" in seen
        assert not set(seen) & set("\x1b\x07\x9b\u202e")
        strips = screen.app.screen._compositor.render_strips()
        assert not any(segment.style and segment.style.link for s in strips for segment in s)
        await screen.pilot.click(offset=(10, 10))
        assert screen.app.is_running

    watch(scene, the_run())


def test_all_runs_of_the_machine(workspace: Path, tmp_path: Path) -> None:
    prepare(workspace, {"response": "DONE"}, {"response": "DONE"})
    for number in range(2):
        assert ralph("-p", f"run {number}").code == 0
    broken = the_run()
    Path(broken.journal).write_text("this is no journal\n")

    async def scene(screen: Watched) -> None:
        seen = await screen.sees("2 runs of this machine, 0 at work", "completed", "unknown")
        assert all(columns(row) == 80 for row in screen.rows), seen
        await screen.press("down", "enter")
        await screen.sees("Completed after 1 iteration", "Log")
        await screen.press("l")
        await screen.sees("2 runs of this machine")
        await screen.press("up", "up", "enter")
        await screen.sees(broken.id, "unknown")
        await screen.press("ctrl+c")

    app = watch(scene)
    assert app.interrupted


def test_no_journal_yet(workspace: Path) -> None:
    """A run that has only just taken its lock."""
    prepare(workspace, {"response": "DONE"})
    assert ralph("-p", "x").code == 0
    os.unlink(the_run().journal)

    async def scene(screen: Watched) -> None:
        await screen.sees("just starting")
        await screen.press("s", "f")
        await screen.sees("does not run")

    watch(scene, the_run())


def test_a_question_is_answered_in_its_place(project: Project) -> None:
    project.tasks({"id": "A", "title": "a"}, {"id": "B", "title": "b"})
    asks = f'[ "$n" = 2 ] && {COMPLETE} || echo "<promise>DECIDE: [b]Which[/b] base?</promise>"'
    waits = f"until [ -e go ]; do sleep 0.02; done; touch $id; {COMPLETE}"
    agent = project.agent(f'if [ "$id" = A ]; then touch a$n; {asks}; else {waits}; fi')
    running = Running(project.path, "tasks", "run", "--agent", agent, "--no-sandbox")
    running.await_that(lambda: project.turns("B"))

    async def scene(screen: Watched) -> None:
        await screen.sees("asking", "A asks: [b]Which[/b] base?", "a answer", "1 left to you")
        await screen.press("a")
        await screen.sees("Answer for A:")
        await screen.types("SQLite, as before.")
        await screen.sees("A is pending again, with your answer.")
        await screen.misses("A asks:")
        (project.path / "go").touch()
        await screen.sees("Completed after 3 iterations")

    watch(scene, the_run())
    assert running.end().code == 0
    assert "SQLite, as before." in project.prompt("A", 2)
    told = [fact.request for fact in facts() if isinstance(fact, Asked)]
    assert [(each.request, each.origin, each.task) for each in told] == [("answer", "watch", "A")]
