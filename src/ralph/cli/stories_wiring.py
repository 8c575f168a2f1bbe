"""A run over stories, wired to its workspace (R)."""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ralph.adapters.artifacts_gate import Artifacts
from ralph.adapters.git_ignore import ignore_here, is_ignored
from ralph.adapters.list_gates import StoryListGate
from ralph.adapters.process import Starter
from ralph.adapters.story_desk import StoryDesk
from ralph.adapters.story_file import PRD, PROMPT, StoryBacklog
from ralph.adapters.story_gates import (
    CleanGate,
    InvariantsGate,
    Lists,
    SchemaGate,
    TransitionsGate,
)
from ralph.adapters.story_marker import StoryMarker
from ralph.adapters.story_reviews import ARCHIVES
from ralph.adapters.story_runs import STORE, unjudged
from ralph.adapters.story_store import StoryStore
from ralph.adapters.uncommitted import Corrections, HostCommit, identity, is_repository, uncommitted
from ralph.adapters.world import Workspace
from ralph.cli.agent_hooks import hook_notes
from ralph.cli.permissions import permission_notes
from ralph.cli.planning import Plan
from ralph.cli.stories import estimate, terms_of
from ralph.cli.wiring import AgentReaders, HarnessWiring, SignalSource, wary_patience
from ralph.core.state import NEW, RunState
from ralph.core.turn import Order, Role, Turn
from ralph.core.uncommitted import MARKER
from ralph.core.value import replace, value
from ralph.core.words import listed
from ralph.ports import Agent, Policy, Watch
from ralph.profiles.reviewed import reviewed
from ralph.profiles.shared import Patience

if TYPE_CHECKING:
    from ralph.adapters.git_trees import GitTrees

_MOST_MARKED = 200  # paths in the marker


class StoriesWiring(HarnessWiring):
    """A run over stories in its workspace."""

    def __init__(self, plan: Plan, run_dir: str, state: RunState) -> None:
        assert plan.stories is not None
        assert isinstance(plan.backlog, StoryBacklog)
        super().__init__(plan, run_dir)
        self._is_new = state is NEW
        self._backlog = plan.backlog
        self._terms = terms_of(plan)
        self._left_alone = plan.stories.left_alone
        self._who = identity(plan.workspace, plan.environ) if is_repository(plan.workspace) else {}
        self._commits = self._host_commit()
        own = (PRD, PROMPT)  # an agent that writes its reviewer's prompt reviews itself
        paths = [os.path.join(plan.backlog.shown, name) for name in own]
        self._protector.protect_also([*paths, ARCHIVES])  # nobody archives his own stories
        self._lists = Lists(
            plan.backlog.file, StoryStore(os.path.join(run_dir, STORE)), self._terms
        )
        self._marker = StoryMarker(plan.workspace, self._marked())
        self._desk = StoryDesk(
            self._lists,
            self._marker,
            Corrections(plan.workspace, plan.environ),
            plan.workspace,
            run_dir,
            time.time,
            self._commits,
        )

    def _host_commit(self) -> HostCommit | None:
        """Who commits where the agent cannot."""
        if not self._terms.host_commits:
            return None
        environ = {**self._plan.environ, **self._who}
        return HostCommit(self._plan.workspace, environ, self._left_alone)

    def _marked(self) -> dict[str, object]:
        """R §3: what the marker says in every turn."""
        contained = self._plan.sandbox is not None and self._plan.sandbox.can.contain
        fields: dict[str, object] = {
            "pid": os.getpid(),
            "max_iterations": self._terms.max_iterations,
            "mode": "sandbox" if contained else "direct",
            "skipReview": self._terms.skip_review,
            "reviewCap": self._terms.review_cap,
            "run": os.path.basename(self._run_dir),
        }
        if self._terms.host_commits:
            fields["hostCommits"] = True
        if self._left_alone:
            fields["leftAlone"] = self._left_alone[:_MOST_MARKED]
        shown = self._backlog.shown
        return fields if shown == "ralph" else {**fields, "ralphDir": shown}

    def prepare(self) -> list[str]:
        """Judge what a killed run has left, then say how much there is to do."""
        plan = self._plan
        if is_repository(plan.workspace) and not is_ignored(plan.workspace, MARKER, plan.environ):
            ignore_here(plan.workspace, MARKER, plan.environ)
        notes = super().prepare()
        if self._is_new:
            notes += self._take_over()
        stories = self._plan.backlog().tasks
        return [*notes, estimate(stories, self._terms)] if stories else notes

    def _take_over(self) -> list[str]:
        """A turn that nobody has judged has decided nothing."""
        mine, notes = os.path.basename(self._run_dir), []
        for left in unjudged(self._plan.project, self._backlog.folder, mine):
            done = self._desk.take_over(left.before)
            left.forget()
            words = f"Run {left.run} was killed before its last turn was judged"
            notes.append(f"{words}: what that decided is undone. {done}" if done else f"{words}.")
        return notes

    def notes(self) -> list[str]:
        """Where turns run, and by whom their work is reviewed."""
        plan = self._plan
        notes: list[str] = []
        if plan.reviewer is not None:
            model = f" ({plan.reviewer.model})" if plan.reviewer.model else ""
            notes.append(f"Reviews by {os.path.basename(plan.reviewer.command[0])}{model}")
        notes += [plan.sandbox.words()] if plan.sandbox else []
        notes += [*permission_notes(plan), *hook_notes(plan)]
        dirt = uncommitted(plan.workspace, plan.environ)
        if self._commits is not None:
            notes.append("The agent cannot commit in this sandbox: Ralph commits after each turn")
        if dirt is None:
            notes.append("Not a git repository: nobody checks that the work is committed.")
        elif self._left_alone:
            paths = listed(self._left_alone, 5)
            notes.append(f"Not committed, and yours: {paths}. Nobody is asked to commit that")
        if self._who:
            notes.append("git does not know who you are: commits are by Ralph Loop")
        return notes

    def world(self, attention: SignalSource) -> Workspace:
        """What the engine surveys; a checkpoint is the list as it is."""
        keep = partial(self._lists.store.keep, self._lists.file)
        return replace(super().world(attention), keep=keep)

    def _patience(self) -> Patience:
        return wary_patience(self._plan.loaded)

    def _own_trees(self) -> "GitTrees | None":
        from ralph.adapters.run_trees import trees_of_run

        return trees_of_run(self._plan.workspace, self._plan.environ, self._run_dir)

    def _own_environment(self) -> dict[str, str]:
        return self._who

    def agent(self, readers: AgentReaders, start: Starter) -> Agent:
        """Who takes the turns: for reviews it may be another."""
        work = super().agent(readers, start)
        if self._plan.reviewer is None:
            return work
        return ByRole(work, self._agent_of(self._plan.reviewer, readers, start))

    def _profile(
        self, attention: SignalSource, start: Starter, tell: Callable[[str], None]
    ) -> Policy:
        plan = self._plan
        repository, checks = is_repository(plan.workspace), self._checked_by(attention, start)
        where = (plan.workspace, plan.environ, self._backlog.shown)
        left_alone, secrets = frozenset(self._left_alone), checks.secrets(tell)
        clean = CleanGate(*where, repository, left_alone, self._commits, self._trees)
        law = (SchemaGate(self._lists), InvariantsGate(self._lists), TransitionsGate(self._lists))
        return reviewed(
            self._desk,
            plan.limits,
            self._patience(),
            # What guardrails leave and `protect` puts back is not the agent's to commit. Guardrails
            # may run what it wrote, so the law looks at the list when they are through.
            (*secrets, clean, Artifacts(plan.workspace), *checks.guardrails(), *law),
            self._terms,
            law=(*self._law(), StoryListGate(self._lists, self._desk.put_back)),
        )

    def close(self) -> None:
        """Leave no sandbox open, and no marker."""
        super().close()
        self._marker.remove()


@value
class ByRole:
    """Two agents: one works, the other reviews."""

    work: Agent
    review: Agent

    def take_turn(self, order: Order, watch: Watch) -> Turn:
        """The turn, by whoever it is for."""
        agent = self.review if order.role is Role.REVIEW else self.work
        return agent.take_turn(order, watch)
