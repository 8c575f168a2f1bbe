"""The next agent in a real run (ADR 45): a night with two limits, a kill, what is said of it."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from run_support import (
    Here,
    Json,
    Running,
    assert_clear,
    assert_replays,
    facts,
    journals,
    prepare,
    turns,
)

from ralph.journal.journal import read_journal
from ralph.kernel.facts import Began, Ended, Launching, Step
from ralph.kernel.state import replay
from ralph.testing.scripted_agent.install import calls, install_agent

HOUR = 3600
DONE = {"text": "finished", "response": "DONE", "cost": 0.1}
REFUSED = {"error": {"status": 401, "message": "Invalid API key"}}
BUSY = {"error": {"status": 529, "message": "Overloaded"}}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def limited(seconds: float, **more: Any) -> Json:  # noqa: ANN401
    error = {"status": 429, "message": "You've hit your limit", "resets_at": time.time() + seconds}
    return {"error": error, **more}


def another(
    workspace: Path, *script: Json, name: str = "spare/claude", kind: str = "claude"
) -> str:
    """Install an agent that goes on."""
    path = workspace.parent / name
    return install_agent(str(path.parent), list(script), kind=kind, name=path.name)


@pytest.mark.slow
def test_a_night_with_two_limits_ends_on_the_second_agent(here: Here, workspace: Path) -> None:
    """Issue: a limit of the first one's, then one of the second's, which is free again sooner."""
    night = {"text": "step one", "files": {"one": "1"}, "cost": 0.4}
    spare = another(workspace, {"text": "step two", "cost": 0.2}, limited(4), DONE)
    agent = {"fallbacks": [{"command": spare, "model": "sonnet"}], "fallbackAfter": 1}
    first = prepare(workspace, night, limited(HOUR), agent=agent)
    done = here("-p", "do it", "-m", "5", "--max-cost", "9")
    assert_clear(
        done,
        0,
        f"Agent: {first} (claude)",
        f"Then: {spare} (claude) with sonnet",
        "claude cannot go on: API Error: Request rejected (429) · You've hit your limit; the next "
        "agent does, and claude is asked again after",
        "Iteration 2/5 starting again",
        "Agent: claude with sonnet",
        "claude with sonnet cannot go on: API Error: Request rejected (429) · You've hit your "
        "limit; no other can before",
        "Completed after 3 iterations",
        "$0.70",
    )
    launched = [fact for fact in facts() if isinstance(fact, Launching)]
    assert [(each.place, each.agent, each.model) for each in launched] == [
        (0, "claude", ""),
        (0, "claude", ""),
        *[(1, "claude", "sonnet")] * 3,
    ]
    assert [f.iteration for f in facts() if isinstance(f, Began)] == [1, 2, 2, 3, 3]
    assert {prompt["prompt"][:5] for prompt in (*calls(first), *calls(spare))} == {"do it"}
    assert_replays()
    _spending(here)


def _spending(here: Here) -> None:
    """What `status` and the report tell of that night."""
    told = here("status", "--spending")
    rows = [line.split() for line in told.out.partition("By agent:")[2].splitlines()]
    assert ["claude", "$0.40", "100", "20", "1"] in rows
    assert [*["claude", "with", "sonnet", "$0.30"], "200", "40", "2"] in rows
    agents = json.loads(here("status", "--spending", "--json").out)["agents"]
    assert [(a["agent"], a["model"], a["cost_usd"], a["turns"]) for a in agents] == [
        ("claude", "", 0.4, 1),
        ("claude", "sonnet", 0.3, 2),
    ]
    report = here("report", "--format", "md", "-o", "-")
    assert "claude: 2 turns, $0.40" in report.out
    assert "claude with sonnet: 3 turns, $0.30" in report.out
    shown = json.loads(here("status", "--json").out)
    assert (shown["by"], shown["benched"]) == ("claude with sonnet", [])


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (REFUSED, "its credential was refused: Invalid API key"),
        (BUSY, "API Error: 529 Overloaded"),
    ],
)
def test_the_next_one_goes_on(here: Here, workspace: Path, problem: Json, words: str) -> None:
    spare = another(workspace, {"text": "well"}, DONE, kind="codex", name="codex")
    prepare(workspace, problem, agent={"fallbacks": [{"command": spare}]})
    done = here("-p", "x", "-m", "3")
    assert_clear(done, 0, f"claude cannot go on: {words}", "Agent: codex")
    assert [turn.turn.agent for turn in turns()] == ["claude", "codex", "codex"]


def test_if_all_are_refused_the_run_ends_as_with_one(here: Here, workspace: Path) -> None:
    spare = another(workspace, REFUSED)
    prepare(workspace, REFUSED, agent={"fallbacks": [{"command": spare, "model": "sonnet"}]})
    done = here("-p", "x")
    assert_clear(done, 2, "the agent's credential was refused", "/login")
    assert len(turns()) == 2


@pytest.mark.slow
def test_a_short_limit_is_waited_for(here: Here, workspace: Path) -> None:
    spare = another(workspace, DONE)
    prepare(workspace, limited(2), DONE, agent={"fallbacks": [{"command": spare}]})
    assert_clear(here("-p", "x"), 0, "Rate limited", "waiting until")
    assert calls(spare) == []


def test_the_message_of_a_commit_is_asked_of_who_can_answer(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first agent's limit begins right after its turn: nobody judges a message turn."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "x")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "x@y")
    os.system("git init -q && git commit -q --allow-empty -m Begin")
    spare = another(workspace, {"text": "Add a file", "cost": 0.1}, name="spare/claude")
    work = {"files": {"a": "1"}, **DONE}
    prepare(
        workspace,
        work,
        limited(HOUR),
        agent={"fallbacks": [{"command": spare, "model": "sonnet"}]},
        scm={"tasks": ["commit"]},
    )
    assert_clear(here("-p", "x"), 0, "Committed: Add a file")
    [message] = [f for f in facts() if isinstance(f, Step) and f.key == "scm:message"]
    assert (message.ok, message.cost_usd) == (True, 0.1)


def test_who_is_benched_survives_a_kill(here: Here, workspace: Path) -> None:
    """Killed while the second one works: it is not the first one that goes on."""
    spare = another(workspace, {"text": "well", "hang": 60}, DONE)
    agent = {"fallbacks": [{"command": spare, "model": "sonnet"}]}
    first = prepare(workspace, limited(HOUR), agent=agent, resultGrace=30)
    running = Running(workspace, "-p", "x", "-m", "4")
    running.await_that(lambda: len(calls(spare)) == 1)
    running.send(signal.SIGKILL)
    running.end()
    killed = replay(facts())
    [bench] = killed.benches
    assert (bench.place, bench.agent, bench.times) == (0, "claude", 1)
    shown = json.loads(here("status", "--json").out)
    assert shown["benched"] == [{"agent": "claude", "until": bench.until}]
    assert "Benched    claude until" in here("status").out
    assert_clear(here("resume"), 0)
    assert len(calls(first)) == 1
    assert {turn.turn.agent for turn in turns()[1:]} == {"claude with sonnet"}


def test_a_cheaper_model_for_the_rest_of_the_money(here: Here, workspace: Path) -> None:
    steps = [{"text": "one", "cost": 0.5}, {"text": "two", "cost": 0.35}, {"text": "x", "cost": 0}]
    agent = prepare(workspace, *steps, DONE, loop={"stepDown": {"at": 0.8, "model": "haiku"}})
    done = here("-p", "x", "--max-cost", "1", "-m", "9")
    said = "$0.85 of $1 spent: the model is haiku from here on"
    assert_clear(done, 0, said, "From 80% of the money on:", "Agent: claude with haiku")
    assert done.err.count(said) == 1
    models = ["haiku" in call["argv"] for call in calls(agent)]
    assert models == [False, False, True, True]
    agents = json.loads(here("status", "--spending", "--json").out)["agents"]
    assert [(each["model"], each["turns"]) for each in agents] == [("", 2), ("haiku", 2)]


@pytest.mark.parametrize(
    ("settings", "flags", "words"),
    [
        (
            {"agent": {"fallbacks": [{"command": "codex"}]}},
            (),
            ("agent.fallbacks: agent command 'codex' was not found", "npm install -g @openai/"),
        ),
        (
            {"agent": {"fallbacks": [{"command": "no-such-agent"}]}},
            (),
            ("agent.fallbacks: agent command 'no-such-agent' was not found", "take it out"),
        ),
        (
            {"agent": {"fallbacks": [{"command": "here/codex", "kind": "parrot"}]}},
            (),
            ("unknown kind 'parrot'", "Known kinds"),
        ),
        (
            {"agent": {"fallbacks": [{"command": "here/amp", "model": "x"}]}},
            (),
            ("agent.fallbacks: agent.model", "amp has no model flag"),
        ),
        (
            {"agent": {"fallbacks": [{"command": "here/codex"}]}},
            ("--max-cost", "1"),
            ("agent.fallbacks: --max-cost: codex reports no cost, only tokens", "prices"),
        ),
        (
            {"agent": {"fallbacks": [{"command": "true", "prices": {"input": 1, "output": 2}}]}},
            ("--max-cost", "1"),
            ("agent.fallbacks: --max-cost: true reports no cost", "Use --max-time"),
        ),
        ({"agent": {"fallbacks": ["codex"]}}, (), ("agent.fallbacks[0]",)),
        ({"agent": {"fallbacks": [{"model": "x"}]}}, (), ("agent.fallbacks[0]", "command")),
        ({"agent": {"fallbackAfter": "soon"}}, (), ("agent.fallbackAfter",)),
        (
            {"loop": {"stepDown": {"at": 0.8, "model": "haiku"}}},
            (),
            ("loop.stepDown needs a limit of money", "--max-cost"),
        ),
        (
            {
                "agent": {"kind": "codex", "model": "gpt-5.4"},
                "loop": {"stepDown": {"at": 0.5, "model": "gpt-99"}},
            },
            ("--max-cost", "1"),
            ("loop.stepDown: claude with gpt-99 reports no cost, only tokens", "agent.prices"),
        ),
        (
            {"loop": {"stepDown": {"at": 80, "model": "haiku"}}},
            ("--max-cost", "1"),
            ("loop.stepDown.at", "less than 1"),
        ),
    ],
)
def test_bad_settings_are_refused_before_anything_is_started(
    here: Here, workspace: Path, settings: Json, flags: tuple[str, ...], words: tuple[str, ...]
) -> None:
    for kind in ("amp", "codex"):
        install_agent(str(workspace / "here"), [DONE], kind=kind)
    agent = prepare(workspace, DONE, **settings)
    assert_clear(here("-p", "x", *flags), 2, *words)
    assert calls(agent) == []
    assert journals() == []


def test_a_dry_run_and_explain_show_them(here: Here, workspace: Path) -> None:
    spare = another(workspace, DONE, kind="codex", name="codex")
    agent = {"fallbacks": [{"command": spare, "model": "gpt-5.4"}], "fallbackAfter": "10m"}
    prepare(workspace, DONE, agent=agent)
    shown = here("-p", "x", "--dry-run")
    assert f"\nThen: {spare} e -m gpt-5.4" in shown.out
    in_json = here("-p", "x", "--dry-run", "--json").objects[0]
    assert [argv[0] for argv in in_json["fallbacks"]] == [spare]
    told = here("explain").out
    assert "NextAgent(roster=Roster(fallbacks=1, after=600" in told
    assert "agent.fallbacks.0.model" in told or "agent.fallbacks[0].model" in told
    assert "agent.fallbackAfter" in told


def test_the_flags_of_the_same_command_are_its_own(here: Here, workspace: Path) -> None:
    """What a fallback does not say is as for the first one where the command is the same."""
    prepare(workspace, REFUSED, DONE, agent={"flags": ["--allowedTools=Bash", "--model=opus"]})
    path = workspace / ".ralph" / "settings.json"
    settings = json.loads(path.read_text())
    first = settings["agent"]["command"]
    other = another(workspace, DONE, kind="codex", name="codex")
    settings["agent"]["fallbacks"] = [{"command": first, "model": "haiku"}, {"command": other}]
    path.write_text(json.dumps(settings))
    assert_clear(here("-p", "x"), 0, "Agent: claude with haiku")
    again = calls(first)[1]["argv"]
    assert "--allowedTools=Bash" in again
    assert "--model=opus" not in again
    shown = here("-p", "x", "--dry-run").out
    assert "--allowedTools" not in shown.partition(f"Then: {other}")[2]


def test_our_own_agent_may_go_on(here: Here, workspace: Path) -> None:
    """`builtin` needs no command on PATH, and a key."""
    prepare(workspace, DONE, agent={"fallbacks": [{"command": "builtin"}]})
    refused = here("-p", "x")
    assert_clear(refused, 2, "agent.fallbacks: ")
    os.environ["ANTHROPIC_API_KEY"] = "dummy-key-for-a-test"
    try:
        assert_clear(here("-p", "x"), 0, "Then: ralph-agent with ")
    finally:
        del os.environ["ANTHROPIC_API_KEY"]


def test_a_turn_that_was_cut_off_is_priced_by_its_own_agent(here: Here, workspace: Path) -> None:
    """Its stream was whole when the run was killed: not paid twice, and not for nothing."""
    usage = {"input": 1_000_000, "output": 0}
    spare = another(workspace, {**DONE, "usage": usage, "hang": 60}, kind="codex", name="codex")
    fallback = {"command": spare, "prices": {"input": 3, "output": 10}}
    prepare(workspace, limited(HOUR), agent={"fallbacks": [fallback]}, resultGrace=30)
    running = Running(workspace, "-p", "x", "--max-cost", "9")
    stream = "turn.completed"
    running.await_that(lambda: any(stream in p.read_text() for p in _streams()))
    running.send(signal.SIGKILL)
    running.end()
    assert_clear(here("resume"), 0, "$3.00")
    assert len(calls(spare)) == 1
    ended = [fact for fact in read_journal(str(journals()[0]))[0] if isinstance(fact, Ended)]
    assert (ended[-1].turn.place, ended[-1].turn.agent) == (1, "codex")


def _streams() -> list[Path]:
    return [path for journal in journals() for path in journal.parent.glob("*.stream")]
