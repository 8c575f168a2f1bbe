"""The scripted agent is a real executable that does what its script says."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agent_play import STREAM, call, lines, play

from ralph.testing.scripted_agent.install import calls, install_agent, probes


@pytest.mark.parametrize(
    ("kind", "argv", "prompt"),
    [
        ("claude", ["-p", "by word", "--output-format", "text"], "by word"),
        ("claude", ["-p", "--model", "opus", "by word"], "by word"),
        ("claude", ["-p", "--model", "opus"], "by stdin"),
        ("claude", ["-p", "--", "- a dash"], "- a dash"),
        ("codex", ["e", "--json", "-s", "workspace-write", "by word"], "by word"),
        ("codex", ["exec", "-m", "gpt-5.5", "-"], "by stdin"),
        ("codex", ["exec"], "by stdin"),
        ("codex", ["exec", "exec"], "exec"),
        ("amp", ["--dangerously-allow-all", "-x", "by word"], "by word"),
        ("amp", ["-x"], "by stdin"),
        ("gemini", ["--output-format", "text", "-p", "by word"], "by word"),
        ("gemini", ["-m", "pro", "by word"], "by word"),
        ("gemini", ["--output-format", "stream-json"], "by stdin"),
        ("opencode", ["run", "word"], "word"),
        ("opencode", ["run", 'by "word"'], '"by \\"word\\""'),  # it does put it in quotes
        ("opencode", ["run", "--format", "json"], "by stdin"),
        ("copilot", ["--silent", "-p", "by word"], "by word"),
        ("cursor-agent", ["-p", "--output-format", "text", "--", "- a dash"], "- a dash"),
        ("goose", ["run", "-t", "by word"], "by word"),
        ("goose", ["run", "--quiet", "-i", "-"], "by stdin"),
        ("text", ["--flag", "by word"], "by word"),
        ("text", ["- a dash"], "- a dash"),
        ("text", ["-"], "by stdin"),
        ("text", [], "by stdin"),
    ],
)
def test_the_prompt_is_read_where_the_real_cli_reads_it(
    tmp_path: Path, kind: str, argv: list[str], prompt: str
) -> None:
    agent = install_agent(str(tmp_path), [{"text": "x"}], kind=kind)
    assert call(agent, argv, prompt="by stdin").returncode == 0
    assert [(c["argv"], c["prompt"]) for c in calls(agent)] == [(argv, prompt)]


@pytest.mark.parametrize(
    ("kind", "argv", "code", "message"),
    [
        ("claude", ["-p", "--model opus", "x"], 1, "unknown option '--model opus'"),
        ("claude", ["-p", "- do it"], 1, "unknown option '- do it'"),
        ("claude", ["-p", "x", "--output-format", "stream-json"], 1, "requires --verbose"),
        ("codex", ["e", "--full-auto", "x"], 2, "'--full-auto'"),
    ],
)
def test_arguments_are_refused_as_by_the_real_cli(
    tmp_path: Path, kind: str, argv: list[str], code: int, message: str
) -> None:
    """docs/facts.md §1: "codex `--full-auto` is gone (exit 2)", "stream-json needs `--verbose`"."""
    done = play(tmp_path, kind, {"text": "never"}, argv)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_an_older_codex_still_takes_full_auto(tmp_path: Path) -> None:
    script = {"turns": [{"text": "x"}], "help": "Options:\n --full-auto \n"}
    agent = install_agent(str(tmp_path), script, kind="codex")
    assert call(agent, ["e", "--full-auto", "x"]).stdout == "x\n"


def test_probes_are_answered_and_take_no_turn(tmp_path: Path) -> None:
    """ADR 15: the capability probe runs `--version`/`--help`."""
    agent = install_agent(str(tmp_path), {"turns": [{"text": "one"}], "version": "9.9"})
    assert call(agent, ["--version"]).stdout == "9.9\n"
    assert "--max-budget-usd" in call(agent, ["--help"]).stdout
    codex = install_agent(str(tmp_path), [], kind="codex")
    text = call(codex, ["exec", "--help"]).stdout
    assert "-s, --sandbox" in text
    assert "--full-auto" not in text
    assert calls(agent) == calls(codex) == []
    assert [probe["argv"] for probe in probes(agent)] == [["--version"], ["--help"]]


def test_a_call_is_written_down_without_secrets(tmp_path: Path) -> None:
    agent = install_agent(str(tmp_path), [{}], kind="text")
    environment = {"RALPH_RUN": "r1", "SOME_API_KEY": "hush"}
    subprocess.run([agent, "é\udcff"], env=environment, cwd=tmp_path, check=True)
    (entry,) = calls(agent)
    assert entry["cwd"] == str(tmp_path)
    assert entry["prompt"] == "é\udcff"
    assert entry["env"]["RALPH_RUN"] == "r1"
    assert entry["env"]["SOME_API_KEY"] is None
    assert isinstance(entry["pid"], int)


def test_turns_are_played_in_order_and_the_last_one_repeats(tmp_path: Path) -> None:
    agent = install_agent(str(tmp_path), [{"text": "one"}, {"text": "two"}], kind="text")
    assert [call(agent, ["x"]).stdout for _ in range(3)] == ["one\n", "two\n", "two\n"]


def test_a_script_that_stops_says_so(tmp_path: Path) -> None:
    script = {"turns": [{"text": "one"}], "after": "stop"}
    agent = install_agent(str(tmp_path), script, kind="text")
    assert [call(agent, ["x"]).returncode for _ in range(2)] == [0, 98]


def test_installing_again_begins_anew(tmp_path: Path) -> None:
    for text in ("one", "two"):
        agent = install_agent(str(tmp_path), [{"text": text}, {}], kind="text", name="bot")
        assert call(agent, ["x"]).stdout == f"{text}\n"
    assert os.path.basename(agent) == "bot"
    assert len(calls(agent)) == 1


def test_calls_at_the_same_time_take_different_turns(tmp_path: Path) -> None:
    turns = [{"text": str(n)} for n in range(8)]
    agent = install_agent(str(tmp_path), turns, kind="text")
    with ThreadPoolExecutor(8) as pool:
        said = pool.map(lambda _: call(agent, ["x"]).stdout.strip(), range(8))
        assert sorted(said) == [str(n) for n in range(8)]
    assert len({entry["pid"] for entry in calls(agent)}) == 8


def test_it_starts_from_a_path_with_blanks(tmp_path: Path) -> None:
    assert play(tmp_path / "a 'b' c", "text", {"text": "x"}).stdout == "x\n"


def test_prompt_must_is_checked(tmp_path: Path) -> None:
    good = play(tmp_path, "text", {"prompt_must": ["^do", "it$"], "text": "x"})
    assert (good.returncode, good.stdout) == (0, "x\n")
    bad = play(tmp_path, "text", {"prompt_must": ["do", "never said"], "text": "x"})
    assert (bad.returncode, bad.stdout) == (97, "")
    assert "'never said'" in bad.stderr


def test_files_are_written_before_the_tools_run(workspace: Path, tmp_path: Path) -> None:
    turn = {"files": {"a/b.txt": "content"}, "tools": [{"run": "cat a/b.txt"}]}
    found = lines(play(tmp_path, "codex", turn).stdout)
    assert found[3]["item"]["aggregated_output"] == "content"
    assert (workspace / "a/b.txt").read_text() == "content"


@pytest.mark.parametrize("kind", ["claude", "codex", "amp"])
def test_a_result_can_be_left_out(tmp_path: Path, kind: str) -> None:
    done = play(tmp_path, kind, {"text": "x", "no_result": True})
    assert lines(done.stdout)[-1]["type"] in {"assistant", "item.completed"}
    assert done.returncode == 0


def test_raw_bytes_and_noise_come_as_they_are(tmp_path: Path) -> None:
    turn = {"frame": False, "raw": {"base64": "/wAK"}, "lines_of": [2, 10], "stderr": "oops"}
    agent = install_agent(str(tmp_path), [turn])
    done = subprocess.run([agent, *STREAM["claude"]], capture_output=True, check=True)
    assert done.stdout == b"\xff\x00\n" + b"xxxxxxxxx\n" * 2
    assert done.stderr == b"oops\n"


def test_raw_text_stands_inside_the_frame(tmp_path: Path) -> None:
    found = play(tmp_path, "codex", {"raw": "{torn\n", "text": "x"}).stdout.splitlines()
    assert found[2] == "{torn"
    assert len(found) == 5


@pytest.mark.parametrize(
    ("kind", "line"),
    [("text", "do it"), ("claude", '"content":[{"type":"text","text":"do it"}]')],
)
def test_the_prompt_can_be_echoed(tmp_path: Path, kind: str, line: str) -> None:
    assert line in play(tmp_path, kind, {"echo_prompt": True}).stdout


def test_usage_cost_and_exit_code_are_as_scripted(tmp_path: Path) -> None:
    turn = {"usage": {"input": 7, "output": 8}, "cost": 0.5, "exit": 3}
    done = play(tmp_path, "claude", turn)
    result = lines(done.stdout)[-1]
    assert done.returncode == 3
    assert result["total_cost_usd"] == 0.5
    assert result["usage"]["input_tokens"] == 7
    usage = lines(play(tmp_path, "codex", turn).stdout)[-1]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (7, 8)


def test_a_rate_limit_event_can_be_harmless(tmp_path: Path) -> None:
    event = lines(play(tmp_path, "claude", {"rate_limit_event": True}).stdout)[1]
    assert event["rate_limit_info"]["status"] == "allowed"


def test_an_error_without_a_stream_goes_to_stderr(tmp_path: Path) -> None:
    done = play(tmp_path, "text", {"error": {"message": "no credit"}})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no credit\n")


def test_claude_prints_an_api_error_as_its_text(tmp_path: Path) -> None:
    done = play(tmp_path, "claude", {"error": {"status": 401}}, ["-p", "x"])
    assert (done.returncode, done.stdout) == (1, "Invalid API key · Fix external API key\n")


def test_a_hanging_agent_never_says_a_word(tmp_path: Path) -> None:
    agent = install_agent(str(tmp_path), [{"hang": "before", "stderr": "here"}], kind="codex")
    with subprocess.Popen(
        [agent, "exec", "--json", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stderr.readline() == b"here\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b""
    assert process.returncode == 1


def test_an_agent_can_hang_after_its_result(tmp_path: Path) -> None:
    """ADR 6: the stream has said its final result and the process does not exit."""
    agent = install_agent(str(tmp_path), [{"text": "x", "hang": 1000}])
    with subprocess.Popen([agent, *STREAM["claude"]], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while b'"type":"result"' not in process.stdout.readline():
            assert process.poll() is None
        process.terminate()
    assert process.returncode == 143


def test_signals_can_be_ignored_and_children_still_hear_them(tmp_path: Path) -> None:
    turn = {
        "ignore": ["INT", "TERM"],
        "tools": [{"run": "kill -INT $$; echo survived"}],
        "text": "done",
    }
    agent = install_agent(str(tmp_path), [turn], kind="codex")
    with subprocess.Popen([agent, "exec", "--json", "x"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        found = lines(process.stdout.read().decode())
    assert process.returncode == 0
    assert found[2]["item"]["exit_code"] == -signal.SIGINT
    assert found[-1]["type"] == "turn.completed"


@pytest.mark.parametrize("own_session", [False, True])
def test_spawned_commands_outlive_the_agent(tmp_path: Path, own_session: bool) -> None:
    """docs/facts.md §3: "A daemon holding stdout blocks 8 of 11 peers"."""
    session = f"'{sys.executable}' -c 'import os; print(os.getsid(0))'"
    command = f"read line <go; echo $line; {session}"
    turn = {"spawn": [{"run": command, "setsid": own_session}], "text": "x"}
    os.mkfifo(tmp_path / "go")
    agent = install_agent(str(tmp_path), [turn], kind="text")
    with subprocess.Popen(
        [agent, "x"], stdout=subprocess.PIPE, cwd=tmp_path, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.wait() == 0
        (tmp_path / "go").write_text("still here\n")
        said = process.stdout.read().decode().split("\n")
    assert "still here" in said
    assert (str(process.pid) in said) is not own_session


def test_it_leaves_quietly_when_nobody_reads(tmp_path: Path) -> None:
    agent = install_agent(str(tmp_path), [{"lines_of": [100, 10_000]}], kind="text")
    program = f"import subprocess,sys; p=subprocess.Popen([{agent!r},'x'],stdout=-1,stderr=-1);"
    program += "p.stdout.close(); print(p.stderr.read(), p.wait())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"b'' 1\n"
