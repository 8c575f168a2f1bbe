"""Settings errors name the file, the JSON path, what was found and what is allowed."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from settings_files import BASE, LOCAL, lay

from ralph.errors import ConfigError
from ralph.settings.load import load
from ralph.settings.source import parse

WHOLE = "allowed: a whole number, 1 or more."
OR_TEXT = ', or text such as "90s", "30m" or "8h".'
SECONDS = f"allowed: seconds, more than 0, at most 1,000,000,000{OR_TEXT}"
VALUE = "expected a value (text in double quotes, a number, true, false, null, [ or {)."
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"

# (content of settings.json, the whole message without the file's name)
VALUES = [
    ('{"maximumIterations": 0}', f"maximumIterations: found 0; {WHOLE}"),
    ('{"maximumIterations": -1}', f"maximumIterations: found -1; {WHOLE}"),
    ('{"maximumIterations": 3.0}', f"maximumIterations: found 3.0; {WHOLE}"),
    ('{"maximumIterations": true}', f"maximumIterations: found true; {WHOLE}"),
    ('{"maximumIterations": "3"}', f'maximumIterations: found "3"; {WHOLE}'),
    ('{"maximumIterations": [3]}', f"maximumIterations: found a list; {WHOLE}"),
    ('{"maxTime": NaN}', f"maxTime: found NaN; {SECONDS}"),
    ('{"maxTime": Infinity}', f"maxTime: found Infinity; {SECONDS}"),
    ('{"maxTime": 1e999}', f"maxTime: found Infinity; {SECONDS}"),
    ('{"maxTime": 0}', f"maxTime: found 0; {SECONDS}"),
    ('{"maxTime": false}', f"maxTime: found false; {SECONDS}"),
    (
        '{"maxWait": -0.5}',
        f"maxWait: found -0.5; allowed: seconds, from 0 to 1,000,000,000{OR_TEXT}",
    ),
    (
        '{"maxCost": "5"}',
        'maxCost: found "5"; allowed: dollars, more than 0, at most 1,000,000,000.',
    ),
    (
        '{"completionResponse": "  "}',
        'completionResponse: found "  "; allowed: text that is not blank.',
    ),
    ('{"tellCompletion": 1}', "tellCompletion: found 1; allowed: true or false."),
    ('{"agent": "claude"}', 'agent: found "claude"; allowed: an object.'),
    ('{"agent": {"flags": "-x"}}', 'agent.flags: found "-x"; allowed: a list.'),
    ('{"agent": {"flags": ["a", "b", 3]}}', "agent.flags[2]: found 3; allowed: text."),
    ('{"agent": {"flags": [null]}}', "agent.flags[0]: found null; allowed: text."),
    (
        '{"agent": {"promptVia": "pipe"}}',
        'agent.promptVia: found "pipe"; allowed: "arg", "stdin" or "file".',
    ),
    (
        '{"agent": {"prices": {"input": 3}}}',
        "agent.prices: output is missing; allowed: dollars for a million tokens, 0 or more.",
    ),
    (
        '{"guardrails": [{"command": "a"}, {"command": "b", "failAction": "SKIP"}]}',
        'guardrails[1].failAction: found "SKIP"; allowed: APPEND, PREPEND or REPLACE (any case).',
    ),
    (
        '{"guardrails": [{"hint": "x"}]}',
        "guardrails[0]: command is missing; allowed: text that is not blank.",
    ),
    ('{"guardrails": ["make test"]}', 'guardrails[0]: found "make test"; allowed: an object.'),
    ('{"scm": {"tasks": [""]}}', 'scm.tasks[0]: found ""; allowed: text that is not blank.'),
    (
        '{"agent": {"command": "a\\u0000b"}}',
        'agent.command: found "a\\u0000b"; allowed: text without NUL and broken Unicode.',
    ),
    (
        '{"agent": {"model": "\\ud800"}}',
        'agent.model: found "\\ud800"; allowed: text without NUL and broken Unicode.',
    ),
    ('{"loop": {"maxTasksPerRun": 0}}', f"loop.maxTasksPerRun: found 0; {WHOLE}"),
    ('{"loop": {"maxTimePerTask": -1}}', f"loop.maxTimePerTask: found -1; {SECONDS}"),
    ('{"loop": {"parallelism": 0}}', f"loop.parallelism: found 0; {WHOLE}"),
    (
        '{"loop": {"onFailure": "panic"}}',
        'loop.onFailure: found "panic"; allowed: "continue", "stop" or "retry".',
    ),
    ('{"proof": "trees"}', 'proof: found "trees"; allowed: "tree" or "clean".'),
    ('{"guard": {"level": "lax"}}', 'guard.level: found "lax"; allowed: "standard" or "strict".'),
    ('{"hooks": {"onAction": " "}}', 'hooks.onAction: found " "; allowed: text that is not blank.'),
    ('{"notify": {"urls": "json://x"}}', "notify.urls: found text; allowed: a list."),
    # Secrets are never printed, long values are cut.
    (
        '{"notify": {"urls": ["json://x", 7]}}',
        "notify.urls[1]: found a number; allowed: text that is not blank.",
    ),
    (
        '{"agent": {"env": {"set": {"TOKEN": 12345}}}}',
        "agent.env.set.TOKEN: found a number; allowed: text.",
    ),
    (
        '{"agent": {"env": {"set": {"A=B": "secret"}}}}',
        'agent.env.set["A=B"]: found text; allowed: the name of an environment variable.',
    ),
    ('{"agent": {"env": {"set": {"A": {}}}}}', "agent.env.set.A: found an object; allowed: text."),
    ('{"agent": {"env": {"set": ["secret"]}}}', "agent.env.set: found a list; allowed: an object."),
    (f'{{"agent": "{KEY}"}}', 'agent: found "[redacted]"; allowed: an object.'),
    (f'{{"scm": "{"x" * 99}"}}', f'scm: found "{"x" * 59}…; allowed: an object.'),
]

UNKNOWN = [
    ('{"maxIterations": 3}', "maxIterations: unknown key; did you mean maximumIterations?"),
    ('{"FAIL_AFTER": 3}', "FAIL_AFTER: unknown key; did you mean failAfter?"),
    ('{"agnet": {}}', "agnet: unknown key; did you mean agent?"),
    ('{"command": "claude"}', "command: unknown key; did you mean agent.command?"),
    ('{"hint": "x"}', "hint: unknown key; did you mean guardrails[].hint?"),
    ('{"emojis": true}', "emojis: unknown key; did you mean display.emoji?"),
    ('{"agent": {"flag": []}}', "agent.flag: unknown key; did you mean agent.flags?"),
    ('{"agent": {"timeout": 3}}', "agent.timeout: unknown key; did you mean timeout (top level)?"),
    (
        '{"guardrails": [{"command": "x", "fail_action": "APPEND"}]}',
        "guardrails[0].fail_action: unknown key; did you mean guardrails[0].failAction?",
    ),
    (
        '{"loop": {"maxIterations": 3}}',
        "loop.maxIterations: unknown key; did you mean loop.maxIterationsPerTask?",
    ),
    ('{"hooks": {"on_action": "x"}}', "hooks.on_action: unknown key; did you mean hooks.onAction?"),
    (
        '{"scm": {"zzz": 1}}',
        "scm.zzz: unknown key; scm has command, tasks.",
    ),
    (
        '{"agent": {"prices": {"input": 1, "output": 1, "cached": 1, "cacheRead": 1}}}',
        "agent.prices.cached: unknown key; did you mean agent.prices.cacheRead?",
    ),
]

DOUBLED = [
    ('{"failAfter": 1, "failAfter": 2}', "failAfter: stands there twice."),
    (
        '{"guardrails": [{"command": "a", "command": "b"}]}',
        "guardrails[0].command: stands there twice.",
    ),
    ('{"agent": {"a.b": 1, "a.b": 1}}', 'agent["a.b"]: stands there twice.'),
]


@pytest.mark.parametrize(("content", "message"), VALUES + UNKNOWN + DOUBLED)
def test_a_wrong_setting_is_named_with_what_is_allowed(
    tmp_path: Path, content: str, message: str
) -> None:
    """One problem, one line, a remedy."""
    with pytest.raises(ConfigError) as caught:
        load(lay(tmp_path, content))
    assert caught.value.message == f"{BASE}: {message}"
    assert caught.value.remedy
    assert caught.value.reason == "config"


SYNTAX = [
    ("{", "1:2: found the end of the file; expected a key in double quotes."),
    ('{\n  "a": 1\n  "b": 2\n}', '3:3: found `"`; expected a comma or the closing bracket.'),
    ("// settings\n{}", f"1:1: found `/`; {VALUE}"),
    ("{'a': 1}", "1:2: found `'`; expected a key in double quotes."),
    ("{\x1b}", "1:2: found U+001B; expected a key in double quotes."),
    ('{"a" 1}', "1:6: found `1`; expected a colon after the key."),
    ('{"a": }', f"1:7: found `}}`; {VALUE}"),
    ('{"a": "x}', '1:7: found `"`; expected a closing double quote in the same line.'),
    ('{"a": "x\ny"}', "1:9: found the end of the line; expected an escape such as \\n or \\t."),
    ('{"a": "\\q"}', '1:8: found `\\`; expected one of " \\ / b f n r t u after the backslash.'),
    ('{"a": 1} x', "1:10: found `x`; expected nothing after the end of the object."),
]


@pytest.mark.parametrize(("content", "message"), SYNTAX)
def test_bad_json_gives_line_and_column(tmp_path: Path, content: str, message: str) -> None:
    """ "bad JSON gives line and column", and what was expected, in words."""
    with pytest.raises(ConfigError) as caught:
        load(lay(tmp_path, content))
    assert caught.value.message == f"{BASE}:{message}"
    assert "no comments" in caught.value.remedy


def test_a_comma_after_the_last_item_is_found(tmp_path: Path) -> None:
    """Python 3.13 points at the comma, earlier ones behind it."""
    with pytest.raises(ConfigError, match=r"settings\.json:1:\d+: found .*; expected") as caught:
        load(lay(tmp_path, '{"failAfter": 1,}'))
    assert "no comma after the last item" in caught.value.remedy


FILES = [
    (b"", ": is empty; expected a JSON object."),
    (b" \n\t", ": is empty; expected a JSON object."),
    (b"\xef\xbb\xbf", ": is empty; expected a JSON object."),
    (b"[]", ": holds a list; expected a JSON object."),
    (b"null", ": holds null; expected a JSON object."),
    (b"true", ": holds true or false; expected a JSON object."),
    (b"7", ": holds a number; expected a JSON object."),
    (b'"text"', ": holds text; expected a JSON object."),
    (b'{\n"a": "\xff"}', ":2: is not UTF-8 (byte 9)."),
    ('{"failAfter": 1}'.encode("utf-16"), ":1: is not UTF-8 (byte 1)."),
    (b" " * (10 * 1024 * 1024 + 1), ": is larger than 10 MB."),
    (b"[" * 200_000, ": is nested too deeply; no setting is."),
    (b'{"agent":' * 40 + b"1" + b"}" * 40, ": is nested too deeply; no setting is."),
    (b'{"failAfter": ' + b"9" * 5000 + b"}", ": holds a number of thousands of digits."),
]


@pytest.mark.parametrize(("content", "message"), FILES, ids=range(len(FILES)))
def test_a_file_that_is_no_settings_file(tmp_path: Path, content: bytes, message: str) -> None:
    """Whatever a settings file holds, the answer is a message with a remedy."""
    with pytest.raises(ConfigError) as caught:
        load(lay(tmp_path, content))
    assert caught.value.message == f"{BASE}{message}"
    assert caught.value.remedy


def test_a_settings_directory(tmp_path: Path) -> None:
    """Issue, bad input: "a settings *directory*"."""
    (tmp_path / BASE).mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"^\.ralph/settings\.json: is not a file\.$"):
        load(str(tmp_path))


def test_a_settings_pipe_does_not_block(tmp_path: Path) -> None:
    """Reading a pipe without a writer would wait for ever."""
    os.mkfifo(lay(tmp_path) + f"/{LOCAL}")
    with pytest.raises(ConfigError, match=r"^\.ralph/settings\.local\.json: is not a file\.$"):
        load(str(tmp_path))


def test_ralph_is_a_file(tmp_path: Path) -> None:
    """A file named .ralph stands where the directory should be."""
    (tmp_path / ".ralph").write_text("")
    with pytest.raises(ConfigError, match=r"^\.ralph: is not a directory\.$"):
        load(str(tmp_path))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A link to itself cannot be read, not even by root."""
    os.symlink("settings.json", lay(tmp_path) + f"/{BASE}")
    with pytest.raises(ConfigError, match=r"^\.ralph/settings\.json: cannot be read: ") as caught:
        load(str(tmp_path))
    assert "ls -l .ralph/settings.json" in caught.value.remedy


def test_all_problems_are_told_at_once_each_with_its_file_or_flag(tmp_path: Path) -> None:
    """Type and range errors name the file the value came from; a flag is named instead."""
    workspace = lay(tmp_path, {"failAfter": -1, "stallAfter": -1}, {"stallAfter": "x", "agent": 5})
    with pytest.raises(ConfigError) as caught:
        load(workspace, {"maxTime": (0.0, "--max-time")})
    assert caught.value.message.splitlines() == [
        f"{BASE}: failAfter: found -1; allowed: a whole number, 0 or more.",
        f"{BASE}: stallAfter: found -1; allowed: a whole number, 0 or more.",
        f'{LOCAL}: stallAfter: found "x"; allowed: a whole number, 0 or more.',
        f"{LOCAL}: agent: found 5; allowed: an object.",
        f"--max-time: found 0.0; {SECONDS}",
    ]
    assert caught.value.remedy.startswith(f"Fix {BASE} and {LOCAL}; ")


def test_a_thousand_problems_are_not_all_told(tmp_path: Path) -> None:
    """Nobody reads them, and looking for suggestions would take minutes."""
    with pytest.raises(ConfigError) as caught:
        load(lay(tmp_path, {f"nonsense{number}": 1 for number in range(1000)}))
    assert len(caught.value.message.splitlines()) == 20


def test_a_wrong_flag_alone(tmp_path: Path) -> None:
    """There is no file to mend."""
    with pytest.raises(ConfigError, match=r'^--model: found "";') as caught:
        load(str(tmp_path), {"agent.model": ("", "--model")})
    assert caught.value.remedy.startswith("Fix the command; ")


@given(st.binary() | st.text().map(str.encode) | st.text('{}[]":,\\ abc01.eE-\n').map(str.encode))
def test_bytes_never_crash_the_parser(raw: bytes) -> None:
    """An object or a ConfigError, whatever the file holds."""
    try:
        document = parse(raw, "settings.json")
    except ConfigError:
        return
    assert isinstance(document, dict)
