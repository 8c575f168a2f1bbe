"""A run over stories, wired to its workspace (R)."""

import os
import time
from collections.abc import Mapping
from functools import partial

from ralph.gates.artifacts import Artifacts
from ralph.git.ignore import ignore_here, is_ignored
from ralph.git.uncommitted import Corrections, HostCommit, identity, is_repository, uncommitted
from ralph.git.uncommitted_text import MARKER
from ralph.kernel.ports import Agent, Gate, Watch
from ralph.kernel.state import NEW
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.value import value
from ralph.loops.stories.file import PRD, PROMPT
from ralph.loops.stories.gates import (
    CleanGate,
    InvariantsGate,
    Lists,
    SchemaGate,
    StoryListGate,
    TransitionsGate,
)
from ralph.loops.stories.marker_file import StoryMarker
from ralph.loops.stories.memory_store import StoryStore
from ralph.loops.stories.past_reviews import ARCHIVES
from ralph.loops.stories.past_runs import STORE, unjudged
from ralph.loops.stories.plan import StoryWork, backlog_of, estimate, terms_of
from ralph.loops.stories.policy import reviewed
from ralph.loops.stories.prompt import StoryTerms
from ralph.loops.stories.settlement import StoryDesk
from ralph.runner.agent_hooks import hook_notes
from ralph.runner.permissions import permission_notes
from ralph.runner.plan import Plan, wary_patience
from ralph.runner.wired import AgentReaders, RunContext, Wired
from ralph.runner.workplace import Workplace, trees_of, workplace
from ralph.text.words import listed

_MOST_MARKED = 200  # paths in the marker


def wire(plan: Plan[StoryWork], run: RunContext) -> Wired:
    """A run over stories in its workspace."""
    terms, patience = terms_of(plan), wary_patience(plan.loaded)
    backlog = backlog_of(plan.workspace, plan.work.folder)
    marker = StoryMarker(plan.workspace, _marked(plan, run, terms))
    run.cleanup.callback(marker.remove)
    place = workplace(plan, run, trees_of(plan, run))
    own = [os.path.join(backlog.shown, name) for name in (PRD, PROMPT)]
    # Who writes the reviewer's prompt reviews itself; nobody archives the stories at work.
    place.protector.protect_also([*own, ARCHIVES])
    who = identity(plan.workspace, plan.environ) if is_repository(plan.workspace) else {}
    commits = None  # who commits where the agent cannot
    if terms.host_commits:
        commits = HostCommit(plan.workspace, {**plan.environ, **who}, plan.work.left_alone)
    lists = Lists(backlog.file, StoryStore(os.path.join(run.directory, STORE)), terms)
    corrections = Corrections(plan.workspace, plan.environ)
    desk = StoryDesk(lists, marker, corrections, plan.workspace, run.directory, time.time, commits)
    policy = reviewed(
        desk,
        plan.limits,
        patience,
        _gates(place, lists, commits),
        terms,
        law=(*place.law(always=True), StoryListGate(lists, desk.put_back)),
    )

    def agent(readers: AgentReaders) -> Agent:
        work = place.agent(readers, env=who)
        return ByRole(work, place.agent(readers, plan.others[0], who)) if plan.others else work

    return Wired(
        place.sandboxed(policy),
        agent,
        place.world(patience, keep=partial(lists.store.keep, lists.file)),
        notes=(*_notes(plan, commits, who), *_prepared(place, desk, terms)),
    )


def _gates(place: Workplace, lists: Lists, commits: HostCommit | None) -> tuple[Gate, ...]:
    plan, checks = place.plan, place.checks
    where = (plan.workspace, plan.environ, lists.terms.folder)
    left_alone, repository = frozenset(plan.work.left_alone), is_repository(plan.workspace)
    clean = CleanGate(*where, repository, left_alone, commits, place.trees)
    law = (SchemaGate(lists), InvariantsGate(lists), TransitionsGate(lists))
    # What guardrails leave and `protect` puts back is not the agent's to commit. Guardrails may run
    # what it wrote, so the law looks at the list when they are through.
    looks = (*checks.secrets(place.run.tell), clean, Artifacts(plan.workspace))
    return (*looks, *checks.guardrails(), *law)


def _marked(plan: Plan[StoryWork], run: RunContext, terms: StoryTerms) -> dict[str, object]:
    """R §3: what the marker says in every turn."""
    contained = plan.sandbox is not None and plan.sandbox.can.contain
    fields: dict[str, object] = {
        "pid": os.getpid(),
        "max_iterations": terms.max_iterations,
        "mode": "sandbox" if contained else "direct",
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
    for reviewer in plan.others:
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
    return [*notes, estimate(stories, terms)] if stories else notes


@value
class ByRole:
    """Two agents: one works, the other reviews."""

    work: Agent
    review: Agent

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        """The turn, by whoever it is for."""
        agent = self.review if order.role is Role.REVIEW else self.work
        return agent.take_turn(order, watch)
