"""The law between gates: lists stay as the turn left them, whatever code a check runs (ADR 33)."""

from collections.abc import Callable, Iterator

from ralph.adapters.story_gates import Lists
from ralph.adapters.task_watch import TaskWatch
from ralph.core.case import Case
from ralph.core.gates import Finding
from ralph.core.value import value

_WORDS = (
    "Code that a check ran changed {}. It was put back as your turn had left it. Only Ralph and"
    " people change it: take that out of the code."
)


@value
class TaskListGate:
    """Puts the task list back, and that of the project a worker works for."""

    watches: tuple[TaskWatch, ...]
    name = "task list"
    always = True

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing where only people and workers have written."""
        if [watch for watch in self.watches if watch.put_back()]:  # each of them is asked
            yield Finding(self.name, _WORDS.format("the task list"))


@value
class StoryListGate:
    """Puts the list of stories back."""

    lists: Lists
    put_back: Callable[[bytes, int], str]  # writes it, and says where what stood there is
    name = "story list"
    always = True

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing where it is the same to the byte."""
        wanted = self.lists.standing
        if wanted and self.lists.raw() != wanted[-1]:
            kept = self.put_back(wanted[-1], case.state.iteration)
            where = f" What stood there: {kept}" if kept else ""
            yield Finding(self.name, _WORDS.format("tasks.json") + where, gist="tasks.json")
