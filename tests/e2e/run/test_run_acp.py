"""Runs with an agent that speaks ACP (ADR 53): how it is named, guarded, asked, cut and counted."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from run_support import Here, assert_clear, prepare, program

from kits.sandbox.stage import overlay_is_usable
from ralph.testing.scripted_agent.install import calls

FORCE = "git push --force origin main"
DONE = {"response": "DONE"}
WORK = {"tools": [{"run": FORCE}, {"run": "echo hello > hello.txt"}], **DONE}
IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def acp(workspace: Path, *turns: dict[str, Any], version: int = 1, **settings: Any) -> str:  # noqa: ANN401
    """A scripted agent that speaks this version, named by a list of words."""
    agent = prepare(workspace, *turns, kind="acp", **settings)
    script = Path(f"{agent}.script")
    book = json.loads(script.read_text())
    script.write_text(json.dumps({**book, "version": f"acp {version}"}))
    path = workspace / ".ralph" / "settings.json"
    written = json.loads(path.read_text())
    written["agent"]["command"] = [agent, "acp"]
    path.write_text(json.dumps(written))
    return agent


def turns(out: str) -> list[dict[str, Any]]:
    lines = map(json.loads, out.splitlines())
    return [line["turn"] for line in lines if line["type"] == "ended"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_refused_command_is_told_kept_and_survived(
    here: Here, workspace: Path, version: int
) -> None:
    agent = acp(workspace, WORK, version=version)
    done = here("run", "-p", "x", "-m", "1", "--json")
    assert_clear(done, 0, f"Refused: {FORCE} (force-push): a force push replaces")
    assert "Guard: on for what the agent asks for." in done.err
    (turn,) = turns(done.out)
    told = [(one["what"], one["allowed"]) for one in turn["permissions"]]
    assert told == [(FORCE, False), ("echo hello > hello.txt", True)]
    assert (turn["asked"], turn["tool_errors"], turn["usage"]["input"]) == (2, 1, 100)
    assert (workspace / "hello.txt").read_text() == "hello\n"
    assert calls(agent)[0]["argv"] == ["acp"]


@pytest.mark.parametrize(
    ("flags", "settings", "said"),
    [
        (("--no-guard",), {}, "Guard: off (--no-guard)."),
        ((), {"guard": {"allow": [FORCE]}}, "Guard: on for what the agent asks for."),
    ],
)
def test_who_may_do_it_is_not_refused(
    here: Here, workspace: Path, flags: tuple[str, ...], settings: dict[str, Any], said: str
) -> None:
    """Without a guard, and by the settings."""
    acp(workspace, WORK, **settings)
    done = here("run", "-p", "x", "-m", "1", "--json", *flags)
    assert_clear(done, 0, said)
    (turn,) = turns(done.out)
    assert [one["allowed"] for one in turn["permissions"]] == [True, True]


ASKS = """reply() { read -r line; echo '{"id":'$1',"result":'$2'}'; }
reply 1 '{"protocolVersion":1}'
reply 2 '{"sessionId":"s"}'
read -r line
call='{"toolCallId":"c","kind":"execute","rawInput":{"command":"rm -rf ~"}}'
options='[{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]'
about='{"toolCall":'$call',"options":'$options'}'
echo '{"id":0,"method":"session/request_permission","params":'$about'}'
read -r answer
echo "$answer" > answer
echo '{"id":3,"result":{"stopReason":"end_turn"}}'
"""


@IN_OVERLAY
def test_a_sandbox_that_contains_it_is_the_permission(here: Here, workspace: Path) -> None:
    agent = program(workspace / "asking-acp", ASKS)
    done = here("run", "-p", "x", "-m", "1", "--agent", agent, "--sandbox", "overlay")
    assert_clear(done, 1, "Sandbox: overlay")
    assert '"optionId":"yes"' in (workspace / "answer").read_text()


def test_a_model_that_is_not_offered_ends_the_run(here: Here, workspace: Path) -> None:
    agent = acp(workspace, DONE)
    assert_clear(
        here("run", "-p", "x", "--model", "huge"), 2, "offers small, large, and not 'huge'"
    )
    assert calls(agent) == []
    assert_clear(here("run", "-p", "x", "--model", "large"), 0)
    assert calls(agent)[0]["argv"] == ["acp", "--model", "large"]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ({"status": 401, "message": "no key"}, 2, "the agent's credential was refused: no key"),
        ({"status": 429, "message": "slow down"}, 1, "slow down"),
    ],
)
def test_failures_are_what_they_are(
    here: Here, workspace: Path, error: dict[str, Any], code: int, words: str
) -> None:
    acp(workspace, {"error": error}, version=2)
    assert_clear(here("run", "-p", "x", "--max-wait", "0.1"), code, words)


def test_a_version_that_nobody_knows_ends_the_run(here: Here, workspace: Path) -> None:
    hello = '{"id":1,"result":{"protocolVersion":9}}'
    agent = program(workspace / "new-acp", f"read -r line; echo '{hello}'; cat > /dev/null")
    assert_clear(
        here("run", "-p", "x", "--agent", agent), 2, "version 9 of ACP; Ralph speaks 1 and 2"
    )


def test_a_silent_agent_is_cut_and_nothing_of_it_is_left(here: Here, workspace: Path) -> None:
    """It ignores cancels and signals, and has a child in a session of its own."""
    agent = program(
        workspace / "deaf-acp",
        "trap '' INT TERM HUP; setsid sh -c 'trap \"\" INT TERM HUP; sleep 604; sleep 605' &\n"
        "echo $! $$ > pids\n"
        'read -r l; echo \'{"id":1,"result":{"protocolVersion":1}}\'\n'
        'read -r l; echo \'{"id":2,"result":{"sessionId":"s"}}\'\n'
        "read -r l; while :; do sleep 603; done",
    )
    done = here("run", "-p", "x", "-m", "1", "--agent", agent, "--idle-timeout", "1s", "--json")
    assert done.code == 1, done.err
    (turn,) = turns(done.out)
    assert (turn["ending"], turn["why"]) == ("cut", "silent for 1.0s")
    for pid in (workspace / "pids").read_text().split():
        assert not os.path.exists(f"/proc/{pid}")
    left = subprocess.run(("pgrep", "-f", "sleep 60[345]"), capture_output=True, check=False)
    assert left.stdout == b""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], "agent.command: found a list; allowed: a list of words, one at least"),
        (["goose", 3], "agent.command[1]: found 3; allowed: text that is not blank"),
        (["goose", " "], 'agent.command[1]: found " "; allowed: text that is not blank'),
        (" ", 'agent.command: found " "; allowed: text that is not blank, or a list of words'),
        (7, "agent.command: found 7; allowed: text that is not blank, or a list of words"),
        (["no-such-agent", "acp"], "agent command 'no-such-agent' was not found"),
    ],
)
def test_a_command_that_is_none(here: Here, workspace: Path, command: object, words: str) -> None:
    (workspace / ".ralph").mkdir()
    (workspace / ".ralph" / "settings.json").write_text(json.dumps({"agent": {"command": command}}))
    assert_clear(here("run", "-p", "x"), 2, words)


def test_a_list_is_words_as_they_are(here: Here, workspace: Path) -> None:
    """Also of a fallback, and with blanks in them."""
    agent = program(workspace / "my agent", 'echo "<response>$1</response>"')
    (workspace / ".ralph").mkdir()
    first = {"command": ["./my agent", "DONE"], "fallbacks": [{"command": [agent, "x y"]}]}
    (workspace / ".ralph" / "settings.json").write_text(json.dumps({"agent": first}))
    done = here("run", "-p", "x", "-m", "1")
    assert_clear(done, 0, "Agent: './my agent' DONE (text)")
    assert f"Then: '{agent}' 'x y' (text)" in done.err
    assert "['./my agent', 'DONE']" in here("explain").out.replace('"', "'")
