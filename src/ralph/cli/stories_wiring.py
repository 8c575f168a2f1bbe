"""A run over stories, wired to its workspace (R)."""

import os
import time
from collections.abc import Callable

from ralph.adapters.process import Starter
from ralph.adapters.story_desk import Desk
from ralph.adapters.story_file import PRD, PROMPT, StoryBacklog
from ralph.adapters.story_gates import (
    CleanGate,
    InvariantsGate,
    Lists,
    SchemaGate,
    TransitionsGate,
)
from ralph.adapters.story_marker import StoryMarker
from ralph.adapters.story_store import StoryStore
from ralph.adapters.uncommitted import Corrections, uncommitted
from ralph.adapters.world import Workspace
from ralph.cli.planning import Plan
from ralph.cli.stories import estimate, story_patience, terms_of
from ralph.cli.wiring import AgentReaders, HarnessWiring, SignalSource
from ralph.core.turn import Order, Role, Turn
from ralph.core.value import replace, value
from ralph.ports import Agent, Policy, Watch
from ralph.profiles.reviewed import reviewed


class StoriesWiring(HarnessWiring):
    """A run over stories in its workspace."""

    def __init__(self, plan: Plan, run_dir: str) -> None:
        assert plan.stories is not None
        assert isinstance(plan.backlog, StoryBacklog)
        super().__init__(plan, run_dir)
        self._backlog = plan.backlog
        self._terms = terms_of(plan)
        own = (PRD, PROMPT)  # an agent that writes its reviewer's prompt reviews itself
        self._protector.protect_also([os.path.join(plan.backlog.shown, name) for name in own])
        self._lists = Lists(
            plan.backlog.file, StoryStore(os.path.join(run_dir, "stories")), self._terms
        )
        self._marker = StoryMarker(plan.workspace, self._marked())

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
        shown = self._backlog.shown
        return fields if shown == "ralph" else {**fields, "ralphDir": shown}

    def notes(self) -> list[str]:
        """What is to be done, where, and by whom it is reviewed."""
        plan = self._plan
        stories = plan.backlog().tasks
        notes = [estimate(stories, self._terms)] if stories else []
        if plan.reviewer is not None:
            model = f" ({plan.reviewer.model})" if plan.reviewer.model else ""
            notes.append(f"Reviews by {os.path.basename(plan.reviewer.command[0])}{model}")
        notes += [plan.sandbox.words()] if plan.sandbox else []
        if uncommitted(plan.workspace, plan.environ) is None:
            notes.append("Not a git repository: nobody checks that the work is committed.")
        return notes

    def world(self, attention: SignalSource) -> Workspace:
        """What the engine surveys; a checkpoint is the list as it is."""
        from ralph.adapters.git import TreeDigest

        world = super().world(attention)
        if story_patience(self._plan.loaded).stall_after:
            world = replace(world, progress=TreeDigest(self._plan.workspace, self._plan.environ))
        return replace(world, keep=lambda: self._lists.store.keep(self._lists.file))

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
        clean = CleanGate(plan.workspace, plan.environ, self._backlog.shown)
        law = (SchemaGate(self._lists), InvariantsGate(self._lists), TransitionsGate(self._lists))
        desk = Desk(
            self._lists,
            self._marker,
            Corrections(plan.workspace, plan.environ),
            plan.workspace,
            self._run_dir,
            time.time,
        )
        return reviewed(
            desk,
            plan.limits,
            story_patience(plan.loaded),
            # What guardrails leave and `protect` puts back is not the agent's to commit. Guardrails
            # may run what it wrote, so the law looks at the list when they are through.
            (clean, *self._gates(attention, start), *law),
            self._terms,
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
