"""One turn of a command-line agent: launched, read, watched, summed up; the agent is scripted."""

import errno
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from agent_stage import SECRET, Stage, stage

from ralph.agents import cli_agent
from ralph.agents.cli_agent import TurnReader
from ralph.agents.streams.dialects import parser_for
from ralph.agents.turn_files import SavedStream
from ralph.kernel.events import Progress, Text, Usage
from ralph.kernel.limits import Prices
from ralph.kernel.turn import Ending, Order, Pulse, Role
from ralph.kernel.verdict import Cut
from ralph.processes.child import Child
from ralph.testing.scripted_agent.install import calls
from ralph.text.redact import know

__all__ = ["stage"]

KEY = "sk-ant-api03-abcdefghijklmnop"
RESULT: dict[str, object] = {"type": "result", "subtype": "success", "is_error": False}


@pytest.mark.parametrize("kind", ["claude", "codex", "amp", "text"])
def test_a_good_turn_of_every_kind(stage: Stage, kind: str) -> None:
    turn = stage.play(kind, {"text": "I work.", "response": "DONE"})
    assert (turn.ending, turn.exit_code, turn.failed) == (Ending.EXITED, 0, False)
    assert [c.raw for c in turn.claims] == ["<response>DONE</response>"]
    assert any("I work." in e.text for e in stage.events if isinstance(e, Text))


def test_tools_tokens_and_cost_are_counted(stage: Stage) -> None:
    usage = {"input": 5, "output": 6, "cache_read": 7, "cache_write": 8}
    tools = [{"name": "Bash", "run": "true"}, {"name": "Bash", "run": "false"}]
    turn = stage.play("claude", {"tools": tools, "usage": usage, "cost": 0.25})
    assert (turn.tools, turn.tool_errors, turn.cost_usd) == (2, 1, 0.25)
    assert turn.usage == Usage(5, 6, 7, 8)


def test_an_agent_without_a_cost_is_priced_by_its_tokens(stage: Stage) -> None:
    setup = stage.setup("codex", {"usage": {"input": 1_000_000, "output": 500_000}})
    turn = stage.take(replace(setup, prices=Prices(input=2, output=10)))
    assert turn.cost_usd == pytest.approx(7)


def test_an_agent_that_states_its_cost_is_believed(stage: Stage) -> None:
    setup = stage.setup("claude", {"cost": 0.5})
    assert stage.take(replace(setup, prices=Prices(input=1000))).cost_usd == 0.5


def test_a_failing_exit_code_is_the_turns(stage: Stage) -> None:
    turn = stage.play("text", {"text": "<response>DONE</response>", "stderr": "no", "exit": 3})
    assert (turn.exit_code, turn.stderr, turn.failed) == (3, "no\n", True)


def test_only_the_end_of_a_long_stderr_is_kept(stage: Stage) -> None:
    turn = stage.play("text", {"stderr": "é" * 10_000 + "end"})
    assert len(turn.stderr) == 4096
    assert turn.stderr.endswith("éend\n")


def test_a_stream_without_its_result_is_a_failure(stage: Stage) -> None:
    """ADR 4: "a stream whose dialect has a final result and did not send one"."""
    turn = stage.play("claude", {"response": "DONE", "no_result": True})
    assert turn.failure is not None
    assert turn.failed


@pytest.mark.parametrize("kind", ["claude", "text"])
def test_noise_is_survived_and_counted(stage: Stage, kind: str) -> None:
    """docs/facts.md §2: "any line may be noise, torn, 10 MB long or not UTF-8"."""
    raw = {"base64": "//4AgYIK"}  # ff fe 00 81 82, and a newline
    turn = stage.play(kind, {"raw": raw, "lines_of": [2, 10_000_000], "response": "DONE"})
    assert not turn.failed
    assert [c.content for c in turn.claims] == ["DONE"]
    assert turn.unknown == (3 if kind == "claude" else 2)


@pytest.mark.parametrize("kind", ["claude", "text"])
def test_a_last_line_without_its_end_is_heard(stage: Stage, kind: str) -> None:
    said = "<response>DONE</response>"
    content = [{"type": "text", "text": said}]
    line = json.dumps({"type": "assistant", "message": {"content": content}})
    turn = stage.play(kind, {"frame": False, "raw": line if kind == "claude" else said})
    assert [c.content for c in turn.claims] == ["DONE"]


def test_a_silent_agent_is_a_silent_turn(stage: Stage) -> None:
    assert stage.play("text", {}).silent


# ------------------------------------------------------------------ the prompt's way


@pytest.mark.parametrize("via", ["arg", "stdin", "file"])
def test_the_prompt_reaches_the_agent_every_way(stage: Stage, via: str) -> None:
    setup = replace(stage.setup("text", {"text": "x"}), prompt_via=via)
    stage.take(setup, Order("do\n\n'it' $(now)", 7))
    call = calls(stage.agent)[0]
    if via == "file":
        path = Path(setup.workspace, ".ralph", "prompt_007.txt")
        assert (call["prompt"], path.read_text()) == (str(path), "do\n\n'it' $(now)")
        assert (path.parent / ".gitignore").exists()
    else:
        assert call["prompt"] == "do\n\n'it' $(now)"


def test_a_prompt_that_was_read_from_a_file_keeps_no_secret_there(stage: Stage) -> None:
    """ADR 13: "What is executed is not altered"; what stays on disk is redacted."""
    know([SECRET])
    agent = program(stage.root / "agent", '#!/bin/sh\ncat "$1" > read\n')
    setup = replace(stage.setup("text", {"text": "x"}), prompt_via="file", command=(agent,))
    assert not stage.take(setup, Order(f"say {SECRET}", 7)).failed
    assert Path(setup.workspace, "read").read_text() == f"say {SECRET}"
    assert Path(setup.workspace, ".ralph", "prompt_007.txt").read_text() == "say [redacted]"


@pytest.mark.parametrize("kind", ["claude", "codex", "amp", "text"])
@pytest.mark.parametrize("prompt", ["-x --help", "--", "-x", "\\n%s", " leading blank"])
def test_a_prompt_that_looks_like_an_option_is_a_prompt(
    stage: Stage, kind: str, prompt: str
) -> None:
    stage.play(kind, {"text": "x"}, order=Order(prompt, 1))
    assert calls(stage.agent)[0]["prompt"] == prompt


@pytest.mark.parametrize("kind", ["claude", "codex", "amp"])
@pytest.mark.parametrize("size", [102_400, 102_401, 131_071, 131_072, 300_000])
def test_a_long_prompt_arrives_whole(stage: Stage, kind: str, size: int) -> None:
    """ADR 14: 100 KB and 128 KB are boundaries, not limits."""
    stage.play(kind, {"text": "x"}, order=Order("x" * size, 1))
    assert len(calls(stage.agent)[0]["prompt"]) == size


@pytest.mark.parametrize("kind", ["claude", "codex", "amp", "text"])
def test_bytes_that_are_not_utf_8_arrive_as_they_were(stage: Stage, kind: str) -> None:
    prompt = os.fsdecode(b"caf\xe9 \xff")
    stage.play(kind, {"text": "x"}, order=Order(prompt, 1))
    assert calls(stage.agent)[0]["prompt"] == prompt


def test_the_prompt_is_kept_beside_the_journal_for_its_owner_only(stage: Stage) -> None:
    stage.play("claude", {"text": "x"}, order=Order("do it", 12))
    kept = stage.run_dir / "012.prompt"
    assert kept.read_text() == "do it"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


# ------------------------------------------------------------------ the saved stream


def test_the_stream_is_saved_for_its_owner_only(stage: Stage) -> None:
    turn = stage.play("text", {"text": "one\ntwo"})
    kept = stage.run_dir / "001.stream"
    assert (turn.stream, kept.read_text()) == (str(kept), "one\ntwo\n")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["claude", "text"])
def test_known_secrets_are_not_in_the_saved_stream(stage: Stage, kind: str) -> None:
    """ADR 13: "One redactor stands before every sink", and a stream of JSON lines stays one."""
    know([SECRET])
    setup = stage.setup(kind, {"text": f"It is {SECRET}, {KEY}", "tools": [{"output": SECRET}]})
    stage.take(setup)
    kept = (stage.run_dir / "001.stream").read_text()
    assert SECRET not in kept
    assert KEY not in kept
    assert "It is [redacted], [redacted]" in kept
    assert kind == "text" or all(json.loads(line) for line in kept.splitlines())


def test_a_full_disk_ends_the_saving_and_not_the_turn(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, flags: int) -> int:
        return os.open("/dev/full" if path.endswith(".stream") else path, flags, 0o600)

    monkeypatch.setattr(cli_agent, "private", full)
    turn = stage.play("text", {"text": "I work.", "response": "DONE"})
    assert (turn.failed, [c.content for c in turn.claims]) == (False, ["DONE"])
    said = [e.text for e in stage.events if isinstance(e, Progress)]
    assert said == ["the stream is not saved from here on: No space left on device"]


def test_an_iteration_that_is_taken_again_keeps_what_was_said_before(stage: Stage) -> None:
    """After a rate limit, or a crash; `ralph logs --events` tells each try at its place."""
    first = stage.play("text", {"text": "First try."})
    second = stage.play("text", {"text": "Second try."})
    assert [Path(turn.stream).name for turn in (first, second)] == ["001.stream", "001.2.stream"]
    assert Path(first.stream).read_text() == "First try.\n"
    assert Path(second.stream).read_text() == "Second try.\n"
    assert (stage.run_dir / "001.2.prompt").exists()


# ------------------------------------------------------------------ a message turn


MESSAGE = Order("Provide a message", 2, Role.MESSAGE)


def test_a_message_turn_tells_its_cost_has_its_own_files_and_is_not_shown(stage: Stage) -> None:
    """H §SCM Tasks; ADR 8: the agent's words, by its stream."""
    turn = stage.play("claude", {"text": "Add the thing", "cost": 0.25}, order=MESSAGE)
    assert (turn.text, turn.cost_usd, turn.uncounted) == ("Add the thing", 0.25, False)
    assert stage.events == []
    assert {p.name for p in stage.run_dir.iterdir()} == {"002.message.prompt", "002.message.stream"}


@pytest.mark.parametrize("kind", ["claude", "codex", "amp", "gemini", "opencode"])
def test_a_message_is_what_was_said_last(stage: Stage, kind: str) -> None:
    """As text modes print it: what the agent said before it looked at the changes is no message,
    and no tag in it is one either."""
    said = ["Let me <response>look</response>.", "Add the thing\nand more"]
    looks = {"text": said, "tools": [{"output": "diff"}]}
    turn = stage.play(kind, looks, order=MESSAGE)
    assert (turn.text.strip(), turn.claims) == (said[-1], ())
    assert not list(stage.run_dir.glob("*.answer"))


def test_a_message_turn_of_codex_is_priced_by_its_tokens(stage: Stage) -> None:
    """ADR 22: tokens become dollars by `agent.prices`, else by the list."""
    setup = stage.setup("codex", {"text": "Add it", "usage": {"input": 1_000_000, "output": 0}})
    turn = stage.take(replace(setup, prices=Prices(input=3.0)), order=MESSAGE)
    assert (turn.text, turn.cost_usd) == ("Add it", 3.0)


def test_codex_in_text_mode_is_read_from_its_answer_file_which_is_then_removed(
    stage: Stage,
) -> None:
    """H §Codex: "read and cleaned up after execution"; only the last message is its answer."""
    setup = replace(stage.setup("codex", {"raw": "<response>DONE</response>\n", "text": "No"}))
    turn = stage.take(replace(setup, stream=False))
    assert (turn.text, turn.claims) == ("No", ())
    assert not list(stage.run_dir.glob("*.answer"))


def test_codex_in_text_mode_without_an_answer_has_said_nothing(stage: Stage) -> None:
    setup = stage.setup("codex", {"error": {"status": 500}})
    turn = stage.take(replace(setup, stream=False))
    assert (turn.text, turn.exit_code) == ("", 1)


def test_codex_in_text_mode_completes_by_its_answer(stage: Stage) -> None:
    setup = replace(stage.setup("codex", {"text": "Done.", "response": "DONE"}), stream=False)
    assert [c.content for c in stage.take(setup).claims] == ["DONE"]


# ------------------------------------------------------------------ cutting


def test_an_agent_that_hangs_after_its_result_is_the_success_it_was(stage: Stage) -> None:
    """ADR 6: "its tree is ended and the turn counts as the success it was"."""
    setup = stage.setup("claude", {"response": "DONE", "hang": 60})
    late = Cut("still running", grace=0.1, finished=True)
    turn = stage.take(setup, watch=lambda p: late if p.since_result is not None else None)
    assert (turn.ending, turn.exit_code, turn.failed) == (Ending.EXITED, 0, False)
    assert turn.why == "still running"


def test_an_agent_that_is_cut_has_a_cut_turn(stage: Stage) -> None:
    setup = stage.setup("text", {"hang": "before"})
    turn = stage.take(setup, watch=lambda _: Cut("timed out", grace=0.1))
    assert (turn.ending, turn.why, turn.failed) == (Ending.CUT, "timed out", True)


def test_the_pulse_knows_silence_and_the_result(stage: Stage) -> None:
    pulses: list[Pulse] = []

    def watch(pulse: Pulse) -> Cut | None:
        pulses.append(pulse)
        return Cut("seen", grace=0.1) if pulse.since_result is not None else None

    stage.take(stage.setup("claude", {"text": "hello", "hang": 60}), watch=watch)
    seen = next(pulse for pulse in pulses if pulse.since_result is not None)
    assert 0 < seen.idle <= seen.seconds


def test_an_agent_that_goes_on_after_its_result_has_said_none() -> None:
    """Else it would be cut at work."""
    shown: list[object] = []
    streams = (SavedStream(BytesIO), SavedStream(BytesIO))
    reader = TurnReader(parser_for("claude"), *streams, shown.extend, None)

    def after(line: Mapping[str, object]) -> bool:
        reader.output(json.dumps(line).encode() + b"\n")
        return reader.pulse().since_result is not None

    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "More."}]}}
    assert [after(line) for line in (said, RESULT, said, RESULT, RESULT)] == [
        *(False, True, False, True, True)
    ]


# ------------------------------------------------------------------ unstartable in every way


def unstartable(stage: Stage, command: str, prompt: str = "do it") -> str:
    setup = replace(stage.setup("text", {"text": "x"}), command=(command,))
    turn = stage.take(setup, Order(prompt, 1))
    assert (turn.ending, turn.exit_code) == (Ending.UNSTARTABLE, None)
    return turn.why


def program(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_missing_agent(stage: Stage) -> None:
    why = unstartable(stage, "/no/such/agent")
    assert why.startswith("agent command '/no/such/agent' was not found. Check")


def test_an_agent_that_may_not_be_executed(stage: Stage) -> None:
    path = program(stage.root / "plain", "#!/bin/sh\n", mode=0o644)
    assert f"{path!r} is not executable. Make it executable: chmod +x" in unstartable(stage, path)


def test_an_agent_that_is_a_directory(stage: Stage) -> None:
    assert "is a directory. Name the program itself" in unstartable(stage, str(stage.root))


@pytest.mark.parametrize("text", ["#!/no/such/interpreter\n", "neither script nor binary", ""])
def test_an_agent_with_a_bad_interpreter_or_none(stage: Stage, text: str) -> None:
    path = program(stage.root / "bad", text)
    why = unstartable(stage, path)
    assert why == (
        f"agent command {path!r} is no program that this machine can run. "
        f"Check its first line: head -1 {path}"
    )


def test_an_agent_on_path_with_a_bad_interpreter(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(stage.root / "on-path", "#!/no/such/interpreter\n")
    monkeypatch.setenv("PATH", str(stage.root), prepend=":")
    assert "is no program that this machine can run" in unstartable(stage, "on-path")


def test_a_nul_in_the_prompt(stage: Stage) -> None:
    assert "embedded null byte" in unstartable(stage, "/bin/echo", "nul\0")


def test_a_prompt_too_long_for_an_argument_that_settings_demand(stage: Stage) -> None:
    setup = replace(stage.setup("claude", {"text": "x"}), prompt_via="arg")
    turn = stage.take(setup, Order("x" * 200_000, 1))
    assert turn.why.startswith("the prompt is too long for an argument. Set agent.promptVia")


def test_a_workspace_that_is_gone(stage: Stage) -> None:
    setup = replace(stage.setup("text", {"text": "x"}), workspace=str(stage.root / "gone"))
    why = stage.take(setup).why
    assert why.startswith(f"cannot use {stage.root / 'gone'}: No such file or directory.")


def test_a_run_directory_that_is_gone(stage: Stage) -> None:
    stage.run_dir.rmdir()
    assert "cannot use" in unstartable(stage, "/bin/echo")


@pytest.mark.parametrize("shortage", [errno.EAGAIN, errno.EMFILE, errno.ENOMEM])
def test_a_shortage_of_the_machine_may_pass(stage: Stage, shortage: int) -> None:
    """ADR 5: "not found / not executable ends the run"; other failures are counted."""

    def refuse(*_: object, **__: object) -> Child:
        raise OSError(shortage, os.strerror(shortage))

    turn = stage.take(replace(stage.setup("text", {"text": "x"}), start=refuse))
    assert (turn.ending, turn.failed, turn.uncounted) == (Ending.EXITED, True, False)
    assert turn.failure is not None
    assert os.strerror(shortage) in turn.failure.message
