"""A `ralph` that is killed at a chosen moment."""

import sys

PYTHON = (sys.executable, "-m", "ralph")
HANDS = 24  # to which the moments of a run are dealt
# Kills itself at the n-th record of its journal, before it is kept or after.
KILLED = """
import os, sys
from ralph.journal.journal import FileJournal
from ralph.cli.main import run_command_line
when, number, *arguments = sys.argv[1:]
keep, count = FileJournal.record, 0
def record(journal, fact):
    global count
    count += 1
    if when == "before" and count == int(number):
        os.kill(os.getpid(), 9)
    keep(journal, fact)
    if when == "after" and count == int(number):
        os.kill(os.getpid(), 9)
FileJournal.record = record
sys.exit(run_command_line(arguments))
"""


def moments(records: int) -> list[tuple[str, int]]:
    """Before and after every record of a journal; before the first there is nothing to go on
    with."""
    every = [(when, number + 1) for number in range(records) for when in ("before", "after")]
    return every[1:]
