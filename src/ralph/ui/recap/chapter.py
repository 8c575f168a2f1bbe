"""The part of a recap that one journal tells: the run's own, or a worker's. Facts in, values out.

What stands in files beside the journal is left to `contents`, and what git knows to `diffs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ralph.journal.life import note_question
from ralph.kernel import facts
from ralph.kernel.events import Usage
from ralph.kernel.facts import Asked, Assigned, Checked, Checking, Fact, Launching, Started
from ralph.kernel.prompt import told
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Ending, Role, Turn
from ralph.kernel.value import value
from ralph.kernel.verdict import Accept, Boundary, Continue, Verdict
from ralph.review.law import CHANGES_REQUESTED
from ralph.review.stats import Review, review_of
from ralph.ui.recap.values import Iteration, Judgement
from ralph.ui.recap.words import checks_of, judgement_of, settling_of, shown, trouble_of

LOOK = "look"  # the mode of iteration 0: the checks ran before the first turn
_GONE = "the run was gone before the turn ended"


@value
class Change:
    """Spending or progress at one moment."""

    time: float
    dollars: float = 0.0
    usage: Usage = Usage()
    done: int = 0


@value
class AgentTurn:
    """What a turn of an agent has cost."""

    agent: str
    cost_usd: float | None
    usage: Usage


@dataclass
class Draft:
    """An iteration as far as it is told."""

    number: int
    assignment: Assignment
    began: float
    before: str = ""  # the tree that its first turn found
    after: str = ""
    ended: float | None = None
    launches: list[Launching] = field(default_factory=list)  # of its turns, also of lost ones
    placed: dict[int, str] = field(default_factory=dict)  # the machines of attempts
    machines: dict[tuple[int, str], str] = field(default_factory=dict)  # and how it went there
    since: Launching | Checking | None = None  # what goes on
    turn: Turn | None = None
    agent_seconds: float = 0.0
    gate_seconds: float = 0.0
    wait_seconds: float = 0.0
    dollars: float = 0.0
    paid: int = 0  # how many costs are known
    usage: Usage = Usage()
    fed_back: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    checks: list[Checked] = field(default_factory=list)
    decided: facts.Decided | None = None
    verdict: Verdict | None = None  # as it was settled
    steps: list[facts.Step] = field(default_factory=list)
    commit: str = ""
    head: str = ""  # when its first turn began
    proof: facts.Proved | None = None
    made: Iteration | None = None  # of all this, once it has ended

    @property
    def changed(self) -> str:
        """The name of its difference for git: two trees, or a commit."""
        if self.before and self.after:
            return f"{self.before} {self.after}" if self.before != self.after else ""
        return self.commit

    def pay(self, cost: float | None, usage: Usage) -> None:
        self.dollars += cost or 0.0
        self.paid += cost is not None
        self.usage += usage

    def begin_turn(self, fact: facts.Began, before: RunState) -> None:
        """A turn begins; of one that is taken again, only what it was told is new."""
        self.fed_back = tuple(shown(piece.text) for piece in told(before.feedback))
        notes = (n for n in before.notes if n.task in ("", fact.assignment.task))
        self.notes = tuple(shown(note.text) for note in notes)
        self.assignment = fact.assignment
        self.ended = None

    def tell_of_turn(self, fact: facts.Fared | facts.Ended) -> None:
        """What became of a turn, or of an attempt at it on another machine."""
        if isinstance(fact, facts.Ended):
            self.turn = fact.turn
            self.agent_seconds += fact.turn.seconds
            self.pay(fact.turn.cost_usd, fact.turn.usage)
        elif fact.how == "placed":
            self.placed[fact.attempt] = fact.host
        else:  # whoever goes on after a kill may tell it again, and knows of no machine
            host = fact.host or self.placed.get(fact.attempt, "none")
            how = "" if fact.how == "done" else f" ({fact.how})"
            self.machines[fact.attempt, fact.how] = f"{host}{how}"

    def check(self, fact: Checked | facts.Proved) -> None:
        if isinstance(fact, Checked):
            self.checks.append(fact)
            self.gate_seconds += fact.seconds
        else:
            self.proof = fact
            self.after = self.after or fact.stand.tree
            made_it = self.number and fact.commit != self.head
            self.commit = fact.commit if made_it else self.commit

    def settle(self, step: facts.Step, doing: Launching | Checking | None) -> None:
        """A step of settling; `doing` is what went on before it, such as a message turn."""
        if isinstance(doing, Launching):
            self.agent_seconds += max(0.0, step.time - doing.time)
        self.pay(step.cost_usd or None, step.usage)
        self.steps.append(step)
        self.commit = step.commit or self.commit

    def again(self) -> None:
        """Forget what was found of the turn before: it is not about this one."""
        self.turn = self.decided = self.verdict = self.proof = None
        self.checks.clear()
        self.ended = None

    def iteration(
        self, worker: str, until: float, rules: Mapping[str, str], *, live: bool
    ) -> Iteration:
        """The iteration up to a moment. One of a run that is gone has ended then."""
        agent, gates, since = self.agent_seconds, self.gate_seconds, self.since
        passed = max(0.0, until - since.time) if since is not None else 0.0
        if isinstance(since, Launching):
            agent += passed
        elif since is not None:
            gates += passed
        ended = self.ended
        ending, trouble = "", ""
        if self.turn is not None:
            ending, trouble = self.turn.ending.value, trouble_of(self.turn)
        elif not live and self.launches:
            ending, trouble = Ending.CUT.value, _GONE
        is_done = ended is not None or not live
        return Iteration(
            number=self.number,
            worker=shown(worker),
            task=shown(self.assignment.task),
            title=shown(self.assignment.title),
            mode=self.assignment.mode.value if self.number else LOOK,
            began=self.began,
            ended=(until if ended is None else ended) if is_done else None,
            agent_seconds=agent,
            gate_seconds=gates,
            wait_seconds=self.wait_seconds,
            cost_usd=self.dollars if self.paid else None,
            usage=self.usage,
            tries=len(self.launches),
            fed_back=self.fed_back,
            person_notes=self.notes,
            tool_calls=self.turn.tools if self.turn else 0,
            tool_errors=self.turn.tool_errors if self.turn else 0,
            agent=shown(self.launches[-1].who) if self.launches else "",
            machines=tuple(map(shown, self.machines.values())),
            stream=shown(self.launches[-1].stream) if self.launches else "",
            ending=ending,
            trouble=trouble,
            checks=tuple(checks_of(self.checks)),
            judgement=self.judgement(rules),
            settled=tuple(map(settling_of, self.steps)),
            commit=shown(self.commit),
            tree=shown(self.proof.tree) if self.proof else "",
        )

    def judgement(self, rules: Mapping[str, str]) -> Judgement | None:
        if self.decided is None:
            return None
        return judgement_of(self.decided, self.turn, self.verdict, rules)


class Chapter:
    """Follows one journal. `sent` is what a worker was sent to do."""

    def __init__(self, run: str, sent: Assigned | None = None) -> None:
        self.run, self.sent = run, sent
        self.state = NEW
        self.started: Started | None = None
        self.doing: Launching | Checking | None = None  # the last fact, if something is under way
        self.drafts: dict[int, Draft] = {}
        self.changes: list[Change] = []
        self.turns: list[AgentTurn] = []
        self.reviews: list[tuple[float, Review]] = []
        self.approved: set[str] = set()  # stories, by their last review here
        self.asked: list[Asked] = []
        self.opening: facts.Decided | None = None  # the last verdict that let no turn begin
        self.asking: dict[str, str] = {}  # tasks with the questions they wait with
        self.evidence: dict[str, tuple[str, ...]] = {}  # of tasks that are done
        self._slept = 0.0  # since the last iteration

    def iteration(
        self, draft: Draft, now: float, rules: Mapping[str, str], *, live: bool
    ) -> Iteration:
        """An iteration up to now. One that has ended is made once."""
        if draft.made is not None:
            return draft.made
        until = now if live else self.state.time
        made = draft.iteration(self.worker, until, rules, live=live)
        draft.made = made if draft.ended is not None else None
        return made

    @property
    def draft(self) -> Draft | None:
        """The iteration under work, or the last one."""
        return next(reversed(self.drafts.values()), None)

    @property
    def worker(self) -> str:
        return self.run if self.sent is not None else ""

    def take(self, fact: Fact) -> None:
        """One more fact."""
        before, self.state = self.state, fold(self.state, fact)
        self.doing = fact if isinstance(fact, Launching | Checking) else None
        self._count_sleep(before, fact)
        note_question(self.asking, fact, self.state.task)
        match fact:
            case Started():
                self.started = fact
            case Asked():
                self.asked.append(fact)
            case facts.Began():
                self._begin(fact, before)
            case facts.Decided():
                stays = fact.boundary is Boundary.OPENING and not isinstance(fact.verdict, Continue)
                self.opening = fact if stays else None
            case facts.Settled(verdict=Accept(evidence)):
                self.evidence[self.state.task] = evidence
            case facts.Returned(verdict=Accept(evidence)):
                self.evidence[fact.task] = evidence
        if not isinstance(fact, Started | Asked | facts.Began | Assigned | facts.Returned):
            self._tell(fact)
        self._note_change(before, fact)

    def _count_sleep(self, before: RunState, fact: Fact) -> None:
        """Time asleep belongs to the iteration that comes after it, or that is taken again."""
        slept = self.state.waited - before.waited
        if not slept and before.wake is not None and isinstance(before.verdict, Continue):
            slept = max(0.0, min(fact.time, before.wake) - before.time)
        if not slept or isinstance(fact, Launching | Checking | Checked | facts.Resumed):
            return
        if before.again and self.draft is not None:
            self.draft.wait_seconds += slept
            self.draft.made = None
        else:
            self._slept += slept

    def _begin(self, fact: facts.Began, before: RunState) -> None:
        draft = self.drafts.get(fact.iteration)
        if draft is None:
            stand = fact.snapshot.stand
            draft = Draft(fact.iteration, fact.assignment, fact.time, stand.tree, head=stand.head)
            draft.wait_seconds, self._slept = self._slept, 0.0
            self.drafts[fact.iteration] = draft
        else:
            draft.again()
        draft.begin_turn(fact, before)
        draft.made = None

    def _tell(self, fact: Fact) -> None:
        """Add a fact to the iteration that it is about."""
        draft = self.draft
        if draft is None or draft.number == 0:
            draft = self._look_first(fact)
        if draft is None:
            return
        doing, draft.since = draft.since, self.doing
        draft.made = None
        match fact:
            case Launching() if fact.role is not Role.MESSAGE:
                if draft.turn is not None:
                    draft.again()
                draft.launches.append(fact)
            case facts.Fared() | facts.Ended():
                draft.tell_of_turn(fact)
            case Checked() | facts.Proved():
                draft.check(fact)
            case facts.Decided(boundary=Boundary.CLOSING):
                draft.decided = fact
                draft.after = fact.tree or draft.after
            case facts.Step():
                draft.settle(fact, doing)
            case facts.Settled(verdict=verdict) if self.opening is None:
                draft.verdict, draft.ended = verdict, fact.time

    def _look_first(self, fact: Fact) -> Draft | None:
        """The iteration before the first one, in which checks run and no agent; None for facts that
        are not about it."""
        if not isinstance(fact, Checking | Checked | facts.Proved | facts.Step):
            return None
        if self.draft is None and isinstance(fact, Checking):
            self.drafts[0] = Draft(0, Assignment(""), fact.time)
        draft = self.draft
        if draft is not None:
            draft.ended = None if isinstance(fact, Checking) else fact.time
        return draft

    def _note_change(self, before: RunState, fact: Fact) -> None:
        """Add what was spent and done. What a worker has spent is told by its own journal."""
        match fact:
            case Started():
                change = Change(fact.time)
            case facts.Ended(turn=turn):
                self.turns.append(AgentTurn(self.state.who, turn.cost_usd, turn.usage))
                change = Change(fact.time, turn.cost_usd or 0.0, turn.usage)
            case facts.Step():
                done = self._note_review(fact) if fact.key == "review" else 0
                if fact.cost_usd or fact.usage != Usage():
                    self.turns.append(AgentTurn(self.state.who, fact.cost_usd, fact.usage))
                change = Change(fact.time, fact.cost_usd or 0.0, fact.usage, done)
            case facts.Settled() | facts.Returned():
                done = len(self.state.done) - len(before.done)
                change = Change(fact.time, done=done)
            case _:
                return
        if change != Change(fact.time) or isinstance(fact, Started):
            self.changes.append(change)

    def _note_review(self, step: facts.Step) -> int:
        """Add a review; how many more stories are approved by it."""
        review = review_of(step.detail)
        if review is None:
            return 0
        self.reviews.append((step.time, review))
        before = len(self.approved)
        if review.outcome == CHANGES_REQUESTED:
            self.approved.discard(review.story)
        else:
            self.approved.add(review.story)
        return len(self.approved) - before
