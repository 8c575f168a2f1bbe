"""The attempts at the turns of one task: what the journal and the refs say about them."""

import os
import time
from collections.abc import Callable
from contextlib import suppress

from ralph import __version__
from ralph.files.safe_open import open_regular
from ralph.fleet.port import Job
from ralph.fleet.trees import Remote, ResultFound, make_order, read_result, ref_of, refs_of
from ralph.git.checkpoint.work import Work
from ralph.git.repository import with_records
from ralph.kernel.facts import Ended, Fared, Sent
from ralph.kernel.turn import Order
from ralph.kernel.value import value

LIST = os.path.join(".ralph", "tasks.jsonl")
DONE, FAILED, LOST, PLACED, IGNORED = "done", "failed", "lost", "placed", "ignored"


@value
class Errand:
    """The same in every attempt at a task."""

    run: str
    task: str
    branch: str  # of its work tree
    settings: str  # that its turns need, as JSON
    lease: float


class Attempts:
    """One after the other: the next is made when the last is fenced. All that it knows is in the
    journal and at the refs, so it goes on in another process."""

    def __init__(
        self,
        remote: Remote,
        work: Work,
        errand: Errand,
        record: Callable[[Sent | Fared], None],
        *,
        number: int = 0,
        sent: Sent | None = None,
    ) -> None:
        """So far there were so many; `sent` is the one of a turn that is not over."""
        self._remote, self._work, self._errand = remote, work, errand
        self._record, self._number, self.sent = record, number, sent
        self._result: ResultFound | None = None
        self.again = False  # an earlier process may have submitted it

    def begun(self, order: Order) -> bool:
        """Have an attempt whose order is at its ref: the one under way, or a new one. False where
        its result is there already, or somebody else's work."""
        sent = self.sent = self.sent or self._ordered(order)
        there = self._remote.at(sent.ref).get(sent.ref, "")
        self.again = there == sent.order
        return self.again or (not there and self._remote.put(sent.ref, sent.order))

    def _ordered(self, order: Order) -> Sent:
        """Make the order of a new attempt, recorded before anybody can know of it."""
        repository, head, top = self._work.repository, self._work.head(), self._work.workspace
        inside = os.path.relpath(top, repository.place.top)
        commit = make_order(
            repository,
            order,
            head=head,
            work=with_records(repository, self._work.tree(), head),
            task_list=self.task_list(),
            inside="" if inside == "." else inside,
        )
        run, task = self._errand.run, self._errand.task
        # Those of an earlier worker, and of one who was killed before the ref was gone.
        old = self._remote.at(refs_of(run, task))
        self._remote.forget(old)
        numbers = (int(at) for at in map(os.path.basename, old) if at.isdecimal())
        self._number = max((self._number, *numbers)) + 1
        ref = ref_of(run, task, self._number)
        self._result = None
        sent = Sent(time.time(), self._number, ref, commit, self._errand.lease)
        self._record(sent)
        return sent

    def job(self) -> Job:
        """The attempt under way, as it travels."""
        errand, sent = self._errand, self.sent
        assert sent is not None, "it has begun"
        return Job(
            __version__,
            errand.run,
            errand.task,
            sent.attempt,
            sent.ref,
            sent.order,
            self._remote.url,
            sent.lease or errand.lease,  # a setting that was changed since does not shorten it
            errand.settings,
        )

    def found(self) -> ResultFound | None:
        """The result of the attempt, if it is at its ref. What is none counts as none."""
        sent = self.sent
        if self._result is None and sent is not None:
            there = self._remote.at(sent.ref).get(sent.ref, "")
            if there not in ("", sent.order):
                self._remote.fetch(sent.ref)
                with suppress(ValueError):
                    found = read_result(self._work.repository, there, sent.order)
                    if found.facts and isinstance(found.facts[-1], Ended):
                        self._result = found
        return self._result

    def fared(self, how: str, host: str = "", detail: str = "") -> None:
        """Record what became of it."""
        assert self.sent is not None, "it has begun"
        self._record(Fared(time.time(), self.sent.attempt, how, host, detail))

    def ignored(self, number: int, host: str, why: str) -> None:
        """Record that one came back that was given up."""
        self._record(Fared(time.time(), number, IGNORED, host, why))

    def give_up(self, how: str, host: str, detail: str) -> None:
        """Fence an attempt that has no result: nothing of it is believed from here on. That is
        recorded first, so that whoever is killed in between does not bring it back."""
        assert self.sent is not None, "it has begun"
        there = self._remote.at(self.sent.ref)
        if there.get(self.sent.ref, self.sent.order) != self.sent.order:
            self.fared(IGNORED, host, "what came is no result of its order")
        self.fared(how, host, detail)
        self._remote.forget(there)
        if late := self._remote.at(self.sent.ref):
            self.fared(IGNORED, host, "what came when it was given up is not looked at")
            self._remote.forget(late)
        self.sent = None

    def forget(self) -> None:
        """Delete the ref of an attempt whose work has landed, or is to be thrown away."""
        if self.sent is not None:
            self._remote.forget(self._remote.at(self.sent.ref))
        self.leave()

    def leave(self) -> None:
        """Want nothing more of an attempt, whose ref goes with those of the run."""
        self.sent = self._result = None

    def task_list(self) -> bytes | None:
        """The task list that the agent sees, if its work tree has one."""
        path = self._list
        if os.path.islink(path) or not os.path.exists(path):
            return None  # where a link leads is not for another machine
        with open_regular(path) as file:
            return file.read()

    @property
    def _list(self) -> str:
        return os.path.join(self._work.workspace, LIST)
