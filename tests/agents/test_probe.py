"""The capability probe (ADR 15): asked once per binary, with patience that ends."""

import json
import os
from pathlib import Path

import pytest

from kits.adapters import has_ended
from ralph.agents import probe
from ralph.agents.probe import Probe
from ralph.testing.scripted_agent.install import install_agent, probes


@pytest.fixture
def agent(tmp_path: Path) -> str:
    return install_agent(str(tmp_path / "bin"), {"turns": [], "help": "--max-budget-usd"})


def asking(agent: str, tmp_path: Path) -> Probe:
    return Probe((agent,), ("--help",), os.environ, str(tmp_path / "cache" / "probes.json"))


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_binary_is_asked_once_for_all_runs(agent: str, tmp_path: Path) -> None:
    """ "once per binary (cached by path, size, mtime)"."""
    first = asking(agent, tmp_path)
    assert [first(), first(), asking(agent, tmp_path)()] == ["--max-budget-usd\n"] * 3
    assert [p["argv"] for p in probes(agent)] == [["--help"]]


def test_a_probe_knows_that_it_is_one(agent: str, tmp_path: Path) -> None:
    """ "`RALPH_PROBE=1` set"."""
    asking(agent, tmp_path)()
    assert probes(agent)[0]["env"]["RALPH_PROBE"] == "1"


def test_another_binary_in_its_place_is_asked_again(agent: str, tmp_path: Path) -> None:
    asked = asking(agent, tmp_path)
    assert asked() == "--max-budget-usd\n"
    script(Path(agent), "echo a new version")
    assert asked() == "a new version\n"
    assert asking(agent, tmp_path)() == "a new version\n"


def test_other_words_are_another_question(agent: str, tmp_path: Path) -> None:
    asking(agent, tmp_path)()
    cache = str(tmp_path / "cache" / "probes.json")
    assert Probe((agent,), ("--version",), os.environ, cache)() != "--max-budget-usd\n"


def test_a_link_to_the_binary_is_the_same_binary(agent: str, tmp_path: Path) -> None:
    asking(agent, tmp_path)()
    (tmp_path / "link").symlink_to(agent)
    asking(str(tmp_path / "link"), tmp_path)()
    assert len(probes(agent)) == 1


def test_a_binary_that_hangs_is_given_up_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "stdin closed, 5 s": shortened here."""
    assert probe._PATIENCE == 5
    monkeypatch.setattr(probe, "_PATIENCE", 0.1)
    hangs = script(tmp_path / "hangs", f"echo $$ >> {tmp_path}/pids; sleep 60 & wait")
    asked = asking(hangs, tmp_path)
    assert [asked(), asked(), asking(hangs, tmp_path)()] == [None] * 3
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 1, "not asked again, nor in the next run"
    assert has_ended(int(pids[0]))


@pytest.mark.parametrize("text", ["echo no such command; exit 1", "kill -9 $$"])
def test_a_binary_that_fails_has_no_help(tmp_path: Path, text: str) -> None:
    asked = asking(script(tmp_path / "fails", text), tmp_path)
    assert asked() is None
    assert not (tmp_path / "cache").exists(), "it may do better next time"


def test_a_probe_reads_an_empty_input(tmp_path: Path) -> None:
    assert asking(script(tmp_path / "reads", "cat; echo end"), tmp_path)() == "end\n"


def test_a_missing_binary_has_no_help(tmp_path: Path) -> None:
    assert asking(str(tmp_path / "missing"), tmp_path)() is None


@pytest.mark.parametrize("content", ["", "nonsense", "[1]", '{"x": 5}', "\0"])
def test_a_broken_cache_is_no_obstacle(agent: str, tmp_path: Path, content: str) -> None:
    cache = tmp_path / "cache" / "probes.json"
    cache.parent.mkdir()
    cache.write_text(content)
    assert asking(agent, tmp_path)() == "--max-budget-usd\n"
    assert list(json.loads(cache.read_text()).values()) == ["--max-budget-usd\n"]


def test_a_cache_that_cannot_be_written_is_no_obstacle(agent: str, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    assert asking(agent, tmp_path)() == "--max-budget-usd\n"
