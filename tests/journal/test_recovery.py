"""What is taken for a finished turn after a crash."""

from pathlib import Path

import pytest

from ralph.journal.journal import FileJournal
from ralph.journal.recovery import recover
from ralph.kernel.facts import Began, Ended, Fared, Launching, Sent
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role

STREAM = (
    '{"type":"system","subtype":"init","session_id":"s"}\n'
    '{"type":"result","subtype":"success","is_error":false,"result":"Done."}\n'
)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_whole_stream_is_a_finished_turn_unless_its_files_are_elsewhere(
    tmp_path: Path, *, elsewhere: bool
) -> None:
    """Another machine may still have to push what the turn has changed."""
    stream = tmp_path / "001.stream"
    stream.write_text(STREAM)
    path = str(tmp_path / "journal.jsonl")
    journal = FileJournal(path)
    journal.record(Began(1.0, 1, Assignment("T-1")))
    if elsewhere:
        journal.record(Sent(2.0, 1, "refs/ralph/r/T-1/1", "0" * 40))
        journal.record(Fared(2.5, 1, "placed", "build-7"))
    journal.record(Launching(3.0, Role.WORK, "claude", str(stream)))
    journal.close()
    recovered = recover(path, [None]).recovered
    assert [type(fact) for fact in recovered] == ([] if elsewhere else [Ended])
