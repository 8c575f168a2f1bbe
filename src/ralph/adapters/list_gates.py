"""The law between gates: lists stay as the turn left them, whatever code a check runs (ADR 33)."""

from collections.abc import Callable, Iterator

from ralph.adapters.story_gates import Lists
from ralph.adapters.task_watch import TaskWatch
from ralph.core.case import Case
from ralph.core.gates import Finding
from ralph.core.value import value

_WORDS = (
    "Code run by a check changed {}; it was restored. Only Ralph and people may change it: remove"
    " that from the code."
)
_SHARED = (
    "The project's task list was changed while your checks ran; it was restored. Only Ralph and"
    " people may change it: if your code does, remove that."
)


@value
class TaskListGate:
    """Puts the task list back, and that of the project a worker works for."""

    own: TaskWatch
    shared: TaskWatch | None = None  # other workers' agents may reach it too
    name = "task list"
    always = True

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing where only people and workers have written."""
        if self.own.put_back():
            yield Finding(self.name, _WORDS.format("the task list"))
        if self.shared is not None and self.shared.put_back():
            yield Finding(self.name, _SHARED)


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
