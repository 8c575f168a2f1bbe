"""`ralph prd run` as a loop: a run over stories, wired to its workspace (R)."""

import os
import time
from collections.abc import Mapping
from functools import partial

from ralph.gates.artifacts import Artifacts
from ralph.git.ignore import ignore_here, is_ignored
from ralph.git.repository import is_repository
from ralph.git.uncommitted import Corrections, HostCommit, identity, uncommitted
from ralph.git.uncommitted_text import MARKER
from ralph.kernel.ports import Gate, Policy, TodaysRules
from ralph.kernel.state import NEW
from ralph.kernel.value import replace
from ralph.loops.stories.file import PRD, PROMPT, StoryStore
from ralph.loops.stories.gates import CleanGate, Lists, StoryListGate, law_gates
from ralph.loops.stories.past_runs import ARCHIVES, STORE, unjudged
from ralph.loops.stories.plan import (
    StoryWork,
    again,
    ahead,
    folder_of,
    read,
    story_defaults,
    terms_of,
)
from ralph.loops.stories.policy import reviewed
from ralph.loops.stories.prompt import StoryTerms
from ralph.loops.stories.published import publishing_of
from ralph.loops.stories.settlement import StoryDesk, StoryMarker
from ralph.runner.agent_setup import hook_notes, permission_notes
from ralph.runner.plan import InForce, Loop, Plan
from ralph.runner.planning import limits_of, wary_patience
from ralph.runner.wired import RunContext, Wired
from ralph.runner.workplace import Workplace, trees_of
from ralph.settings.load import Loaded
from ralph.text.words import listed

_MOST_MARKED = 200  # paths in the marker


def wire(plan: Plan[StoryWork], run: RunContext) -> Wired:
    terms, patience = terms_of(plan), replace(wary_patience(plan.loaded), roster=plan.roster)
    folder = folder_of(plan.workspace, plan.work.folder)
    marker = StoryMarker(plan.workspace, _marked(plan, run, terms))
    run.cleanup.callback(marker.remove)
    place = Workplace(plan, run, trees_of(plan, run))
    own = [folder.shown(name) for name in (PRD, PROMPT)]
    # Who writes the reviewer's prompt reviews itself; nobody archives the stories at work.
    place.protector.protect_also([*own, ARCHIVES])
    who = identity(plan.workspace, plan.environ) if is_repository(plan.workspace) else {}
    commits = None  # who commits where the agent cannot
    if terms.host_commits:
        commits = HostCommit(plan.workspace, {**plan.environ, **who}, plan.work.left_alone)
    lists = Lists(folder, StoryStore(os.path.join(run.directory, STORE)), terms)
    corrections = Corrections(plan.workspace, plan.environ)
    desk = StoryDesk(lists, marker, corrections, plan.workspace, run.directory, time.time, commits)
    policy = reviewed(
        desk,
        plan.limits,
        patience,
        _gates(place, lists, commits),
        terms,
        law=(*place.law(always=True), StoryListGate(lists, desk.put_back)),
        publishing=publishing_of(place),
    )

    notes = (*_notes(plan, commits, who), *_prepared(place, desk, terms))
    world = place.world(patience, keep=partial(lists.store.keep, folder.file))
    return Wired(place.sandboxed(policy), place.agent(who), world, notes=notes)


def _gates(place: Workplace, lists: Lists, commits: HostCommit | None) -> tuple[Gate, ...]:
    plan = place.plan
    where = (plan.workspace, plan.environ, lists.terms.folder)
    left_alone, repository = frozenset(plan.work.left_alone), is_repository(plan.workspace)
    clean = CleanGate(*where, repository, left_alone, commits, place.trees)
    # What guardrails leave and `protect` puts back is not the agent's to commit. Guardrails may run
    # what it wrote, so the law looks at the list when they are through.
    looks = (*place.secrets(), clean, Artifacts(plan.workspace))
    return (*looks, *place.guardrails(), *law_gates(lists))


def _marked(plan: Plan[StoryWork], run: RunContext, terms: StoryTerms) -> dict[str, object]:
    """R §3: what the marker says in every turn."""
    fields: dict[str, object] = {
        "pid": os.getpid(),
        "max_iterations": terms.max_iterations,
        "mode": "sandbox" if plan.is_contained else "direct",
        "skipReview": terms.skip_review,
        "reviewCap": terms.review_cap,
        "run": run.name,
    }
    if terms.host_commits:
        fields["hostCommits"] = True
    if plan.work.left_alone:
        fields["leftAlone"] = plan.work.left_alone[:_MOST_MARKED]
    return fields if terms.folder == "ralph" else {**fields, "ralphDir": terms.folder}


def _notes(plan: Plan[StoryWork], commits: HostCommit | None, who: Mapping[str, str]) -> list[str]:
    """Notes on where turns run, and who reviews their work."""
    notes: list[str] = []
    if plan.roster.reviewer is not None:
        reviewer = plan.agents[plan.roster.reviewer]
        model = f" ({reviewer.model})" if reviewer.model else ""
        notes.append(f"Reviews by {os.path.basename(reviewer.command[0])}{model}")
    notes += [plan.sandbox.words()] if plan.sandbox else []
    notes += [*permission_notes(plan), *hook_notes(plan)]
    if commits is not None:
        notes.append("The agent cannot commit in this sandbox: Ralph commits after each turn")
    if uncommitted(plan.workspace, plan.environ) is None:
        notes.append("Not a git repository: nobody checks that the work is committed.")
    elif plan.work.left_alone:
        paths = listed(plan.work.left_alone, 5)
        notes.append(f"Not committed, and yours: {paths}. Nobody is asked to commit that")
    if who:
        notes.append("git does not know who you are: commits are by Ralph Loop")
    return notes


def _prepared(place: Workplace, desk: StoryDesk, terms: StoryTerms) -> list[str]:
    """Judge what a killed run has left, then say how much there is to do."""
    plan, run = place.plan, place.run
    if is_repository(plan.workspace) and not is_ignored(plan.workspace, MARKER, plan.environ):
        ignore_here(plan.workspace, MARKER, plan.environ)
    notes = place.prepare()
    if run.before is NEW:  # a turn that nobody has judged has decided nothing
        for left in unjudged(plan.project, plan.work.folder, run.name):
            done = desk.take_over(left.before)
            left.forget()
            words = f"Run {left.run} was killed before its last turn was judged"
            notes.append(f"{words}: what that decided is undone. {done}" if done else f"{words}.")
    stories = plan.backlog().tasks
    return [*notes, *ahead(plan, stories, terms, run)]


def policy(loaded: Loaded) -> Policy:
    """The policy by the settings alone."""
    settings = story_defaults(loaded).settings
    return reviewed(limits=limits_of(settings), patience=wary_patience(loaded))


def rejudges(terms: InForce) -> TodaysRules:
    """The rules that judge a run again."""
    loaded, kept = story_defaults(terms.loaded), terms.kept
    work = StoryWork(**{**kept, "left_alone": tuple(kept["left_alone"])})
    settings, patience = loaded.settings, wary_patience(loaded)
    if work.has_reviewer:
        agents = 1 + len(settings.agent.fallbacks) + (settings.loop.step_down is not None)
        patience = replace(patience, roster=replace(patience.roster, reviewer=agents))
    most = terms.limits.iterations or settings.maximum_iterations
    story_terms = StoryTerms(most, work.cap, work.skip_review)
    return TodaysRules(reviewed(limits=terms.limits, patience=patience, terms=story_terms))


LOOP = Loop(
    read,
    again,
    wire,
    policy,
    first=lambda plan: reviewed(limits=plan.limits, terms=terms_of(plan)),
    none_first=("no story can be started", "Look at them: ralph prd check"),
    about=lambda kept: f"the stories in {kept['folder']}",
    tasks=lambda kept, workspace: folder_of(workspace, kept["folder"]).backlog().tasks,
    commits=True,
    hooks=("stop", "post-tool", "session-start"),
    rejudges=rejudges,
)
