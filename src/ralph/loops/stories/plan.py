"""A run over stories: planned from flags, and kept for `ralph resume` (R)."""

import os
import shlex
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.git.uncommitted import is_repository, uncommitted
from ralph.kernel.case import Case
from ralph.kernel.patience import allowance
from ralph.kernel.state import NEW
from ralph.kernel.tasks.backlog import cycle
from ralph.kernel.tasks.select import next_story, next_unreviewed
from ralph.kernel.tasks.task import Mode, Task
from ralph.kernel.turn import Order
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Boundary
from ralph.loops.stories.file import PROMPT, TASKS, StoryBacklog
from ralph.loops.stories.past_runs import unjudged, worked_since
from ralph.loops.stories.policy import compose
from ralph.loops.stories.prompt import StoryTerms
from ralph.review.law import (
    DEFAULT_CAP,
    NotAListError,
    has_shape,
    inconsistent,
    snapshot,
)
from ralph.review.repair import same_list
from ralph.runner.invocation import AGENT_FLAGS, PLACE_FLAGS, Invocation, flag_overrides
from ralph.runner.plan import DIRECT, Plan, PlanTerms, planned, wary_patience
from ralph.runner.sandboxing import sandboxed
from ralph.settings.load import Loaded, load

_FLAGS = {
    **AGENT_FLAGS,
    **PLACE_FLAGS,
    "--max-iterations": "maximumIterations",
    "--max-time": "maxTime",
    "--max-cost": "maxCost",
}
_ITERATIONS = 15  # R §3, unless someone says otherwise
_INIT = "Make it: ralph prd init"
_CHECK = "Mend it, then look: ralph prd check"


@value
class StoryWork:
    """The stories of a run, and how they are reviewed."""

    folder: str  # the ralph folder
    cap: int = DEFAULT_CAP
    skip_review: bool = False
    review_agent: str | None = None  # a command, where another agent reviews
    review_model: str | None = None
    left_alone: tuple[str, ...] = ()  # what a person had not committed before the run

    def kept(self) -> dict[str, Any]:
        """As JSON, for a run that goes on after a crash; the rest is in the settings."""
        return {
            "folder": self.folder,
            "cap": self.cap,
            "skip_review": self.skip_review,
            "review_agent": self.review_agent,
            "review_model": self.review_model,
            "left_alone": self.left_alone,
        }


def read(invocation: Invocation) -> Plan[StoryWork]:
    """Check everything that can be checked before a run begins; nothing is made."""
    flags = invocation.flags
    work = StoryWork(
        ralph_folder(invocation.workspace, flags["ralph_dir"]),
        flags["review_cap"],
        flags["skip_review"],
        flags["review_agent"],
        flags["review_model"],
        _left_alone(invocation),
    )
    if work.skip_review and (work.review_agent or work.review_model):
        raise ConfigError("--skip-review leaves nothing to review", "Leave out --review-agent.")
    refuse_unusable(invocation.workspace, work)
    _refuse_another_list(invocation, work)
    loaded = load(invocation.workspace, flag_overrides(flags, _FLAGS))
    return _planned(invocation, story_defaults(loaded), work)


def _left_alone(invocation: Invocation) -> tuple[str, ...]:
    """A person's uncommitted paths, but for the stories, which the run is for."""
    folder = ralph_folder(invocation.workspace, invocation.flags["ralph_dir"])
    shown = os.path.join(backlog_of(invocation.workspace, folder).shown, "")
    paths = uncommitted(invocation.workspace, invocation.environ) or ()
    return tuple(path for path in paths if f"/{shown}" not in f"/{path}/")


def again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], run_dir: str
) -> Plan[StoryWork]:
    """The plan of a run that was begun before. A list that a turn has broken is put back. What
    came after it has the last word: its turn may have been judged by now."""
    run, state = os.path.basename(run_dir), os.path.dirname(os.path.dirname(run_dir))
    later = worked_since(state, run, kept["folder"])
    if later:
        message = f"run {run} cannot go on: {later} has worked on the stories since"
        raise ConfigError(message, "Start a new one: ralph prd run")
    work = StoryWork(**{**kept, "left_alone": tuple(kept["left_alone"])})
    return _planned(invocation, story_defaults(loaded), work, heals=True)


def ralph_folder(workspace: str, given: str | None) -> str:
    """The folder of stories; it must be in the project, where the agent works and git looks."""
    folder = os.path.normpath(os.path.join(workspace, given or "ralph"))
    root = os.path.join(os.path.realpath(workspace), "")
    if not os.path.realpath(folder).startswith(root):
        message = f"the ralph folder {folder} lies outside the project {workspace}"
        raise ConfigError(message, "Name one in it: --ralph-dir ./ralph")
    return os.path.realpath(folder)


def backlog_of(workspace: str, folder: str) -> StoryBacklog:
    """The stories in a folder."""
    real = os.path.realpath(folder)
    return StoryBacklog(folder, os.path.relpath(real, os.path.realpath(workspace)))


def refuse_unusable(workspace: str, work: StoryWork) -> None:
    """Refuse what no turn could fix, by the checks of R §5b."""
    backlog = backlog_of(workspace, work.folder)
    for name in (TASKS, PROMPT):
        if not os.path.lexists(os.path.join(work.folder, name)):
            where = os.path.join(backlog.shown, name)
            raise ConfigError(f"there are no stories here: {where} is not there", _INIT)
    found = backlog()
    where = os.path.join(backlog.shown, TASKS)
    if found.problem is not None:
        raise ConfigError(found.problem, _CHECK)
    if not found.tasks:
        plan = "Write some, or in Claude Code: /ralph:ralph-plan"
        raise ConfigError(f"{where}: there are no stories in it", plan)
    if not work.skip_review:
        _refuse_contradictions(backlog, where)
    circle = cycle(task for task in found.tasks if not task.passes)
    if circle:
        way = " → ".join((*circle, circle[0]))
        raise ConfigError(f"{where}: these stories wait for each other: {way}", _CHECK)


def _refuse_another_list(invocation: Invocation, work: StoryWork) -> None:
    """Refuse to judge a killed run's last turn by a list that is another one by now."""
    state = project_dir(state_root(invocation.environ), invocation.workspace)
    listing = backlog_of(invocation.workspace, work.folder).file.listing()
    for left in unjudged(state, work.folder):
        if not has_shape(listing) or not same_list(left.before, listing):
            message = f"run {left.run} was killed before its last turn was judged, and tasks.json"
            raise ConfigError(
                f"{message} is another list by now",
                "Go back to its list, then: ralph resume\n"
                f"Or forget it: rm -r {shlex.quote(left.directory)}",
            )


def _refuse_contradictions(backlog: StoryBacklog, where: str) -> None:
    try:
        listing = backlog.file.listing()
    except NotAListError as error:
        raise ConfigError(f"{where}: {error}", _CHECK) from error
    assert has_shape(listing)
    # A cap that was lowered since the last run is no contradiction.
    highest = max(story["reviewCount"] for story in listing["userStories"])
    for _, words in inconsistent(listing, highest, snapshot(listing)):
        remedy = f"{_CHECK}\nTo work without reviews: --skip-review"
        raise ConfigError(f"{where}: {words}", remedy)


def story_defaults(loaded: Loaded) -> Loaded:
    """R: fifteen iterations, in a sandbox, unless someone says otherwise (ADR 26)."""
    changes: dict[str, Any] = {}
    if loaded.settings.sandbox is None:
        changes["sandbox"] = "auto"
    if loaded.origins.get("maximumIterations") is None:
        changes["maximum_iterations"] = _ITERATIONS
    settings = msgspec.structs.replace(loaded.settings, **changes)
    return msgspec.structs.replace(loaded, settings=settings)


def _planned(
    invocation: Invocation, loaded: Loaded, work: StoryWork, *, heals: bool = False
) -> Plan[StoryWork]:
    backlog = backlog_of(invocation.workspace, work.folder)
    plan = planned(
        "stories", work, invocation, loaded, backlog, terms=PlanTerms(_CHECK, heals=heals)
    )
    plan = replace(plan, briefing=replace(plan.briefing, stories=True))
    if work.skip_review or (work.review_agent is None and work.review_model is None):
        return sandboxed(plan)
    other = _reviewers_settings(loaded, work)
    reviewer = planned(
        "stories", work, invocation, other, backlog, terms=PlanTerms(_CHECK, heals=True)
    )
    return sandboxed(replace(plan, others=(reviewer,)))


def _reviewers_settings(loaded: Loaded, work: StoryWork) -> Loaded:
    agent = loaded.settings.agent
    if work.review_agent is None:
        agent = msgspec.structs.replace(agent, model=work.review_model)
    else:  # what the settings say of the one agent is not meant for the other
        own = {"command": work.review_agent, "kind": None, "flags": (), "prices": None}
        more = {"model": work.review_model, "prompt_via": None}
        agent = msgspec.structs.replace(agent, **own, **more)
    settings = msgspec.structs.replace(loaded.settings, agent=agent)
    return msgspec.structs.replace(loaded, settings=settings)


def terms_of(plan: Plan[StoryWork]) -> StoryTerms:
    """The terms that are the same for every turn."""
    most, work = plan.settings.maximum_iterations, plan.work
    folder = backlog_of(plan.workspace, work.folder).shown
    return StoryTerms(most, work.cap, work.skip_review, _cannot_commit(plan), folder)


def _cannot_commit(plan: Plan[StoryWork]) -> bool:
    """True if the sandbox keeps no commits of the agent: a worktree, and any other where the
    repository lies outside the project (a linked worktree, a subdirectory)."""
    sandbox = plan.sandbox
    if sandbox is None or sandbox.backend == DIRECT or not is_repository(plan.workspace):
        return False
    return sandbox.backend == "worktree" or not os.path.isdir(os.path.join(plan.workspace, ".git"))


def estimate(tasks: tuple[Task, ...], terms: StoryTerms) -> str:
    """R §Open Questions: how many iterations are to be expected, before they are paid for."""
    left = [task for task in tasks if not task.passes]
    each = 1 if terms.skip_review else 3
    begun = 0 if terms.skip_review else sum(task.review is not None for task in left)
    needed = each * len(left) - begun
    words = f"{len(left)} of {len(tasks)} stories left × ~{each} = ~{needed} iterations needed"
    if needed <= terms.max_iterations:
        return f"{words}; the limit is {terms.max_iterations}"
    return f"{words}, more than the limit of {terms.max_iterations}: raise it with -n {needed}"


def first(plan: Plan[StoryWork]) -> tuple[Plan[StoryWork], Order]:
    """The first turn, if there is one."""
    terms = terms_of(plan)
    opening = Case(Boundary.OPENING, NEW, time.time(), backlog=plan.backlog())
    assignment = (next_unreviewed if terms.skip_review else next_story)(opening)
    if assignment is None:
        raise ConfigError("no story can be started", "Look at them: ralph prd check")
    state = replace(NEW, iteration=1, assignment=assignment)
    case = replace(opening, boundary=Boundary.WATCHING, state=state)
    allowed = allowance(plan.limits, wary_patience(plan.loaded))(case)
    by = plan.agents[-1] if assignment.mode is Mode.REVIEW else plan
    return by, Order(compose(terms, case), 1, allowance=allowed)
