"""The same tables through tree-sitter-bash: our parser never allows what it refuses (ADR 25)."""

import builtins
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
from danger_tables import ALLOWED, DENIED, EVERYTHING, HIDDEN, WHERE
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.adapters.bash_tree import reader
from ralph.core.danger import judge
from ralph.core.danger_rule import UNREADABLE
from ralph.core.shell_nodes import Script
from ralph.hooks.pre_tool import verdict_on

pytest.importorskip("tree_sitter")


def found_reader() -> Callable[[str], Script]:
    read = reader()
    assert read is not None
    return read


READ = found_reader()


def test_what_is_refused_is_refused_by_both() -> None:
    commands = [*(command for _, command in DENIED), *HIDDEN]
    assert [command for command in commands if judge(command, WHERE, (), READ).allowed] == []


def test_what_is_allowed_is_allowed_by_both_or_beyond_the_grammar() -> None:
    found = [(command, judge(command, WHERE, (), READ)) for command in ALLOWED]
    wrong = [(c, v.category, v.reason) for c, v in found if v.category not in ("", UNREADABLE)]
    assert not wrong


def test_hardly_anything_is_beyond_the_grammar() -> None:
    beyond = [c for c in ALLOWED if judge(c, WHERE, (), READ).category == UNREADABLE]
    assert len(beyond) < len(ALLOWED) / 40, beyond


OPERATORS = st.sampled_from([" && ", " || ", "; ", "\n", " | ", " & ", "\n\n"])
SIMPLE = [
    c for c in EVERYTHING if "\n" not in c and judge(c, WHERE, (), READ).category != UNREADABLE
]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(SIMPLE), OPERATORS), min_size=1, max_size=4))
def test_our_parser_never_allows_what_the_other_refuses(parts: list[tuple[str, str]]) -> None:
    command = "".join(command + operator for command, operator in parts) + "true"
    ours, other = judge(command, WHERE), judge(command, WHERE, (), READ)
    assert not ours.allowed or other.allowed or other.category == UNREADABLE


@given(st.text(alphabet="ab $(){}[]<>|&;\"'`\\\n#=!*~/rm-f"))
def test_any_text_has_a_verdict_by_both(command: str) -> None:
    assert judge(command, WHERE, (), READ).allowed in (True, False)


def test_the_second_parser_is_asked_about_what_the_first_cannot_follow() -> None:
    command = "for ((i=0;i<3;i++)); { echo $i; }"
    assert judge(command, WHERE).category == UNREADABLE
    assert verdict_on(command, WHERE, "/nowhere", reader).allowed
    assert not verdict_on("for ((i=0;i<3;i++)); { rm -rf /; }", WHERE, "/nowhere", reader).allowed
    assert verdict_on(command, WHERE, "/nowhere", lambda: None).category == UNREADABLE


def test_without_the_extra_there_is_no_second_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("tree_sitter"):
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    assert reader() is None
