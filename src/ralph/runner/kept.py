"""The plan of a run, kept in its directory for `ralph resume`.

To read a plan takes the standard library alone: `ralph-archive.sh` has nothing else.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ralph.errors import ConfigError, RalphError, StateError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import write_atomically, writing_state

if TYPE_CHECKING:
    from ralph.journal.recovery import History
    from ralph.runner.invocation import Invocation
    from ralph.runner.plan import Loop, Past, Plan
    from ralph.settings.load import Loaded

    Changed = tuple[tuple[str, str, str], ...]  # as in Resumed

PLAN = "plan.json"  # in a run's directory
FLEET_NOW = "fleet_now"  # in the flags of an invocation: where the fleet of a run is by now
RAISED = "ralph resume"  # the origin of settings that a person has raised since the run began


def keep_plan(plan: "Plan[Any]", run_dir: str) -> None:
    """Write down what the run is to do, for this user only: it may hold secrets."""
    from ralph.settings.load import said_beside_files

    loaded = plan.loaded
    kept = {
        "loop": plan.loop_name,
        "settings": loaded.merged,
        "said": said_beside_files(loaded),
        "work": plan.work.kept(),
        "branch": asdict(plan.branch) if plan.branch is not None else None,
    }
    with writing_state(run_dir):
        write_atomically(os.path.join(run_dir, PLAN), json.dumps(kept), mode=0o600)


def kept_plan(run_dir: str) -> Mapping[str, Any] | None:
    """The kept plan of a run: its `loop`, its `work`, the name of the `branch` that it made, if it
    did, and the `layers` of its settings; None if that cannot be read."""
    try:
        with open_regular(os.path.join(run_dir, PLAN)) as file:
            kept = json.load(file)
        branch = str((kept.get("branch") or {"name": ""})["name"])
        layers = (kept["settings"], *kept["said"].values())
        work = dict(kept["work"])
        return {"loop": str(kept["loop"]), "work": work, "branch": branch, "layers": layers}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def work_of(run_dir: str, loop: str) -> Mapping[str, Any] | None:
    """The work of a run of that loop; None if it was another loop's, or cannot be read."""
    kept = kept_plan(run_dir)
    return kept["work"] if kept is not None and kept["loop"] == loop else None


def plan_again(
    invocation: "Invocation", past: "Past", raised: Mapping[str, float] = {}
) -> "Plan[Any]":
    """The plan of a run that was begun before: its own prompt and settings, as they were then. Of
    one that had ended or is paused the files are read again, below its flags; over all lie the
    limits that were raised since."""
    from ralph.git.branch import WorkBranch
    from ralph.kernel.value import replace
    from ralph.runner.plan import loop_named

    with _reading(past.directory) as before:
        kept = _moved(before, past, invocation)
        loaded, changed = settings_now(kept, past, invocation.workspace, raised)
        plan = loop_named(kept["loop"]).again(invocation, loaded, kept["work"], past)
        branch = kept["branch"] and WorkBranch(**kept["branch"])
        return replace(plan, raised=tuple(raised.items()), changed=changed, branch=branch)


def _moved(kept: Mapping[str, Any], past: "Past", invocation: "Invocation") -> Mapping[str, Any]:
    """What was kept, with the fleet where somebody says that it is now. A run whose turns are taken
    on this machine takes up no fleet, and none leaves its fleet for that: agents may live there."""
    address = invocation.flags.get(FLEET_NOW)
    if address is None:
        return kept
    before = settings_now(kept, past, invocation.workspace)[0].settings.fleet.address
    here = (None, "none", "local")
    if kept["loop"] != "backlog" or before in here or address in here:
        message = f"run {os.path.basename(past.directory)} stays where its turns are taken"
        where = "this machine" if before in here else f"the fleet at {before}, or where that is now"
        raise ConfigError(message, f"That is {where}. For another place start a new run.")
    return {**kept, "said": {**kept["said"], "--fleet": {"fleet": {"address": address}}}}


def settings_again(past: "Past", workspace: str) -> "tuple[Loaded, Changed]":
    """The settings if the run went on now, and those of them that a person has changed. ConfigError
    for bad ones."""
    with _reading(past.directory) as kept:
        return settings_now(kept, past, workspace)


def settings_now(
    kept: Mapping[str, Any], past: "Past", workspace: str, raised: Mapping[str, float] = {}
) -> "tuple[Loaded, Changed]":
    """The settings with which a run goes on, and how they have changed since it was kept."""
    from ralph.settings.explain import changes
    from ralph.settings.load import combine, file_layers
    from ralph.settings.paths import nested
    from ralph.settings.source import Layer

    said = [Layer(origin, values, is_flag=True) for origin, values in kept["said"].items()]
    given = [
        Layer(RAISED, nested(name.split("."), amount), is_flag=True)
        for name, amount in {**dict(past.state.raised), **raised}.items()
    ]
    then = Layer(f"run {os.path.basename(past.directory)}", kept["settings"])
    was = combine([then, *said, *given])
    files = file_layers(workspace) if past.state.rereads else []
    if not files:
        return was, ()
    # What was assumed gives way to what a person has written meanwhile.
    flags = [layer for layer in said if layer.name.startswith("-")]
    now = combine([*files, *flags, *given])
    return now, changes(was, now)


def loop_of(run_dir: str) -> "tuple[Loop | None, Mapping[str, Any]]":
    """The loop of a run, and what was kept of its work; None where that cannot be read."""
    from ralph.runner.loops import LOOPS
    from ralph.runner.plan import loop_named

    kept = kept_plan(run_dir)
    if kept is None or kept["loop"] not in LOOPS:
        return None, {}
    return loop_named(kept["loop"]), kept["work"]


@contextmanager
def _reading(run_dir: str) -> Iterator[Mapping[str, Any]]:
    """The kept plan of a run; a StateError where it makes no sense."""
    path, run = os.path.join(run_dir, PLAN), os.path.basename(run_dir)
    try:
        with open_regular(path) as file:
            kept = json.load(file)
        yield kept
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else error
        message = f"cannot read what run {run} was to do: {path}: {why}"
        raise StateError(message, "Start a new one: ralph run") from error


def rewired(
    invocation: "Invocation", plan: "Plan[Any]", past: "Past", history: "History"
) -> "tuple[Plan[Any], tuple[str, ...]]":
    """The plan as the settings have it now, and notes. Where they cannot be read any more, though
    whoever resumed the run could, it keeps the plan that it had and stays paused."""
    from ralph.kernel.facts import Asked
    from ralph.kernel.value import replace
    from ralph.kernel.world import RESUME, Origin
    from ralph.processes.signals import SignalFiles

    try:
        again = plan_again(invocation, past)
    except RalphError as error:
        why = error.words
        asked = (fact.request for fact in reversed(history.facts) if isinstance(fact, Asked))
        origin = next((each.origin for each in asked if each.request == RESUME), Origin.CLI)
        with writing_state(past.directory):
            SignalFiles(past.directory).ask(SignalFiles.PAUSE, origin, text=why)
        return replace(plan, raised=(), changed=()), (f"The run stays paused: {why}",)
    keep_plan(again, past.directory)
    return again, ()
