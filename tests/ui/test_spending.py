"""What was spent, in two small tables and for programs."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ralph.journal.spending import LedgerEntry
from ralph.kernel.events import Usage
from ralph.ui.status.spending import spending_dict, spending_lines

NOON = time.mktime((2026, 11, 15, 12, 0, 0, 0, 0, -1))
DAY = 86_400


def entry(days_ago: float, run: str, cost: float | None, tokens: int = 1000) -> LedgerEntry:
    usage = Usage(tokens, tokens // 10, tokens * 2)
    return LedgerEntry(
        NOON - days_ago * DAY, run, "harness", 1, "work", "codex", "m", cost, usage, 2.0
    )


def test_nothing_is_said_in_words() -> None:
    assert spending_lines((), NOON) == ["Nothing was spent here yet, as far as agents told."]
    assert spending_dict(())["total"]["cost_usd"] == 0.0


def test_the_tables() -> None:
    entries = (
        entry(20, "old", 100.0),
        entry(1, "20261114-120000-aaaa", 1.5, 1_000_000),
        entry(0, "20261115-120000-bbbb", 0.004),
        entry(0, "20261115-120000-bbbb", None),
    )
    assert spending_lines(entries, NOON) == [
        "The last 14 days:",
        "  day            cost  tokens in  tokens out  turns",
        "  2026-11-14    $1.50         3M        100K      1",
        "  2026-11-15  <$0.01+         6K         200      2",
        "  total        $1.50+         3M        100K      3",
        "",
        "The last 10 runs:",
        "  run                       cost  tokens in  tokens out  turns",
        "  old                    $100.00         3K         100      1",
        "  20261114-120000-aaaa     $1.50         3M        100K      1",
        "  20261115-120000-bbbb   <$0.01+         6K         200      2",
        "  total                 $101.50+         3M        100K      4",
        "",
        "By agent:",
        "  agent             cost  tokens in  tokens out  turns",
        "  codex with m  $101.50+         3M        100K      4",
        "  total         $101.50+         3M        100K      4",
        "",
        "In all since 2026-10-26: $101.50+, 3M tokens in, 100K out, 4 turns.",
        "1 turn told no cost: + and ? stand for that. See agent.prices.",
    ]


def test_only_the_last_days_and_runs_are_shown_newest_last() -> None:
    entries = [entry(days, f"run-{days:02}", 1.0) for days in range(30)]
    lines = spending_lines(entries, NOON)
    days = [line.split()[0] for line in lines if line.startswith("  2026-")]
    runs = [line.split()[0] for line in lines if line.startswith("  run-")]
    assert (len(days), days[0], days[-1]) == (14, "2026-11-02", "2026-11-15")
    assert runs == [f"run-{days:02}" for days in range(9, -1, -1)]
    assert lines[-1].startswith("In all since 2026-10-17: $30.00,")


def test_old_spending_alone_leaves_the_first_table_empty() -> None:
    lines = spending_lines([entry(40, "a", 1.0)], NOON)
    assert lines[0] == "The last 14 days: nothing."


def test_turns_that_never_tell_are_no_free_turns() -> None:
    lines = spending_lines([entry(0, "a", None)], NOON)
    assert "?" in lines[2]
    assert "$0.00" not in "\n".join(lines)
    assert spending_dict([entry(0, "a", None)])["total"]["cost_usd"] is None


@pytest.fixture
def summer_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place whose clocks change, by a rule that needs no time zone files."""
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("summer_time")
def test_a_day_of_23_or_25_hours_is_a_day() -> None:
    entries = [entry(days, "a", 1.0) for days in range(200)]
    for days in range(180):
        shown = spending_lines(entries, NOON - days * DAY)[2:16]
        assert len({line.split()[0] for line in shown}) == 14


def test_the_same_for_programs() -> None:
    entries = (entry(0, "b", None), entry(1, "a", 1.25), entry(0.5, "a", 0.25))
    told = json.loads(json.dumps(spending_dict(entries)))
    assert [day["day"] for day in told["days"]] == ["2026-11-14", "2026-11-15"]
    assert [(run["run"], run["cost_usd"], run["turns"]) for run in told["runs"]] == [
        ("a", 1.5, 2),
        ("b", None, 1),
    ]
    assert told["runs"][0] | {"tokens": None} == {
        "run": "a",
        "profile": "harness",
        "agent": "codex",
        "model": "m",
        "cost_usd": 1.5,
        "turns_of_unknown_cost": 0,
        "tokens": None,
        "turns": 2,
        "seconds": 4.0,
    }
    tokens = {"input": 3000, "output": 300, "cache_read": 6000, "cache_write": 0}
    assert told["total"]["tokens"] == tokens


def test_each_agent_has_its_part() -> None:
    """ADR 45: told also where it was one: perhaps the first never took a turn."""
    first = replace(entry(1, "r", 1.0), agent="claude", model="")
    entries = (first, entry(0, "r", None), replace(first, model="haiku"), replace(first, time=NOON))
    lines = spending_lines(entries, NOON)
    rows = [line.split() for line in lines[lines.index("By agent:") + 1 : -3]]
    assert rows == [
        [*["agent", "cost", "tokens", "in", "tokens", "out", "turns"]],
        [*["claude", "$2.00", "6K", "200", "2"]],
        [*["claude", "with", "haiku", "$1.00", "3K", "100", "1"]],
        [*["codex", "with", "m", "?", "3K", "100", "1"]],
        [*["total", "$3.00+", "12K", "400", "4"]],
    ]
    agents = spending_dict(entries)["agents"]
    assert [(a["agent"], a["model"], a["cost_usd"], a["turns"]) for a in agents] == [
        ("claude", "", 2.0, 2),
        ("claude", "haiku", 1.0, 1),
        ("codex", "m", None, 1),
    ]
