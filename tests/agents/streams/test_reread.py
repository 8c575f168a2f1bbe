"""A stored stream is read again: what only the stream tells is new, all else is as it was."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from ralph.agents.streams.collect import Collector
from ralph.agents.streams.dialects import DIALECTS, parser_for
from ralph.agents.streams.reread import read_otherwise, reread
from ralph.kernel.claims import Claim
from ralph.kernel.events import Failure, Usage
from ralph.kernel.turn import Ending, Turn

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
CASES = sorted(
    path for name in DIALECTS for path in (CAPTURES / name).glob("*.ndjson") if path.stat().st_size
)


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def said(*words: str) -> Iterable[bytes]:
    """A stream of claude's."""
    for text in words:
        content = [{"type": "text", "text": text}]
        yield line(type="assistant", message={"role": "assistant", "content": content})
    yield line(type="result", subtype="success", is_error=False, result=words[-1], usage={})


@pytest.mark.parametrize("path", CASES, ids=[f"{p.parent.name}/{p.stem}" for p in CASES])
def test_a_real_stream_is_the_same_again(path: Path) -> None:
    data, dialect = path.read_bytes(), path.parent.name
    parser, collector = parser_for(dialect), Collector()
    collector.add([*parser.feed(data), *parser.end()])
    turn = collector.turn(has_result=parser.has_result)
    turn = replace(turn, unknown=turn.unknown + parser.lines.dropped, exit_code=0)
    again, events = reread(turn, dialect, "", [data[:100], data[100:]])
    assert [name for name, *_ in read_otherwise(turn, again)] in ([], ["failure"])
    assert events > 0


def test_what_the_process_told_is_kept() -> None:
    turn = Turn(Ending.CUT, None, "timed out", stderr="boom", seconds=3.0, place=1, agent="a")
    again, _ = reread(turn, "claude", "", said("Well. <response>DONE</response>"))
    claims = (Claim("<response>DONE</response>"),)
    assert again == replace(turn, claims=claims, text="Well. <response>DONE</response>")
    assert [*read_otherwise(turn, again)] == [
        ("claims", (), claims),
        ("text", "", "Well. <response>DONE</response>"),
    ]


def test_the_price_of_tokens_is_as_it_was() -> None:
    """Prices are of then; a cost that the stream tells itself is read."""
    usage = {"input_tokens": 5, "output_tokens": 7}
    stream = [line(type="result", subtype="success", is_error=False, result="x", usage=usage)]
    turn = Turn(cost_usd=0.25, usage=Usage(5, 7))
    assert reread(turn, "claude", "", stream)[0].cost_usd == 0.25
    assert reread(replace(turn, usage=Usage(1)), "claude", "", stream)[0].cost_usd is None


def test_who_asks_for_a_login_is_refused() -> None:
    turn = Turn(exit_code=1, failure=Failure("Please run /login", 401))
    stream = [line(type="result", subtype="success", is_error=True, result="Please run /login")]
    assert reread(turn, "claude", "", stream)[0].failure == Failure("Please run /login", 401)


def test_where_a_permission_was_denied_files_told_what_was_written() -> None:
    denied = [{"tool_name": "Bash"}]
    stream = [
        line(type="result", subtype="success", is_error=False, result="", permission_denials=denied)
    ]
    turn = Turn(denied=("Bash",), wrote=True)
    assert reread(turn, "claude", "", stream)[0].wrote
