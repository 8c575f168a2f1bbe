"""`ralph guard check`: 0 allowed, 2 refused, with category and reason."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from run_support import Here


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    assert workspace.is_dir()
    return Here(capsys)


def test_an_allowed_command_is_exit_0(here: Here) -> None:
    said = here("guard", "check", "--", "rm -rf build/")
    assert (said.code, said.out, said.err) == (0, "allowed\n", "")


def test_a_refused_command_is_exit_2_with_category_and_reason(here: Here) -> None:
    said = here("guard", "check", "--", "git push --force")
    assert (said.code, said.err) == (2, "")
    assert said.out.startswith("refused (force-push): a force push replaces what others have")


def test_the_part_that_is_refused_is_named(here: Here) -> None:
    assert "  in: rm -rf /\n" in here("guard", "check", "--", "ls; x=/; rm -rf $x").out


@pytest.mark.parametrize(
    ("command", "allowed", "category"),
    [("ls", True, None), ("sudo ls", False, "privilege"), ("echo '", False, "unreadable")],
)
def test_json_is_one_object(here: Here, command: str, allowed: bool, category: str | None) -> None:
    said = here("guard", "check", "--json", "--", command)
    told = json.loads(said.out)
    assert said.code == (0 if allowed else 2)
    parts = {"command", "level", "allowed", "category", "reason", "part", "rule", "refused_from"}
    assert set(told) == parts
    assert (told["command"], told["allowed"], told["category"]) == (command, allowed, category)


def test_the_directory_counts(here: Here, workspace: Path) -> None:
    (workspace / ".git" / "objects").mkdir(parents=True)
    (workspace / "sub").mkdir()
    assert here("guard", "check", "-C", "sub", "--", "rm -rf *").code == 0
    assert here("guard", "check", "-C", "sub", "--", "rm -rf ..").code == 2


def test_the_settings_may_allow_it(here: Here, workspace: Path) -> None:
    (workspace / ".ralph").mkdir()
    (workspace / ".ralph" / "settings.json").write_text('{"guard": {"allow": ["pkill *"]}}')
    assert here("guard", "check", "--", "pkill -f vite").code == 0


@pytest.mark.parametrize("words", [(), ("rm", "-rf", "build")])
def test_a_command_is_one_text(here: Here, words: tuple[str, ...]) -> None:
    said = here("guard", "check", "--", *words)
    assert said.code == 2
    assert "Try: ralph guard check --help" in said.err


@pytest.mark.parametrize(
    ("script", "code"), [(b"ls\nmake\n", 0), (b"ls\nrm -rf /\n", 2), (b"echo \xff\n", 0), (b"", 0)]
)
def test_a_script_comes_from_standard_input(workspace: Path, script: bytes, code: int) -> None:
    argv = [sys.executable, "-m", "ralph", "guard", "check", "-"]
    assert subprocess.run(argv, input=script, capture_output=True, check=False).returncode == code


AMEND = "git commit --amend"


def test_the_level_of_the_settings_holds_and_a_flag_goes_before(
    here: Here, workspace: Path
) -> None:
    assert here("guard", "check", "--", AMEND).code == 0
    assert here("guard", "check", "--level", "strict", "--", AMEND).code == 2
    (workspace / ".ralph").mkdir()
    (workspace / ".ralph" / "settings.json").write_text('{"guard": {"level": "strict"}}')
    assert here("guard", "check", "--", AMEND).code == 2
    assert here("guard", "check", "--level", "standard", "--", AMEND).code == 0
    assert here("guard", "check", "--level", "lax", "--", AMEND).code == 2


def test_explain_names_the_rule_the_level_and_how_to_allow_it(here: Here) -> None:
    """ "`ralph guard check --explain` names the rule and the level"."""
    told = here("guard", "check", "--explain", "--", AMEND).out.splitlines()
    assert told[0] == "allowed"
    assert told[1].startswith("  strict refuses it (git-history): it rewrites the last commit")
    assert told[2] == "  rule: git commit --amend"
    told = here("guard", "check", "--explain", "--", "npm publish --tag x").out.splitlines()
    assert told[0].startswith("refused (publish)")
    assert told[1] == "  rule: npm publish (for real) (level: standard and strict)"
    assert 'add "npm publish --tag x" to guard.allow in .ralph/settings.json' in told[2]
    deletes = "supabase projects delete x"
    for level in ("standard", "strict"):
        both = here("guard", "check", "--level", level, "--explain", "--", deletes)
        assert "(level: standard and strict)" in both.out
    assert here("guard", "check", "--explain", "--", "ls").out == "allowed\n"
    assert "guard.allow" not in here("guard", "check", "--explain", "--", "rm -rf $X/").out
