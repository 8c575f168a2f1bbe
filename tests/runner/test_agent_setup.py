"""The context window that claude states in its stream, told to the hooks of the next turn."""

from pathlib import Path

import pytest

from ralph.agents.turn_files import NumberedFiles
from ralph.kernel.turn import Order, Role
from ralph.runner.agent_setup import WINDOW_VARIABLE, WindowFiling, stated

CAPTURE = Path(__file__).parent.parent / "captures" / "claude" / "stdin-prompt.ndjson"
USED = '"inputTokens":%d,"cacheReadInputTokens":0,"contextWindow":%s'


def test_what_claude_really_says() -> None:
    assert stated(str(CAPTURE)) == 1_000_000


@pytest.mark.parametrize(
    ("result", "window"),
    [
        (f'{{"small":{{{USED % (9, 200)}}},"large":{{{USED % (10, 100)}}}}}', 100),
        ('{"a":{%s}}' % (USED % (9, "null")), 0),
        ('{"a":{%s}}' % (USED % (9, "true")), 0),
        ("{}", 0),
        ('{"a":7}', 0),
        ("[1]", 0),
        ("7,", 0),
    ],
)
def test_the_window_of_the_model_that_read_most(tmp_path: Path, result: str, window: int) -> None:
    stream = tmp_path / "001.stream"
    stream.write_text(f'noise\n{{"type":"result","modelUsage":{result}}}\n')
    assert stated(str(stream)) == window
    assert stated(str(tmp_path / "gone")) == 0


def test_a_turn_is_told_what_the_one_before_has_stated(tmp_path: Path) -> None:
    """The issue: "its window follows the model's stated one"; claude says it when a turn ends."""
    filing = WindowFiling(NumberedFiles(str(tmp_path)))
    first = filing.begin(Order("x", 1))
    assert first.env == {}
    Path(first.stream).write_bytes(CAPTURE.read_bytes())
    message = filing.begin(Order("x", 1, Role.MESSAGE))
    assert message.env == {WINDOW_VARIABLE: "1000000"}
    for number in (2, 3):  # also after one that said nothing
        assert filing.begin(Order("x", number)).env == {WINDOW_VARIABLE: "1000000"}
