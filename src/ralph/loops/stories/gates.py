"""R's checks after the agent's exit, by the host's copy of the list before the turn."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ralph.git.uncommitted import HostCommit, uncommitted
from ralph.git.uncommitted_text import commit_all
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding, undone
from ralph.kernel.state import RunState
from ralph.kernel.value import value
from ralph.loops.stories.file import StoryStore
from ralph.loops.stories.folder import Folder
from ralph.loops.stories.prompt import StoryTerms
from ralph.review.law import NotAListError, Problem, has_shape, inconsistent, malformed
from ralph.review.law import snapshot as decided
from ralph.review.repair import Law

if TYPE_CHECKING:
    from ralph.git.checkpoint.trees import GitTrees

_MOST = 20  # of one gate; nobody reads more


@value
class Lists:
    """The list of stories before a turn and after it."""

    folder: Folder
    store: StoryStore
    terms: StoryTerms
    standing: list[bytes] = field(default_factory=list, repr=False)  # as the turn left it, last

    def raw(self) -> bytes | None:
        """The bytes of the list; None if it cannot be read."""
        try:
            return self.folder.file.raw()
        except OSError:
            return None

    def let_stand(self) -> None:
        """Remember the list: from here on only code that a check runs changes it."""
        now = self.raw()
        self.standing[:] = [now] if now is not None else []

    def law(self, state: RunState) -> Law:
        assert state.assignment is not None, "no turn has begun"
        failed = state.turn is not None and state.turn.failed
        terms = self.terms
        return Law(state.assignment.mode.value, terms.review_cap, terms.skip_review, failed)

    def before(self, state: RunState) -> Mapping[str, Any]:
        """The list when the turn began."""
        return self.store.listing(state.checkpoint)

    def now(self) -> object:
        """The JSON of the list; None if there is none."""
        try:
            return self.folder.file.listing()
        except NotAListError:
            return None

    def after(self) -> Mapping[str, Any] | None:
        """The list now, if its stories can be told apart."""
        now = self.now()
        return now if has_shape(now) else None


@value
class LawGate:
    """One check of the law, asked whatever became of the turn."""

    name: str
    problems: Callable[[Case], Iterable[Problem]]
    always: bool = True

    def check(self, case: Case) -> Iterator[Finding]:
        told = [words for _, words in self.problems(case)]
        yield from (Finding(self.name, words) for words in told[:_MOST])
        if len(told) > _MOST:
            yield Finding(self.name, f"And {len(told) - _MOST} more. See them all: ralph prd check")


def law_gates(lists: Lists) -> tuple[LawGate, ...]:
    """Checks 1, 2 and 2.5: the list is what R §8 says; no story contradicts itself; the turn did to
    the stories what its mode allows."""

    def schema(_: Case) -> Iterable[Problem]:
        try:
            return malformed(lists.folder.file.listing())
        except NotAListError as error:
            return [("", f"tasks.json was replaced or broken: {error}. It is put back.")]

    def invariants(case: Case) -> Iterable[Problem]:
        after, terms = lists.after(), lists.terms
        if after is None or terms.skip_review:
            return ()
        return inconsistent(after, terms.review_cap, decided(lists.before(case.state)))

    def transitions(case: Case) -> Iterable[Problem]:
        after = lists.after()
        if after is None or case.state.assignment is None:
            return ()
        found = lists.law(case.state).transitions(lists.before(case.state), after)
        # A turn that failed or said nothing has reviewed nothing, which is not its fault.
        idle = case.turn.failed or case.turn.silent
        return (problem for problem in found if problem[0] or not idle)

    checks = {"schema": schema, "invariants": invariants, "transitions": transitions}
    return tuple(LawGate(name, problems) for name, problems in checks.items())


@value
class CleanGate:
    """Check 3: everything is committed."""

    workspace: str
    environ: Mapping[str, str]
    folder: str  # the ralph folder, as people write it
    repository: bool  # whether there was one when the run began
    left_alone: frozenset[str] = frozenset()  # what a person had not committed by then
    host_commit: HostCommit | None = None  # where the agent cannot
    trees: "GitTrees | None" = None
    name: str = "clean tree"
    always: bool = True

    def check(self, case: Case) -> Iterator[Finding]:
        """Paths that are not committed. If git cannot tell, nothing counts as committed."""
        seen, stand = uncommitted(self.workspace, self.environ), case.snapshot.stand
        if seen is not None and self.trees is not None and stand.tree:
            # By the files themselves, since the agent can write git's index.
            seen = self.trees.uncommitted(stand)
        paths = None if seen is None else [path for path in seen if path not in self.left_alone]
        refusal = self.host_commit.refusal if self.host_commit else ""
        if paths is None and self.repository:
            text = (
                "git status fails here: the repository is broken, and nothing counts as committed."
            )
            yield Finding(self.name, text)
        elif paths and refusal:
            yield Finding(self.name, f"Your work could not be committed: {refusal}")
        elif paths:
            yield Finding(self.name, commit_all(self.folder, paths))


@value
class StoryListGate:
    """Puts the list of stories back, whatever code a check runs (ADR 33)."""

    lists: Lists
    put_back: Callable[[bytes, int], str]  # writes it, and says where what stood there is
    name = "story list"
    always = True

    def check(self, case: Case) -> Iterator[Finding]:
        wanted = self.lists.standing
        if wanted and self.lists.raw() != wanted[-1]:
            kept = self.put_back(wanted[-1], case.state.iteration)
            where = f" What stood there: {kept}" if kept else ""
            yield Finding(self.name, undone("tasks.json") + where, gist="tasks.json")
