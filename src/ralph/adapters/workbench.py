"""The bench on which tasks are settled: status, records, commit, rollback (B §Rollback)."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ralph.adapters.checkpoint import Checkpoint, Work
from ralph.adapters.completion_gate import claimed_evidence, kept_evidence
from ralph.adapters.files import write_atomically
from ralph.adapters.notify import Notify
from ralph.adapters.stamps import timestamp
from ralph.adapters.task_edits import known
from ralph.adapters.task_file import TaskFile
from ralph.adapters.task_records import Records, actions_in
from ralph.core.claims import CompleteClaim, said_failed
from ralph.core.events import AgentEvent
from ralph.core.facts import Began, Ended, Fact, Launching, Settled
from ralph.core.redact import redact
from ralph.core.rules import describe_failure
from ralph.core.state import RunState
from ralph.core.task import Status
from ralph.core.value import value
from ralph.core.verdict import Accept, Continue, Park, Reason, Stop, Verdict
from ralph.core.words import listed
from ralph.errors import ConfigError

_OWN = "task.json"  # in the run's directory: the task under work as it was before the turn
_LONGEST = 2000  # characters of a reason
_OPEN = (Status.PENDING, Status.IN_PROGRESS)


@value
class Tools:
    """What a bench works with."""

    file: TaskFile
    work: Work
    records: Records
    notify: Notify
    project: str  # in the state directory
    run_dir: str
    retries: int = 0  # how often a failed task is tried anew
    now: Callable[[], float] = lambda: 0.0
    tell: Callable[[str], None] = lambda _: None
