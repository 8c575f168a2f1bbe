"""`ralph explain` (the issue, §4): the settings with their files, the ladders, the schema."""

import json
from pathlib import Path

import pytest
from run_support import Here, assert_clear, prepare

DONE = {"response": "DONE"}
CLOSING = [  # ADR 1, the closing ladder of H, by the names of its rules
    "interrupted",
    "unstartable",
    "refused",
    "RateLimit",
    "UsedUp",
    "Asks",
    "Believed",
    "barred",
    "Failing",
    "Uncounted",
    "RunLimit",
    "Stalled",
    "Objections",
    "carry_on",
]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def test_every_setting_is_shown_with_where_it_came_from(here: Here, workspace: Path) -> None:
    """ "prints the effective settings with the file each came from"."""
    prepare(workspace, DONE, maximumIterations=3, completionResponse="BASE")
    local = workspace / ".ralph" / "settings.local.json"
    local.write_text('{"completionResponse": "LOCAL"}')
    done = here("explain")
    rows = {words[0]: words[1:] for line in done.out.splitlines() if (words := line.split())}
    assert (done.code, done.err) == (0, "")
    assert rows["maximumIterations"] == ["3", ".ralph/settings.json"]
    assert rows["completionResponse"] == ['"LOCAL"', ".ralph/settings.local.json"]
    assert rows["outputTruncateChars"] == ["5000", "default"]


def test_the_ladders_are_shown_by_name_in_order(here: Here, workspace: Path) -> None:
    """ADR 1: "the documentation of precedence is the precedence"."""
    said = here("explain").out
    harness = said.partition("Profile harness")[2].partition("Profile ")[0]
    closing = harness.partition("\n  closing\n")[2]
    places = [closing.index(f" {name}") for name in CLOSING]
    assert places == sorted(places)
    assert all(f"Profile {name}" in said for name in ("tasks", "supervise", "reviewed", "session"))
    assert " at 0x" not in said, "of no use to people, and different each time"


def test_explain_in_json(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE, failAfter=7)
    told = json.loads(here("explain", "--json").out)
    ladder = told["ladders"]["harness"]["closing"]
    assert [rule.partition("(")[0] for rule in ladder] == CLOSING
    assert "Failing(after=7, park=False)" in ladder


def test_the_schema_is_json_and_knows_every_setting(here: Here, workspace: Path) -> None:
    schema = json.loads(here("explain", "--schema").out)
    assert "maximumIterations" in json.dumps(schema)
    assert schema["$schema"].startswith("https://json-schema.org/")


def test_without_any_file_everything_is_a_default(here: Here, workspace: Path) -> None:
    assert here("explain").out.startswith("Settings: no file, all defaults\n")


def test_explain_looks_elsewhere_with_c(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE, maximumIterations=77)
    assert " 77 " in here("explain", "-C", str(workspace)).out


def test_settings_that_are_wrong_are_told_and_not_explained(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE, maximumIterations=0)
    done = here("explain")
    assert_clear(done, 2, ".ralph/settings.json: maximumIterations: found 0")
    assert done.out == ""


def test_secrets_are_not_shown(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE, agent={"env": {"set": {"MY_KEY": "very-secret"}}})
    shown = here("explain").out + here("explain", "--json").out
    assert "MY_KEY" in shown
    assert "very-secret" not in shown


def test_the_agent_that_a_run_would_take_is_shown(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\nAgent: none (no agent found on PATH" in here("explain").out
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    own = "ralph-agent --model google:gemini-3.8-flash (no other is on PATH, and its key is set)"
    assert f"\nAgent: {own}\n" in here("explain").out
    assert json.loads(here("explain", "--json").out)["agent"] == own
    agent = prepare(workspace, DONE)
    assert f"\nAgent: {agent}\n" in here("explain").out
