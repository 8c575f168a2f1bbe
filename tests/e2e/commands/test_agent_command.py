"""`ralph agent` as its users and Ralph run it: a process, a stream, and an end (B §Actions)."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from run_support import RALPH, Done, Json, ralph

from ralph.testing.scripted_model.server import ScriptedModel

KEY = "sk-proj-0123456789abcdefghijklmnop"
SLEEP = {"tools": [{"name": "bash", "input": {"command": "echo $$$$ > pid; sleep 600; :"}}]}


def agent(model: ScriptedModel, *arguments: str) -> Done:
    return ralph("agent", "--model", "openai-chat:m", *arguments, env=environment(model))


def environment(model: ScriptedModel) -> dict[str, str]:
    return {**os.environ, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": KEY}


def started(model: ScriptedModel) -> "subprocess.Popen[str]":
    """At work on a command that sleeps."""
    process = subprocess.Popen(
        (*RALPH, "agent", "--model", "openai-chat:m", "-p", "Sleep"),
        env=environment(model),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 30
    while not Path("pid").exists() or not Path("pid").read_text().strip():
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


def is_gone(pid: int) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_turn_is_a_stream_that_ends_with_its_result(workspace: Path) -> None:
    turn = {"text": f"The key is {KEY}.", "tools": [{"name": "bash", "input": {"command": "pwd"}}]}
    with ScriptedModel([turn, {"text": "Done."}]) as model:
        done = agent(model, "-p", "--help")
        asked = model.main_calls()[0]["body"]["messages"]
    assert done.code == 0, done.err
    kinds = [line["type"] for line in done.objects]
    assert (kinds[0], kinds[-1], kinds.count("result")) == ("session", "result", 1)
    assert asked[-1]["content"] == "--help"  # a prompt that looks like an option is a prompt
    assert str(workspace) in done.out
    assert KEY not in done.out


def test_text_is_the_words_alone(workspace: Path) -> None:
    with ScriptedModel([SLEEP | {"tools": [], "text": "Hello.\nThere."}]) as model:
        done = agent(model, "Hi", "--output", "text")
    assert (done.code, done.out) == (0, "Hello.\nThere.\n")


def test_text_cannot_move_the_cursor_or_tell_a_key(workspace: Path) -> None:
    said = f"\x1b]0;title\x07\x1b[2JHello\x1b[31m {KEY}\r\u202e \ud800."
    with ScriptedModel([{"text": said}]) as model:
        done = agent(model, "Hi", "--output", "text")
    assert done.out == "Hello [redacted]\n ?.\n"


def test_what_the_model_runs_finds_no_key_in_its_surroundings(workspace: Path) -> None:
    """Neither in its environment nor in those of Ralph's own processes (ADR 42)."""
    look = (
        "env | grep OPENAI; pid=$$; for i in 1 2 3; do "
        "tr '\\0' '\\n' < /proc/$pid/environ | grep -a OPENAI; "
        "pid=$(cut -d' ' -f4 /proc/$pid/stat); done"
    )
    command = look.replace("$", "$$")  # the script has variables of its own
    turns = [{"tools": [{"name": "bash", "input": {"command": command}}]}, {"text": "Done."}]
    with ScriptedModel(turns) as model:
        environ = environment(model) | {"OPENAI_API_KEY": "plain-key", "RALPH_GUARD": "0"}
        argv = (*RALPH, "agent", "--model", "openai-chat:m", "-p", "Look")
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
        assert "authorization" in model.main_calls()[0]["headers"]
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("OPENAI_BASE_URL=") == 4
    assert "[redacted]" not in done.stdout


@pytest.mark.parametrize("to", [">&-", ">/dev/full"])
def test_what_nobody_could_hear_is_not_begun(workspace: Path, to: str) -> None:
    with ScriptedModel([{"text": "Hello."}]) as model:
        argv = ("sh", "-c", f'"$@" {to}', "-", *RALPH, "agent", "--model", "openai-chat:m", "-pHi")
        done = subprocess.run(argv, env=environment(model), stderr=subprocess.PIPE, check=False)
        assert model.main_calls() == []
    assert done.returncode == 2
    assert b"stdout" in done.stderr


def test_trouble_is_exit_1_and_told(workspace: Path) -> None:
    with ScriptedModel([{"error": {"status": 401, "message": "wrong key"}}]) as model:
        done = agent(model, "-p", "Hi")
    assert done.code == 1
    assert done.objects[-1]["error"]["status"] == 401


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_end_leaves_no_process(workspace: Path, number: signal.Signals) -> None:
    """By the user, by Ralph, or by the machine: what the model started ends, too."""
    with ScriptedModel([SLEEP]) as model:
        process = started(model)
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    assert is_gone(int(Path("pid").read_text()))
    last: Json = json.loads(out.splitlines()[-1])
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert (last["type"], last["error"]["message"]) == ("result", "interrupted")
    else:
        assert process.returncode != 0
        assert last["type"] == "action"


def test_a_reader_that_goes_away_ends_it(workspace: Path) -> None:
    look = {"name": "read", "input": {"path": "."}}
    with ScriptedModel([{"text": "on", "tools": [look]}]) as model:
        process = subprocess.Popen(
            (*RALPH, "agent", "--model", "openai-chat:m", "-p", "Go on for ever"),
            env=environment(model),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        _, err = process.communicate(timeout=60)
        assert len(model.main_calls()) < 100
    assert b"bug" not in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "m", "-p", "x"), "names no model"),
        (("--model", "anthropic:m", "-p", "x"), "ANTHROPIC_API_KEY"),
        (("-p", "x"), "needs the key of a model"),
        (("Fix it", "-p", "x"), "exclude each other"),
        (("Fix", "it"), "extra argument"),
        (("--model", "openai:m", "-p", "x", "--max-steps", "0"), "--max-steps"),
        (("--model", "openai:m", "-p", "x", "--context", "12"), "--context"),
    ],
)
def test_wrong_input_is_exit_2_and_says_what_to_do(
    workspace: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = ralph("agent", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
