"""The same tables through tree-sitter-bash: our parser never allows what it refuses (ADR 25)."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
from danger_tables import ALLOWED, DENIED, EVERYTHING, HIDDEN, WHERE
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ralph.adapters.bash_tree import reader
from ralph.core.danger import Verdict, judge
from ralph.core.danger_rule import UNREADABLE
from ralph.core.shell_nodes import Script
from ralph.hooks.pre_tool import verdict_on

pytest.importorskip("tree_sitter")


def found_reader() -> Callable[[str], Script]:
    read = reader()
    assert read is not None
    return read


READ = found_reader()


def with_both(command: str) -> Verdict:
    """As the hook and `ralph guard check` judge it where the extra is installed."""
    return verdict_on(command, WHERE, (), lambda: READ)


def test_what_is_refused_is_refused_by_either_parser() -> None:
    commands = [*(command for _, command in DENIED), *HIDDEN]
    assert [command for command in commands if judge(command, WHERE, (), READ).allowed] == []
    assert [command for command in commands if with_both(command).allowed] == []


def test_what_is_allowed_is_allowed_with_both_parsers() -> None:
    found = [(command, with_both(command)) for command in ALLOWED]
    assert [(c, v.category, v.reason) for c, v in found if not v.allowed] == []


def test_hardly_anything_is_beyond_the_grammar() -> None:
    beyond = [c for c in ALLOWED if judge(c, WHERE, (), READ).category == UNREADABLE]
    assert len(beyond) < len(ALLOWED) / 40, beyond


OPERATORS = st.sampled_from([" && ", " || ", "; ", "\n", " | ", " & ", "\n\n"])
LINES = st.sampled_from([command for command in EVERYTHING if "\n" not in command])
FRAMES = st.sampled_from(
    [
        *("{}", "( {} )", "{{ {}; }}", "! {}", "if {}; then ls; fi", "if ls; then {}; else ls; fi"),
        *("for x in a b; do {}; done", "while ls; do {}; done", "until {}; do sleep 1; done"),
        *("case $x in a) {};; *) ls;; esac", "f() {{ {}; }}; f", "function f {{ {}; }}\nf"),
        *("x=$({})", 'echo "$({})"', "echo `{}`", "cat <({})", "[[ -n $({}) ]]", "{} > out.txt"),
        *("{} 2>&1 | tee log", "time {}", "cat <<E\n$({})\nE", "ls <<E && {}\nx\nE", "(({}))"),
    ]
)


def framed(parts: list[tuple[str, str, str]]) -> str:
    return "".join(frame.format(command) + end for command, frame, end in parts) + "true"


@settings(max_examples=400)
@given(st.lists(st.tuples(LINES, FRAMES, OPERATORS), min_size=1, max_size=3).map(framed))
def test_our_parser_never_allows_what_is_refused_with_the_other(command: str) -> None:
    """It may refuse more; what it allows, both allow. After a pipe sign `time` is no word of the
    shell's, but a program: there the other is wrong."""
    assume("| time " not in command)
    assert not judge(command, WHERE).allowed or with_both(command).allowed


def test_a_tree_that_joins_two_lines_is_not_followed() -> None:
    command = "ls || ls | tail -n 5 | xargs echo\n[[ -n $(ls) ]] && true"
    assert judge(command, WHERE, (), READ).category == UNREADABLE
    assert with_both(command).allowed


@given(st.text(alphabet="ab $(){}[]<>|&;\"'`\\\n#=!*~/rm-f"))
def test_any_text_has_a_verdict_by_both(command: str) -> None:
    assert judge(command, WHERE, (), READ).allowed in (True, False)


def test_the_second_parser_is_asked_about_what_the_first_cannot_follow() -> None:
    command = "for ((i=0;i<3;i++)); { echo $i; }"
    assert judge(command, WHERE).category == UNREADABLE
    assert verdict_on(command, WHERE, (), reader).allowed
    assert not verdict_on("for ((i=0;i<3;i++)); { rm -rf /; }", WHERE, (), reader).allowed
    assert verdict_on(command, WHERE, (), lambda: None).category == UNREADABLE


@pytest.mark.parametrize("missing", ["tree_sitter", "tree_sitter_bash"])
def test_without_the_extra_there_is_no_second_parser(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PathFinder.find_spec

    def without(name: str, path: Sequence[str] | None = None) -> ModuleSpec | None:
        return None if name == missing else real(name, path)

    monkeypatch.delitem(sys.modules, f"{missing}._binding", raising=False)
    monkeypatch.setattr(PathFinder, "find_spec", without)
    assert reader() is None


def test_an_extra_of_another_time_is_no_second_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter._binding", ModuleType("tree_sitter._binding"))
    assert reader() is None
