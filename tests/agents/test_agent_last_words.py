"""What an agent that does not work, or may not, leaves to people (ADR 5, 9, 15)."""

import stat
from pathlib import Path
from typing import Any

import pytest
from agent_stage import SECRET, Stage, stage

from ralph.kernel.events import Failure
from ralph.kernel.turn import Order
from ralph.text.redact import know

__all__ = ["stage"]


def test_stderr_is_saved_beside_the_stream_without_secrets(stage: Stage) -> None:
    """ADR 9: "`NNN.stderr` beside it its standard error, if there was any"."""
    setup = stage.setup("text", {"text": "Quiet."}, {"text": "Loud.", "stderr": f"key {SECRET}"})
    stage.take(setup)
    assert not list(stage.run_dir.glob("*.stderr"))
    know([SECRET])
    stage.take(setup, Order("do it", 2))
    assert (stage.run_dir / "002.stderr").read_text() == "key [redacted]\n"
    assert stat.S_IMODE((stage.run_dir / "002.stderr").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini", "opencode", "amp", "text"])
def test_a_cli_that_asks_for_a_login_is_refused_its_credential(stage: Stage, kind: str) -> None:
    """ADR 5: "the run ends at once (2) and says what to type (`LOGIN_HINT`)"."""
    setup = stage.setup(kind)
    program = Path(setup.command[0])
    program.write_text("#!/bin/sh\necho 'Invalid API key · Please run /login'\nexit 1\n")
    turn = stage.take(setup)
    assert turn.failure == Failure("Invalid API key · Please run /login", 401)
    assert turn.remedy == setup.cli.login_hint != ""


@pytest.mark.parametrize(
    ("tools", "barred"),
    [
        ([{"name": "Write", "denied": True}], True),
        ([{"name": "Bash", "run": "true"}, {"name": "Write", "denied": True}], True),
        (
            [{"name": "Bash", "run": "sleep 0.05; echo x > new"}, {"name": "W", "denied": True}],
            False,
        ),
        ([{"name": "Bash", "run": "sleep 0.05; rm old"}, {"name": "W", "denied": True}], False),
        ([{"name": "Bash", "run": "false"}], False),
    ],
)
def test_files_tell_whether_a_turn_without_permission_wrote_something(
    stage: Stage, tools: list[Any], barred: bool
) -> None:
    """ADR 15: "no tool that writes came through and no file changed"."""
    (stage.root / "ws" / "old").write_text("x")
    setup = stage.setup("claude", {"tools": tools})
    turn = stage.take(setup)
    assert turn.barred is barred
    assert turn.remedy == (setup.cli.permission_hint if barred else "")
