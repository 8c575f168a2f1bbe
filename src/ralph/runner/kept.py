"""The plan of a run, kept in its directory for `ralph resume`."""

import json
import os
from collections.abc import Mapping
from typing import Any

from ralph.errors import StateError
from ralph.files.state_dir import unwritable_state, write_atomically
from ralph.runner.invocation import Invocation
from ralph.runner.plan import LoopWork, Plan, loop_named
from ralph.settings.load import combine
from ralph.settings.source import Layer

PLAN = "plan.json"  # in a run's directory


def keep_plan(plan: Plan[LoopWork], run_dir: str) -> None:
    """Write down what the run is to do, for this user only: it may hold secrets."""
    kept = {"loop": plan.loop_name, "settings": plan.loaded.merged, "work": plan.work.kept()}
    try:
        write_atomically(os.path.join(run_dir, PLAN), json.dumps(kept), mode=0o600)
    except OSError as error:
        raise unwritable_state(run_dir, error) from error


def kept_work(run_dir: str, loop: str) -> Mapping[str, Any] | None:
    """The work of a run of that loop; None if it was another loop's, or cannot be read."""
    try:
        with open(os.path.join(run_dir, PLAN), encoding="utf-8") as file:
            kept = json.load(file)
        return dict(kept["work"]) if kept["loop"] == loop else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def plan_again(invocation: Invocation, run_dir: str) -> Plan[LoopWork]:
    """The plan of a run that was begun before: its own settings and prompt, as they were then."""
    path, run = os.path.join(run_dir, PLAN), os.path.basename(run_dir)
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        loaded = combine([Layer(f"run {run}", kept["settings"])])
        return loop_named(kept["loop"]).again(invocation, loaded, kept["work"], run_dir)
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"cannot read what run {run} was to do: {path}: {error}"
        raise StateError(message, "Start a new one: ralph run") from error
