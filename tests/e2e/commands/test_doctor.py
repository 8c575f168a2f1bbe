"""`ralph doctor`: what is here, what is wrong with it, and what to type about it."""

import json
import os
import signal
from pathlib import Path

import pytest
from run_support import Here, Json, Running, assert_clear, in_shell, is_alive, program, ralph

from ralph import __version__
from ralph.cli.doctor import _AREAS
from ralph.doctor import machine

CLAUDE = "case $1 in --version) echo '2.1.197 (Claude Code)';; *) echo --max-budget-usd;; esac"


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def agents(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on PATH for agents, without any."""
    directory = workspace.parent / "agents"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    return directory


def settings(workspace: Path, text: str) -> None:
    (workspace / ".ralph").mkdir(exist_ok=True)
    (workspace / ".ralph" / "settings.json").write_text(text)


def told(here: Here, *arguments: str) -> tuple[Json, dict[str, Json]]:
    """The object for programs, and its checks by `area/name`."""
    done = here("doctor", "--json", *arguments)
    report: Json = json.loads(done.out)
    assert done.err == ""
    assert done.code == (0 if report["ok"] else 1)
    return report, {f"{check['area']}/{check['name']}": check for check in report["checks"]}


def test_a_machine_that_is_in_order(here: Here, repo: Path, agents: Path) -> None:
    program(agents / "claude", CLAUDE)
    settings(repo, '{"guardrails": [{"command": "true"}]}')
    report, checks = told(here)
    assert report["ok"]
    assert all(check["state"] != "problem" for check in report["checks"])
    assert checks["Agents/claude"]["found"] == f"2.1.197 at {agents}/claude"
    assert checks["Agents/ralph run"]["found"] == "takes claude (first on PATH)"
    assert checks["Settings/guardrails"]["found"] == "1 command"
    assert checks["Git/repository"]["found"] == os.path.realpath(repo)
    version, _, package = checks["Python and Ralph/ralph"]["found"].partition(" in ")
    assert (version, os.path.basename(package)) == (__version__, "ralph")


def test_every_area_has_a_heading_in_order(here: Here, workspace: Path) -> None:
    lines = here("doctor").out.splitlines()
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert headings[:-1] == [title for title, _ in _AREAS]
    assert headings[-1].startswith("1 problem, ")


def test_each_check_is_whole(here: Here, workspace: Path, agents: Path) -> None:
    """ "for warning/problem the remedy (what to type)"."""
    program(agents / "codex", "echo boom >&2; exit 3")
    report, _ = told(here)
    for check in report["checks"]:
        assert list(check) == ["area", "name", "state", "found", "remedy"]
        assert check["found"]
        assert bool(check["remedy"]) == (check["state"] != "ok"), check


def test_without_any_agent_there_is_a_problem(here: Here, workspace: Path) -> None:
    report, checks = told(here)
    assert not report["ok"]
    assert report["agents"] == []
    assert checks["Agents/ralph run"]["state"] == "problem"
    assert "ralph demo" in checks["Agents/ralph run"]["remedy"]


def test_the_agents_for_programs(
    here: Here, workspace: Path, agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(agents / "claude", CLAUDE)
    program(agents / "goose", "echo 1.2.3")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-to-be-shown")
    monkeypatch.setenv("OPENAI_API_KEY", "neither-is-this")
    report, checks = told(here)
    claude, goose, own = report["agents"]
    assert (own["kind"], own["credential"]) == ("ralph-agent", "ANTHROPIC_API_KEY")
    assert claude == {
        "kind": "claude",
        "path": f"{agents}/claude",
        "version": "2.1.197",
        "tested": True,
        "flags": [
            {"flag": "--max-budget-usd", "why": claude["flags"][0]["why"]},
            {"flag": "", "why": claude["flags"][1]["why"]},
        ],
        "credential": "ANTHROPIC_API_KEY",
        "withheld": ["OPENAI_API_KEY"],
        "chosen": True,
    }
    assert (goose["kind"], goose["tested"], goose["chosen"]) == ("goose", False, False)
    assert checks["Money and credential/credential"]["found"] == "ANTHROPIC_API_KEY pays for claude"
    assert "OPENAI_API_KEY" in checks["Money and credential/withheld"]["found"]
    shown = json.dumps(report) + here("doctor").out
    assert "not-to-be-shown" not in shown
    assert "neither-is-this" not in shown


def test_the_agent_that_the_settings_name(here: Here, workspace: Path, agents: Path) -> None:
    program(agents / "claude", CLAUDE)
    mine = program(workspace / "mine", f"touch {workspace}/started")
    settings(workspace, json.dumps({"agent": {"command": mine}}))
    report, checks = told(here)
    assert [(a["kind"], a["chosen"]) for a in report["agents"]] == [
        ("claude", False),
        ("text", True),
    ]
    found = f"takes {mine} (agent.command in .ralph/settings.json)"
    assert checks["Agents/ralph run"]["found"] == found
    assert not (workspace / "started").exists(), "an unknown program is not asked"


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ('{"agent": {"command": "nope"}}', "Agents/ralph run", "'nope' was not found"),
        ('{"agent": {"kind": "nope"}}', "Agents/ralph run", "unknown kind 'nope'"),
        ('{"maximumIterations": 0}', "Settings/settings", "maximumIterations: found 0"),
        ("{", "Settings/settings", ".ralph/settings.json"),
    ],
)
def test_settings_that_no_run_can_use(
    here: Here, workspace: Path, agents: Path, text: str, name: str, words: str
) -> None:
    """ "A settings file that cannot be loaded = problem with the loader's own message"."""
    program(agents / "claude", CLAUDE)
    settings(workspace, text)
    report, checks = told(here)
    assert not report["ok"]
    assert checks[name]["state"] == "problem"
    assert words in checks[name]["found"]
    assert [agent["chosen"] for agent in report["agents"]] == [False]


def test_an_scm_command_that_is_missing(here: Here, workspace: Path) -> None:
    settings(workspace, '{"scm": {"command": "nope", "tasks": ["commit"]}}')
    assert told(here)[1]["Settings/scm"]["state"] == "warning"


def test_a_probe_that_is_forbidden(here: Here, workspace: Path, agents: Path) -> None:
    program(agents / "claude", f"touch {workspace}/started")
    settings(workspace, '{"agent": {"probe": false}}')
    report, checks = told(here)
    assert report["agents"][0]["version"] is None
    assert "agent.probe is false" in checks["Agents/claude"]["found"]
    assert not (workspace / "started").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sleep 60 & wait", "gave no answer within 0.2 s"),
        ("yes 1.2.3", "gave no answer within 0.2 s"),
        ("head -c 10000000 /dev/urandom | tr -d 0-9", "says no version"),
        ("printf '\\000\\377\\033[2J'", "says no version"),
        ("echo key: sk-ant-REDACTED >&2; exit 1", "[redacted]"),
    ],
)
def test_agents_that_misbehave_are_warnings(
    here: Here,
    workspace: Path,
    agents: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    words: str,
) -> None:
    """ "fake agents that hang on --version, that print garbage/binary/10 MB"."""
    monkeypatch.setattr(machine, "PATIENCE", 0.2)
    program(agents / "claude", text.replace("REDACTED", "a" * 30))
    report, checks = told(here)
    assert report["ok"]
    assert checks["Agents/claude"]["state"] == "warning"
    assert words in checks["Agents/claude"]["found"]
    shown = here("doctor").out
    assert "\x1b" not in shown
    assert "a" * 30 not in shown


def test_in_another_directory(here: Here, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert told(here, "-C", str(repo))[1]["Settings/workspace"]["found"] == os.path.realpath(repo)


@pytest.mark.parametrize("arguments", [("-C", "/no/such/place"), ("extra",), ("--nope",), ("-C",)])
def test_wrong_usage(here: Here, workspace: Path, arguments: tuple[str, ...]) -> None:
    assert_clear(here("doctor", *arguments), 2, "ralph doctor --help")


@pytest.mark.parametrize(
    ("environ", "name", "state"),
    [
        ({"PATH": ""}, "Git/git", "warning"),
        ({"PATH": ""}, "Agents/ralph run", "problem"),
        ({"RALPH_STATE_DIR": "/dev/null/state"}, "State directory/writable", "problem"),
        ({"CLAUDECODE": "1"}, "Hooks and plugin/session", "ok"),
        ({"PYTHONIOENCODING": "latin-1"}, "Terminal/encoding", "warning"),
        ({"PATH": ""}, "Sandbox/srt", "ok"),
    ],
)
def test_odd_surroundings(workspace: Path, environ: Json, name: str, state: str) -> None:
    done = ralph("doctor", "--json", env=environ)
    assert_clear(done, 1)
    checks = {f"{c['area']}/{c['name']}": c for c in json.loads(done.out)["checks"]}
    assert checks[name]["state"] == state


def test_without_a_home_the_remedy_is_a_variable(
    here: Here, workspace: Path, agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who is unknown to the system has no home either."""
    program(agents / "claude", CLAUDE)
    for name in ("RALPH_STATE_DIR", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    report, checks = told(here)
    assert "export RALPH_STATE_DIR=" in checks["State directory/writable"]["remedy"]
    assert report["agents"][0]["chosen"]
    assert "there is no HOME" in checks["Hooks and plugin/plugin"]["found"]


def test_a_workspace_that_cannot_be_written(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(workspace))
    assert told(here)[1]["Settings/workspace"]["state"] == "warning"


def test_whoever_reads_may_stop_reading(workspace: Path) -> None:
    done = in_shell("ralph doctor | head -1")
    assert (done.code, done.out, done.err) == (0, "Python and Ralph\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_everything_it_started(
    workspace: Path, agents: Path, number: signal.Signals
) -> None:
    """ "Never hangs: each child has a time limit and is killed with its group"."""
    pid = workspace.parent / "pid"
    program(agents / "claude", f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60")
    running = Running(workspace, "doctor")
    running.await_that(pid.exists)
    running.send(number)
    assert_clear(running.end(), 130, "interrupted")
    assert not is_alive(int(pid.read_text()))


def test_ctrl_c_does_not_wait_for_a_slow_help(workspace: Path, agents: Path) -> None:
    """The help is asked with as little patience as the version: it is ended, not waited for."""
    pid = workspace.parent / "pid"
    slow = f"trap '' INT TERM; echo $$ > {pid}.new; mv {pid}.new {pid}; touch {pid}; sleep 60"
    program(agents / "claude", f"case $1 in --version) echo 2.1;; *) {slow};; esac")
    running = Running(workspace, "doctor")
    running.await_that(pid.exists)
    running.send(signal.SIGINT)
    assert_clear(running.end(), 130, "interrupted")
    assert not is_alive(int(pid.read_text()))
    assert "probes.json" not in os.listdir(os.environ["RALPH_STATE_DIR"])


def test_amp_is_called_untested_and_opencode_may_not_know_its_cost(
    here: Here, workspace: Path, agents: Path
) -> None:
    for name in ("amp", "opencode"):
        program(agents / name, "echo 1.0.0")
    settings(workspace, '{"agent": {"command": "opencode"}}')
    report, checks = told(here)
    assert {agent["kind"]: agent["tested"] for agent in report["agents"]}["amp"] is False
    assert "Ralph has not been tested with it" in checks["Agents/amp"]["found"]
    cost = checks["Money and credential/cost"]["found"]
    assert cost.startswith("opencode reports what it costs, if it knows the model's price")


def test_nothing_is_written_into_the_workspace(here: Here, repo: Path, agents: Path) -> None:
    program(agents / "claude", CLAUDE)
    before = sorted(repo.rglob("*"))
    here("doctor")
    assert sorted(repo.rglob("*")) == before
    assert sorted(os.listdir(os.environ["RALPH_STATE_DIR"])) == ["probes.json"]


def test_our_own_agent_needs_a_key_and_then_it_is_taken(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = told(here)[1]
    assert "part of Ralph, and needs a key" in checks["Agents/ralph-agent"]["found"]
    assert "ralph-agent" not in checks["Agents/not found"]["found"]
    assert "Or set a key for Ralph's own agent" in checks["Agents/ralph run"]["remedy"]
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    report, checks = told(here)
    assert checks["Agents/ralph-agent"]["found"] == f"{__version__}, part of Ralph"
    taken = "takes ralph-agent --model google:gemini-3.8-flash (no other is on PATH)"
    assert checks["Agents/ralph run"]["found"] == taken
    money = "Money and credential"
    assert checks[f"{money}/credential"]["found"] == "GEMINI_API_KEY pays for ralph-agent"
    assert checks[f"{money}/cost"]["found"].endswith("whose price is known: --max-cost holds")
    (agent,) = report["agents"]
    assert (agent["kind"], agent["tested"], agent["chosen"]) == ("ralph-agent", True, True)
