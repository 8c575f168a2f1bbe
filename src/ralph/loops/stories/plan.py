"""A run over stories: planned from flags, and kept for `ralph resume` (R)."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.git.repository import is_repository
from ralph.git.uncommitted import uncommitted
from ralph.kernel.tasks.task import Task, cycle
from ralph.kernel.value import replace, value
from ralph.loops.stories.file import PROMPT, TASKS
from ralph.loops.stories.folder import Folder
from ralph.loops.stories.past_runs import unjudged, worked_since
from ralph.loops.stories.prompt import StoryTerms
from ralph.review.law import DEFAULT_CAP, inconsistent, snapshot
from ralph.review.repair import same_list
from ralph.runner.invocation import AGENT_FLAGS, PLACE_FLAGS, Invocation, flag_overrides
from ralph.runner.plan import DIRECT, Past, Plan
from ralph.runner.planning import PlanTerms, planned, sandboxed, with_fallbacks
from ralph.runner.showing.forecasts import first_words
from ralph.runner.wired import RunContext
from ralph.settings.load import Loaded, load

_FLAGS = {
    **AGENT_FLAGS,
    **PLACE_FLAGS,
    "--max-iterations": "maximumIterations",
    "--max-time": "maxTime",
    "--max-cost": "maxCost",
}
_ITERATIONS = 15  # R §3, unless someone says otherwise
_CHECK = "Fix it, then look: ralph prd check"


@value
class StoryWork:
    """The stories of a run, and how they are reviewed."""

    folder: str  # the ralph folder
    cap: int = DEFAULT_CAP
    skip_review: bool = False
    review_agent: str | None = None  # a command, where another agent reviews
    review_model: str | None = None
    left_alone: tuple[str, ...] = ()  # uncommitted before the run, but for the stories

    @property
    def has_reviewer(self) -> bool:
        """True if another agent or model than the one that works reviews."""
        return not self.skip_review and (self.review_agent or self.review_model) is not None

    def kept(self) -> dict[str, Any]:
        """As JSON, for a run that goes on after a crash; the rest is in the settings."""
        return asdict(self)


def read(invocation: Invocation) -> Plan[StoryWork]:
    """Check everything that can be checked before a run begins; nothing is made."""
    flags, workspace = invocation.flags, invocation.workspace
    folder = os.path.realpath(os.path.join(workspace, flags["ralph_dir"] or "ralph"))
    if not folder.startswith(os.path.join(os.path.realpath(workspace), "")):
        message = f"the ralph folder {folder} lies outside the project {workspace}"
        raise ConfigError(message, "Name one in it: --ralph-dir ./ralph")
    stories = folder_of(workspace, folder)
    yours = uncommitted(workspace, invocation.environ) or ()
    work = StoryWork(
        folder,
        flags["review_cap"],
        flags["skip_review"],
        flags["review_agent"],
        flags["review_model"],
        tuple(path for path in yours if f"/{stories.shown('')}/" not in f"/{path}/"),
    )
    if work.skip_review and (work.review_agent or work.review_model):
        raise ConfigError("--skip-review leaves nothing to review", "Leave out --review-agent.")
    if type(work.cap) is not int or work.cap < 1:  # of a program: the command line has looked
        raise ConfigError(f"review_cap is {work.cap!r}", "Give a whole number, 1 or more.")
    _refuse_unusable(stories, work)
    _refuse_another_list(invocation, stories)
    loaded = load(workspace, flag_overrides(flags, _FLAGS))
    if loaded.settings.pr.mode == "per-task":
        message = "--pr per-task: each story stands on those before it"
        raise ConfigError(message, "Take: --pr stacked, or: --pr per-run")
    return _planned(invocation, story_defaults(loaded), work)


def again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], past: Past
) -> Plan[StoryWork]:
    """The plan of a run that was begun before. A list that a turn has broken is put back. What
    came after it has the last word: its turn may have been judged by now."""
    run = os.path.basename(past.directory)
    state = os.path.dirname(os.path.dirname(past.directory))
    later = worked_since(state, run, kept["folder"])
    if later:
        message = f"run {run} cannot go on: {later} has worked on the stories since"
        raise ConfigError(message, "Start a new one: ralph prd run")
    work = StoryWork(**{**kept, "left_alone": tuple(kept["left_alone"])})
    return _planned(invocation, story_defaults(loaded), work, heals=True)


def folder_of(workspace: str, path: str) -> Folder:
    """The folder of a run's stories, which has to stay the one it is."""
    return Folder(os.path.realpath(workspace), path, home=path)


def _refuse_unusable(stories: Folder, work: StoryWork) -> None:
    """Refuse what no turn could fix, by the checks of R §5b."""
    for name in (TASKS, PROMPT):
        if not os.path.lexists(stories.of(name)):
            message = f"there are no stories here: {stories.shown(name)} is not there"
            raise ConfigError(message, "Make it: ralph prd init")
    found, where = stories.backlog(), stories.shown(TASKS)
    if found.problem is not None:
        raise ConfigError(found.problem, _CHECK)
    if not found.tasks:
        plan = "Write some, or in Claude Code: /ralph:ralph-plan"
        raise ConfigError(f"{where}: there are no stories in it", plan)
    if not work.skip_review:
        listing = stories.listing()
        # A cap that was lowered since the last run is no contradiction.
        highest = max(story["reviewCount"] for story in listing["userStories"])
        for _, words in inconsistent(listing, highest, snapshot(listing)):
            remedy = f"{_CHECK}\nTo work without reviews: --skip-review"
            raise ConfigError(f"{where}: {words}", remedy)
    if circle := cycle(task for task in found.tasks if not task.passes):
        way = " → ".join((*circle, circle[0]))
        raise ConfigError(f"{where}: these stories wait for each other: {way}", _CHECK)


def _refuse_another_list(invocation: Invocation, stories: Folder) -> None:
    """Refuse to judge a killed run's last turn by a list that is another one by now."""
    state = project_dir(state_root(invocation.environ), invocation.workspace)
    for left in unjudged(state, stories.path):
        if not same_list(left.before, stories.listing()):
            raise ConfigError(
                f"run {left.run} was killed before its last turn was judged, and tasks.json is "
                "another list by now",
                "Go back to its list, then: ralph resume\n"
                f"Or forget it: rm -r {shlex.quote(left.directory)}",
            )


def story_defaults(loaded: Loaded) -> Loaded:
    """R: fifteen iterations, in a sandbox, unless someone says otherwise (ADR 26)."""
    settings = loaded.settings
    if settings.sandbox is None:
        settings = msgspec.structs.replace(settings, sandbox="auto")
    if loaded.origins.get("maximumIterations") is None:
        settings = msgspec.structs.replace(settings, maximum_iterations=_ITERATIONS)
    return msgspec.structs.replace(loaded, settings=settings)


def _planned(
    invocation: Invocation, loaded: Loaded, work: StoryWork, *, heals: bool = False
) -> Plan[StoryWork]:
    backlog = folder_of(invocation.workspace, work.folder).backlog
    plan = planned(
        "stories", work, invocation, loaded, backlog, terms=PlanTerms(_CHECK, heals=heals)
    )
    plan = with_fallbacks(plan, invocation, PlanTerms(_CHECK))
    plan = replace(plan, briefing=replace(plan.briefing, stories=True))
    if not work.has_reviewer:
        return sandboxed(plan)
    other = _reviewers_settings(loaded, work)
    reviewer = planned(
        "stories", work, invocation, other, backlog, terms=PlanTerms(_CHECK, heals=True)
    )
    roster = replace(plan.roster, reviewer=len(plan.agents))
    return sandboxed(replace(plan, others=(*plan.others, reviewer), roster=roster))


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
    folder = folder_of(plan.workspace, work.folder).shown("")
    return StoryTerms(most, work.cap, work.skip_review, _cannot_commit(plan), folder)


def _cannot_commit(plan: Plan[StoryWork]) -> bool:
    """True if the sandbox keeps no commits of the agent: a worktree, and any other where the
    repository lies outside the project (a linked worktree, a subdirectory)."""
    sandbox = plan.sandbox
    if sandbox is None or sandbox.backend == DIRECT or not is_repository(plan.workspace):
        return False
    return sandbox.backend == "worktree" or not os.path.isdir(os.path.join(plan.workspace, ".git"))


def ahead(
    plan: Plan[StoryWork], stories: tuple[Task, ...], terms: StoryTerms, run: RunContext
) -> list[str]:
    """What is ahead of a run: by its list, and by earlier runs where there were enough."""
    notes = [estimate(stories, terms)] if stories else []
    return [*notes, *first_words(plan, run.name, run.before)]


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
