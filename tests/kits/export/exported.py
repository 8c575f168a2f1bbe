"""A stored run, or another source, in every format, read strictly."""

import json
from pathlib import Path

import pytest

from kits.export import traces, trajectories
from kits.export.stored import Stored
from ralph.export.atif import write_atif
from ralph.export.otlp import spans_of
from ralph.export.reading import Journal, Source
from ralph.export.sending import write_trace
from ralph.export.whole import write_whole


def atif(stored: Stored | Source) -> trajectories.Trajectory:
    told: list[str] = []
    write_atif(_source(stored), told.append)
    return trajectories.trajectory("".join(told))


def otlp(stored: Stored | Source, *, content: bool = False) -> list[traces.Span]:
    told: list[str] = []
    write_trace(spans_of(_source(stored), content=content), {}, told.append)
    spans = traces.request("".join(told)).spans
    traces.tree(spans)
    return spans


def whole(stored: Stored | Source) -> dict[str, object]:
    told: list[str] = []
    write_whole(_source(stored), told.append)
    found = json.loads("".join(told))
    assert isinstance(found, dict)
    return found


def _source(stored: Stored | Source) -> Source:
    return Journal(stored.run) if isinstance(stored, Stored) else stored


def assert_sums(stored: Stored) -> None:
    """All three say what the ledger says."""
    found, spans, totals = atif(stored), otlp(stored), whole(stored)["totals"]
    assert isinstance(totals, dict)
    expected = pytest.approx(stored.spent)
    assert trajectories.final(found) == expected
    assert trajectories.sums(found) == expected
    assert traces.sums(spans) == expected
    usage = stored.ledger.usage
    assert totals["usage"] == {
        "type": "usage",
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    }
    assert (totals["cost_usd"] or 0.0) == pytest.approx(stored.ledger.cost_usd)
    run = next(span.told for span in spans if not span.parentSpanId)
    turns = (stored.ledger.turns, stored.ledger.unknown)
    more = found.final_metrics.extra if found.final_metrics else None
    assert more
    assert (totals["turns"], totals["turns_of_unknown_cost"]) == turns
    assert (more["turns"], more["turns_of_unknown_cost"]) == turns
    assert (run["ralph.turns"], run["ralph.turns_of_unknown_cost"]) == turns


def write_all(stored: Stored, place: Path) -> tuple[Path, Path]:
    """A trajectory and a trace, as files."""
    files = place / "run.atif", place / "run.otlp"
    with files[0].open("w") as file:
        write_atif(Journal(stored.run), file.write)
    with files[1].open("w") as file:
        write_trace(spans_of(Journal(stored.run), content=True), {}, file.write)
    return files
