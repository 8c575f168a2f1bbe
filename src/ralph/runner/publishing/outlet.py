"""The way of a run's work to its forge: `origin` for commits, REST for pull requests and checks."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ralph.errors import RalphError
from ralph.forge.port import Check, Checks, Project, Proposal, Pulls, PullState
from ralph.git.remote import Remote
from ralph.git.repository import call, clean_environ
from ralph.git.scm import ScmCommand
from ralph.kernel.facts import Published
from ralph.kernel.limits import Spent
from ralph.kernel.ports import Committed
from ralph.kernel.state import RunState
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Accept, Stop
from ralph.runner.publishing.pull_words import Account, Subject, body_of, title_of
from ralph.runner.publishing.settle import Pushed
from ralph.text.redact import redact
from ralph.text.words import listed
from ralph.ui.closing import proof_words
from ralph.ui.paper.words import telling

if TYPE_CHECKING:
    from ralph.settings.schema import PullSettings, Settings

_SHORT_ID = 12


class Forge(Pulls, Checks, Protocol):
    """What publishing needs of one."""

    @property
    def name(self) -> str:
        """GitHub or GitLab."""


@value
class Destination:
    """Where the work of a run is to go: known before it begins, so that nothing is paid in vain."""

    forge: Forge
    remote: Remote
    base: str
    project: Project

    def words(self, settings: "Settings") -> str:
        """For people, before the first turn."""
        mode = settings.pr.mode
        ci = "complete when CI is green" if hears(settings) else "CI is not asked"
        if mode is None:
            return f"CI: {self.project.name}; {ci}"
        return f"Pull requests: {mode}, into {self.base} of {self.project.name}; {ci}"


def hears(settings: "Settings") -> bool:
    """True if CI's word on published work counts."""
    return settings.ci.enabled is not False


@value
class ForgeOutlet:
    """The outlet of one run. `branch` names the branch of some work, and `about` tells of it."""

    to: Destination
    terms: "PullSettings"
    scm: ScmCommand
    branch: Callable[[RunState], str]
    about: Callable[[RunState], Subject]
    report: Callable[[], str]  # of the run so far, as Markdown
    below: str = ""  # the branch that the work stands on; "" for the base

    def top(self, state: RunState) -> str:
        said = call(("rev-parse", "--verify", "--quiet", "HEAD"), self.scm.workspace, self._environ)
        top = state.commit or said.output.decode().strip()
        if self.terms.mode is None:  # the run pushes by itself
            return top
        base = self.to.remote.heads(self.to.base).get(self.to.base, "")
        return "" if not top or (base and self.to.remote.follows(top, base)) else top

    def push(self, state: RunState, commit: str) -> Pushed:
        def carry_out(words: str) -> Committed:
            return self.scm.run(words, state) or Committed()

        ok, said = self.to.remote.push(commit, self.branch(state), carry_out)
        return Pushed(ok, said, foreign=not ok)

    def propose(self, state: RunState, commit: str, now: float) -> Published:
        subject, base = self._subject(state), self._base(state)
        closes = base == self.to.project.default_branch
        before = Spent() if self.terms.mode == "per-run" else state.spent_before_task
        account = _account(state, before, self._told())
        branch = self.branch(state)
        pull = self.to.forge.put(
            Proposal(
                branch,
                base,
                redact(title_of(subject)),
                redact(body_of(subject, account, closes=closes)),
                self.terms.draft,
                self.terms.labels,
                self.terms.reviewers,
            )
        )
        if subject.issues and not closes:
            words = f"A merge into {base} does not close {listed(subject.issues)}: only one into"
            self.to.forge.comment(pull.number, f"{words} {self.to.project.default_branch} does.")
        return Published(now, state.task, branch, base, pull.number, pull.url, commit)

    def moved(self, pull: Published) -> str:
        there = self.to.remote.heads(pull.branch).get(pull.branch, "")
        found = self.to.forge.pull(pull.number)
        if found.state is PullState.CLOSED:
            return f"somebody has closed #{pull.number}: {pull.url}"
        if found.state is PullState.MERGED:
            return ""
        for head in (there, found.head):
            # An older commit of ours: the forge has not noticed yet.
            if head and head != pull.commit and not self.to.remote.follows(head, pull.commit):
                return f"somebody else has pushed {head[:_SHORT_ID]} to {pull.branch}: {pull.url}"
        return "" if there else f"the branch {pull.branch} is gone: {pull.url}"

    def checks(self, commit: str) -> tuple[Check, ...]:
        return self.to.forge.checks(commit)

    def log(self, check: Check) -> str:
        return redact(self.to.forge.log(check))

    def say(self, pull: Published, text: str) -> None:
        self.to.forge.comment(pull.number, redact(text))

    def merge(self, pull: Published) -> None:
        self.to.forge.merge(pull.number, pull.commit, self.terms.merge_method)

    def _subject(self, state: RunState) -> Subject:
        """With issues of this repository by their numbers."""
        subject, here = self.about(state), f"{self.to.project.name.lower()}#"
        own = (
            issue if not issue.lower().startswith(here) else issue[len(here) - 1 :]
            for issue in subject.issues
        )
        return replace(subject, issues=tuple(own))

    def _base(self, state: RunState) -> str:
        """The branch to merge into: in a stack that of the work before, while it is open."""
        own = self.branch(state)
        if self.below and self.below != own:
            return self.below
        if self.terms.mode != "stacked":
            return self.to.base
        for pull in reversed(state.pulls):
            is_open = pull.branch != own and not pull.merged
            if is_open and self.to.forge.pull(pull.number).state is PullState.OPEN:
                return pull.branch
        return self.to.base

    @property
    def _environ(self) -> dict[str, str]:
        return clean_environ(self.scm.env)

    def _told(self) -> str:
        with suppress(RalphError, OSError, ValueError):  # the pull request is worth more
            return self.report()
        return ""


def _account(state: RunState, before: Spent, report: str) -> Account:
    """What the work took since then, and what speaks for it."""
    verdict, spent = state.verdict, state.spent
    evidence = telling(verdict.evidence) if isinstance(verdict, Accept | Stop) else ()
    known = spent.uncounted == before.uncounted
    return Account(
        tuple(evidence),
        proof_words(state),
        spent.iterations - before.iterations,
        spent.seconds - before.seconds,
        spent.dollars - before.dollars if known else None,
        report,
    )
