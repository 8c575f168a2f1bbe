"""The settings of other loops in our words: what maps, what does not, and what is no such file."""

import builtins
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_examples import EXAMPLES, ORCHESTRATOR, RALPHRC, RALPHY, Example

from kits.thorough import examples
from ralph.errors import ConfigError
from ralph.settings.from_others.catalog import fits, read
from ralph.settings.load import combine
from ralph.settings.source import Layer


def named(example: Example) -> str:
    return f"{example.loop}-{os.path.basename(example.name)}"


def keys(lost: list[str]) -> tuple[str, ...]:
    return tuple(words.partition(":")[0] for words in lost)


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_what_means_the_same_is_taken_over(example: Example) -> None:
    """The issue: "settings of ralph-cli, `ralph.yml` and ralph-tui where they map"."""
    found = read(example.name, example.text)
    assert fits(example.name, example.text) == found.loop == example.loop
    assert found.settings == example.settings
    assert sorted(keys(found.lost)) == sorted(example.lost)


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_it_is_valid_with_us(example: Example) -> None:
    combine([Layer("x", read(example.name, example.text).settings)])


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_byte_order_marks_and_other_line_ends_do_not_matter(example: Example) -> None:
    text = "\ufeff" + example.text.replace("\n", "\r\n")
    if example.loop != "ralphrc":  # a shell takes the \r for part of the value
        assert read(example.name, text).settings == example.settings


@pytest.mark.parametrize(
    ("example", "secret"),
    [(ORCHESTRATOR, "123456:ABC"), (RALPHY, "discord.example"), (RALPHRC, "hush")],
    ids=["orchestrator", "ralphy", "ralphrc"],
)
def test_secrets_are_neither_copied_nor_told(example: Example, secret: str) -> None:
    assert secret in example.text
    assert secret not in repr(read(example.name, example.text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ralph.yml", "cli: {backend: claude, args: ['--api-key', 'abc']}"),
        ("ralph.yml", "cli: {backend: claude, args: ['--auth-token=abc']}"),
        ("ralph.yml", "cli: {backend: custom, command: 'agent --password abc'}"),
        ("ralph.yml", "cli: {backend: custom, command: [agent, --password, abc]}"),
        (".ralphy/config.yaml", "commands: {test: 'KEY=sk-ant-abcdefghijklmnopqrstuvwxyz make'}"),
        (".ralph/settings.json", '{"agent": {"env": {"set": {"A": "abc"}}}}'),
        (".ralph/settings.json", '{"notify": {"urls": ["mailto://me:abc@x"]}}'),
    ],
)
def test_what_looks_like_a_secret_is_not_copied(name: str, text: str) -> None:
    found = read(name, text)
    assert "abc" not in repr(found)
    assert any("secret" in words for words in found.lost)


def test_a_command_may_be_a_list_of_words() -> None:
    found = read("ralph.yml", "cli: {backend: custom, command: [goose, acp]}")
    assert found.settings["agent"]["command"] == ["goose", "acp"]


def test_nothing_in_a_ralphrc_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shell-syntax files are parsed, never sourced."""
    monkeypatch.chdir(tmp_path)
    read(RALPHRC.name, RALPHRC.text)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("CLAUDE_CODE_CMD=claude", "claude"),
        ("CLAUDE_CODE_CMD='a b'", "a b"),
        ("CLAUDE_CODE_CMD=\"a\"' b'", "a b"),
        ("CLAUDE_CODE_CMD=a#b # c", "a#b"),
        ("export CLAUDE_CODE_CMD=x", "x"),
        ("readonly CLAUDE_CODE_CMD=x", "x"),
        ("CLAUDE_CODE_CMD=x\nCLAUDE_CODE_CMD=y", "y"),
        ('OTHER="\nCLAUDE_CODE_CMD=x\n"', None),
        ("CLAUDE_CODE_CMD=$HOME/claude", None),
        ('CLAUDE_CODE_CMD="${X:-claude}"', None),
        ("CLAUDE_CODE_CMD=~/claude", None),
        ("CLAUDE_CODE_CMD+=x", None),
        ("CLAUDE_CODE_CMD=x command", None),
        ("[ -e y ] && CLAUDE_CODE_CMD=x", None),
        ("CLAUDE_CODE_CMD=x\nif true; then CLAUDE_CODE_CMD=y; fi", None),
        ("while true; do CLAUDE_CODE_CMD=y; done", None),
        ("f() { CLAUDE_CODE_CMD=y; }", None),
        ("(CLAUDE_CODE_CMD=y)", None),
        ("CLAUDE_CODE_CMD=", None),
    ],
)
def test_only_plain_assignments_count(line: str, command: str | None) -> None:
    assert read(".ralphrc", line).settings.get("agent", {}).get("command") == command


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("ralph.yml", "event_loop: {max_iterations: -1}", "event_loop.max_iterations"),
        ("ralph.yml", "event_loop: {max_iterations: true}", "event_loop.max_iterations"),
        ("ralph.yml", "event_loop: {max_iterations: 1.5}", "event_loop.max_iterations"),
        ("ralph.yml", "event_loop: {max_iterations: 0}", "event_loop.max_iterations"),
        ("ralph.yml", "event_loop: {max_runtime_seconds: .inf}", "event_loop.max_runtime_seconds"),
        ("ralph.yml", "event_loop: {max_cost_usd: lots}", "event_loop.max_cost_usd"),
        ("ralph.yml", "event_loop: {max_cost_usd: 1e300}", "event_loop.max_cost_usd"),
        ("ralph.yml", "event_loop: {completion_promise: [a]}", "event_loop.completion_promise"),
        ("ralph.yml", "event_loop: 7", "event_loop"),
        ("ralph.yml", "cli: {backend: kiro}", "cli.backend"),
        ("ralph.yml", "cli: {args: --fast}", "cli.args"),
        ("ralph.yml", "cli: {backend: claude}\nagent: codex", "agent"),
        ("ralph.yml", "max_iterations: 1\nevent_loop: {max_iterations: 2}", "event_loop.max_itera"),
        ("ralph.yml", "2: 3", "2"),
        (".ralphy/config.yaml", "boundaries: {never_touch: [../x]}", "boundaries.never_touch"),
        (".ralphy/config.yaml", "boundaries: {never_touch: [/etc]}", "boundaries.never_touch"),
        (".ralphy/config.yaml", "commands: make", "commands"),
        (".ralphy/config.yaml", "commands: {test: [make]}", "commands.test"),
        (".ralph-tui/config.toml", "[errorHandling]\nstrategy = 'pray'", "errorHandling.strategy"),
        (".ralph-tui/config.toml", "[parallel]\nmode='auto'\nmaxWorkers=0", "parallel.maxWorkers"),
        (".ralphrc", "CLAUDE_TIMEOUT_MINUTES=soon", "CLAUDE_TIMEOUT_MINUTES"),
    ],
)
def test_a_value_that_makes_no_sense_is_lost_and_named(name: str, text: str, key: str) -> None:
    assert any(words.startswith(key) for words in read(name, text).lost)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("ralph.yml", "event_loop: [", "line 1"),
        ("ralph.yml", "a: b: c", "line 1"),
        ("ralph.yml", "- a", "keys with values"),
        ("ralph.yml", "a: !!python/object/apply:os.system [ls]", "line 1"),
        ("ralph.yml", "[" * 5000, "deeply"),
        ("ralph.yml", "event_loop: &a {x: *a}", "deeply"),
        ("ralph.yml", "".join(f"a{n}: 1\n" for n in range(20_000)), "more than"),
        (".ralph-tui/config.toml", "agent =\nx = 1", "line 1"),
        (".ralph/settings.json", '{"agent"', "line 1"),
        (".ralph/settings.json", "[1]", "keys with values"),
        (".ralph/settings.json", '{"a": ' + '{"a":' * 100_000, "deeply"),
        (".ralphrc", "CLAUDE_CODE_CMD='a", "followed"),
        (".ralphrc", "if true; then", "followed"),
        ("ralph.yml", "a: " + "x" * 2_000_000, "larger"),
        ("notes.txt", "hello", "no settings"),
    ],
)
def test_what_cannot_be_read_says_why(name: str, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prd.json", '{"project": "x", "userStories": []}'),
        ("tasks.json", '{"tasks": [{"title": "x", "completed": false}]}'),
        ("tasks.yaml", "tasks:\n  - title: x\n    completed: false\n"),
        ("compose.yaml", "services:\n  web: {image: x}\n"),
        ("pyproject.toml", '[project]\nname = "x"\n'),
        ("fix_plan.md", "- [ ] x"),
        (".claude/settings.json", '{"permissions": {}, "agent": "x"}'),
        ("config.yaml", "project: {name: x}\n"),
        ("", ""),
    ],
)
def test_other_files_are_no_settings(name: str, text: str) -> None:
    assert fits(name, text) is None


@pytest.mark.parametrize("doubled", ["x: *a{0}, y: *a{0}", "<<: [*a{0}, *a{0}]"])
def test_an_alias_that_doubles_over_and_over_takes_no_time(doubled: str) -> None:
    """As large as 2 to the 45th, if anybody looked at all of it."""
    links = (f"a{n}: &a{n} {{{doubled.format(n - 1)}}}\n" for n in range(1, 46))
    with pytest.raises(ValueError, match="too much in it"):
        read("ralph.yml", f"a0: &a0 {{x: 1}}\n{''.join(links)}hats: *a45\n")


def test_yaml_without_pyyaml_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install 'ralph-engine[formats]'`; TOML and the others do without."""
    real = builtins.__import__

    def without(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002  as Python calls it
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:  # noqa: ANN401  a module
        if name == "yaml":
            raise ImportError(name)
        return real(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without)
    for example in EXAMPLES:
        if example.loop in ("ralphy", "ralph-orchestrator"):
            with pytest.raises(ConfigError) as raised:
                read(example.name, example.text)
            assert raised.value.remedy == "Type: pip install 'ralph-engine[formats]'"
        else:
            assert read(example.name, example.text).settings == example.settings


@given(st.sampled_from([example.name for example in EXAMPLES]), st.text())
@settings(max_examples=examples(200))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    """Unknown input becomes a value or a reason, never another exception."""
    try:
        found = read(name, text)
    except ValueError:
        return
    assert found.loop == fits(name, text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.sampled_from(EXAMPLES), st.data())
@settings(max_examples=examples(200))
def test_any_value_at_any_known_key_gives_valid_settings(example: Example, data: Any) -> None:  # noqa: ANN401
    """Nothing that makes our own settings invalid comes out, but of files that are ours already."""
    import json

    if example.loop in ("ralphrc", "ralph-cli", "ralph-tui"):
        return
    import yaml

    document = yaml.safe_load(example.text)
    group = data.draw(st.sampled_from(sorted(document)))
    if isinstance(document[group], dict) and data.draw(st.booleans()):
        inner = data.draw(st.sampled_from(sorted(document[group])))
        document[group][inner] = data.draw(VALUES)
    else:
        document[group] = data.draw(VALUES)
    try:
        found = read(example.name, json.dumps(document))
    except ValueError:
        return
    combine([Layer("x", found.settings)])
