"""The plan of a run, kept in its directory for `ralph resume`.

To read a plan takes the standard library alone: `ralph-archive.sh` has nothing else.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ralph.errors import StateError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import write_atomically, writing_state

if TYPE_CHECKING:
    from ralph.runner.invocation import Invocation
    from ralph.runner.plan import LoopWork, Plan

PLAN = "plan.json"  # in a run's directory


def keep_plan(plan: "Plan[LoopWork]", run_dir: str) -> None:
    """Write down what the run is to do, for this user only: it may hold secrets."""
    kept = {"loop": plan.loop_name, "settings": plan.loaded.merged, "work": plan.work.kept()}
    if plan.branch is not None:
        kept["branch"] = asdict(plan.branch)
    with writing_state(run_dir):
        write_atomically(os.path.join(run_dir, PLAN), json.dumps(kept), mode=0o600)


def work_of(run_dir: str, loop: str) -> Mapping[str, Any] | None:
    """The work of a run of that loop; None if it was another loop's, or cannot be read."""
    try:
        with open_regular(os.path.join(run_dir, PLAN)) as file:
            kept = json.load(file)
        return dict(kept["work"]) if kept["loop"] == loop else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def plan_again(invocation: "Invocation", run_dir: str) -> "Plan[LoopWork]":
    """The plan of a run that was begun before: its own settings and prompt, as they were then."""
    from ralph.git.branch import WorkBranch
    from ralph.kernel.value import replace
    from ralph.runner.plan import loop_named
    from ralph.settings.load import combine
    from ralph.settings.source import Layer

    path, run = os.path.join(run_dir, PLAN), os.path.basename(run_dir)
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        loaded = combine([Layer(f"run {run}", kept["settings"])])
        plan = loop_named(kept["loop"]).again(invocation, loaded, kept["work"], run_dir)
        if branch := kept.get("branch"):
            plan = replace(plan, branch=WorkBranch(**branch))
        return plan
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else error
        message = f"cannot read what run {run} was to do: {path}: {why}"
        raise StateError(message, "Start a new one: ralph run") from error
