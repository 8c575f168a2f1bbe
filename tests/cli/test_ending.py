"""How a command ends: the message, the last line for programs, the exit code."""

import errno
import json
import os
from pathlib import Path
from typing import NoReturn

import pytest

from ralph.cli.ending import ending
from ralph.cli.main import run_command_line
from ralph.errors import ConfigError, RalphError
from ralph.text.redact import know, redact

SECRET = "very-secret-99"


def ended(error: BaseException, last: str = "") -> int:
    def stumble() -> NoReturn:
        raise error

    return ending(stumble, ["run", SECRET], last)


def config_error(*, told: bool) -> RalphError:
    error = ConfigError(f"{SECRET} is no model", f"Not --model {SECRET}")
    error.told = told
    return error


@pytest.mark.parametrize("last", ["", "stop", "error"])
@pytest.mark.parametrize("told", [False, True])
def test_an_error_is_told_once_and_without_a_secret(
    capsys: pytest.CaptureFixture[str], last: str, told: bool
) -> None:
    """A run that has begun has written its own last line (`told`)."""
    know([SECRET])
    assert ended(config_error(told=told), last) == 2
    said = capsys.readouterr()
    assert said.err == "[ralph] [redacted] is no model\n[ralph] Not --model [redacted]\n"
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert [line["type"] for line in lines] == ([last] if last and not told else [])
    assert SECRET not in said.out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.EPIPE, "Broken pipe"), 0),  # whoever reads has seen enough: `| head -1`
        (OSError(errno.ENOSPC, "No space left on device"), 2),
        (OSError(errno.ENOSPC, "No space left on device", "a-file"), 70),
        (OSError(errno.EPIPE, "Broken pipe", "a-file"), 70),
        (RuntimeError("odd"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_what_becomes_of_everything_else(error: BaseException, code: int) -> None:
    assert ended(error) == code


def test_a_report_of_a_bug_is_for_its_owner_and_tells_no_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    know([SECRET])
    assert ended(RuntimeError(SECRET)) == 70
    (report,) = Path(os.environ["RALPH_STATE_DIR"]).glob("bug-*.txt")
    assert report.stat().st_mode & 0o777 == 0o600
    assert "arguments: ['run', '[redacted]']" in report.read_text()
    assert SECRET not in report.read_text() + capsys.readouterr().err


def test_what_the_environment_calls_secret_is_known_from_the_first_word_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    monkeypatch.setenv("OTHER_TOKEN", os.getcwd())  # told again and again: that is no secret
    assert run_command_line(["logs", SECRET]) == 2
    assert SECRET not in capsys.readouterr().err
    assert redact(os.getcwd()) == os.getcwd()
