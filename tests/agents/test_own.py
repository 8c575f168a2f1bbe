"""Ralph's own agent as a command: what names it, how it is called, and what it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ralph
from ralph.agents.clis import CLIS, Request
from ralph.agents.kinds import find_command, installed, misspelt
from ralph.agents.own import own_model, own_words, program
from ralph.errors import ConfigError

NOWHERE = {"PATH": "/nowhere"}
KEY = {**NOWHERE, "GEMINI_API_KEY": "k"}
LOCAL = {"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ralph-agent", ("ralph-agent",)),
        ("builtin", ("ralph-agent",)),
        ("builtin:openai:gpt-x", ("ralph-agent", "--model", "openai:gpt-x")),
        ("builtin:openai-chat:a/b:free", ("ralph-agent", "--model", "openai-chat:a/b:free")),
        ("builtin --max-steps 5", ("ralph-agent", "--max-steps", "5")),
        (
            "builtin:google:g --max-steps 5",
            ("ralph-agent", "--model", "google:g", "--max-steps", "5"),
        ),
        ("builtins", ()),
        ("ralph-agent.sh", ()),
        ("./ralph-agent", ()),
        ("builtin 'half", ()),
        ("claude", ()),
        ("", ()),
        (None, ("ralph-agent", "--model", "google:gemini-3.8-flash")),
    ],
)
def test_what_names_it(command: str | None, words: tuple[str, ...]) -> None:
    assert own_words(command, KEY) == words


def test_nothing_on_path_is_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "ralph-agent"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    environ = {"PATH": str(tmp_path)}
    assert find_command("ralph-agent", environ) == ("ralph-agent",)
    assert CLIS["ralph-agent"].launch(Request(("ralph-agent",), "x")).argv[0] == sys.executable
    assert installed(None, environ) == ()
    assert find_command(str(path), environ) == (str(path),), "a path is called as it is"
    assert CLIS["ralph-agent"].launch(Request((str(path),), "x")).argv[0] == str(path)


@pytest.mark.parametrize("model", ["gpt-5", "opus", "openai:", "nosuch:x", ""])
def test_a_bad_model_is_refused_with_how_to_write_one(model: str) -> None:
    with pytest.raises(ConfigError, match="names no model") as caught:
        find_command(f"builtin:{model}", KEY)
    assert "anthropic:NAME" in caught.value.remedy


@pytest.mark.parametrize(
    ("asked", "environ", "model"),
    [
        (None, {"ANTHROPIC_AUTH_TOKEN": "t", "OPENAI_API_KEY": "k"}, "anthropic:claude-sonnet-5-5"),
        (None, {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "g"}, "openai:gpt-6.1-sol"),
        ("google:g", {"GOOGLE_API_KEY": "k"}, "google:g"),
        ("openai-chat:llama", LOCAL, "openai-chat:llama"),
    ],
)
def test_the_model_follows_from_what_is_asked_or_from_the_keys(
    asked: str | None, environ: dict[str, str], model: str
) -> None:
    assert str(own_model(asked, environ)) == model


@pytest.mark.parametrize(
    ("asked", "environ", "message", "remedy"),
    [
        (None, {}, "none of ANTHROPIC_API_KEY, ", "export ANTHROPIC_API_KEY=..."),
        (None, LOCAL, "needs the key of a model", "--agent builtin:openai-chat:NAME"),
        ("openai:m", {"GEMINI_API_KEY": "g"}, "OPENAI_API_KEY is not set", "OPENAI_BASE_URL=http"),
        ("openai:m", {"OPENAI_API_KEY": ""}, "OPENAI_API_KEY is not set", "OPENAI_API_KEY=..."),
        ("opus", {"ANTHROPIC_API_KEY": "k"}, "'opus' names no model", "anthropic:NAME"),
        (
            "openai:m",
            {"OPENAI_BASE_URL": "localhost:1"},
            "is no URL of HTTP",
            "Write http://HOST...",
        ),
    ],
)
def test_what_nobody_pays_for_is_refused_by_name(
    asked: str | None, environ: dict[str, str], message: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        own_model(asked, environ)
    assert message in caught.value.message
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "--output json -p PROMPT"),
        ({"stream": False}, "--output text -p PROMPT"),
        ({"tools": False, "flags": ("--tools",)}, "--tools --no-tools --output json -p PROMPT"),
        (
            {"flags": ("--max-steps", "9"), "model": "google:g"},
            "--max-steps 9 --model google:g --output json -p PROMPT",
        ),
        ({"prompt_via": "stdin"}, "--output json"),
    ],
)
def test_how_it_is_called(more: dict[str, object], words: str) -> None:
    request = Request(("ralph-agent", "--model", "openai:m"), "do it", **more)  # type: ignore[arg-type]
    argv = CLIS["ralph-agent"].launch(request).argv
    assert argv[: len(program())] == program()
    expected = ["do it" if word == "PROMPT" else word for word in words.split()]
    assert [*argv[len(program()) :]] == ["--model", "openai:m", *expected]


def test_it_imports_nothing_of_the_directory_it_works_in(tmp_path: Path) -> None:
    """A workspace may be hostile, also where PYTHONPATH leads into it."""
    (tmp_path / "ralph").mkdir()
    for name in ("json.py", "msgspec.py", "sitecustomize.py", "ralph/__init__.py"):
        (tmp_path / name).write_text("import os\nos._exit(99)\n")
    environ = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PYTHONSTARTUP": str(tmp_path / "json.py"),
    }
    done = subprocess.run(
        (*program(), "--help"), cwd=tmp_path, env=environ, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout[:18]) == (0, b"Usage: ralph agent")


def test_it_is_this_ralph_and_not_another_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ralph").mkdir()
    (tmp_path / "ralph" / "__init__.py").touch()
    (tmp_path / "ralph" / "__main__.py").write_text("def main():\n    print('this one')\n")
    (tmp_path / "json.py").write_text("1 / 0\n")  # Python's own come first
    monkeypatch.setattr(ralph, "__file__", str(tmp_path / "ralph" / "__init__.py"))
    call = (*program()[:3], f"{program()[3]}\nimport json")
    assert subprocess.run(call, capture_output=True, check=True).stdout == b"this one\n"


def test_a_misspelt_one_is_told_the_nearest() -> None:
    assert misspelt("builtn", NOWHERE) == "builtin"
    assert misspelt("ralph-agnt", NOWHERE) == "ralph-agent"
    assert (misspelt("builtin", NOWHERE), misspelt("builtin:openai:m", NOWHERE)) == ("", "")
