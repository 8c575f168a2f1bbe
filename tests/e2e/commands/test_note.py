"""`ralph note`, and settings that change during a pause, on real runs (ADR 38)."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_support import (
    Done,
    Here,
    Running,
    assert_clear,
    await_gone,
    facts,
    journals,
    prepare,
    prompts,
    ralph,
)

from ralph.journal.runs import Run, all_runs
from ralph.kernel.facts import Asked, Resumed
from ralph.kernel.world import Origin
from ralph.runner import steering
from ralph.testing.scripted_agent.install import calls

UNTIL_TOLD = {"tools": [{"name": "Bash", "run": "until [ -e go ]; do sleep 0.02; done"}]}
SAID = "A note from the person you work for:\n"


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


class Stage:
    """A run in its first turn, which lasts until it is told to end."""

    def __init__(self, workspace: Path, *turns: dict[str, Any], **settings: Any) -> None:  # noqa: ANN401
        self.workspace, self.settings = workspace, settings
        self.agent = prepare(workspace, UNTIL_TOLD, *turns, **settings)
        self.running = Running(workspace, "-p", "x", "-c", "NEVER")
        self.running.await_that(lambda: calls(self.agent))
        self.run = journals()[0].parent.name

    def set(self, **settings: Any) -> None:  # noqa: ANN401
        """Change the settings file, as a person does."""
        text = {"agent": {"command": self.agent}, "failDelay": 0, **self.settings, **settings}
        (self.workspace / ".ralph" / "settings.json").write_text(json.dumps(text))

    def go(self) -> None:
        (self.workspace / "go").touch()

    def end(self) -> Done:
        self.go()
        return self.running.end()

    def paused(self, here: Here) -> None:
        """Pause it, and let its turn end."""
        assert here("pause").code == 0
        self.go()
        self.await_state(here, "paused")

    def await_state(self, here: Here, state: str) -> None:
        self.running.await_that(lambda: json.loads(here("status", "--json").out)["state"] == state)


def asked() -> list[tuple[str, str, str]]:
    return [
        (fact.request.request, fact.request.origin, fact.request.text)
        for fact in facts()
        if isinstance(fact, Asked)
    ]


# ------------------------------------------------------------------ notes


def test_a_note_is_told_once_with_the_next_prompt(workspace: Path, here: Here) -> None:
    stage = Stage(workspace, {}, {}, maximumIterations=3)
    assert here("note", "Use tabs.").out == "Told with the next prompt (iteration 2).\n"
    (shown,) = here("note", stage.run[-4:], "Mind \x1b[31mthe gap.", "--json").objects
    assert (shown["run"], shown["asked"], shown["live"]) == (stage.run, "note", True)
    steering.note(the_run(), "From elsewhere.", Origin.WEB)
    status = here("status").out
    assert "Notes      Use tabs. (cli, " in status
    assert "From elsewhere. (web, " in status
    listed = json.loads(here("status", "--json").out)["notes"]
    assert [each["origin"] for each in listed] == ["cli", "cli", "web"]
    done = stage.end()
    assert_clear(done, 1, "Note from cli: Use tabs.", "Note from web: From elsewhere.")
    first, second, third = prompts(stage.agent)
    assert SAID not in first + third
    told = second.split(SAID)[1:]
    assert [each.strip() for each in told] == ["Use tabs.", "Mind the gap.", "From elsewhere."]
    assert asked()[0] == ("note", "cli", "Use tabs.")
    assert not os.listdir(journals()[0].parent / "signals"), "what is journaled is gone"
    assert "Note from web: From elsewhere." in here("logs").out


def the_run() -> Run:
    (run,) = all_runs(os.environ["RALPH_STATE_DIR"])
    return run


def test_a_note_beyond_the_last_turn_waits_for_whoever_goes_on(workspace: Path, here: Here) -> None:
    stage = Stage(workspace, {}, maximumIterations=1)
    words = "Told with the next prompt, if there is one: iteration 1 is the last by its limit."
    assert here("note", "Use tabs.").out.strip() == words
    done = stage.end()
    assert_clear(done, 1, "Not told to any turn: Note from cli: Use tabs.")
    said = here("note", "And mind the gap.")
    assert (
        f"It is told with the next prompt, when the run goes on:\nralph resume {stage.run}"
        in said.out
    )
    assert_clear(ralph("resume", "-m", "+1"), 1, "Note from cli: And mind the gap.")
    told = prompts(stage.agent)[1].split(SAID)[1:]
    assert [each.strip() for each in told] == ["Use tabs.", "And mind the gap."]


def test_a_note_to_a_run_that_is_complete_is_refused(workspace: Path, here: Here) -> None:
    prepare(workspace, {"response": "DONE"})
    here("-p", "x")
    done = here("note", "Use tabs.")
    assert_clear(done, 2, "does not run: it has ended (completed, ", "Start a new one: ralph run")
    assert not os.listdir(journals()[0].parent / "signals")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("note", " "), ("the note is blank", 'ralph note "..."')),
        (("note", "x" * 70_000), ("the note is longer than 64 KB", "Put it into a file")),
        (("note", "use", "tabs"), ("there is no run 'use'", 'ralph note "use tabs"')),
        (("note", "use", "tabs", "now"), ("a note is one text", 'ralph note "use tabs now"')),
        (("note", "--task", "T-1", "x"), ("has no tasks", "Leave out --task.")),
        (("note", "-f", "none.md"), ("cannot read the note none.md",)),
        (
            ("note", "-f", ".ralph/settings.json", "none"),
            ("there is no run 'none'", "ralph status --all\n"),
        ),
    ],
)
def test_what_is_no_note_is_refused(
    workspace: Path, here: Here, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    prepare(workspace, {"response": "NO"}, maximumIterations=1)
    here("-p", "x")
    assert_clear(here(*arguments), 2, *words)
    assert not os.listdir(journals()[0].parent / "signals")


def test_a_runs_name_alone_is_no_note(workspace: Path, here: Here) -> None:
    prepare(workspace, {"response": "NO"}, maximumIterations=1)
    here("-p", "x")
    name = journals()[0].parent.name[-4:]
    assert_clear(here("note", name), 2, f"{name} names a run", f'ralph note {name} "..."')


def test_no_agent_may_leave_a_note(
    workspace: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 10, and stronger: of no run at all."""
    prepare(workspace, {"response": "NO"}, maximumIterations=1)
    here("-p", "x")
    monkeypatch.setenv("RALPH_RUN", "20260101-000000-abcd")
    assert_clear(here("note", "Use tabs."), 2, "an agent may not leave a note for a run")


# ------------------------------------------------------------------ settings


def test_settings_that_change_during_a_pause_are_taken(workspace: Path, here: Here) -> None:
    """ADR 38: "settings are read again, the change is journaled"; flags stay above the files."""
    secret = "sk-ant-api03-" + "a1B2" * 12
    stage = Stage(workspace, {}, {}, maximumIterations=2, guardrails=[{"command": "true"}])
    stage.paused(here)
    changed = [{"command": "echo > ran"}]
    stage.set(
        maximumIterations=3,
        guardrails=changed,
        completionResponse="OTHER",
        agent={"command": stage.agent, "env": {"set": {"MY_KEY": secret}}},
    )
    done = here("resume")
    assert f"Run {stage.run} goes on.\nmaximumIterations is now 3 (was 2)" in done.out
    assert_clear(stage.end(), 1, "maximumIterations is now 3 (was 2)", "Iteration 3/3 starting")
    (resumed,) = (fact for fact in facts() if isinstance(fact, Resumed))
    assert resumed.limits is not None
    assert resumed.limits.iterations == 3
    assert sorted(resumed.changed) == [
        ("agent.env.set.MY_KEY", "null", '"[redacted]"'),
        ("guardrails", '[{"command": "true"}]', json.dumps(changed)),
        ("maximumIterations", "2", "3"),
    ], "the completion was given by a flag"
    assert secret not in journals()[0].read_text() + done.out
    assert (workspace / "ran").exists()
    assert [each[:2] for each in asked()] == [("pause", "cli"), ("resume", "cli")]
    assert json.loads((workspace / ".ralph" / "settings.json").read_text())["guardrails"] == changed


def test_bad_settings_leave_a_run_paused(workspace: Path, here: Here) -> None:
    stage = Stage(workspace, {}, maximumIterations=2)
    stage.paused(here)
    stage.set(maximumIterations="many")
    assert_clear(here("resume"), 2, ".ralph/settings.json: maximumIterations:", "Fix")
    stage.await_state(here, "paused")
    for missing in ("/nowhere/agent", "nowhere --fast", "./nowhere"):
        stage.set(agent={"command": missing})
        assert_clear(here("resume"), 2, f"stays paused: agent command {missing!r} was not found")
    stage.set(agent={"command": stage.agent, "kind": "text"}, maxCost=1)
    assert here("resume").code == 0  # only the run itself finds it out
    stage.running.await_that(lambda: "The run stays paused: " in stage.running.err())
    stage.await_state(here, "paused")
    assert "maxCost" in here("status").out
    stage.set()
    assert here("resume").code == 0
    assert_clear(stage.end(), 1, "Iteration 2/2 starting")
    words = [each[:2] for each in asked()]
    assert words == [("pause", "cli"), ("resume", "cli")] * 2
    assert "maxCost" in asked()[2][2]


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_run_that_ended_in_a_pause_takes_the_settings_too(
    workspace: Path, here: Here, how: str
) -> None:
    stage = Stage(workspace, {}, {}, maximumIterations=2)
    stage.paused(here)
    here("note", "Use tabs.")
    if how == "killed":
        stage.running.send(signal.SIGKILL)
        stage.running.end()
        await_gone(*(call["pid"] for call in calls(stage.agent)))
    else:
        here("stop")
        assert stage.running.end().code == 130
    stage.set(maximumIterations=3)
    done = ralph("resume")
    assert_clear(done, 1, "maximumIterations is now 3 (was 2)", "Note from cli: Use tabs.")
    assert SAID in prompts(stage.agent)[1]


def test_a_run_that_was_cut_in_a_turn_keeps_the_settings_it_had(
    workspace: Path, here: Here
) -> None:
    """And what its unfinished turn has changed of them is put back before anybody reads them."""
    broken = "echo '{}' > .ralph/settings.json; touch changed; until [ -e go ]; do sleep 0.02; done"
    agent = prepare(
        workspace, {}, {"tools": [{"name": "Bash", "run": broken}]}, {}, {}, maximumIterations=3
    )
    before = (workspace / ".ralph" / "settings.json").read_text()
    running = Running(workspace, "-p", "x", "-c", "NEVER")
    running.await_that((workspace / "changed").exists)
    running.send(signal.SIGKILL)
    running.end()
    (workspace / "go").touch()
    await_gone(*(call["pid"] for call in calls(agent)))
    assert (workspace / ".ralph" / "settings.json").read_text() == "{}\n"
    assert_clear(ralph("resume", "--max-time", "0.001"), 1, "used up (limit)")
    assert (workspace / ".ralph" / "settings.json").read_text() == before
    done = ralph("resume", "--max-time", "1h")
    assert_clear(done, 1, "Iteration 3/3 starting")
    assert "maximumIterations is now" not in done.err


# ------------------------------------------------------------------ who asked


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda run: steering.pause(run, Origin.WEB), "Asked to pause (web): the run pauses"),
        (lambda run: steering.stop(run, Origin.WATCH), "Asked to stop (watch): the run ends after"),
    ],
)
def test_whoever_asks_is_named(
    workspace: Path, here: Here, ask: Callable[[Run], str], words: str
) -> None:
    stage = Stage(workspace, {}, maximumIterations=2)
    ask(the_run())
    stage.running.await_that(lambda: words in stage.running.err())
    shown = json.loads(here("status", "--json").out)
    assert shown["asked_by"] in ("web", "watch")
    assert f"({shown['asked_by']}, 0s ago)" in here("status").out
    here("stop")
    stage.end()
    assert f"({shown['asked_by']})" in here("logs").out
