"""`ralph run --json` (the issue, §4): only JSON objects, the last one says how it ended."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from run_support import Here, Json, assert_clear, in_shell, journals, prepare, ralph

from ralph.errors import StateError
from ralph.journal.journal import FileJournal
from ralph.kernel.facts import Ended, Fact

DONE = {"response": "DONE"}
STOP = {"type", "time", "run", "reason", "exit", "iterations", "seconds", "cost_usd"}
STOP |= {"evidence", "log"}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def test_every_line_is_an_object_with_type_time_and_run(here: Here, workspace: Path) -> None:
    """ "only JSON objects go to stdout, each with `type, time, run`"."""
    tools = [{"name": "Bash", "run": "echo '\u2028 not a line end'"}]
    prepare(workspace, {"text": "a\nb", "tools": tools}, DONE, guardrails=[{"command": "true"}])
    done = here("-p", "x", "--json")
    objects = done.objects
    run = journals()[0].parent.name
    assert all(isinstance(o["type"], str) and isinstance(o["time"], float) for o in objects)
    assert {o["run"] for o in objects} == {run}
    assert [o["type"] for o in objects].count("stop") == 1


def test_the_last_line_says_how_it_ended(here: Here, workspace: Path) -> None:
    prepare(workspace, {"cost": 0.25}, {**DONE, "cost": 0.5}, guardrails=[{"command": "true"}])
    last = here("-p", "x", "--json").objects[-1]
    assert set(last) == STOP
    assert (last["type"], last["reason"], last["exit"]) == ("stop", "completed", 0)
    assert (last["iterations"], last["cost_usd"]) == (2, 0.75)
    assert "claimed: <response>DONE</response>" in last["evidence"]
    assert "passed: true" in last["evidence"]
    assert last["log"] == str(journals()[0])


def test_facts_and_events_are_told_as_they_come(here: Here, workspace: Path) -> None:
    prepare(workspace, {**DONE, "tools": [{"name": "Bash", "run": "true"}]})
    objects = here("-p", "x", "--json").objects
    kinds = [o.get("event") or o["type"] for o in objects]
    expected = ["started", "began", "tool_start", "tool_end", "text", "result", "ended", "decided"]
    assert [kind for kind in kinds if kind in expected and kinds.count(kind) == 1] == [
        kind for kind in expected if kinds.count(kind) == 1
    ]
    assert kinds[-2:] == ["settled", "stop"]


def test_people_are_told_on_stderr_all_the_same(here: Here, workspace: Path) -> None:
    """README §Exit codes: Ralph's own lines go to stderr."""
    prepare(workspace, DONE)
    assert_clear(here("-p", "x", "--json"), 0, "[ralph] Iteration 1/10 starting", "Completed")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--json"),
        ("--json", "-p", "x", "-f", "y"),
        ("run", "--json", "-p", "x", "--agent", "nosuch"),
        ("run", "--json", "-f", "missing.md"),
        ("run", "--json", "--nonsense"),
        ("run", "--json", "-p", "x", "-m", "0"),
        ("run", "--json", "-p", "x", "-C", "/no/where"),
    ],
)
def test_a_run_that_never_began_ends_with_the_same_line(
    here: Here, workspace: Path, arguments: tuple[str, ...]
) -> None:
    """ "also on exit 2 (`run: null`)"."""
    done = here(*arguments)
    (last,) = done.objects
    assert set(last) == STOP
    assert (done.code, last["exit"], last["reason"], last["run"]) == (2, 2, "config", None)
    assert done.err.startswith("[ralph] ")


@pytest.mark.parametrize(
    ("turns", "settings", "reason", "code"),
    [
        ([{"text": "x"}], {"maximumIterations": 1}, "limit", 1),
        ([{"text": "<promise>BLOCKED: no key</promise>"}], {}, "blocked", 3),
        ([{"exit": 1}], {"failAfter": 1}, "failing", 5),
        ([{"error": {"status": 401}}], {}, "config", 2),
    ],
)
def test_the_reason_of_every_end(
    here: Here, workspace: Path, turns: list[Json], settings: dict[str, Any], reason: str, code: int
) -> None:
    prepare(workspace, *turns, **settings)
    done = here("-p", "x", "--json")
    last = done.objects[-1]
    assert (last["reason"], last["exit"], done.code) == (reason, code, code)
    assert last["run"] == journals()[0].parent.name


def test_a_run_that_an_error_ends_has_its_own_last_line_once(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Exactly one `stop`", with the run and where its journal is, also where that is full."""
    really = FileJournal.record

    def full(journal: FileJournal, fact: Fact) -> None:
        if isinstance(fact, Ended):
            raise StateError(f"cannot write the journal {journal.path}", "Free some space")
        really(journal, fact)

    monkeypatch.setattr(FileJournal, "record", full)
    prepare(workspace, DONE)
    done = here("-p", "x", "--json")
    stops = [line for line in done.objects if line["type"] == "stop"]
    (journal,) = journals()
    assert stops == done.objects[-1:]
    assert (done.code, stops[0]["run"], stops[0]["log"]) == (2, journal.parent.name, str(journal))


def test_an_agent_that_prints_to_our_stdout_cannot_spoil_it(workspace: Path) -> None:
    """The agent and the guardrails have pipes and files of their own."""
    prepare(workspace, {**DONE, "stderr": "noise"}, guardrails=[{"command": "echo noise; true"}])
    assert ralph("-p", "x", "--json").objects[-1]["exit"] == 0


def test_with_stderr_closed_stdout_still_holds_only_json(workspace: Path) -> None:
    prepare(workspace, DONE)
    for arguments in ("-p x", "-p x --agent nosuch"):
        done = in_shell(f"ralph run {arguments} --json 2>&-")
        assert done.objects[-1]["type"] == "stop"
        assert done.err == ""


def test_secrets_of_the_settings_are_printed_nowhere(here: Here, workspace: Path) -> None:
    """Settings: "The values are never printed"; the journal has no need of them either."""
    secret = "a-secret-value"
    prepare(workspace, DONE, agent={"env": {"set": {"MY_VALUE": secret}}})
    done = here("-p", "x", "--json", "-V")
    assert secret not in done.out + done.err + journals()[0].read_text()
    assert "MY_VALUE" in done.out


def test_key_shaped_values_are_redacted_and_the_line_is_still_json(
    here: Here, workspace: Path
) -> None:
    key = "sk-ant-" + "a1" * 12
    prepare(workspace, {"text": f"{key}", **DONE})
    done = here("-p", "x", "--json")
    assert key not in done.out
    assert any("[redacted]" in json.dumps(o) for o in done.objects)
    assert key not in "".join(
        p.read_text() for p in Path(os.environ["RALPH_STATE_DIR"]).rglob("j*")
    )
